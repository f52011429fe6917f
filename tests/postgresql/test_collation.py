"""The order of text in a database whose collation is not that of bytes (P8, P9).

Answers from memory must come in the server's order. The server itself is asked about
the same rows in a table that tique does not manage.
"""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.engine import PostgreSQL
from tests.plugins.postgresql import in_database

DATABASE = "und"
WORDS = [
    *("a", "B", "A", "b", "Z", "z", "ä", "Ä", "é", "e\u0301", "", " a", "a b", "ab"),
    *("a-b", "_", "10", "9", "ß", "ss", "ñ", "\uffff", "🙂", "co-op", "coop"),
]
COLUMNS = "g INTEGER, t TEXT NOT NULL, v VARCHAR(9) NOT NULL, n INTEGER"
KEYS = ("g, t", "g, n")
"""Of the second one, the rows of a group in memory can be sorted there."""
QUERIES = [
    "SELECT t, n FROM {} WHERE g = 1 ORDER BY t",
    "SELECT t FROM {} WHERE g = 1 ORDER BY t DESC LIMIT 4",
    "SELECT v FROM {} WHERE g = 1 ORDER BY v, t LIMIT 9",
    "SELECT n, t FROM {} WHERE g = 1 AND n >= 0 ORDER BY n, v DESC",
    "SELECT n FROM {} WHERE g = 1 ORDER BY t, n",
    "SELECT min(t), max(t), min(v), max(v), count(t) FROM {} WHERE g = 1",
    "SELECT t FROM {} ORDER BY g, t",
    "SELECT g, min(v), max(t) FROM {} GROUP BY g ORDER BY g",
    "SELECT a.t FROM {} a JOIN {} b ON a.g = b.g AND a.t < b.t WHERE b.t = 'b' "
    "AND b.g = 1 ORDER BY a.t",
    "SELECT t, rank() OVER (PARTITION BY g ORDER BY v) FROM {} ORDER BY g, t",
    'SELECT t FROM {} WHERE g = 1 ORDER BY t COLLATE "C"',
    *(
        f"SELECT t FROM {{}} WHERE g = 1 AND {condition} ORDER BY t"
        for condition in (
            *("t = 'a'", "t > 'a'", "t <= 'B'", "v < 'z'", "t BETWEEN 'a' AND 'b'"),
            *("t IN ('A', 'é')", "t LIKE 'a%'", "v > t", "greatest(t, 'b') = t"),
        )
    ),
]
CHANGES = [
    "UPDATE {} SET n = n + 100 WHERE g = 1 AND t > 'a'",
    "UPDATE {} SET v = 'Q' || v WHERE g = 1 AND v < 'b' AND t <> ''",
    "DELETE FROM {} WHERE g = 1 AND t BETWEEN 'a' AND 'A'",
    "INSERT INTO {} VALUES (1, 'É', 'É', 50), (1, 'A', 'a', 51), (3, 'a', 'A', 1)",
    "UPDATE {} SET t = t || '!' WHERE g = 2 AND t > 'y'",
]


@pytest.fixture
def native(request):
    engine = PostgreSQL.fresh(request)
    url = in_database(engine.place, DATABASE)
    with closing(psycopg.connect(engine.place, autocommit=True)) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(
            f"CREATE DATABASE {DATABASE} TEMPLATE template0 LOCALE_PROVIDER icu "
            "ICU_LOCALE 'und'"
        )
        with closing(psycopg.connect(url, autocommit=True)) as native:
            yield native
        connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


@pytest.fixture
def connection(native, request):
    cluster = request.getfixturevalue("postgresql_cluster")
    url = in_database(cluster.socket_url, DATABASE)
    with tique.connect(url, checkpoint="manual") as connection:
        yield connection


def fill(connection, table, key, collation=None):
    columns = COLUMNS
    if collation is not None:
        columns = COLUMNS.replace(" NOT", f" COLLATE {collation} NOT")
    connection.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY ({key}))")
    for g in (1, 2):
        for n, word in enumerate(WORDS):
            row = (g, word, WORDS[(7 * n) % len(WORDS)], n)
            connection.execute(f"INSERT INTO {table} VALUES (%s, %s, %s, %s)", row)


def check(connection, native):
    for query in QUERIES:
        wanted = native.execute(query.replace("{}", "bare")).fetchall()
        # A repeated query gets its answers from memory.
        for _ in range(3):
            assert connection.execute(query.replace("{}", "t")).fetchall() == wanted, (
                query
            )


def test_it_is_another_order_than_that_of_bytes(native):
    fill(native, "bare", "g, t")
    rows = native.execute("SELECT t FROM bare WHERE g = 1 ORDER BY t").fetchall()
    assert rows != sorted(rows)


@pytest.mark.parametrize("key", KEYS)
def test_text_is_in_the_servers_order(native, connection, key):
    fill(native, "bare", key)
    fill(connection, "t", key)
    change_and_check(connection, native)


@pytest.mark.parametrize("collation", ['"C"', '"sv-x-icu"'])
def test_text_is_in_the_order_of_its_collation(native, connection, collation):
    fill(native, "bare", "g, n", collation)
    fill(connection, "t", "g, n", collation)
    change_and_check(connection, native)


def change_and_check(connection, native):
    check(connection, native)
    connection.commit()
    check(connection, native)
    connection.commit()
    connection.checkpoint()
    check(connection, native)
    for change in CHANGES:
        count = native.execute(change.replace("{}", "bare")).rowcount
        assert connection.execute(change.replace("{}", "t")).rowcount == count, change
        check(connection, native)
        connection.commit()
        check(connection, native)
        connection.rollback()
    connection.checkpoint()
    check(connection, native)


def test_keys_that_sort_alike_are_two(native, connection):
    """P3, P9: keys are the same if they have the same bytes, as for the server."""
    connection.execute("CREATE TABLE k (t TEXT PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO k VALUES ('é', 1), ('e\u0301', 2), ('a', 3)")
    connection.commit()
    with pytest.raises(tique.errors.UniqueViolation):
        connection.execute("INSERT INTO k VALUES ('e\u0301', 9)")
    connection.execute("UPDATE k SET n = 10 WHERE t = 'é'")
    connection.commit()
    connection.checkpoint()
    rows = connection.execute("SELECT t, n FROM k WHERE t <> 'a'").fetchall()
    assert sorted(rows) == [("e\u0301", 2), ("é", 10)]
    assert sorted(native.execute("SELECT t, n FROM k WHERE t <> 'a'")) == sorted(rows)


SV, C = 'COLLATE "sv-x-icu"', 'COLLATE "C"'


@pytest.mark.parametrize("is_recent", [True, False])
def test_columns_with_collations_are_used_like_others(native, connection, is_recent):
    """P1, P8: RETURNING, EXCLUDED, derived and temporary tables sort as the column."""
    connection.execute(f"CREATE TABLE w (id INTEGER PRIMARY KEY, t TEXT {SV} UNIQUE)")
    connection.execute(f"ALTER TABLE w ADD COLUMN u VARCHAR(5) {SV} DEFAULT 'z'")
    rows = connection.execute(
        "INSERT INTO w (id, t) VALUES (1, 'ä'), (2, 'z') RETURNING id, t > u"
    ).fetchall()
    assert rows == [(1, True), (2, False)]
    connection.commit()
    if not is_recent:
        connection.checkpoint()
    order = "SELECT id FROM w ORDER BY t"
    assert connection.execute(order).fetchall() == [(2,), (1,)]
    assert connection.execute(
        "SELECT t > 'z' FROM w WHERE id = 1 UNION ALL SELECT u < t FROM w WHERE id = 1"
    ).fetchall() == [(True,), (True,)]
    connection.execute(
        "INSERT INTO w (id, t) VALUES (9, 'ä') ON CONFLICT (t) DO UPDATE "
        "SET u = CASE WHEN EXCLUDED.t > 'z' AND w.t > 'z' THEN 'yes' END"
    )
    assert connection.execute("SELECT u FROM w WHERE id = 1").fetchall() == [("yes",)]
    for kind in ("TABLE", "TEMPORARY TABLE"):
        connection.commit()
        connection.execute(f"CREATE {kind} copy AS SELECT * FROM w")
        assert connection.execute(order.replace("w", "copy")).fetchall() == [(2,), (1,)]
        connection.execute("UPDATE copy SET u = 'x' WHERE t > 'z'")
        assert connection.execute(
            "DELETE FROM copy WHERE t > 'z' RETURNING t < 'z'"
        ).fetchall() == [(False,)]
        connection.commit()
        connection.execute("DROP TABLE copy")
    connection.commit()
    connection.execute(f"ALTER TABLE w ALTER t TYPE TEXT {C}")
    connection.commit()
    for query in ("SELECT id FROM w ORDER BY t", "SELECT id FROM w ORDER BY t LIMIT 9"):
        assert connection.execute(query).fetchall() == [(2,), (1,)]
    assert connection.execute("SELECT id FROM w WHERE t > 'é'").fetchall() == []


def test_foreign_keys_are_of_one_collation(native, connection):
    """P9: the engine compares no columns of two; natively it compares their bytes."""
    connection.execute(f"CREATE TABLE p (t TEXT {C} PRIMARY KEY)")
    with pytest.raises(tique.NotSupportedError, match="FOREIGN KEY"):
        connection.execute("CREATE TABLE c (t TEXT REFERENCES p)")
    connection.execute(f"CREATE TABLE c (t TEXT {C} REFERENCES p ON DELETE CASCADE)")
    connection.execute("INSERT INTO p VALUES ('a'), ('b')")
    connection.execute("INSERT INTO c VALUES ('a'), ('b')")
    connection.commit()
    with pytest.raises(tique.errors.ForeignKeyViolation):
        connection.execute("INSERT INTO c VALUES ('A')")
    connection.checkpoint()
    connection.execute("DELETE FROM p WHERE t < 'b'")
    connection.commit()
    assert connection.execute("SELECT t FROM c").fetchall() == [("b",)]


def test_collations_by_which_texts_are_equal_are_refused(native, connection):
    """P3: keys that the server takes for one would be two here."""
    native.execute(
        "CREATE COLLATION public.loose (provider = icu, locale = 'und-u-ks-level2', "
        "deterministic = false)"
    )
    for text in (
        "CREATE TABLE t (a TEXT COLLATE loose)",
        "CREATE TABLE t (a TEXT COLLATE public.loose PRIMARY KEY)",
        "CREATE TEMPORARY TABLE t (a TEXT COLLATE loose)",
        "CREATE TABLE t AS SELECT 'a' COLLATE loose AS a",
    ):
        with pytest.raises(tique.NotSupportedError, match="different texts are equal"):
            connection.execute(text)
        connection.rollback()
    connection.execute("CREATE TABLE t (a TEXT)")
    for change in ("ALTER a TYPE TEXT COLLATE loose", "ADD b TEXT COLLATE loose"):
        with pytest.raises(tique.NotSupportedError, match="different texts are equal"):
            connection.execute(f"ALTER TABLE t {change}")
        connection.rollback()
    native.execute("CREATE DOMAIN public.lax AS text COLLATE public.loose")
    with pytest.raises(tique.NotSupportedError, match="different texts are equal"):
        connection.execute("CREATE TABLE u (a lax)")


def test_an_adopted_table_keeps_its_collations(native, request):
    """P9: its keys are certified by their bytes, and it sorts as before."""
    native.execute(f"CREATE TABLE k (t TEXT {SV} PRIMARY KEY, u TEXT {C})")
    native.execute("INSERT INTO k VALUES ('ä', 'a'), ('z', 'B')")
    cluster = request.getfixturevalue("postgresql_cluster")
    url = in_database(cluster.socket_url, DATABASE)
    tique.adopt(url)
    with tique.connect(url, checkpoint="manual") as connection:
        connection.execute("INSERT INTO k VALUES ('a\u0308', 'A')")
        connection.commit()
        rows = connection.execute("SELECT u FROM k ORDER BY u").fetchall()
        assert rows == [("A",), ("B",), ("a",)]
        rows = connection.execute("SELECT t FROM k ORDER BY t DESC LIMIT 1").fetchall()
        assert rows[0][0] in ("ä", "a\u0308")
        with pytest.raises(tique.errors.UniqueViolation):
            connection.execute("INSERT INTO k VALUES ('a\u0308', 'A')")
    tique.detach(url)
    rows = native.execute("SELECT u FROM k ORDER BY u").fetchall()
    assert rows == [("A",), ("B",), ("a",)]
