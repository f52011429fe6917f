"""Rows that are written through views WITH CHECK OPTION (P8, P9, P12)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

SCHEMA = """
CREATE TABLE public.t (id INTEGER PRIMARY KEY, n INTEGER DEFAULT 0, s TEXT COLLATE "C" UNIQUE);
CREATE VIEW public.plain AS SELECT id, n, s FROM public.t WHERE n < 100;
CREATE VIEW public.own AS SELECT id, n, s FROM public.plain WHERE n > 0 WITH LOCAL CHECK OPTION;
CREATE VIEW public.every AS SELECT id, n, s FROM public.plain WHERE n <> 50 WITH CHECK OPTION;
CREATE VIEW public.over AS SELECT id, s FROM public.own;
CREATE VIEW public.bare AS SELECT s, n, id FROM public.plain WITH CASCADED CHECK OPTION;
CREATE VIEW public.none AS SELECT id, n FROM public.plain WITH LOCAL CHECK OPTION;
CREATE VIEW public.narrow AS SELECT id, n, s FROM public.own WHERE s > 'B' WITH LOCAL CHECK OPTION;
CREATE VIEW public.timed AS SELECT id, n, s FROM public.t
  WHERE now() = CURRENT_TIMESTAMP AND n > 0 WITH CHECK OPTION
"""
ROWS = "INSERT INTO public.t VALUES (1, 1, 'a'), (2, 200, 'b'), (3, NULL, NULL), (4, 40, 'd')"
CHANGES = [
    "INSERT INTO own VALUES (10, 0, 'x')",
    "INSERT INTO own VALUES (10, NULL, 'x')",
    "INSERT INTO own VALUES (10, 300, 'x') RETURNING id, n",
    "INSERT INTO own (id) VALUES (11)",
    "INSERT INTO own VALUES (11, 1, 'a')",
    "INSERT INTO own VALUES (11, 1, 'y'), (12, -1, 'z')",
    "INSERT INTO every VALUES (11, 50, 'y')",
    "INSERT INTO every VALUES (11, 100, 'y')",
    "INSERT INTO every (id, s) VALUES (11, 'y') RETURNING n",
    "INSERT INTO over VALUES (12, 'z')",
    "INSERT INTO bare VALUES ('z', 100, 12)",
    "INSERT INTO bare VALUES ('z', 99, 12)",
    "INSERT INTO none VALUES (13, 1000)",
    "INSERT INTO narrow VALUES (14, 1, 'A')",
    "INSERT INTO narrow VALUES (14, 0, 'c')",
    "INSERT INTO narrow VALUES (14, 1, 'c')",
    "INSERT INTO own SELECT id + 100, n - 5, s || '!' FROM t WHERE n IS NOT NULL",
    "INSERT INTO own SELECT id + 100, n + 5, s || '!' FROM t WHERE n IS NOT NULL",
    "INSERT INTO timed VALUES (15, 0, 't')",
    "INSERT INTO timed VALUES (15, 1, 't')",
    "UPDATE own SET n = 0 WHERE id = 1",
    "UPDATE own SET n = n - 1 WHERE id = 1",
    "UPDATE own SET n = n + 1 WHERE id = 1 RETURNING n",
    "UPDATE own SET n = 5 WHERE id = 3",
    "UPDATE own SET id = id + 1 WHERE n = 12345",
    "UPDATE own SET id = id + 1000, n = NULL WHERE id = 4",
    "UPDATE own SET n = n - 20",
    "UPDATE own SET n = 100 - n, id = id + 200",
    "UPDATE every SET n = x.n FROM t AS x WHERE x.id = 10 AND every.id > 200",
    "UPDATE every SET n = x.n + 50 FROM t AS x WHERE x.id = 11 AND every.id = 11 RETURNING x.n",
    "UPDATE every SET n = x.n + 51 FROM t AS x WHERE x.id = 11 AND every.id = 11 RETURNING x.n",
    "UPDATE over SET s = 'over' WHERE id = 12",
    "WITH x AS (INSERT INTO own VALUES (20, 0, 'w') RETURNING id) SELECT id FROM x",
    "WITH x AS (INSERT INTO t VALUES (20, 0, 'w') RETURNING n) INSERT INTO own SELECT 21, n, 'v' FROM x",
    "WITH x AS (INSERT INTO t VALUES (20, 0, 'w') RETURNING n) INSERT INTO own SELECT 21, n + 1, 'v' FROM x",
    "INSERT INTO own SELECT g, 2500 - g, 'bulk' || g FROM generate_series(1000, 4000) AS g(g)",
    "INSERT INTO own SELECT g, g % 90 + 1, 'bulk' || g FROM generate_series(1000, 4000) AS g(g)",
    "UPDATE own SET n = n - 50 WHERE id >= 1000",
    "UPDATE own SET n = n + 1 WHERE id >= 1000",
    "UPDATE own SET n = NULL, id = id + 10000 WHERE id >= 1000",
    "UPDATE own SET n = n + 1, id = id + 10000 WHERE id >= 1000",
    "UPDATE own SET n = 0 WHERE id = 201",
    "DELETE FROM own WHERE id > 12000",
    "DELETE FROM every",
]
EVERY = "SELECT id, n, s FROM t ORDER BY id"
VIOLATIONS = (psycopg.errors.WithCheckOptionViolation, psycopg.IntegrityError)


@pytest.fixture
def url(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


@pytest.fixture
def native(url):
    with closing(psycopg.connect(url, autocommit=True)) as native:
        native.execute("SET search_path TO public")
        yield native


def _outcome(execute, change, violations):
    """What a change returns, or its error: the first line, without tique's own words."""
    try:
        cursor = execute(change)
    except violations as error:
        text = str(error).splitlines()[0]
        return error.sqlstate, text if error.sqlstate == "44000" else ""
    rows = sorted(cursor.fetchall(), key=str) if cursor.description else None
    return rows, cursor.rowcount


def _create(execute):
    for statement in (*SCHEMA.split(";"), ROWS):
        execute(statement)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["recent", "stored", "own writes", "staged", "adopted"])
def test_changes_do_what_they_do_natively(url, native, way):
    _create(native.execute)
    expected = [
        (
            _outcome(native.execute, change, VIOLATIONS),
            native.execute(EVERY).fetchall(),
        )
        for change in CHANGES
    ]
    assert sum(outcome[0] == "44000" for outcome, _ in expected) == 24
    native.execute("DROP TABLE t CASCADE")
    if way == "adopted":
        _create(native.execute)
        tique.adopt(url)
    violations = (tique.errors.WithCheckOptionViolation, tique.IntegrityError)
    with tique.connect(url, checkpoint="manual") as connection:
        if way != "adopted":
            _create(connection.execute)
            connection.commit()
        if way == "staged":
            many = "SELECT g, g FROM generate_series(5000, 8000) AS g(g)"
            connection.execute(f"INSERT INTO t (id, n) {many}")
            connection.execute("DELETE FROM t WHERE id >= 5000")
        for change, (outcome, every) in zip(CHANGES, expected, strict=True):
            if way in ("stored", "adopted"):
                connection.commit()
                connection.checkpoint()
            assert _outcome(connection.execute, change, violations) == outcome, change
            if way == "recent":
                connection.commit()
            assert connection.execute(EVERY).fetchall() == every, change
        connection.commit()
    with tique.connect(url) as connection:
        assert connection.execute(EVERY).fetchall() == expected[-1][1]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 2100])
def test_many_rows_of_parameters(url, rows):
    with tique.connect(url) as connection:
        _create(connection.execute)
        connection.commit()
        cursor = connection.cursor()
        inserted = [(100 + i, 1 + i) for i in range(rows)]
        insert = "INSERT INTO own (id, n) VALUES (%s, %s)"
        for some in ([*inserted, (99, 0)], [(99, None), *inserted]):
            with pytest.raises(tique.errors.WithCheckOptionViolation, match='"own"'):
                cursor.executemany(insert, some)
        cursor.executemany(insert, inserted)
        assert cursor.rowcount == rows
        update = "UPDATE own SET n = n - %s WHERE id = %s"
        with pytest.raises(tique.errors.WithCheckOptionViolation):
            # The second would bring the row back.
            cursor.executemany(update, [(1, 100), (-1, 100)])
        cursor.executemany(update, [(-1, 100), (1, 100), (1, 101)])
        cursor.executemany(
            "INSERT INTO own (id, n) VALUES (%s, %s) RETURNING id", [(90, 1), (91, 2)]
        )
        with pytest.raises(tique.errors.WithCheckOptionViolation):
            cursor.executemany(
                "INSERT INTO own (id, n) VALUES (%s, %s) RETURNING id",
                [(92, 1), (93, 0)],
            )
        found = connection.execute("SELECT count(*), min(n) FROM t WHERE id >= 90")
        assert found.fetchall() == [(rows + 2, 1)]


def test_a_violation_undoes_its_statement_and_nothing_else(url):
    with tique.connect(url) as connection:
        _create(connection.execute)
        connection.commit()
        connection.execute("INSERT INTO own VALUES (10, 1, 'kept')")
        connection.execute("SAVEPOINT s")
        connection.execute("UPDATE own SET n = 9 WHERE id = 10")
        with pytest.raises(tique.errors.WithCheckOptionViolation) as violation:
            connection.execute("UPDATE own SET n = 0 WHERE id = %s", (10,))
        assert violation.value.sqlstate == "44000"
        assert str(violation.value) == 'new row violates check option for view "own"'
        assert connection.execute("SELECT n FROM t WHERE id = 10").fetchall() == [(9,)]
        connection.execute("ROLLBACK TO s")
        connection.execute("RELEASE s")
        connection.commit()
    with tique.connect(url, autocommit=True) as connection:
        for change in (
            "UPDATE own SET n = 0 WHERE id = 10",
            "INSERT INTO own VALUES (9)",
        ):
            with pytest.raises(tique.errors.WithCheckOptionViolation):
                connection.execute(change)
        found = connection.execute("SELECT id, n FROM t WHERE id >= 9").fetchall()
        assert found == [(10, 1)]


def test_a_key_that_a_cascade_changes_is_no_matter_of_the_view(url, native):
    """The actions of foreign keys write to the table, as natively."""
    statements = [
        "CREATE TABLE parent (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id INTEGER PRIMARY KEY, "
        "p INTEGER REFERENCES parent (id) ON UPDATE CASCADE)",
        "CREATE VIEW few AS SELECT id FROM parent WHERE id < 10 WITH CHECK OPTION",
        "CREATE VIEW own AS SELECT id, p FROM child WHERE p < 10 WITH CHECK OPTION",
        "INSERT INTO few VALUES (1), (2)",
        "INSERT INTO own VALUES (1, 1)",
    ]
    with tique.connect(url) as connection:
        for statement in statements:
            connection.execute(statement)
        for change, state in (
            ("UPDATE few SET id = 11 WHERE id = 1", "44000"),
            ("INSERT INTO own VALUES (2, 20)", "44000"),
            ("INSERT INTO own VALUES (2, 9)", "23503"),
        ):
            with pytest.raises(tique.Error) as error:
                connection.execute(change)
            assert error.value.sqlstate == state
        connection.execute("UPDATE parent SET id = 11 WHERE id = 1")
        connection.execute("UPDATE few SET id = 3 WHERE id = 2")
        assert connection.execute("SELECT * FROM child").fetchall() == [(1, 11)]


def test_a_row_that_another_transaction_changes_meanwhile(url):
    """P3: an update through the view has seen the row that it was computed on."""
    with tique.connect(url) as one, tique.connect(url) as two:
        _create(one.execute)
        one.commit()
        one.execute("UPDATE own SET s = 'one' WHERE id = 1")
        two.execute("UPDATE t SET n = -1 WHERE id = 1")
        two.commit()
        with pytest.raises(tique.errors.SerializationError):
            one.commit()
        one.rollback()
        assert one.execute("UPDATE own SET s = 'one' WHERE id = 1").rowcount == 0


TYPED = [
    "CREATE TYPE mood AS ENUM ('ok', 'bad')",
    "CREATE DOMAIN small AS INTEGER CHECK (VALUE < 100)",
    "CREATE FUNCTION f(n INTEGER) RETURNS BOOLEAN IMMUTABLE AS 'SELECT n > 5' LANGUAGE sql",
    "CREATE TABLE e (id INTEGER, m mood, j JSONB, a INTEGER[], d small, x NUMERIC, c CHAR(5), "
    "at TIMESTAMPTZ DEFAULT now())",
    "CREATE VIEW v AS SELECT id, m, j, a, d, x, c, at FROM e WHERE m = 'ok' AND j ->> 'k' = 'v' "
    "AND a[1] > 0 AND f(d) AND x > 1 AND c = 'ab' AND c LIKE 'a%' AND c <> '$1' AND at <= now() WITH CHECK OPTION",
    "CREATE VIEW w AS SELECT id, at FROM e WHERE at = now() WITH CHECK OPTION",
]
GIVEN = ["'ok'", '\'{"k": "v"}\'', "'{1, 2}'", "6", "1.5", "'ab'", "'2020-01-01'"]
OTHERS = ["'bad'", "'{}'", "'{0}'", "5", "1", "'b'", "'2920-01-01'", "'infinity'"]


def _typed():
    yield f"INSERT INTO v VALUES (1, {', '.join(GIVEN)})"
    for place, other in enumerate(OTHERS):
        place = min(place, len(GIVEN) - 1)
        given = [*GIVEN[:place], other, *GIVEN[place + 1 :]]
        yield f"INSERT INTO v VALUES (2, {', '.join(given)})"
    yield f"INSERT INTO v VALUES (3, {', '.join(GIVEN[:-1])}, '-infinity')"
    yield "INSERT INTO v (id) VALUES (4)"
    yield "INSERT INTO w (id) VALUES (5)"
    yield "INSERT INTO w VALUES (6, '2020-01-01')"
    yield "UPDATE v SET x = x - 1"
    yield "UPDATE v SET x = 'NaN', at = '-infinity'"
    yield "UPDATE v SET at = 'infinity' WHERE id = 3"
    yield "UPDATE v SET c = NULL WHERE id = 1"
    yield "UPDATE w SET id = id + 1"


@pytest.mark.parametrize("key", ["", "PRIMARY KEY"])
def test_conditions_over_all_kinds_of_values(url, native, key):
    definitions = [d.replace("(id INTEGER", f"(id INTEGER {key}") for d in TYPED]
    for definition in definitions:
        native.execute(definition)
    violation = psycopg.errors.WithCheckOptionViolation
    expected = [_outcome(native.execute, change, violation) for change in _typed()]
    native.execute("DROP TABLE e CASCADE; DROP TYPE mood; DROP DOMAIN small")
    with tique.connect(url) as connection:
        for definition in definitions:
            if "FUNCTION" not in definition:
                connection.execute(definition)
        connection.commit()
        for change, outcome in zip(_typed(), expected, strict=True):
            violation = tique.errors.WithCheckOptionViolation
            assert _outcome(connection.execute, change, violation) == outcome, change
            connection.commit()


def _natively(url):
    return psycopg.connect(url)


def _by_tique(url):
    return tique.connect(url, isolation_level="READ COMMITTED")


@pytest.mark.parametrize("connect", [_natively, _by_tique])
def test_a_violation_waits_for_the_row_as_natively(url, connect):
    """READ COMMITTED: it is a violation only if it is one of what others commit."""
    with (
        closing(connect(url)) as one,
        closing(connect(url)) as two,
        ThreadPoolExecutor(1) as pool,
    ):
        for statement in (
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)",
            "CREATE VIEW own AS SELECT id, n FROM t WHERE n > 0 WITH CHECK OPTION",
            "INSERT INTO t VALUES (1, 1)",
        ):
            one.execute(statement)
            one.commit()
        for step, violates in ((10, False), (-3, True)):
            one.execute("UPDATE t SET n = n + %s WHERE id = 1", (step,))
            change = "UPDATE own SET n = n - 5 WHERE id = 1"
            waiting = pool.submit(two.execute, change)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            one.commit()
            error = waiting.exception(20)
            assert (getattr(error, "sqlstate", None) == "44000") is violates
            two.rollback() if violates else two.commit()
        assert one.execute("SELECT n FROM t").fetchall() == [(3,)]


@pytest.mark.slow
def test_options_that_change_are_noticed(url, native):
    with tique.connect(url) as connection:
        _create(connection.execute)
        connection.commit()
        insert = "INSERT INTO own (id, n) VALUES (%s, %s)"
        query = "VIEW own AS SELECT id, n, s FROM plain WHERE n > 0"
        for change, refused in (
            (f"CREATE OR REPLACE {query}", []),
            (f"CREATE OR REPLACE {query} WITH LOCAL CHECK OPTION", [0]),
            ("ALTER VIEW own SET (check_option = cascaded)", [0, 100]),
            ("ALTER VIEW own RESET (check_option)", []),
            ("ALTER VIEW own SET (check_option = local)", [0]),
            (
                f"CREATE OR REPLACE {query.replace('0', '7')} WITH CHECK OPTION",
                [0, 7, 100],
            ),
        ):
            connection.execute(change)
            for n in (0, 7, 100):
                if n in refused:
                    with pytest.raises(tique.errors.WithCheckOptionViolation):
                        connection.execute(insert, (n + 50, n))
                else:
                    connection.execute(insert, (n + 50, n))
            connection.rollback()
        connection.execute(
            f"CREATE TEMPORARY {query.replace('own', 'ours')} WITH CHECK OPTION"
        )
        with pytest.raises(tique.errors.WithCheckOptionViolation, match='"ours"'):
            connection.execute("UPDATE ours SET n = 0")
        connection.rollback()
        # Past tique: with the next DDL, as other changes of views.
        native.execute("ALTER VIEW own SET (check_option = CASCADED)")
        connection.execute("CREATE VIEW other AS SELECT 1 AS n")
        with pytest.raises(tique.errors.WithCheckOptionViolation):
            connection.execute(insert, (150, 100))


def test_what_is_refused(url):
    with tique.connect(url) as connection:
        _create(connection.execute)
        connection.commit()
        connection.execute(
            "CREATE VIEW asking AS SELECT id, n FROM t WHERE n IN (SELECT 1) WITH CHECK OPTION"
        )
        connection.commit()
        for change, what in (
            ("INSERT INTO asking VALUES (5, 2)", "a query in its condition"),
            (
                "INSERT INTO own VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET n = 0",
                "ON CONFLICT",
            ),
            (
                "MERGE INTO own USING t ON t.id = own.id WHEN MATCHED THEN UPDATE SET n = 0",
                "a change of the view",
            ),
            ("ALTER VIEW own SET (security_barrier = true)", "ALTER VIEW"),
        ):
            with pytest.raises(tique.NotSupportedError, match=what):
                connection.execute(change)
        with pytest.raises(tique.ProgrammingError, match='"own"'):
            # Natively, COPY writes to no view either.
            connection.execute("COPY own FROM STDIN")
