"""INSERT, UPDATE and DELETE through views, beside recent versions (P1, P3, P8, P9)."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

TABLE = "CREATE TABLE public.t (id INTEGER PRIMARY KEY, n INTEGER DEFAULT 7, s TEXT)"
VIEW = (
    "CREATE VIEW public.v AS SELECT id, s FROM public.t WHERE n > 0 AND s IS NOT NULL"
)
OVER = "CREATE VIEW public.w AS SELECT s, id FROM public.v WHERE id < 100"
ROWS = "INSERT INTO public.t VALUES (1, 1, 'a'), (2, 0, 'b'), (3, 3, NULL), (4, 4, 'd')"
CHANGES = [
    "UPDATE v SET s = s || '!' WHERE id < 4",
    "UPDATE w SET id = id + 1 WHERE s = 'd' OR id = 2 RETURNING *",
    "INSERT INTO v VALUES (50, 'x'), (51, NULL) RETURNING *",
    "INSERT INTO w VALUES ('y', 200) RETURNING id",
    "INSERT INTO w (id) SELECT id + 60 FROM t WHERE n > 0",
    "DELETE FROM w WHERE id >= 50 RETURNING s, id",
    "DELETE FROM v USING t WHERE t.id + 199 = v.id RETURNING v.id, t.id",
    "UPDATE v SET s = x.s FROM (SELECT s, id FROM v) AS x WHERE x.id <> v.id AND v.id = 1",
    "UPDATE v SET s = DEFAULT",
    "DELETE FROM v",
]
EVERY = "SELECT id, n, s FROM t ORDER BY id"


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


def changed_natively(native):
    """What each change returns, how many rows it changes, and the table afterwards."""
    for statement in (TABLE, VIEW, OVER, ROWS):
        native.execute(statement)
    outcomes = []
    for change in CHANGES:
        cursor = native.execute(change)
        rows = sorted(cursor.fetchall(), key=str) if cursor.description else None
        outcomes.append((rows, cursor.rowcount, native.execute(EVERY).fetchall()))
    native.execute("DROP TABLE t CASCADE")
    return outcomes


@pytest.mark.parametrize("way", ["recent", "stored", "own writes", "adopted"])
def test_changes_do_what_they_do_natively(url, native, way):
    expected = changed_natively(native)
    if way == "adopted":
        for statement in (TABLE, VIEW, OVER, ROWS):
            native.execute(statement)
        tique.adopt(url)
    connection = tique.connect(url, checkpoint="manual")
    if way != "adopted":
        for statement in (TABLE, VIEW, OVER):
            connection.execute(statement)
        connection.execute(ROWS)
        connection.commit()
    for change, (rows, count, every) in zip(CHANGES, expected, strict=True):
        if way in ("stored", "adopted"):
            connection.checkpoint()
        cursor = connection.execute(change)
        assert cursor.rowcount == count, change
        found = sorted(cursor.fetchall(), key=str) if cursor.description else None
        assert found == rows, change
        if way != "own writes":
            connection.commit()
        assert connection.execute(EVERY).fetchall() == every, change
    connection.commit()
    connection.close()
    with tique.connect(url) as connection:
        assert connection.execute(EVERY).fetchall() == expected[-1][2]


def test_a_lost_conflict_through_a_view(url):
    """P3: the keys are the table's."""
    with tique.connect(url) as one, tique.connect(url) as two:
        for statement in (TABLE, VIEW, ROWS):
            one.execute(statement)
            one.commit()
        one.execute("SELECT 1 FROM t").fetchall()
        two.execute("SELECT s FROM t WHERE id = 1").fetchall()
        one.execute("UPDATE v SET s = 'one' WHERE id = 1")
        two.execute("UPDATE t SET s = s || 'two' WHERE id = 1")
        one.commit()
        with pytest.raises(tique.errors.SerializationError):
            two.commit()
        two.rollback()
        # A row that leaves the view meanwhile is not changed through it.
        one.execute("UPDATE v SET s = 'again' WHERE id = 1")
        two.execute("UPDATE t SET n = 0 WHERE id = 1")
        two.commit()
        with pytest.raises(tique.errors.SerializationError):
            one.commit()
        one.rollback()
        with pytest.raises(tique.errors.UniqueViolation):
            one.execute("INSERT INTO v VALUES (2, 'b')")
        assert one.execute("SELECT s FROM t WHERE id = 1").fetchall() == [("one",)]


def test_views_with_something_of_their_own_are_refused(url, native):
    """P10: what is there when a database is opened, or adopted, is noticed."""
    native.execute(TABLE)
    query = "AS SELECT * FROM t WHERE n > 0"
    for name in ("ruled", "triggered", "defaulted"):
        native.execute(f"CREATE VIEW {name} {query}")
    native.execute("CREATE RULE r AS ON DELETE TO ruled DO INSTEAD NOTHING")
    native.execute(
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
    )
    native.execute(
        "CREATE TRIGGER g INSTEAD OF UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION f()"
    )
    native.execute("ALTER VIEW defaulted ALTER COLUMN n SET DEFAULT 9")
    native.execute("CREATE VIEW over AS SELECT * FROM ruled")
    tique.adopt(url)
    with tique.connect(url) as connection:
        for name, what in (
            *(("ruled", "rule"), ("over", "rule")),
            *(("triggered", "trigger"), ("defaulted", "DEFAULT")),
        ):
            for change in (
                f"INSERT INTO {name} VALUES (1, 2)",
                f"UPDATE {name} SET n = -1",
                f"DELETE FROM {name}",
            ):
                with pytest.raises(tique.NotSupportedError, match=what):
                    connection.execute(change)


def test_a_view_that_is_replaced_changes_other_rows(url):
    connection = tique.connect(url)
    for statement in (TABLE, VIEW, ROWS):
        connection.execute(statement)
        connection.commit()
    assert connection.execute("UPDATE v SET s = 'x'").rowcount == 2
    connection.rollback()
    connection.execute(
        VIEW.replace("CREATE", "CREATE OR REPLACE").replace("n > 0", "n > 1")
    )
    assert connection.execute("UPDATE v SET s = 'x'").rowcount == 1
    connection.close()
