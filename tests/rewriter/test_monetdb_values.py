"""Locally computed values are those that MonetDB stores, value and Python type."""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plugins.monetdb import connect_natively
from tests.rewriter.test_kernel import FRACTION, WHOLE, quick, same
from tique_rewriter import NotLocal, coercer, compile_kernel
from tique_rewriter.plans.plan import Arithmetic, ColumnValue, Literal, Parameter

INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
DECIMALS = ("DECIMAL(4,1)", "DECIMAL(9,0)", "DECIMAL(12,2)", "DECIMAL(18,18)")
WIDE = ("DECIMAL(18,2)", "DECIMAL(38,10)", "NUMERIC", "DEC(5)")
TEXTS = (
    "CHAR",
    "CHARACTER(3)",
    "VARCHAR(3)",
    "CHARACTER VARYING (2)",
    "CHARACTER LARGE OBJECT",
    "CLOB",
    "CLOB(3)",
    "TEXT",
    "STRING",
)
OTHERS = (
    "BOOLEAN",
    "DATE",
    "TIME",
    "TIME(6)",
    "TIMESTAMP",
    "TIMESTAMP(3)",
    "TIMESTAMP WITH TIME ZONE",
    "DOUBLE",
    "DOUBLE PRECISION",
    "REAL",
    "BLOB",
    "UUID",
    "OID",
)
TYPES = INTEGERS + DECIMALS + WIDE + TEXTS + OTHERS

LEAST = [-(2 ** (bits - 1)) for bits in (8, 16, 32, 64, 128)]
# pymonetdb misreads the control characters from U+0080 to U+009F in replies.
READABLE = st.characters(
    exclude_categories=["Cs"], exclude_characters=[chr(c) for c in range(0x80, 0xA0)]
)
ANY = st.one_of(
    st.none(),
    st.booleans(),
    WHOLE,
    FRACTION,
    st.floats(),
    st.text(READABLE, max_size=5),
    st.sampled_from(
        ["1", " 1", "a  ", "true", "2020-01-01", "a\0b", "it's \\'", "NULL"]
    ),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.times(),
    st.binary(),
    st.uuids(),
)


def literal(value: object) -> str:
    """The value as MonetDB's text for exactly it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            shown = repr(value)
            return shown if "e" in shown else f"{shown}e0"
        case Decimal():
            return format(value, "f")
        case bytes():
            return f"X'{value.hex()}'"
        case uuid.UUID():
            return f"UUID '{value}'"
        case datetime.datetime():
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case datetime.date():
            return f"DATE '{value.isoformat()}'"
        case datetime.time():
            return f"TIME '{value.isoformat()}'"
        case str():
            return "R'" + value.replace("'", "''") + "'"
    return str(value)


@pytest.fixture(scope="module")
def engine(monetdb_server):
    connection = connect_natively(monetdb_server.url)
    cursor = connection.cursor()
    cursor.execute("CREATE SCHEMA kernel")
    cursor.execute("SET SCHEMA kernel")
    for number, type_ in enumerate(TYPES):
        cursor.execute(f"CREATE TABLE t{number} (a {type_}, b {type_})")
    yield cursor
    cursor.execute("SET SCHEMA sys")
    cursor.execute("DROP SCHEMA kernel CASCADE")
    connection.close()


def stored(engine, type_: str, value: object) -> object:
    table = f"t{TYPES.index(type_)}"
    engine.execute(f"TRUNCATE {table}")
    engine.execute(f"INSERT INTO {table} (a) VALUES ({literal(value)})")
    engine.execute(f"SELECT a FROM {table}")
    return engine.fetchone()[0]


@pytest.mark.parametrize("type_", TYPES)
def test_a_coerced_value_is_what_the_engine_stores(engine, type_: str):
    coerce = coercer(type_)

    @quick
    @given(ANY)
    @example(-0.0)
    @example(5e-324)
    @example(float("inf"))
    @example(Decimal("-0.0"))
    @example("a   ")
    @example("e\u0301e\u0301")
    @example("\U0001f600" * 3)
    @example(uuid.UUID(int=0))
    @example(datetime.date.min)
    @example(datetime.datetime.min)
    @example(datetime.datetime(9998, 12, 31, 23, 59, 59, 999999))
    @example(datetime.time(1, 2, 3, 999999))
    @example(b"")
    @example("")
    def check(value: object):
        try:
            local = coerce(value)
        except NotLocal:
            return
        assert same(local, stored(engine, type_, value))

    check()
    for value in LEAST:
        try:
            local = coerce(value)
        except NotLocal:
            continue
        assert same(local, stored(engine, type_, value))


@pytest.mark.parametrize("type_", INTEGERS + DECIMALS + ("DECIMAL(18,2)", "NUMERIC"))
def test_arithmetic_is_the_engines(engine, type_: str):
    table = f"t{TYPES.index(type_)}"
    values = WHOLE if type_ in INTEGERS else st.one_of(WHOLE, FRACTION)
    leaves = st.one_of(
        st.sampled_from([ColumnValue(0), ColumnValue(1), Parameter(1), Parameter(2)]),
        st.integers(0, 300).map(Literal),
        st.just(Literal(Decimal("1.5"))),
        st.just(Literal(None)),
    )
    kernels = st.recursive(
        leaves,
        lambda inner: st.builds(Arithmetic, st.sampled_from("+-"), inner, inner),
        max_leaves=4,
    )
    overflowing = Arithmetic(
        "+", Parameter(1), Arithmetic("+", Literal(30), Literal(Decimal("1.5")))
    )

    @quick
    @given(kernels, values, values, values, values)
    # MonetDB overflows: 1.500 + 31.500 in 16 bits.
    @example(overflowing, 0, 0, Decimal("1.500"), 0)
    def check(kernel, first, second, one, other):
        evaluate = compile_kernel(kernel, type_, [type_, type_])
        coerce = coercer(type_)
        try:
            row = (coerce(first), coerce(second))
            local = None if evaluate is None else evaluate(row, (one, other))
        except NotLocal:
            return
        if evaluate is None:
            return
        engine.execute(f"TRUNCATE {table}")
        shown = ", ".join(map(literal, row))
        engine.execute(f"INSERT INTO {table} VALUES ({shown})")
        engine.execute(f"UPDATE {table} SET a = {sql(kernel, (one, other))}")
        engine.execute(f"SELECT a FROM {table}")
        assert same(local, engine.fetchone()[0])

    check()


def sql(kernel: object, parameters: tuple[object, object]) -> str:
    match kernel:
        case Parameter(number):
            return literal(parameters[number - 1])
        case Literal(value):
            return literal(value)
        case ColumnValue(position):
            return "ab"[position]
        case Arithmetic(operator, left, right):
            return f"({sql(left, parameters)} {operator} {sql(right, parameters)})"
    raise AssertionError
