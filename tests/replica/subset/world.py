"""Tables with awkward values, the same ones natively in PostgreSQL and in DuckDB."""

from __future__ import annotations

import datetime
import math
import re
import uuid
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import psycopg

from tests.rewriter.tables import Tables
from tique_rewriter.dialects import rules_of
from tique_rewriter.replica import Translation, translate
from tique_rewriter.schema import Column, Table
from tique_rewriter.text.placeholders import number_placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique_rewriter.replica.types import Type

_COLUMNS = {
    "numbers": "id INTEGER, s SMALLINT, i INTEGER, b BIGINT, n NUMERIC(10,2), "
    "m NUMERIC(4,4), w NUMERIC(30,10), d DOUBLE PRECISION, f BOOLEAN",
    "texts": "id INTEGER, t TEXT, v VARCHAR(10), c pg_catalog.bpchar(5), k TEXT",
    "moments": "id INTEGER, d DATE, t time without time zone, ts TIMESTAMP, "
    "tz timestamp with time zone",
    "others": "id INTEGER, u UUID, y BYTEA",
    "real": "id INTEGER, r REAL",
}
_OTHER_COLLATION = 'pg_catalog."en-x-icu"'


def _table(name: str) -> Table:
    columns = [each.split(" ", 1) for each in re.split(", ", _COLUMNS[name])]
    return Table(
        "public",
        name,
        tuple(
            Column(column, kind, collation=_OTHER_COLLATION if column == "k" else None)
            for column, kind in columns
        ),
    )


TABLES = {name: _table(name) for name in _COLUMNS}

_BIG = 9223372036854775807
_D = Decimal
_UTC = datetime.UTC
_inf = "infinity"

ROWS: dict[str, list[tuple[Any, ...]]] = {
    "numbers": [
        (1, 1, 1, 1, _D("2.50"), _D("0.1250"), _D("1.0000000001"), 0.5, True),
        (
            2,
            -1,
            -7,
            -8,
            _D("-2.50"),
            _D("-0.0005"),
            _D("-12345678901234567890.5"),
            -0.0,
            False,
        ),
        (3, 0, 0, 0, _D("0.00"), _D("0.0000"), _D("0"), 0.0, None),
        (
            4,
            7,
            5,
            10,
            _D("2.45"),
            _D("0.9999"),
            _D("99999999999999999999.9999999999"),
            1e308,
            True,
        ),
        (5, 5, 7, 9999, _D("-0.05"), _D("0.3333"), _D("0.0000000001"), 1 / 3, False),
        (6, None, None, None, None, None, None, None, None),
        (
            7,
            32767,
            2147483647,
            _BIG,
            _D("99999999.99"),
            _D("0.0001"),
            _D("3"),
            math.inf,
            True,
        ),
        (
            8,
            -32768,
            -2147483648,
            -_BIG - 1,
            _D("-99999999.99"),
            _D("-0.9999"),
            _D("-3.5"),
            -math.inf,
            False,
        ),
        (9, 1, 5, 10001, _D("12345.67"), _D("0.5000"), _D("2"), math.nan, True),
        (
            10,
            2,
            100,
            99990000,
            _D("0.01"),
            _D("0.0625"),
            _D("1e-5"),
            1.0000000000000002,
            None,
        ),
    ],
    "texts": [
        (1, "a", "b", "a", "a"),
        (2, "", "", "", ""),
        (3, "ab ", "ab", "ab", "AB"),
        (4, "A", "a", "A", "B"),
        (5, "a%b", "a_b", "a%b", "a"),
        (6, None, None, None, None),
        (7, "  ab", "a b", "  ab", "b"),
        (8, "é🦆x", "é%", "é🦆x", "é"),
        (9, "\u00c4ß", "\u00e4", "\u00c4ß", "Z"),
        (10, "a\\b", "a\\\\b", "a\\b", "z"),
        (11, "a'b\tc\n", "x\ty", "a\t", "a-b"),
        (12, "abcabcabc" * 20, "bcabcabcab", "abcde", "ab"),
        (13, "e\u0301", "e", "e\u0301", "e\u0301"),
    ],
    "moments": [
        (
            1,
            "2024-02-29",
            "00:00:00",
            "2024-02-29 23:59:59.999999",
            "2024-02-29 12:00:00+00",
        ),
        (
            2,
            "1999-12-31",
            "23:59:59.999999",
            "1999-12-31 00:00:00",
            "1999-12-31 23:30:00-01",
        ),
        (
            3,
            "0001-01-01",
            "12:34:56.5",
            "0001-01-01 00:00:00",
            "1970-01-01 00:00:00+00",
        ),
        (
            4,
            "9999-12-31",
            "12:00:00",
            "9999-12-31 23:59:59.999999",
            "2100-01-01 00:00:00+00",
        ),
        (5, None, None, None, None),
        (
            6,
            "2024-01-31",
            "01:02:03",
            "2024-01-31 10:11:12.345678",
            "2024-03-31 00:30:00+00",
        ),
        (
            7,
            "1969-12-31",
            "05:00:00",
            "1969-12-31 23:59:59.5",
            "1969-12-31 00:00:00+00",
        ),
        (8, "2023-03-31", "18:30:00", "2023-03-31 12:00:00", "2023-03-31 12:00:00+00"),
        (9, "2021-01-03", "18:30:00", "2021-01-03 12:00:00", "2021-01-03 12:00:00+00"),
        (100, _inf, "00:00:00", _inf, _inf),
        (101, "-infinity", "00:00:00", "-infinity", "-infinity"),
        (
            102,
            "5874897-12-31",
            "24:00:00",
            "294246-01-01 00:00:00",
            "294246-01-01 00:00:00+00",
        ),
        (
            103,
            "0044-03-15 BC",
            "00:00:00",
            "0044-03-15 00:00:00 BC",
            "0044-03-15 00:00:00+00 BC",
        ),
    ],
    "others": [
        (1, uuid.UUID(int=0), b""),
        (2, uuid.UUID(int=2**128 - 1), b"\x00\xff"),
        (3, None, None),
        (4, uuid.UUID("12345678-1234-5678-1234-567812345678"), b"abc"),
    ],
    "real": [(1, 0.1)],
}

_DUCKDB_TYPES = {
    "pg_catalog.bpchar(5)": "VARCHAR",
    "time without time zone": "TIME",
    "timestamp with time zone": "TIMESTAMPTZ",
    "DOUBLE PRECISION": "DOUBLE",
    "BYTEA": "BLOB",
}


def _duckdb_type(kind: str) -> str:
    return _DUCKDB_TYPES.get(kind, kind)


def fill_postgresql(connection: psycopg.Connection[Any]) -> None:
    """Create the tables in PostgreSQL."""
    connection.execute("SET timezone = 'UTC'")
    for table in TABLES.values():
        columns = ", ".join(
            f"{c.name} {c.type} {f'COLLATE {c.collation}' if c.collation else ''}"
            for c in table.columns
        )
        connection.execute(f'CREATE TABLE "{table.name}" ({columns})')
        places = ", ".join(f"%s::{column.type}" for column in table.columns)
        for row in ROWS[table.name]:
            connection.execute(f'INSERT INTO "{table.name}" VALUES ({places})', row)


def fill_duckdb(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables in DuckDB, as a replica holds them: char(n) filled up."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("CREATE SCHEMA public")
    for table in TABLES.values():
        types = [_duckdb_type(c.type) for c in table.columns]
        columns = ", ".join(
            f"{c.name} {kind}" for c, kind in zip(table.columns, types, strict=True)
        )
        connection.execute(f'CREATE TABLE public."{table.name}" ({columns})')
        places = ", ".join(f"CAST(? AS {kind})" for kind in types)
        for row in ROWS[table.name]:
            values = [
                value.ljust(5) if value is not None and "bpchar" in c.type else value
                for value, c in zip(row, table.columns, strict=True)
            ]
            values = [
                re.sub(r"^(\S+)(.*) BC", r"\1 (BC)\2", value)
                if isinstance(value, str) and value.endswith(" BC")
                else value
                for value in values
            ]
            connection.execute(
                f'INSERT INTO public."{table.name}" VALUES ({places})', values
            )


def translated(
    sql: str,
    kinds: Sequence[Type | None] | None = None,
    find: Callable[[str | None, str], Table | None] | None = None,
) -> Translation:
    """Translate a query about these tables; DuckDB finds them in a schema of that name."""
    lexicon = rules_of("postgresql").lexicon
    return translate(
        number_placeholders(sql, has_parameters=kinds is not None, lexicon=lexicon),
        kinds or (),
        find or (lambda _, name: TABLES.get(name)),
        collation_is_c=True,
    )


@dataclass(frozen=True)
class Answer:
    """Rows, each value with its type, or an error."""

    rows: tuple[tuple[str, ...], ...] | None
    error: str = ""


def shown(value: object) -> str:
    """A value with its type and all of its digits."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(_UTC)
    return f"{type(value).__name__} {value!r}"


def _answer(rows: Sequence[Sequence[object]], is_ordered: bool) -> Answer:
    found = [tuple(map(shown, row)) for row in rows]
    return Answer(tuple(found if is_ordered else sorted(found)))


def ask_postgresql(
    connection: psycopg.Connection[Any],
    sql: str,
    parameters: Sequence[object] | None,
    *,
    is_ordered: bool,
) -> Answer:
    """What PostgreSQL answers."""
    try:
        return _answer(connection.execute(sql, parameters).fetchall(), is_ordered)
    except psycopg.Error as error:
        return Answer(None, str(error))


def ask_duckdb(
    connection: duckdb.DuckDBPyConnection,
    translation: Translation,
    parameters: Sequence[object] | None,
    *,
    is_ordered: bool,
) -> Answer:
    """What DuckDB answers to the translation."""
    try:
        found = connection.execute(translation.sql, parameters or ()).fetchall()
    except (duckdb.Error, ValueError, OverflowError) as error:
        return Answer(None, str(error))
    rows = [
        tuple(
            Decimal(value) if type_ == "numeric" and isinstance(value, str) else value
            for type_, value in zip(translation.types, row, strict=True)
        )
        for row in found
    ]
    return _answer(rows, is_ordered)


class Replica(Tables):
    """What the replica's rewriter asks of its catalog: the tables, of DuckDB's types."""

    default_schema = "public"
    all = tuple(
        replace(
            table,
            columns=tuple(
                replace(column, type=_duckdb_type(column.type), collation=None)
                for column in table.columns
            ),
        )
        for table in TABLES.values()
    )
