"""UPDATE t SET a[n] = …: the array that PostgreSQL itself would make (P8)."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

TABLE = (
    "CREATE TABLE public.t (id INTEGER PRIMARY KEY, n INTEGER, a INTEGER[], b TEXT[], "
    "c NUMERIC(6, 2)[], d TIMESTAMPTZ[], j JSONB)"
)
ROWS = [
    "(1, 5, '{1,2,3}', '{x,NULL,\"a,\\\"b\"}', '{1.5,2}', '{2024-01-01,infinity}', '{\"a\": 1}')",
    "(2, 6, NULL, NULL, NULL, NULL, NULL)",
    "(3, 7, '{}', '{}', '{}', '{}', '{}')",
    "(4, 8, '[3:5]={7,8,9}', '[-1:0]={u,v}', '[0:0]={1}', '[2:2]={epoch}', '{\"b\": {}}')",
    "(5, 9, '{NULL}', '{\"\"}', '{NaN}', NULL, '{\"a\": [], \"c\": null}')",
]
CHANGES = [
    *(f"a[{n}] = 50" for n in (1, 2, 4, 7, 0, -2, "- 1")),
    *("a[2] = n * 2", "a[2] = NULL", "a[2] = '8'", "a[2] = 2.6", "a[2] = a[1]"),
    *("a[1] = (SELECT max(x.n) FROM t AS x)", "a[3] = cardinality(a)", "a[2] = t.n"),
    *("b[2] = 'it''s'", "b[1] = '{\"\\,'", "b[-3] = n || ''", "b[2] = NULL, n = 1"),
    *("c[2] = 1.005", "c[2] = n", "d[2] = '2024-02-01 10:00+02'"),
    *("j['a'] = '2'", "j['it''s'] = to_jsonb(n)", "j['b'] = NULL", "j[''] = j"),
]
EVERY = "SELECT id, n, a::text, b::text, c::text, d::text, j::text FROM t ORDER BY id"


@pytest.fixture
def url(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


@pytest.mark.parametrize("way", ["recent", "stored"])
def test_it_is_the_array_that_the_engine_makes(url, way):
    with (
        closing(psycopg.connect(url)) as native,
        tique.connect(url, checkpoint="manual") as connection,
    ):
        native.execute("SET search_path TO public")
        connection.execute(TABLE.replace("public.t", "public.kept"))
        connection.execute(f"INSERT INTO kept VALUES {', '.join(ROWS)}")
        connection.commit()
        if way == "stored":
            connection.checkpoint()
        native.execute(TABLE.replace("TABLE", "TEMP TABLE").replace("public.", ""))
        native.execute(f"INSERT INTO t VALUES {', '.join(ROWS)}")
        for change in CHANGES:
            native.execute("SAVEPOINT s")
            native.execute(f"UPDATE t SET {change}")
            expected = native.execute(EVERY).fetchall()
            native.execute("ROLLBACK TO s")
            own = change.replace("FROM t", "FROM kept").replace("t.n", "kept.n")
            assert connection.execute(f"UPDATE kept SET {own}").rowcount == len(ROWS)
            found = connection.execute(EVERY.replace("FROM t", "FROM kept")).fetchall()
            assert found == expected, change
            connection.rollback()


def test_committed_folded_and_read_again(url):
    connection = tique.connect(url, checkpoint="manual")
    connection.execute(TABLE)
    connection.execute(f"INSERT INTO t VALUES {', '.join(ROWS)}")
    connection.commit()
    for _ in range(2):
        cursor = connection.execute(
            "UPDATE t AS u SET a[2] = %s + u.n WHERE u.id = %s RETURNING a[2], u.a[3]",
            (100, 1),
        )
        assert cursor.fetchall() == [(105, 3)]
        connection.commit()
        connection.checkpoint()
    cursor = connection.execute(
        "UPDATE t SET a[1] = x.m FROM (SELECT 1 AS i, 9 AS m) AS x WHERE x.i = t.id"
    )
    assert cursor.rowcount == 1
    connection.commit()
    connection.close()
    with tique.connect(url) as connection:
        rows = connection.execute("SELECT a FROM t WHERE id = 1").fetchall()
        assert rows == [([9, 105, 3],)]


def test_what_the_engine_refuses(url):
    """P8, P10: more dimensions, wrong types; and a statement that fails leaves no trace."""
    with tique.connect(url) as connection:
        connection.execute(
            "CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER[], s VARCHAR(3)[], j JSONB)"
        )
        connection.execute(
            "INSERT INTO u VALUES (1, '{{1,2},{3,4}}', '{a}', '[1]'), "
            "(2, '{1}', '{b}', '5')"
        )
        connection.commit()
        changes = ["a[1] = 5", "a[1] = 'x'", "a[1] = true", "a[1] = ARRAY[1]"]
        changes += ["j['a'] = '1'", "j['a'] = 1", "j['a'] = 'x'", "j['0'] = '1'"]
        changes += ["j['a']['b'] = '1'", "a['b'] = 1"]
        for change in changes:
            with pytest.raises(tique.Error):
                connection.execute(f"UPDATE u SET {change}")
            connection.rollback()
        with pytest.raises(tique.NotSupportedError, match="character varying"):
            connection.execute("UPDATE u SET s[1] = 'abcdef'")
        rows = connection.execute("SELECT a FROM u ORDER BY id").fetchall()
        assert rows == [([[1, 2], [3, 4]],), ([1],)]
