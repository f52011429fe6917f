import datetime
import time

import pytest

from tique import types

pytestmark = pytest.mark.engine_free

OBJECTS = [types.STRING, types.BINARY, types.NUMBER, types.DATETIME, types.ROWID]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (types.STRING, "VARCHAR"),
        (types.STRING, "VARCHAR(10)"),
        (types.STRING, "varchar"),
        (types.STRING, "JSON"),
        (types.STRING, "ENUM('a', 'b)', '(c')"),
        (types.BINARY, "BLOB"),
        (types.NUMBER, "INTEGER"),
        (types.NUMBER, "DECIMAL(12,2)"),
        (types.NUMBER, "UHUGEINT"),
        (types.NUMBER, "DOUBLE"),
        (types.DATETIME, "DATE"),
        (types.DATETIME, "TIME"),
        (types.DATETIME, "TIMESTAMP"),
        (types.DATETIME, "TIMESTAMP_NS"),
        (types.DATETIME, "TIMESTAMP WITH TIME ZONE"),
        (types.DATETIME, "timestamp(3) with time zone"),
        (types.DATETIME, "INTERVAL"),
        (types.ROWID, "OID"),
        (None, "BOOLEAN"),
        (None, "UUID"),
        (None, "INTEGER[]"),
        (None, "INTEGER[3]"),
        (None, "DECIMAL(12,2)[]"),
        (None, "STRUCT(a VARCHAR)"),
        (None, "MAP(VARCHAR, INTEGER)"),
        (None, ""),
    ],
)
def test_kind_of_a_type_name(kind, name):
    assert [candidate for candidate in OBJECTS if candidate == name] == (
        [] if kind is None else [kind]
    )
    assert [candidate for candidate in OBJECTS if name == candidate] == (
        [] if kind is None else [kind]
    )


def test_type_objects_equal_themselves_only():
    for one in OBJECTS:
        assert [other for other in OBJECTS if other == one] == [one]
        assert one != 23
        assert one is not None


def test_type_objects_have_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(types.STRING)


def test_type_objects_name_themselves():
    assert repr(types.NUMBER) == "tique.NUMBER"


def test_constructors():
    assert types.Date(2024, 2, 29) == datetime.date(2024, 2, 29)
    assert types.Time(23, 59, 1) == datetime.time(23, 59, 1)
    assert types.Timestamp(2024, 2, 29, 23, 59, 1) == datetime.datetime(
        2024, 2, 29, 23, 59, 1
    )


def test_ticks_are_local_time():
    moment = datetime.datetime(2024, 2, 29, 23, 59, 1)
    ticks = time.mktime(moment.timetuple())
    assert types.DateFromTicks(ticks) == moment.date()
    assert types.TimeFromTicks(ticks) == moment.time()
    assert types.TimestampFromTicks(ticks) == moment


@pytest.mark.parametrize("data", [b"a\0b", bytearray(b"a\0b"), memoryview(b"a\0b")])
def test_binary(data):
    assert types.Binary(data) == b"a\0b"


@pytest.mark.parametrize("data", ["text", 5, None])
def test_binary_takes_bytes_only(data):
    with pytest.raises(TypeError):
        types.Binary(data)
