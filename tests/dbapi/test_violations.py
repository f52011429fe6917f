"""P12: a violation names what it is of, by the application's names.

Whichever part finds it: tique in memory or by a query, or the engine in a table of tique's.
On PostgreSQL psycopg's own ``diag`` for the same statement says what is right.
"""

from __future__ import annotations

import copy
import pickle
import re

import psycopg
import pyarrow
import pytest

import tique
from tests.staging import stage_above

INTERNAL = re.compile(r"tique|_deleted|_sequence|_cts")

TABLES = (
    "CREATE TABLE parent (id INTEGER PRIMARY KEY, u INTEGER, "
    "CONSTRAINT parent_u UNIQUE (u))",
    "CREATE TABLE t (id INTEGER, v INTEGER{check}, n INTEGER NOT NULL, u INTEGER, "
    "p INTEGER, w INTEGER, CONSTRAINT own_key PRIMARY KEY (id), "
    "CONSTRAINT own_unique UNIQUE (u, n), CONSTRAINT own_reference FOREIGN KEY (p) "
    "REFERENCES parent (id))",
    "{index}",
    "INSERT INTO parent VALUES (1, 1), (2, 2)",
    "INSERT INTO t VALUES (1, 1, 1, 1, 1, 1)",
)
CHECK = " CONSTRAINT positive CHECK (v > 0)"

OWN = {"own_key": "t_id_pkey", "own_unique": "t_u_n_key", "positive": "t_v_check"}
"""DuckDB forgets the names in CREATE TABLE, but for FOREIGN KEYs, which tique keeps."""

VIOLATIONS = {
    "primary key": ("INSERT INTO t VALUES (1, 1, 1, 2, 1, 2)", "t", "own_key"),
    "primary key of a query": (
        "INSERT INTO t SELECT id, 1, 1, 2, 1, 2 FROM t",
        "t",
        "own_key",
    ),
    "primary key of an update": (
        "UPDATE parent SET id = 1 WHERE id = 2",
        "parent",
        "parent_pkey",
    ),
    "unique": ("INSERT INTO t VALUES (2, 1, 1, 1, 1, 2)", "t", "own_unique"),
    "unique of a query": (
        "INSERT INTO t SELECT id + 1, 1, 1, u, 1, 2 FROM t",
        "t",
        "own_unique",
    ),
    "unique of an update": ("UPDATE parent SET u = 1", "parent", "parent_u"),
    "unique index": ("INSERT INTO t VALUES (2, 1, 1, 2, 1, 1)", "t", "sole"),
    "not null": ("INSERT INTO t VALUES (2, 1, NULL, 2, 1, 2)", "t", "n"),
    "null key": ("INSERT INTO t VALUES (NULL, 1, 1, 2, 1, 2)", "t", "id"),
    "not null of a query": (
        "INSERT INTO t SELECT id + 1, 1, NULL, 2, 1, 2 FROM t",
        "t",
        "n",
    ),
    "not null of an update": ("UPDATE t SET n = NULL", "t", "n"),
    "not null of a row": ("UPDATE t SET n = NULL WHERE id = 1", "t", "n"),
    "check": ("INSERT INTO t VALUES (2, -1, 1, 2, 1, 2)", "t", "positive"),
    "check of a query": ("INSERT INTO t SELECT 2, -1, 1, 2, 1, 2", "t", "positive"),
    "check of an update": ("UPDATE t SET v = -v", "t", "positive"),
    "check of a row": ("UPDATE t SET v = -1 WHERE id = 1", "t", "positive"),
    "check of an upsert": (
        "INSERT INTO t VALUES (1, 1, 1, 2, 1, 2) ON CONFLICT (id) DO UPDATE SET v = -5",
        "t",
        "positive",
    ),
    "check of a row that is not written": (
        "INSERT INTO t VALUES (1, -1, 1, 2, 1, 2) ON CONFLICT (id) DO UPDATE SET v = 5",
        "t",
        "positive",
    ),
    "child": ("INSERT INTO t VALUES (2, 1, 1, 2, 9, 2)", "t", "own_reference"),
    "children": ("UPDATE t SET p = 9", "t", "own_reference"),
    "parent": ("DELETE FROM parent WHERE id = 1", "t", "own_reference"),
    "key of a parent": (
        "UPDATE parent SET id = 5 WHERE id = 1",
        "t",
        "own_reference",
    ),
}
DEFINITIONS = {
    "unique": ("ALTER TABLE d ADD CONSTRAINT added UNIQUE (a)", "added"),
    "index": ("CREATE UNIQUE INDEX added ON d (a)", "added"),
    "check": ("ALTER TABLE d ADD CONSTRAINT added CHECK (a > 5)", "added"),
    "not null": ("ALTER TABLE d ALTER COLUMN b SET NOT NULL", "b"),
    "foreign key": (
        "ALTER TABLE d ADD CONSTRAINT added FOREIGN KEY (a) REFERENCES parent (id)",
        "added",
    ),
}


def refused(run):
    """The names that a violation has; its message has none of tique's."""
    with pytest.raises(tique.IntegrityError) as caught:
        run()
    error = caught.value
    diag = error.diag
    assert diag.sqlstate == error.sqlstate
    assert diag.message_primary == str(error)
    assert not INTERNAL.search(str(error))
    assert pickle.loads(pickle.dumps(error)).diag == diag
    assert copy.copy(error).diag == diag
    return names_of(diag)


def names_of(diag):
    return (
        diag.sqlstate,
        diag.schema_name,
        diag.table_name,
        diag.column_name,
        diag.constraint_name,
        diag.datatype_name,
    )


def expected(engine, table, name, kind):
    state = {"not": "23502", "null": "23502", "check": "23514"}.get(kind.split()[0])
    if state == "23502":
        return (state, engine.schema, table, name, None, None)
    if state is None:
        of_reference = name in ("own_reference", "added") and "unique" not in kind
        state = "23503" if of_reference and kind != "index" else "23505"
    return (state, engine.schema, table, None, name, None)


def named(engine, name):
    """A name of the engine's own for a constraint that the application has named."""
    if engine.name != "duckdb":
        return (
            name if engine.name == "postgresql" else name.replace("_pkey", "_id_pkey")
        )
    ours = {"parent_pkey": "parent_id_pkey", "parent_u": "parent_u_key"}
    return {**OWN, **ours}.get(name, name)


def fill(engine, connection):
    index = "CREATE UNIQUE INDEX sole ON t (w)"
    if engine.name == "monetdb":
        index = "ALTER TABLE t ADD CONSTRAINT sole UNIQUE (w)"
    for statement in TABLES:
        check = CHECK if engine.has_checks else ""
        connection.execute(statement.replace("{check}", check).format(index=index))
        connection.commit()


@pytest.fixture
def filled(engine):
    connection = engine.connect(checkpoint="manual")
    fill(engine, connection)
    return connection


@pytest.mark.every_engine
@pytest.mark.parametrize("way", ["buffered", "staged", "folded", "after DDL"])
def test_names_of_violations(engine, filled, way, monkeypatch):
    if way == "staged":
        stage_above(0, monkeypatch.setattr)
    if way == "folded":
        filled.checkpoint()
    for number, (kind, case) in enumerate(VIOLATIONS.items()):
        statement, table, name = case
        if name == "positive" and not engine.has_checks:
            continue
        if "not written" in kind and engine.name != "postgresql":
            continue
        if way == "after DDL":
            filled.execute(f"CREATE TABLE other{number} (id INTEGER)")
        found = refused(lambda sql=statement: filled.execute(sql))
        assert found == expected(engine, table, named(engine, name), kind), kind
        filled.rollback()


@pytest.mark.every_engine
def test_names_of_what_a_definition_finds(engine, filled, subtests):
    filled.execute("CREATE TABLE d (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
    filled.execute("INSERT INTO d VALUES (1, 3, NULL), (2, 3, NULL)")
    filled.commit()
    for kind, (statement, name) in DEFINITIONS.items():
        with subtests.test(kind=kind):
            try:
                found = refused(lambda sql=statement: filled.execute(sql))
            except tique.NotSupportedError:
                assert engine.name != "postgresql"
            else:
                assert found == expected(engine, "d", name, kind), kind
        filled.rollback()


@pytest.mark.every_engine
def test_names_of_many_rows(engine, filled):
    """By executemany, from Arrow, by COPY: NOT NULL is found in the engine."""
    names = ["id", "v", "n", "u", "p", "w"]
    rows = [(7, 1, 1, 7, 1, 7), (2, 1, None, 2, 1, 2)]
    insertion = f"INSERT INTO t VALUES ({', '.join(['%s'] * 6)})"
    columns = [
        pyarrow.array(values, pyarrow.int32()) for values in zip(*rows, strict=True)
    ]
    table = pyarrow.table(columns, names)

    def copied():
        with filled.cursor().copy("COPY t FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    ways = [
        lambda: filled.cursor().executemany(insertion, rows),
        lambda: filled.cursor().append("t", table),
    ]
    if engine.name == "postgresql":
        ways.append(copied)
    for way in ways:
        assert refused(way) == expected(engine, "t", "n", "not null")
        filled.rollback()


@pytest.mark.every_engine
def test_other_names_than_plain_ones(engine):
    """Names with dots, quotes and blanks are told as they are."""
    connection = engine.connect()
    connection.execute(
        'CREATE TABLE "a.b ""c" (id INTEGER PRIMARY KEY, "x.y" INTEGER NOT NULL, '
        '"y" INTEGER NOT NULL)'
    )
    connection.commit()
    for values, column in (("1, NULL, 2", "x.y"), ("1, 2, NULL", "y")):
        statement = f'INSERT INTO "a.b ""c" SELECT {values} FROM (SELECT 1 AS s) AS q'
        with pytest.MonkeyPatch.context() as patch:
            stage_above(0, patch.setattr)
            found = refused(lambda sql=statement: connection.execute(sql))
        assert found == ("23502", engine.schema, 'a.b "c', column, None, None)
        connection.rollback()


DOMAINS = (
    "CREATE DOMAIN small AS INTEGER CONSTRAINT below_ten CHECK (VALUE < 10)",
    "CREATE TYPE pair AS (a small, b TEXT)",
    "CREATE TABLE e (id INTEGER PRIMARY KEY, s small, p pair, h INTEGER "
    "GENERATED ALWAYS AS (id * 2) STORED CONSTRAINT halves CHECK (h < 100))",
    "INSERT INTO e VALUES (1, 1, '(1,x)')",
)
OF_DOMAINS = (
    "INSERT INTO e VALUES (2, 11)",
    "INSERT INTO e SELECT id + 1, 11 FROM e",
    "UPDATE e SET s = 12",
    "UPDATE e SET s = 12 WHERE id = 1",
    "UPDATE e SET p = '(13,y)'",
    "INSERT INTO e VALUES (77, 1)",
)


@pytest.mark.written_for(["postgresql"], reason="its driver has the names, too")
@pytest.mark.parametrize("staged", [False, True])
def test_they_are_those_of_psycopg(engine, staged, monkeypatch):
    """Domains' constraints are of the domain, and of no table."""
    native = engine.native()
    fill(engine, native)
    statements = [statement for statement, _, _ in VIOLATIONS.values()]
    for statement in DOMAINS:
        native.execute(statement)
    native.commit()
    expected = {}
    for statement in (*statements, *OF_DOMAINS):
        with pytest.raises(psycopg.IntegrityError) as caught:
            native.execute(statement)
        expected[statement] = names_of(caught.value.diag)
        native.rollback()
    native.execute("DROP TABLE t, parent, e; DROP TYPE pair; DROP DOMAIN small")
    native.commit()
    connection = engine.connect()
    fill(engine, connection)
    if staged:
        stage_above(0, monkeypatch.setattr)
    for statement in DOMAINS:
        connection.execute(statement)
        connection.commit()
    found = {}
    for statement in expected:
        found[statement] = refused(lambda sql=statement: connection.execute(sql))
        connection.rollback()
    assert found == expected


def test_an_error_of_another_kind_has_parts_too(engine):
    """Programs read them without asking for the kind."""
    connection = engine.connect()
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("SELECT * FROM missing")
    assert caught.value.diag.constraint_name is None
    assert caught.value.diag.message_primary == str(caught.value)
    assert tique.Error("x").diag.sqlstate is None
