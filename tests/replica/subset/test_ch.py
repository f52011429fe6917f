"""All queries of CH-benCHmark are in the subset, and answer alike in both engines (P10)."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from random import Random

import pytest

from benchmarks.ch.queries import QUERIES
from benchmarks.ch.relations import TABLES as ADDED
from benchmarks.ch.relations import generate
from benchmarks.tpcc.schema import COLUMNS
from tests.replica.subset import world
from tique_rewriter.schema import Column, Table

pytestmark = pytest.mark.duckdb

_COLUMN = re.compile(r"^\s*(?!PRIMARY)(\w+) ([A-Z]+(?:\([\d, ]+\))?)", re.MULTILINE)


def _table(name: str, text: str) -> Table:
    columns = []
    for column, kind in _COLUMN.findall(text):
        kind = kind.replace(" ", "").replace("DECIMAL", "NUMERIC")
        kind = re.sub(r"^CHAR", "pg_catalog.bpchar", kind)
        columns.append(Column(column, kind))
    return Table("ch", name, tuple(columns))


TABLES = {name: _table(name, text) for name, text in COLUMNS.items()}
TABLES |= {name: _table(name, text.split("(", 1)[1]) for name, text in ADDED.items()}
_NUMBERS = {
    "customer": 200,
    "orders": 400,
    "new_order": 150,
    "order_line": 2500,
    "item": 60,
    "stock": 120,
}


def _value(column: Column, random: Random):
    """A value in which most of the queries' conditions find something."""
    name, kind = column.name, column.type
    if name.endswith("_w_id"):
        return random.randint(1, 2)
    if name.endswith("d_id") and kind == "INTEGER":
        return random.randint(1, 2)
    if kind == "INTEGER":
        most = {
            "i_id": 60,
            "c_id": 50,
            "o_id": 50,
            "quantity": 12,
            "cnt": 15,
            "carrier_id": 10,
        }
        limit = next((n for end, n in most.items() if name.endswith(end)), 20)
        return random.randint(1, limit)
    if kind == "TIMESTAMP":
        if random.random() < 0.1 and name == "ol_delivery_d":
            return None
        return datetime.datetime(2006, 6, 1) + datetime.timedelta(
            hours=random.randint(0, 30000)
        )
    if kind.startswith("NUMERIC"):
        digits, scale = map(int, re.findall(r"\d+", kind))
        return Decimal(
            random.randint(-(10 ** min(digits, 7)) + 1, 10 ** min(digits, 7) - 1)
        ).scaleb(-scale)
    if name == "c_state":
        return random.choice(["A", "h", "R", "c", "hR"])
    if name.endswith("_phone"):
        return str(random.randint(10**8, 10**9))
    if name == "i_data":
        return random.choice(["PRab", "cBB", "zzb", "a", "xc", "PRb", "c%a"])
    longest = min(int(re.findall(r"\d+", kind)[0]), 4)
    return "".join(random.choices("abcXYZ é", k=random.randint(1, longest)))


def _rows(name: str):
    random = Random(name)
    if name in ADDED:
        rows = next(t for n, t in generate(1) if n == name).slice(0, 150).to_pylist()
        for row in rows if name == "supplier" else ():
            row["su_nationkey"] = ord(random.choice("hRcA"))
        return rows
    columns = TABLES[name].columns
    return [
        {column.name: _value(column, random) for column in columns}
        for _ in range(_NUMBERS.get(name, 0))
    ]


@pytest.fixture(scope="module")
def filled(servers):
    servers.replica.execute("CREATE SCHEMA IF NOT EXISTS ch")
    servers.source.execute("CREATE SCHEMA IF NOT EXISTS ch")
    for table in TABLES.values():
        columns = table.columns
        types = ", ".join(f"{c.name} {c.type}" for c in columns)
        servers.source.execute(f"CREATE TABLE ch.{table.name} ({types})")
        types = re.sub(r"pg_catalog.bpchar\(\d+\)", "VARCHAR", types)
        servers.replica.execute(f"CREATE TABLE ch.{table.name} ({types})")
        rows = [[row[c.name] for c in columns] for row in _rows(table.name)]
        if not rows:
            continue
        places = ", ".join(["%s"] * len(columns))
        servers.source.cursor().executemany(
            f"INSERT INTO ch.{table.name} VALUES ({places})", rows
        )
        sizes = [re.findall(r"bpchar\((\d+)\)", column.type) for column in columns]
        padded = [
            [v.ljust(int(n[0])) if n else v for v, n in zip(row, sizes, strict=True)]
            for row in rows
        ]
        places = places.replace("%s", "?")
        servers.replica.executemany(
            f"INSERT INTO ch.{table.name} VALUES ({places})", padded
        )
    servers.source.execute("ANALYZE")
    servers.source.execute("SET search_path = ch")
    yield servers
    servers.source.execute("RESET search_path")


@pytest.mark.parametrize("name", QUERIES)
def test_ch(filled, name):
    query = QUERIES[name]
    translation = world.translated(query, find=lambda _, table: TABLES.get(table))
    wanted = world.ask_postgresql(filled.source, query, None, is_ordered=False)
    found = world.ask_duckdb(filled.replica, translation, None, is_ordered=False)
    assert wanted.rows is not None, wanted.error
    assert found.rows == wanted.rows, found.error
    if name not in ("Q15", "Q18", "Q20"):
        assert any(value != "NoneType None" for row in wanted.rows for value in row), (
            name
        )
