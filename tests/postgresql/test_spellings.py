"""Forms of statements that mean what other forms mean: as natively (P8, P9, P10)."""

from __future__ import annotations

import pytest

RETURNED = " RETURNING id, i, words"

FORMS = (
    "SELECT id, i FROM ONLY t WHERE id = 1",
    "SELECT a.id, b.i FROM t AS a JOIN ONLY t AS b ON b.id = a.id ORDER BY 1",
    f"UPDATE ONLY t SET i = i + 1 WHERE id = 2{RETURNED}",
    f"UPDATE ONLY t AS x SET i = 5 WHERE x.words = '3'{RETURNED}",
    "DELETE FROM ONLY t WHERE id = 1",
    "INSERT INTO t (id, i) OVERRIDING SYSTEM VALUE VALUES (9, 1)" + RETURNED,
    f"INSERT INTO t (id, i) OVERRIDING SYSTEM VALUE SELECT id + 10, i FROM t{RETURNED}",
    "INSERT INTO t (id) OVERRIDING SYSTEM VALUE OVERRIDING SYSTEM VALUE VALUES (9)",
    f"UPDATE t SET (i, words) = (SELECT 7, 'x') WHERE id = 1{RETURNED}",
    f"UPDATE t SET (i, words) = (SELECT sum(k.u), max(t.words) FROM k){RETURNED}",
    f"UPDATE t SET (i, words) = (SELECT k.u, k.c::text FROM k WHERE k.id = t.id){RETURNED}",
    f"UPDATE t SET (i, words) = (SELECT u, 'a' FROM k){RETURNED}",
    f"UPDATE t SET (i, words) = (SELECT id FROM k WHERE false){RETURNED}",
    f"UPDATE t SET (i) = (SELECT u FROM k ORDER BY u LIMIT 1), words = 'z'{RETURNED}",
    f"UPDATE t SET (i, nope) = (SELECT 1, 2){RETURNED}",
    f"UPDATE t SET (i, i) = (SELECT 1, 2){RETURNED}",
    "UPDATE t SET (small, i) = (SELECT 40000, 1) WHERE id = 1",
    "UPDATE t SET (truth, i) = (SELECT 1, 1) WHERE id = 1",
    "UPDATE t SET (short, i) = (SELECT 'abcd', 1) WHERE id = 1",
    "INSERT INTO k (id, u) VALUES (5, 1), (6, 6) ON CONFLICT ON CONSTRAINT k_u_key "
    "DO NOTHING RETURNING id, u",
    "INSERT INTO k (id, u) VALUES (1, 8) ON CONFLICT ON CONSTRAINT k_pkey "
    "DO UPDATE SET u = EXCLUDED.u RETURNING id, u",
    "INSERT INTO k (id, u) VALUES (1, 8) ON CONFLICT ON CONSTRAINT k_u_key DO NOTHING",
    "INSERT INTO k (id) VALUES (1) ON CONFLICT ON CONSTRAINT nope DO NOTHING",
    'INSERT INTO k (id) VALUES (1) ON CONFLICT ON CONSTRAINT "K_PKEY" DO NOTHING',
    "INSERT INTO k (id) VALUES (1) ON CONFLICT ON CONSTRAINT K_PKEY DO UPDATE "
    "SET (c, u) = (SELECT 9, k.u + 7) RETURNING c, u",
    "SELECT id, i FROM t ORDER BY i USING >, words USING < NULLS FIRST",
    "SELECT array_agg(id ORDER BY i USING >) FROM t",
    "SELECT i FROM t ORDER BY i USING <>",
    "SELECT id, pg_column_size(i), pg_column_size(words) FROM t",
    "SELECT setseed(2)",
    "UPDATE t SET i = (SELECT 1 FROM setseed(0.1)) WHERE id = 3" + RETURNED,
    "SELECT * FROM ROWS FROM (generate_series(1, 3), generate_series(4, 5)) "
    "WITH ORDINALITY AS r (a, b, n) LEFT JOIN t ON t.id = a",
    "SELECT t.id, r.a FROM t, LATERAL ROWS FROM (generate_series(1, t.id)) AS r (a)",
    "SELECT box '(1,1),(0,0)' @> point '(0.5,0.5)', json_object('{a, 1}'), id FROM t",
    "SELECT id FROM t WHERE words = macaddr '08:00:2b:01:02:03'",
    r"SELECT U&'d\0061t\+000061\\', U&'a''\0027b\0022', u&'\D83D\DE00' AS smile, id FROM t",
    r'SELECT U&"\0069d" AS U&"d\0061t" FROM t WHERE words = U&' + "'\\0033'",
    r"INSERT INTO t (id, words) VALUES (7, U&'\005C\0025\27') RETURNING words",
    r"INSERT INTO t (id, words) VALUES (7, U&'\005C\0025\0027') RETURNING words",
    r"SELECT U&'\D800'",
    "SELECT @ -5, @ (i - 10), (@ i) + 1 FROM t WHERE @ id = 1",
    "SELECT id FROM t WHERE i > @ -2 AND @ -1.5 < 2",
    "INSERT INTO t (id, i) VALUES (8, @ -7) RETURNING i",
    "UPDATE t SET i = @ (i - 1000) WHERE id = 1 RETURNING i",
    "SELECT id, polygon '((0,0),(1,1))' ~= polygon '((0,0),(1,1))' FROM t",
    "SELECT id FROM t WHERE point(i, i) ~= point(100, 100) OR point(1, 1) ~= point(id, id)",
    "INSERT INTO t (id, i) OVERRIDING USER VALUE VALUES (9, 1)" + RETURNED,
    f"INSERT INTO t (id, i) OVERRIDING USER VALUE SELECT id + 10, i FROM t{RETURNED}",
    "SELECT pg_total_relation_size('t') > 0, pg_size_pretty(pg_relation_size('k'::regclass)) <> ''",
)


@pytest.mark.parametrize("sql", FORMS)
def test_forms(pair, sql):
    def body(connection):
        connection.execute("UPDATE t SET i = i + 100 WHERE id = 3")
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if cursor.description else None
        if rows and "USING" not in sql:
            rows.sort(key=repr)
        there = connection.execute("SELECT id, i, words FROM t ORDER BY id").fetchall()
        count = None if sql.startswith("SELECT") else cursor.rowcount
        return count, rows, there

    pair.same(body)


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE made (a INTEGER) WITH (fillfactor = 70)",
        "CREATE TABLE made (a INTEGER PRIMARY KEY) WITH (autovacuum_enabled = off)",
        "CREATE TABLE made (a INTEGER) WITH (fillfactor = 5)",
        "CREATE UNLOGGED TABLE made (a INTEGER)",
    ],
)
def test_storage_of_tables(pair, table):
    def body(connection):
        try:
            connection.execute(table)
            connection.execute("INSERT INTO made VALUES (1), (2)")
            found = connection.execute("SELECT sum(a) FROM made").fetchall()
            options = connection.execute(
                "SELECT reloptions FROM pg_class WHERE relname = 'made'"
            ).fetchall()
            connection.commit()
        finally:
            connection.rollback()
            connection.execute("DROP TABLE IF EXISTS made")
            connection.commit()
        return found, options

    pair.same(body)


INTO = (
    "SELECT id, words AS w INTO made FROM t WHERE id > 1",
    "SELECT * INTO TABLE made FROM t",
    "SELECT id INTO UNLOGGED made FROM t UNION SELECT u FROM k",
    "SELECT 1 AS a, 'x'::text AS b INTO public.made",
)


@pytest.mark.parametrize("sql", INTO)
def test_a_table_of_a_query_s_rows(pair, sql):
    def body(connection):
        connection.execute("UPDATE t SET words = 'new' WHERE id = 3")
        connection.commit()
        try:
            connection.execute(sql)
            connection.execute("INSERT INTO made SELECT * FROM made")
            found = connection.execute("SELECT * FROM made").fetchall()
            connection.commit()
        finally:
            connection.rollback()
            connection.execute("DROP TABLE IF EXISTS made")
            connection.execute("UPDATE t SET words = '3' WHERE id = 3")
            connection.commit()
        return sorted(map(repr, found))

    pair.same(body)


def test_random_numbers_begin_anew(pair):
    """P9: those of the connection, whatever statements of tique's are between."""

    def body(connection):
        found = []
        for seed in (0.5, -0.25, 0.5):
            connection.execute("SELECT setseed(%s)", (seed,))
            found += connection.execute("SELECT random(), random()").fetchall()
            connection.commit()
            connection.execute("UPDATE t SET i = i + 1 WHERE id = 1")
            found += connection.execute(
                "SELECT random() FROM t WHERE id = 1"
            ).fetchall()
            connection.execute(
                "INSERT INTO t (id, double) SELECT g, random() FROM generate_series(50, 59) AS g"
            )
            made = "SELECT double FROM t WHERE id >= 50 ORDER BY id"
            found += connection.execute(made).fetchall()
            connection.rollback()
            found += connection.execute("SELECT random()").fetchall()
        return found

    found = pair.same(body)
    assert found[:13] == found[26:]
    assert len(set(found)) > 20
