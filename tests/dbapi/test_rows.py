import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tique.errors import ProgrammingError
from tique.rows import _field_name, dict_row, namedtuple_row, tuple_row

pytestmark = pytest.mark.engine_free


def test_tuple_row_changes_nothing():
    values = (1, "one")
    assert tuple_row(["id", "id"])(values) is values


def test_dict_row():
    make = dict_row(["id", "name"])
    assert make((1, "one")) == {"id": 1, "name": "one"}
    assert make((2, None)) == {"id": 2, "name": None}


def test_dict_row_keeps_the_last_of_equal_names():
    assert dict_row(["id", "name", "id"])((1, "one", 2)) == {"id": 2, "name": "one"}


def test_dict_row_refuses_a_row_of_another_width():
    with pytest.raises(ValueError, match="shorter"):
        dict_row(["id", "name"])((1,))


def test_namedtuple_row():
    row = namedtuple_row(["id", "name"])((1, "one"))
    assert row == (1, "one")
    assert (row.id, row.name) == (1, "one")
    assert row._fields == ("id", "name")


def test_namedtuple_row_shares_the_class():
    first = namedtuple_row(["id", "name"])((1, "one"))
    second = namedtuple_row(("id", "name"))((2, "two"))
    assert type(first) is type(second)


@pytest.mark.parametrize(
    ("column", "field"),
    [
        ("count(*)", "count___"),
        ("count_star()", "count_star__"),
        ("?column?", "f_column_"),
        ("2024", "f2024"),
        ("_cts", "f_cts"),
        ("class", "class_"),
        ("größe", "größe"),
        ("a²", "a_"),
        ("", "f"),
    ],
)
def test_namedtuple_fields_are_python_names(column, field):
    assert namedtuple_row([column])((1,))._fields == (field,)


@given(st.text())
def test_any_column_name_makes_a_field(column):
    field = _field_name(column)
    assert field.isidentifier()
    assert not field.startswith("_")
    assert not keyword.iskeyword(field)


def test_namedtuple_row_refuses_equal_names():
    with pytest.raises(ProgrammingError, match=r"'a b' and 'a_b'.*AS"):
        namedtuple_row(["a b", "a_b"])
