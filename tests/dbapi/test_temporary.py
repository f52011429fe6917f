"""Temporary tables: of one connection, a part of its transactions, on every engine."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

KEEP = "ON COMMIT PRESERVE ROWS"


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(20))")
    opened.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    opened.commit()
    return opened


@pytest.fixture
def two(engine, one):
    return engine.connect()


def content(connection, table):
    return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def make(connection, key="PRIMARY KEY"):
    connection.execute(
        f"CREATE TEMPORARY TABLE s (id INTEGER {key}, v VARCHAR(20)) {KEEP}"
    )


KEYS = pytest.mark.parametrize("key", ["PRIMARY KEY", "UNIQUE", ""])


@KEYS
def test_changes_and_a_rollback(one, key):
    """P8: own writes are seen, and a rollback takes them and nothing else back."""
    make(one, key)
    one.execute("INSERT INTO s VALUES (1, 'x'), (2, 'y'), (3, NULL)")
    one.execute("UPDATE s SET v = v || '!' WHERE id < 3")
    one.execute("DELETE FROM s WHERE id = 2")
    before = content(one, "s")
    assert before == [(1, "x!"), (3, None)]
    one.commit()
    assert content(one, "s") == before
    one.commit()
    for change in (
        "UPDATE s SET v = 'gone'",
        "DELETE FROM s",
        "INSERT INTO s VALUES (9, 'gone')",
        f"INSERT INTO s SELECT 100 + number, 'gone' FROM {numbers(2100)}",
        "UPDATE s SET id = id + 1",
    ):
        assert one.execute(change).rowcount > 0
        assert content(one, "s") != before
        one.rollback()
        assert content(one, "s") == before
        one.rollback()


@KEYS
def test_many_commits(one, key):
    """P8: what storage has is changed by later transactions, buffered or staged."""
    make(one, key)
    one.commit()
    expected = {}
    for number in range(4):
        one.execute("INSERT INTO s VALUES (%s, %s)", (number, "new"))
        one.execute("UPDATE s SET v = v || '.' WHERE id <= %s", (number,))
        expected = {k: v + "." for k, v in {**expected, number: "new"}.items()}
        one.commit()
        assert dict(content(one, "s")) == expected
        one.commit()
    one.execute(f"INSERT INTO s SELECT 10 + number, 'bulk' FROM {numbers(2100)}")
    one.execute("DELETE FROM s WHERE id = 0")
    one.execute("UPDATE s SET v = 'late' WHERE id = 10")
    one.commit()
    found = dict(content(one, "s"))
    assert len(found) == 4 + 2100 - 1
    assert (found[10], found[11], found[1]) == ("late", "bulk", expected[1])
    one.execute("DELETE FROM s WHERE id > 10")
    one.commit()
    assert [row[0] for row in content(one, "s")] == [1, 10, 2, 3]


def test_equal_rows_of_a_keyless_table(one):
    """P8: rows that are equal are counted."""
    make(one, "")
    one.execute("INSERT INTO s VALUES (1, 'x'), (1, 'x'), (1, NULL), (1, NULL)")
    one.commit()
    one.execute("INSERT INTO s VALUES (1, 'x')")
    one.commit()
    assert len(content(one, "s")) == 5
    assert one.execute("DELETE FROM s WHERE v IS NULL").rowcount == 2
    one.execute("INSERT INTO s VALUES (1, NULL)")
    one.commit()
    assert content(one, "s") == [(1, "x"), (1, "x"), (1, "x"), (1, None)]


def test_beside_managed_tables(one, two):
    """P1: a managed table beside a temporary one is read in the snapshot."""
    make(one)
    one.execute("INSERT INTO s SELECT id, v || '?' FROM t WHERE id < 3")
    two.execute("UPDATE t SET v = 'later' WHERE id = 1")
    two.execute("INSERT INTO t VALUES (4, 'later')")
    two.commit()
    joined = "SELECT t.v, s.v FROM s RIGHT JOIN t ON s.id = t.id ORDER BY t.id"
    before = [("a", "a?"), ("b", "b?"), ("c", None)]
    assert one.execute(joined).fetchall() == before
    one.commit()
    after = [("later", "a?"), ("b", "b?"), ("c", None), ("later", None)]
    assert one.execute(joined).fetchall() == after
    one.execute("INSERT INTO t SELECT id + 10, v FROM s")
    one.execute("UPDATE t SET v = (SELECT v FROM s WHERE s.id = t.id) WHERE id = 2")
    one.execute("DELETE FROM s WHERE id IN (SELECT id FROM t WHERE v = 'later')")
    one.commit()
    two.rollback()
    assert content(two, "t") == [
        (1, "later"),
        (11, "a?"),
        (12, "b?"),
        (2, "b?"),
        (3, "c"),
        (4, "later"),
    ]
    assert content(one, "s") == [(2, "b?")]
    one.checkpoint()
    assert content(two, "t") == content(one, "t")


def test_one_connections(engine, one, two):
    """P10: no plan of another connection knows the table, and the same text is planned anew."""
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'one')")
    one.commit()
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        two.execute("SELECT v FROM s")
    two.rollback()
    make(two, "")
    two.execute("INSERT INTO s VALUES (2, 'two')")
    two.commit()
    assert one.execute("SELECT v FROM s").fetchall() == [("one",)]
    assert two.execute("SELECT v FROM s").fetchall() == [("two",)]
    two.close()
    assert one.execute("SELECT v FROM s").fetchall() == [("one",)]
    one.close()
    again = engine.connect()
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        again.execute("SELECT v FROM s")


def test_its_plans_end_with_it(one):
    """P10: a cached plan does not outlive the table that it was made for."""
    for definition in ("id INTEGER, v VARCHAR(9)", "v VARCHAR(9), id INTEGER"):
        one.execute(f"CREATE TEMPORARY TABLE s ({definition}) {KEEP}")
        one.execute("INSERT INTO s (id, v) VALUES (1, 'x')")
        first = definition.partition(" ")[0]
        wanted = {"id": (1, "x"), "v": ("x", 1)}[first]
        assert one.execute("SELECT * FROM s").fetchall() == [wanted]
        one.commit()
        one.execute("DROP TABLE s")
        one.commit()
        with pytest.raises(tique.ProgrammingError, match="unknown table"):
            one.execute("SELECT * FROM s")
        one.rollback()


def test_definitions_are_in_the_transaction(one):
    """P8: CREATE and DROP are taken back, by a rollback and to a savepoint."""
    make(one)
    one.rollback()
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("SELECT * FROM s")
    one.rollback()
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'x')")
    one.commit()
    one.execute("INSERT INTO s VALUES (2, 'y')")
    one.execute("SAVEPOINT a")
    one.execute("DROP TABLE s")
    make(one, "")
    one.execute("INSERT INTO s VALUES (3, 'z'), (3, 'z')")
    assert content(one, "s") == [(3, "z"), (3, "z")]
    one.execute("ROLLBACK TO a")
    assert content(one, "s") == [(1, "x"), (2, "y")]
    one.execute("DROP TABLE s")
    one.rollback()
    assert content(one, "s") == [(1, "x")]
    one.execute("DROP TABLE s")
    make(one, "")
    one.commit()
    assert content(one, "s") == []


def test_a_failed_statement_leaves_no_trace(one):
    """P8, P9: keys and NOT NULL hold."""
    one.execute(
        f"CREATE TEMPORARY TABLE s (id INTEGER PRIMARY KEY, v INTEGER NOT NULL) {KEEP}"
    )
    one.execute("INSERT INTO s VALUES (1, 1)")
    one.commit()
    for wrong in (
        "INSERT INTO s VALUES (2, 2), (1, 3)",
        "INSERT INTO s VALUES (2, 2), (3, NULL)",
        "INSERT INTO s SELECT id, 0 FROM t",
        "UPDATE s SET v = NULL",
    ):
        with pytest.raises(tique.IntegrityError):
            one.execute(wrong)
        assert content(one, "s") == [(1, 1)]
    one.execute("INSERT INTO s VALUES (2, 2)")
    one.commit()
    assert content(one, "s") == [(1, 1), (2, 2)]


def test_checks_and_defaults(engine, one):
    """P9: CHECK holds, DEFAULT is given."""
    check = engine.check("v > 0")
    one.execute(
        f"CREATE TEMPORARY TABLE s (id INTEGER, v INTEGER DEFAULT 5 {check}) {KEEP}"
    )
    one.execute("INSERT INTO s (id) VALUES (1)")
    assert content(one, "s") == [(1, 5)]
    if check:
        with pytest.raises(tique.IntegrityError):
            one.execute("INSERT INTO s VALUES (2, -1)")
        with pytest.raises(tique.IntegrityError):
            one.execute(f"INSERT INTO s SELECT number, -1 FROM {numbers(2100)}")
    one.commit()
    assert content(one, "s") == [(1, 5)]


def test_from_a_query(one, two):
    """P1: the rows are those of the snapshot; WITH NO DATA has none."""
    one.execute("SELECT * FROM t").fetchall()
    two.execute("DELETE FROM t WHERE id = 1")
    two.commit()
    one.execute("UPDATE t SET v = 'own' WHERE id = 2")
    one.execute(
        f"CREATE TEMPORARY TABLE s {KEEP} AS SELECT id, v FROM t WHERE id < 3"
        if not _is_monetdb(one)
        else f"CREATE TEMPORARY TABLE s AS SELECT id, v FROM t WHERE id < 3 WITH DATA {KEEP}"
    )
    assert content(one, "s") == [(1, "a"), (2, "own")]
    one.rollback()
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("SELECT * FROM s")


def test_from_a_query_that_fails(one):
    """P8: there is no such table, the others stay, and the catalog can be read."""
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'a')")
    one.commit()
    query = "SELECT id, CAST(v AS INTEGER) AS v FROM t"
    with pytest.raises(tique.DataError):
        one.execute(
            f"CREATE TEMPORARY TABLE bad {KEEP} AS {query}"
            if not _is_monetdb(one)
            else f"CREATE TEMPORARY TABLE bad AS {query} WITH DATA {KEEP}"
        )
    one.rollback()
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("SELECT * FROM bad")
    assert content(one, "s") == [(1, "a")]
    one.rollback()
    one.execute("CREATE TABLE later (id INTEGER)")
    assert content(one, "later") == []


def _is_monetdb(connection):
    return connection._database.engine.capabilities.dialect == "monetdb"


def test_a_lost_transaction(one, two):
    """P3: what a transaction that loses has written to a temporary table is gone, too."""
    make(one)
    one.commit()
    one.execute("INSERT INTO s VALUES (1, 'x')")
    value = one.execute("SELECT v FROM t WHERE id = 1").fetchone()[0]
    one.execute("UPDATE t SET v = %s WHERE id = 1", (value + "1",))
    two.execute("UPDATE t SET v = 'two' WHERE id = 1")
    two.commit()
    with pytest.raises(tique.SerializationError):
        one.commit()
    assert content(one, "s") == []


def test_they_never_conflict(one, two):
    """P3: two connections' temporary tables have no rows in common."""
    for connection in (one, two):
        make(connection)
        connection.execute("INSERT INTO s VALUES (1, 'x')")
        connection.commit()
        connection.execute("UPDATE s SET v = 'y' WHERE id = 1")
    log = one.status().sts
    one.commit()
    two.commit()
    assert one.status().sts == log
    assert content(one, "s") == content(two, "s") == [(1, "y")]


def test_autocommit(engine, one):
    """P8: every statement is kept at once."""
    connection = engine.connect(autocommit=True)
    make(connection)
    connection.execute("INSERT INTO s VALUES (1, 'x')")
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO s VALUES (1, 'y')")
    connection.execute("UPDATE s SET v = 'z'")
    with connection.transaction():
        connection.execute("INSERT INTO s VALUES (2, 'y')")
    assert content(connection, "s") == [(1, "z"), (2, "y")]
    connection.execute("DROP TABLE IF EXISTS s")
    connection.execute("DROP TABLE IF EXISTS s")


def test_names(one):
    """P10: a name is one table's; no other DDL takes a temporary one."""
    with pytest.raises(tique.NotSupportedError, match="there already"):
        one.execute(f"CREATE TEMPORARY TABLE t (id INTEGER) {KEEP}")
    one.rollback()
    make(one)
    with pytest.raises(tique.ProgrammingError, match="already"):
        make(one)
    one.execute(f"CREATE TEMPORARY TABLE IF NOT EXISTS s (other INTEGER) {KEEP}")
    for other in (
        "ALTER TABLE s ADD COLUMN w INTEGER",
        "CREATE INDEX i ON s (v)",
        "CREATE TABLE s (id INTEGER)",
        "CREATE VIEW s AS SELECT 1 AS x",
    ):
        with pytest.raises(tique.NotSupportedError, match="temporary"):
            one.execute(other)
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("CREATE VIEW w AS SELECT * FROM s")
    with pytest.raises(tique.NotSupportedError, match="FOREIGN KEY"):
        one.execute(f"CREATE TEMPORARY TABLE r (id INTEGER REFERENCES t) {KEEP}")
    with pytest.raises(tique.NotSupportedError, match="schema"):
        one.execute(f"CREATE TEMPORARY TABLE other.r (id INTEGER) {KEEP}")
    one.commit()
    assert content(one, "s") == []


def test_a_table_that_comes_later(one, two):
    """P10: the temporary table is meant, and the other one with its schema; views are not moved."""
    schema = one._database.catalog.default_schema
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'own')")
    one.commit()
    two.execute("CREATE TABLE s (id INTEGER PRIMARY KEY, v VARCHAR(20))")
    two.execute("CREATE VIEW w AS SELECT v FROM s")
    two.execute("CREATE SCHEMA other")
    two.execute(f"CREATE VIEW other.w AS SELECT v FROM {schema}.s")
    if not _is_monetdb(one):
        two.execute("CREATE VIEW other.bare AS SELECT v FROM s")
    two.execute("INSERT INTO s VALUES (1, 'managed')")
    two.commit()
    assert one.execute("SELECT v FROM s").fetchall() == [("own",)]
    assert one.execute(f"SELECT v FROM {schema}.s").fetchall() == [("managed",)]
    for view in ("w", "other.w", "w" if _is_monetdb(one) else "other.bare"):
        assert one.execute(f"SELECT v FROM {view}").fetchall() == [("managed",)]
    one.execute("DROP TABLE s")
    one.commit()
    assert one.execute("SELECT v FROM s").fetchall() == [("managed",)]
    one.commit()
    one.execute("DROP VIEW w")
    one.execute("DROP SCHEMA other CASCADE")


@pytest.mark.written_for(["postgresql", "monetdb"], reason="DuckDB has PRESERVE only")
@pytest.mark.parametrize("from_query", [True, False])
def test_on_commit_delete(engine, one, from_query):
    """P8: the rows go at the commit, the table stays; as the engine has it."""
    steps = [
        "CREATE TEMPORARY TABLE s (id INTEGER) ON COMMIT DELETE ROWS",
        "INSERT INTO s VALUES (1)",
        "COMMIT",
        "SELECT 1",
        "COMMIT",
        "INSERT INTO s VALUES (2)",
        "COMMIT",
    ]
    if from_query:
        query = "AS SELECT 1 AS id WITH DATA"
        steps[0] = (
            f"CREATE TEMPORARY TABLE s {query} ON COMMIT DELETE ROWS"
            if engine.name == "monetdb"
            else f"CREATE TEMPORARY TABLE s ON COMMIT DELETE ROWS {query}"
        )
    found = _states(one, steps)
    native = engine.native()
    native.execute("BEGIN TRANSACTION")
    assert found == _states(native, steps)


def _states(connection, steps):
    states = []
    for step in steps:
        connection.execute(step)
        if step == "COMMIT":
            if not isinstance(connection, tique.Connection):
                connection.execute("BEGIN TRANSACTION")
            states.append(content(connection, "s"))
    return states


@pytest.mark.written_for(["postgresql", "monetdb"], reason="DuckDB has PRESERVE only")
def test_on_commit_drop(one):
    """P8: the table goes at the commit."""
    query = "AS SELECT * FROM t WITH DATA"
    one.execute(
        f"CREATE TEMPORARY TABLE s {query} ON COMMIT DROP"
        if _is_monetdb(one)
        else f"CREATE TEMPORARY TABLE s ON COMMIT DROP {query}"
    )
    assert len(content(one, "s")) == 3
    one.commit()
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("SELECT * FROM s")


def test_nothing_is_left_in_the_engine(engine, one):
    """P5: the engine drops what the application did, and what was rolled back."""
    make(one)
    one.execute(f"INSERT INTO s SELECT number, 'x' FROM {numbers(2100)}")
    one.commit()
    one.execute("DROP TABLE s")
    make(one)
    one.rollback()
    one.execute("DROP TABLE s")
    one.commit()
    assert one._database.catalog._temporary == {}
    assert not one._execution.temporaries
    assert one._execution.temporaries.rewriter is None


def test_other_statements(engine, one):
    """P8: all changes and queries take a temporary table."""
    make(one)
    rows = [(number, "x") for number in range(5)]
    cursor = one.cursor()
    cursor.executemany("INSERT INTO s VALUES (%s, %s)", rows)
    assert cursor.rowcount == 5
    one.commit()
    assert one.execute("SELECT v FROM s WHERE id = %s", (3,)).fetchone() == ("x",)
    one.execute("UPDATE s SET v = 'y' WHERE id = %s", (3,))
    one.commit()
    assert one.execute("SELECT v FROM s WHERE id = %s", (3,)).fetchone() == ("y",)
    assert one.execute("SELECT count(*) FROM s AS a, s AS b").fetchone() == (25,)
    found = one.execute("WITH w AS (SELECT * FROM s) SELECT max(id) FROM w").fetchone()
    assert found == (4,)
    one.execute("CREATE TABLE copied AS SELECT id, v FROM s WHERE id > 2" + _with(one))
    one.commit()
    assert content(one, "copied") == [(3, "y"), (4, "x")]
    one.execute("TRUNCATE TABLE s")
    assert content(one, "s") == []
    one.rollback()
    assert len(content(one, "s")) == 5
    assert one.execute("EXPLAIN SELECT * FROM s").fetchall()


def _with(connection):
    return " WITH DATA" if _is_monetdb(connection) else ""


@pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB has none of these")
def test_conflicts_merges_and_returning(one):
    """P8, P9: ON CONFLICT, MERGE, RETURNING; changes in a WITH list are PostgreSQL's."""
    make(one)
    insert = "INSERT INTO s VALUES (1, 'x'), (2, 'y') ON CONFLICT (id) DO UPDATE SET v = s.v || excluded.v"
    one.execute(insert)
    one.commit()
    assert one.execute(insert + " RETURNING v").fetchall() == [("xx",), ("yy",)]
    one.commit()
    one.execute(
        "MERGE INTO s USING t ON s.id = t.id WHEN MATCHED THEN UPDATE SET v = t.v "
        "WHEN NOT MATCHED THEN INSERT VALUES (t.id, 'new')"
    )
    one.execute(
        "MERGE INTO t USING s ON s.id = t.id WHEN MATCHED THEN UPDATE SET v = s.v || '!'"
    )
    one.commit()
    assert content(one, "s") == [(1, "a"), (2, "b"), (3, "new")]
    assert content(one, "t") == [(1, "a!"), (2, "b!"), (3, "new!")]


@pytest.mark.written_for(["duckdb"], reason="PostgreSQL looks up types by names")
def test_prepared(one):
    """P10: a prepared statement is planned anew when the table is gone."""
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'a')")
    one.execute("PREPARE p AS SELECT v FROM s WHERE id = $1")
    assert one.execute("EXECUTE p(1)").fetchall() == [("a",)]
    one.execute("DROP TABLE s")
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("EXECUTE p(1)")


@pytest.mark.written_for(["postgresql"], reason="DuckDB needs no types")
def test_not_prepared(one):
    """P10: no text with its name reaches the engine, for its types either."""
    make(one)
    with pytest.raises(tique.NotSupportedError, match="PREPARE"):
        one.execute("PREPARE p AS SELECT v FROM s WHERE id = $1")
    one.execute("PREPARE p AS SELECT v FROM t WHERE id = $1")
    assert one.execute("EXECUTE p(1)").fetchall() == [("a",)]


@pytest.mark.written_for(["postgresql"], reason="COPY and cursors are PostgreSQL's")
def test_copies_and_cursors(one):
    """P8: rows of COPY, and a cursor over the rows at its declaration."""
    make(one)
    with one.cursor().copy("COPY s FROM STDIN") as copy:
        copy.write_row((1, "x"))
        copy.write_row((2, None))
    one.commit()
    assert content(one, "s") == [(1, "x"), (2, None)]
    one.execute("DECLARE c CURSOR WITH HOLD FOR SELECT id FROM s ORDER BY id")
    one.execute("DELETE FROM s")
    one.commit()
    assert one.execute("FETCH ALL FROM c").fetchall() == [(1,), (2,)]
    assert content(one, "s") == []
    one.commit()
    one.autocommit = True
    one.execute("DISCARD TEMP")
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        one.execute("SELECT * FROM s")


@pytest.mark.written_for(["duckdb"], reason="columns in bulk are DuckDB's")
def test_append(one):
    """P8: cursor.append() takes a temporary table."""
    import pyarrow

    make(one)
    one.cursor().append("s", pyarrow.table({"id": [1, 2], "v": ["x", None]}))
    one.commit()
    assert content(one, "s") == [(1, "x"), (2, None)]


def test_a_lost_session(one):
    """P10: with the connection to the engine its temporary tables are gone, not empty."""
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'x')")
    one.commit()
    one._execution.sessions.settings.is_unsure = True
    assert len(content(one, "t")) == 3
    for statement in ("SELECT * FROM s", "INSERT INTO s VALUES (2, 'y')"):
        with pytest.raises(tique.OperationalError, match="gone: its connection"):
            one.execute(statement)
    one.execute("DROP TABLE s")
    make(one)
    assert content(one, "s") == []
    one.commit()


def test_the_commit_stands_if_they_fail(one, two, monkeypatch):
    """P4, P5: what cannot be kept is lost as a whole, and the commit is not."""
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'x')")
    one.commit()
    one.execute("UPDATE s SET v = 'y'")
    one.execute("UPDATE t SET v = 'y'")
    one.execute("DROP TABLE IF EXISTS none")
    (storage,) = one._execution.temporaries._there
    one._execution.session.execute(
        f'DROP TABLE {one._execution.temporaries.schema}."tique_temporary_{storage}"'
    )
    one.commit()
    assert content(two, "t") == [(1, "y"), (2, "y"), (3, "y")]
    with pytest.raises(tique.OperationalError, match="could not be kept"):
        one.execute("SELECT * FROM s")


def test_listings_have_none_of_their_tables(engine, one):
    """P11: the engine's relations show no table of tique's."""
    make(one)
    one.execute("INSERT INTO s VALUES (1, 'x')")
    one.execute("SELECT * FROM s WHERE v LIKE 'x%%'").fetchall()
    relations = {
        "duckdb": ["duckdb_tables()", "information_schema.tables"],
        "postgresql": ["pg_class", "pg_tables", "information_schema.tables", "pg_type"],
        "monetdb": ["sys.tables", "sys._tables", "tables"],
    }[engine.name]
    for relation in relations:
        shown = repr(one.execute(f"SELECT * FROM {relation}").fetchall())
        assert "tique_" not in shown.replace("tique_test", "")


def test_hostile_names(one):
    """P11: quotes in names reach no other statement."""
    name = 'a"b; DROP TABLE t --'
    quoted = '"' + name.replace('"', '""') + '"'
    one.execute(
        f"CREATE TEMPORARY TABLE {quoted} ({quoted} INTEGER PRIMARY KEY) {KEEP}"
    )
    one.execute(f"INSERT INTO {quoted} VALUES (1), (2)")
    one.commit()
    one.execute(f"DELETE FROM {quoted} WHERE {quoted} = 1")
    one.commit()
    assert content(one, quoted) == [(2,)]
    one.execute(f"DROP TABLE {quoted}")
    one.commit()
    assert len(content(one, "t")) == 3


def test_as_the_engine(engine, one):
    """P9: without ON COMMIT the rows stay or go as they do natively."""
    create = "CREATE TEMPORARY TABLE s (id INTEGER)"
    one.execute(create)
    one.execute("INSERT INTO s VALUES (1)")
    one.commit()
    found = content(one, "s")
    native = engine.native()
    for statement in (
        "BEGIN TRANSACTION",
        create,
        "INSERT INTO s VALUES (1)",
        "COMMIT",
    ):
        native.execute(statement)
    assert found == content(native, "s")


def test_open_results(one):
    """P1: a result that is being fetched keeps its rows, whatever becomes of the table."""
    make(one, "")
    one.execute(f"INSERT INTO s SELECT number, 'x' FROM {numbers(5000)}")
    one.commit()
    cursor = one.execute("SELECT id FROM s")
    first = cursor.fetchmany(3)
    one.execute("DELETE FROM s WHERE id > 0")
    one.execute(f"CREATE TEMPORARY TABLE other (id INTEGER) {KEEP}")
    one.commit()
    one.execute("DROP TABLE s")
    one.commit()
    assert len(first + cursor.fetchall()) == 5000


@pytest.mark.written_for(["postgresql"], reason="cursors are PostgreSQL's")
def test_definitions_beside_open_cursors(one):
    """P8: a cursor of the transaction stays open."""
    one.execute("DECLARE c CURSOR FOR SELECT id FROM t ORDER BY id")
    assert one.execute("FETCH 1 FROM c").fetchall() == [(1,)]
    make(one)
    assert one.execute("FETCH 1 FROM c").fetchall() == [(2,)]
    one.execute("INSERT INTO s VALUES (1, 'x')")
    one.execute("DECLARE d CURSOR FOR SELECT id FROM s")
    assert one.execute("FETCH 1 FROM c").fetchall() == [(3,)]
    one.commit()
    assert content(one, "s") == [(1, "x")]
