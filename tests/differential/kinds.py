"""Columns' types on each engine, with literals of each."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import duckdb


@dataclass(frozen=True)
class Kind:
    """A type.

    ``family`` says which expressions take it: ``int``, ``num``, ``float``, ``text``, ``bool``,
    ``date``, ``stamp`` or ``other``. Equal values of an ``exact`` type are the same to
    the last digit, so that a query may group by it, or sort by it below a LIMIT.
    """

    name: str
    family: str
    literals: tuple[str, ...]
    exact: bool = True
    keyable: bool = True
    has_equality: bool = True


def _cast(name, *texts):
    return tuple("CAST('{}' AS {})".format(t.replace("'", "''"), name) for t in texts)


_SMALL = tuple(str(i) for i in range(8))
_WORDS = (
    "a",
    "b",
    "A",
    "",
    "ab",
    "it's",
    "é",
    "100%",
    "n1",
    "n2",
    " a",
    "a\\b",
    "日本",
)

INTEGER = Kind("INTEGER", "int", (*_SMALL, "-1", "1000"))
BIGINT = Kind("BIGINT", "int", (*_SMALL, "9007199254740993"))
SMALLINT = Kind("SMALLINT", "int", (*_SMALL, "-32767", "32767"))
DECIMAL = Kind("DECIMAL(9,2)", "num", ("0.00", "1.50", "-2.25", "3.10", "100.01", "7"))
DOUBLE = Kind(
    "DOUBLE PRECISION",
    "float",
    ("0.5", "1.25", "-3.0", "1e300", "0.1", "1e-5"),
    exact=False,
)
BOOLEAN = Kind("BOOLEAN", "bool", ("TRUE", "FALSE"), keyable=False)
DATE = Kind(
    "DATE",
    "date",
    tuple(
        f"DATE '{d}'"
        for d in ("2024-01-01", "2024-02-29", "1999-12-31", "0001-01-01", "9999-12-31")
    ),
)
TIMESTAMP = Kind(
    "TIMESTAMP",
    "stamp",
    tuple(
        f"TIMESTAMP '{t}'"
        for t in (
            "2024-01-01 00:00:00",
            "2024-02-29 23:59:59.999999",
            "1969-12-31 23:59:59.5",
        )
    ),
)


def _text(name, words=_WORDS):
    return Kind(name, "text", tuple("'" + w.replace("'", "''") + "'" for w in words))


def _other(name, *texts, exact=True, keyable=True, has_equality=True):
    return Kind(name, "other", _cast(name, *texts), exact, keyable, has_equality)


_UUIDS = (
    "00000000-0000-0000-0000-000000000001",
    "ffffffff-ffff-4fff-bfff-ffffffffffff",
    "12345678-1234-4abc-8def-123456789abc",
)
_CORE = (INTEGER, BIGINT, SMALLINT, DECIMAL, DOUBLE, BOOLEAN, DATE, TIMESTAMP)

DUCKDB = (
    *_CORE,
    _text("VARCHAR"),
    Kind("TINYINT", "int", (*_SMALL, "-128", "127")),
    Kind("UTINYINT", "int", (*_SMALL, "255")),
    Kind("UBIGINT", "int", (*_SMALL, "18446744073709551615")),
    Kind("HUGEINT", "int", (*_SMALL, "170141183460469231731687303715884105727")),
    # A join with other integers may convert them to BIGINT.
    Kind("UHUGEINT", "int", (*_SMALL, "9223372036854775807")),
    Kind(
        "DECIMAL(38,10)", "num", ("0.1", "1234567890123456789012345678.0123456789", "7")
    ),
    _other("REAL", "0.1", "1.5", "nan", "-inf", exact=False),
    # No equal ones: DuckDB leaves a value that an UPDATE changes to an equal one, 0 to -0,
    # 1 month to 30 days.
    _other("DOUBLE", "nan", "inf", "-inf", "-0.0", "5e-324", exact=False),
    _other("BLOB", "", "\\x00\\xFF", "abc"),
    _other("TIME", "00:00:00", "23:59:59.999999", "24:00:00"),
    _other(
        "TIMETZ", "12:00:00+00", "13:00:00+01", "23:59:59.999999-08:30", exact=False
    ),
    _other(
        "TIMESTAMPTZ",
        "2024-01-01 00:00:00+00",
        "2024-07-01 12:00:00.123456+05",
        "infinity",
    ),
    _other("TIMESTAMP_S", "2024-01-01 00:00:01", "1900-01-01 00:00:00"),
    _other("TIMESTAMP_MS", "2024-01-01 00:00:01.001", "1900-01-01 00:00:00"),
    _other(
        "TIMESTAMP_NS", "2024-01-01 00:00:00.123456789", "1900-01-01 00:00:00.000000001"
    ),
    _other(
        "INTERVAL",
        "1 month",
        "31 days",
        "721 hours",
        "-1 year 2 days",
        "00:00:00.000001",
        exact=False,
        keyable=False,
    ),
    _other("UUID", *_UUIDS),
    _other("JSON", '{"a": 1.50}', "[1, null]", '"x"', "null"),
    _other("ENUM('red', 'green', 'it''s')", "red", "green", "it's"),
    _other("BIT", "1", "0101", "00000000"),
    _other("INTEGER[]", "[]", "[1, NULL, 3]", "[7]", keyable=False),
    _other("VARCHAR[]", "[]", "[a, NULL]", keyable=False),
    _other("INTEGER[2]", "[1, 2]", "[NULL, 0]", keyable=False),
    _other(
        "STRUCT(a INTEGER, b VARCHAR)",
        "{'a': 1, 'b': x}",
        "{'a': NULL, 'b': NULL}",
        keyable=False,
    ),
    _other("MAP(VARCHAR, INTEGER)", "{k=1}", "{}", "{a=NULL, b=2}", keyable=False),
    Kind(
        "UNION(n INTEGER, t VARCHAR)",
        "other",
        ("union_value(n := 1)", "union_value(t := 'x')", "union_value(t := '1')"),
        keyable=False,
    ),
)

POSTGRESQL = (
    *_CORE,
    _text("TEXT"),
    _text("VARCHAR(8)"),
    Kind("CHAR(4)", "other", _cast("CHAR(4)", "a", "ab  ", "", "é"), exact=True),
    Kind(
        "NUMERIC(38,10)", "num", ("0.1", "1234567890123456789012345678.0123456789", "7")
    ),
    _other("NUMERIC", "1.5", "1.50", "NaN", "1e50", "-0.0", "Infinity", exact=False),
    _other("REAL", "0.1", "1.5", "nan", "-inf", exact=False),
    _other("DOUBLE PRECISION", "nan", "inf", "-0.0", "0", "5e-324", exact=False),
    _other("BYTEA", "", "\\x00ff", "abc"),
    _other("TIME", "00:00:00", "23:59:59.999999"),
    _other(
        "TIMETZ", "12:00:00+00", "13:00:00+01", "23:59:59.999999-08:30", exact=False
    ),
    _other(
        "TIMESTAMPTZ",
        "2024-01-01 00:00:00+00",
        "2024-07-01 12:00:00.123456+05",
        "infinity",
    ),
    _other("TIMESTAMP(3)", "2024-01-01 00:00:00.123", "1900-01-01 00:00:00"),
    _other(
        "INTERVAL",
        "1 month",
        "30 days",
        "720 hours",
        "-1 year 2 days",
        "00:00:00.000001",
        exact=False,
    ),
    _other("UUID", *_UUIDS),
    _other(
        "JSON", '{"a": 1.50}', "[1,  null]", '"x"', keyable=False, has_equality=False
    ),
    _other("JSONB", '{"a": 1.50}', '{"a": 1.5}', "[1, null]", '"x"', exact=False),
    _other("INTEGER[]", "{}", "{1,NULL,3}", "{7}"),
    _other("TEXT[]", "{}", "{a,NULL}", '{"its","x,y"}'),
    _other("NUMERIC(5,2)[]", "{1.50,NULL}", "{}"),
    _other("INT4RANGE", "[1,5)", "empty", "(,3]"),
    _other("TSTZRANGE", "[2024-01-01 00:00+00,)", "empty"),
    _other("INT4MULTIRANGE", "{[1,3),[5,7)}", "{}"),
    _other("MONEY", "1.50", "-2"),
    _other("XML", "<a/>", "<b>x</b>", keyable=False, has_equality=False),
    _other("INET", "10.0.0.1", "10.0.0.0/8", "::1"),
    _other("CIDR", "10.0.0.0/8", "::/0"),
    _other("MACADDR", "08:00:2b:01:02:03"),
    _other("BIT(3)", "101", "000"),
    _other("BIT VARYING(8)", "1", "", "0101"),
    _other("POINT", "(1,2)", "(0.5,-0)", keyable=False, has_equality=False),
    _other("TSVECTOR", "a b", "cat:3 dog:1A"),
    _other("colour", "red", "green", "it's"),
    _other("positive", "1", "7"),
    _other("word", "x", "it's"),
    _other("pair", "(1,x)", "(,)", exact=False),
)

MONETDB = (
    *_CORE[:5],
    BOOLEAN,
    DATE,
    TIMESTAMP,
    _text("VARCHAR(20)"),
    _text("CLOB"),
    Kind("TINYINT", "int", (*_SMALL, "-127", "127")),
    Kind("HUGEINT", "int", (*_SMALL, "170141183460469231731687303715884105727")),
    Kind(
        "DECIMAL(38,10)", "num", ("0.1", "1234567890123456789012345678.0123456789", "7")
    ),
    _other("REAL", "0.1", "1.5", exact=False),
    # No empty one: an UPDATE to it makes bytes of the server's memory of NULL in other rows.
    _other("BLOB", "00", "00FF", "61"),
    _other("TIME", "00:00:00", "23:59:59"),
    _other("TIME(6)", "00:00:00", "23:59:59.999999"),
    _other("TIMESTAMP(3)", "2024-01-01 00:00:00.123", "1900-01-01 00:00:00"),
    _other(
        "TIMESTAMP WITH TIME ZONE",
        "2024-01-01 00:00:00+00:00",
        "2024-07-01 12:00:00.123456+05:00",
    ),
    Kind("INTERVAL MONTH", "other", ("INTERVAL '1' MONTH", "INTERVAL '-14' MONTH")),
    Kind("INTERVAL SECOND", "other", ("INTERVAL '1' SECOND", "INTERVAL '-90' SECOND")),
    Kind("INTERVAL DAY", "other", ("INTERVAL '1' DAY", "INTERVAL '-3' DAY")),
    _other("UUID", *_UUIDS),
    _other("JSON", '{"a":1.50}', "[1,null]", keyable=False),
    _other("INET", "10.0.0.1", "10.0.0.0/8", keyable=False),
    _other("URL", "http://a.example/x?y=1", keyable=False),
)

if duckdb.__version__ < "2" and find_spec("pytz") is None:
    # Then DuckDB's driver cannot show it.
    DUCKDB = tuple(kind for kind in DUCKDB if kind.name != "TIMESTAMPTZ")

KINDS = {"duckdb": DUCKDB, "postgresql": POSTGRESQL, "monetdb": MONETDB}

PORTABLE = (INTEGER, _text("VARCHAR(20)", ("a", "b", "A", "", "ab", "it's", "é")))
"""Types with the same values and operators everywhere."""

SETUP = {
    "postgresql": (
        "CREATE TYPE colour AS ENUM ('red', 'green', 'it''s')",
        "CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0)",
        "CREATE DOMAIN word AS TEXT",
        "CREATE TYPE pair AS (a INTEGER, b TEXT)",
    ),
    "duckdb": (),
    "monetdb": (),
}
"""Types of the application's own."""
