"""Locally computed values are those that the engine stores, value and Python type."""

from __future__ import annotations

import datetime
import decimal
import math
import sys
import uuid
from decimal import Decimal

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tique_rewriter import NotLocal, coercer, compile_kernel
from tique_rewriter.plans.plan import Arithmetic, ColumnValue, Literal, Parameter

INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "UBIGINT",
)
DECIMALS = ("DECIMAL(4,1)", "DECIMAL(9,0)", "DECIMAL(12,2)", "DECIMAL(18,18)")
WIDE = ("DECIMAL(38,10)", "NUMERIC")
OTHERS = (
    "VARCHAR",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "DOUBLE",
    "BLOB",
    "UUID",
)
TYPES = INTEGERS + DECIMALS + WIDE + OTHERS

EDGES = [2**n + d for n in (7, 8, 15, 16, 31, 32, 63, 64, 127) for d in (-1, 0, 1)]
WHOLE = st.one_of(
    st.integers(-300, 300),
    st.sampled_from(EDGES),
    st.sampled_from([-e for e in EDGES]),
)
FRACTION = st.one_of(
    st.decimals(-10_000, 10_000, places=2),
    st.decimals(-1, 1, places=18),
    st.decimals(allow_nan=True, allow_infinity=True),
    st.sampled_from(
        [Decimal("-0"), Decimal("-0.0"), Decimal("1E+2"), Decimal("1.500")]
    ),
)
ANY = st.one_of(
    st.none(),
    st.booleans(),
    WHOLE,
    FRACTION,
    st.floats(),
    st.text(),
    st.sampled_from(["1", "1.0", " 1", "true", "2020-01-01", "\ud800", "a\0b"]),
    st.dates(),
    st.sampled_from([datetime.date.min, datetime.date.max, datetime.datetime.max]),
    st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.binary(),
    st.uuids(),
)

quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as connection:
        for number, type_ in enumerate(TYPES):
            connection.execute(f"CREATE TABLE t{number} (a {type_}, b {type_})")
        yield connection


def stored(engine: duckdb.DuckDBPyConnection, type_: str, value: object) -> object:
    table = f"t{TYPES.index(type_)}"
    engine.execute(f"DELETE FROM {table}")
    engine.execute(f"INSERT INTO {table} (a) VALUES ($1)", [value])
    return engine.execute(f"SELECT a FROM {table}").fetchone()[0]


def same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other and str(one) == str(other)


@pytest.mark.slow
@pytest.mark.parametrize("type_", TYPES)
def test_a_coerced_value_is_what_the_engine_stores(
    engine: duckdb.DuckDBPyConnection, type_: str
):
    coerce = coercer(type_)

    @quick
    @given(ANY)
    @example(datetime.date.max)
    @example(datetime.datetime.max)
    @example(Decimal("-0.0"))
    def check(value: object):
        try:
            local = coerce(value)
        except NotLocal:
            return
        assert same(local, stored(engine, type_, value))

    check()


@pytest.mark.slow
@pytest.mark.parametrize("type_", INTEGERS + DECIMALS)
def test_arithmetic_is_the_engines(engine: duckdb.DuckDBPyConnection, type_: str):
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

    @quick
    @given(kernels, values, values, values, values)
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
        engine.execute(f"DELETE FROM {table}")
        engine.execute(f"INSERT INTO {table} VALUES ($1, $2)", row)
        text = sql(kernel)
        used = {str(n): v for n, v in ((1, one), (2, other)) if f"${n}" in text}
        engine.execute(f"UPDATE {table} SET a = {text}", used)
        got = engine.execute(f"SELECT a FROM {table}").fetchone()[0]
        assert same(local, got)

    check()


def sql(kernel: object) -> str:
    match kernel:
        case Parameter(number):
            return f"${number}"
        case Literal(value):
            return "NULL" if value is None else str(value)
        case ColumnValue(position):
            return "ab"[position]
        case Arithmetic(operator, left, right):
            return f"({sql(left)} {operator} {sql(right)})"
    raise AssertionError


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("INTEGER", ["1", 1.0, True, Decimal(1), 2**31, -(2**31) - 1]),
        ("BIGINT", ["1", 1.0, True, 2**63]),
        ("VARCHAR", [1, b"1", True, "\ud800"]),
        ("BOOLEAN", [1, 0, "true"]),
        ("DECIMAL(4,1)", [1.5, "1.5", Decimal("1.55"), 1000, Decimal("1E1"), True]),
        ("DECIMAL(4,1)", [Decimal("NaN"), Decimal("Infinity")]),
        ("DATE", [datetime.datetime(2020, 1, 1), "2020-01-01", datetime.date.max]),
        ("TIMESTAMP", [datetime.date(2020, 1, 1), datetime.datetime.now(datetime.UTC)]),
        ("DOUBLE", [1, Decimal(1), math.nan, "1"]),
        ("BLOB", ["a", bytearray(b"a")]),
        ("UUID", [str(uuid.uuid4()), uuid.UUID(int=0)]),
        ("TINYINT", [-128]),
        ("HUGEINT", [-(2**127)]),
        ("DOUBLE", [math.inf, -math.inf]),
        ("VARCHAR", ["a\0b"]),
        ("VARCHAR(3)", ["abcd", "abc ", "e\u0301e\u0301"]),
        ("character varying ( 2 )", ["abc"]),
        ("CHAR", ["ab"]),
        ("CLOB(1)", ["ab"]),
        ("OID", [1]),
        ("TIMESTAMP WITH TIME ZONE", [datetime.datetime(2020, 1, 1), None]),
        ("INTEGER[]", [[1], None]),
        ("FLOAT", [1.0]),
        ("DECIMAL(39,0)", [1]),
    ],
)
def test_what_is_left_to_the_engine(type_: str, values: list[object]):
    for value in values:
        with pytest.raises(NotLocal):
            coercer(type_)(value)


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("int", "INTEGER"),
        ("  Double   precision ", "DOUBLE"),
        ("numeric( 12 , 2 )", "DECIMAL(12,2)"),
        ("decimal", "DECIMAL(18,3)"),
        ("DEC(5)", "DECIMAL(5,0)"),
        ("varchar(10)", "VARCHAR"),
        ("timestamp without time zone", "TIMESTAMP"),
    ],
)
def test_types_as_people_write_them(text: str, like: str):
    assert coercer(text) is not coercer("INTEGER[]")
    for value in (1, Decimal("1.5"), "a", 1.5, datetime.datetime(2020, 1, 1)):
        results = []
        for type_ in (text, like):
            try:
                results.append(repr(coercer(type_)(value)))
            except NotLocal:
                results.append("not local")
        assert results[0] == results[1]


def test_a_column_of_another_type_is_the_engines():
    kernel = Arithmetic("+", ColumnValue(0), Literal(1))
    assert compile_kernel(kernel, "BIGINT", ["INTEGER"]) is None
    assert compile_kernel(kernel, "INTEGER", ["int4"]) is not None
    assert compile_kernel(ColumnValue(0), "VARCHAR", ["INTEGER"]) is None
    assert compile_kernel(Literal("1"), "INTEGER", []) is None
    assert compile_kernel(Literal(1), "GEOMETRY", []) is None


def test_a_text_fits_where_it_is_copied():
    for target, source, fits in (
        ("VARCHAR", "VARCHAR(3)", True),
        ("VARCHAR(4)", "CHAR(3)", True),
        ("VARCHAR(3)", "VARCHAR(4)", False),
        ("VARCHAR(3)", "TEXT", False),
    ):
        made = compile_kernel(ColumnValue(0), target, [source])
        assert (made is not None) is fits


def test_values_alone_are_computed_by_the_engine():
    alone = Arithmetic("+", Parameter(1), Parameter(2))
    for kernel in (alone, Arithmetic("+", ColumnValue(0), alone)):
        assert compile_kernel(kernel, "INTEGER", ["INTEGER"]) is None
        assert compile_kernel(kernel, "DECIMAL(4,1)", ["DECIMAL(4,1)"]) is None


def test_nothing_overflows_on_the_way():
    kernel = Arithmetic("-", Arithmetic("+", ColumnValue(0), Parameter(1)), Literal(9))
    evaluate = compile_kernel(kernel, "TINYINT", ["TINYINT"])
    assert evaluate is not None
    assert evaluate((100,), (20,)) == 111
    with pytest.raises(NotLocal):
        evaluate((127,), (1,))


def test_the_applications_decimal_context_does_not_matter():
    kernel = Arithmetic("+", ColumnValue(0), Parameter(1))
    evaluate = compile_kernel(kernel, "DECIMAL(12,2)", ["DECIMAL(12,2)"])
    assert evaluate is not None
    with decimal.localcontext(decimal.Context(prec=3)):
        assert evaluate((Decimal("12345.67"),), (1,)) == Decimal("12346.67")


@pytest.mark.parametrize("type_", ["BIGINT", "DECIMAL(12,2)"])
@pytest.mark.parametrize("value", [1, None])
def test_every_operand_is_evaluated_once(type_: str, value: object):
    class Counted(list):
        reads = 0

        def __getitem__(self, position):
            self.reads += 1
            return super().__getitem__(position)

    kernel = ColumnValue(0)
    for number in range(12):
        parts = (kernel, Parameter(1)) if number % 2 else (Parameter(1), kernel)
        kernel = Arithmetic("+", *parts)
    compiled = compile_kernel(kernel, type_, [type_])
    assert compiled is not None
    parameters, row = Counted([value]), Counted([value])
    assert compiled(row, parameters) == (None if value is None else 13)
    assert row.reads == 1
    assert parameters.reads == 12


def test_compiling_a_kernel_takes_time_that_grows_as_it_does():
    counts = []
    for size in (100, 200):
        kernel = ColumnValue(0)
        for _ in range(size):
            kernel = Arithmetic("+", kernel, Literal(1))
        calls = 0

        def count(frame, event, arg):
            nonlocal calls
            calls += 1

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            compile_kernel(kernel, "BIGINT", ["BIGINT"])
        finally:
            sys.setprofile(before)
        counts.append(calls)
    assert counts[1] < 2.3 * counts[0]
