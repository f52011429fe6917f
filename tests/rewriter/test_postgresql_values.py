"""Accepted values are PostgreSQL's: stored and given back unchanged."""

from __future__ import annotations

from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rewriter.test_kernel import quick
from tique_rewriter.dialects.postgresql import column_type
from tique_rewriter.local.values import NotLocal, coercer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.targets.cluster import Cluster

TYPES = (
    "smallint",
    "int",
    "int8",
    "numeric",
    "numeric(5,2)",
    "decimal(18)",
    "text",
    "varchar(3)",
    "character varying(3)",
    "char",
    "character(3)",
    "bpchar",
    "nchar(2)",
    '"char"',
    "boolean",
    "real",
    "double precision",
    "date",
    "timestamp",
    "timestamp(0)",
    "timestamp with time zone",
    "uuid",
    "bytea",
    "jsonb",
    "text[]",
    "interval",
)


@pytest.fixture(scope="module")
def server(postgresql_cluster: Cluster) -> Iterator[psycopg.Cursor[Any]]:
    with closing(psycopg.connect(postgresql_cluster.url)) as connection:
        columns = ", ".join(f"c{i} {type_}" for i, type_ in enumerate(TYPES))
        connection.execute(f"CREATE TEMPORARY TABLE kept ({columns})")
        connection.commit()
        yield connection.cursor()


def stored(cursor: psycopg.Cursor[Any], type_: str, value: object) -> Any:
    column = f"c{TYPES.index(type_)}"
    try:
        cursor.execute(
            f"INSERT INTO kept ({column}) VALUES (%s) RETURNING {column}", [value]
        )
        ((kept,),) = cursor.fetchall()
    finally:
        cursor.connection.rollback()
    return kept


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) - 1, 2**63),
    st.sampled_from([0, -(2**15), 2**15 - 1, 2**31 - 1, 2**31, 2**63 - 1]),
    st.decimals(-1000, 1000, places=2),
    st.text(alphabet="a é\0", max_size=4),
    st.floats(),
    st.dates(),
    st.datetimes(),
    st.uuids(),
    st.binary(max_size=3),
)


@quick
@given(st.sampled_from(TYPES), VALUES)
@example("numeric", Decimal("1.5"))
@example("character(3)", "a")
@example("character(3)", "a  ")
@example("character(3)", "abc")
@example("bpchar", "a ")
@example("char", "")
@example("varchar(3)", "abc ")
@example("numeric(5,2)", Decimal("1.5"))
@example("numeric(5,2)", 7)
@example("timestamp(0)", datetime(2020, 1, 1, 0, 0, 0, 600000))
@example("date", date(1, 1, 1))
@example("uuid", UUID(int=0))
def test_a_local_value_is_what_the_server_keeps(
    server: psycopg.Cursor[Any], type_: str, value: object
):
    """P1: a row that is read from our own buffer is the row that the server has."""
    try:
        local = coercer(column_type(type_))(value)
    except NotLocal:
        return
    kept = stored(server, type_, value)
    assert type(kept) is type(local)
    assert repr(kept) == repr(local)


@pytest.mark.parametrize("type_", ["NUMERIC", "decimal", "bpchar", "char(2)", "nchar"])
def test_what_other_engines_keep_otherwise_has_a_name_of_its_own(
    server: psycopg.Cursor[Any], type_: str
):
    """The name says the same type to the server, and another to the coercers."""
    server.execute(
        f"SELECT format_type(t.oid, NULL) FROM pg_type t WHERE t.oid = "
        f"(SELECT pg_typeof(NULL::{type_})::oid)"
    )
    expected = server.fetchall()
    server.execute(
        f"SELECT format_type(t.oid, NULL) FROM pg_type t WHERE t.oid = "
        f"(SELECT pg_typeof(NULL::{column_type(type_)})::oid)"
    )
    assert server.fetchall() == expected
    with pytest.raises(NotLocal):
        coercer(column_type(type_))("" if "char" in type_ else Decimal("1.5"))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("character(3)", "abc"),
        ("varchar(3)", "ab"),
        ("int8", 2**62),
        ("numeric(5,2)", Decimal("1.5")),
        ("timestamp without time zone", datetime(2020, 1, 1)),
        ("double precision", 1.5),
    ],
)
def test_what_is_common_is_local(type_: str, value: object):
    assert coercer(column_type(type_))(value) == value
