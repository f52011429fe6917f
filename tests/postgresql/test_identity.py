"""Columns GENERATED ALWAYS AS IDENTITY: as natively, stored as acknowledged (P4, P8, P9)."""

from __future__ import annotations

from contextlib import closing

import pytest

import tique

TABLES = (
    "CREATE TABLE made (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v TEXT)",
    "CREATE TABLE beside (k INTEGER PRIMARY KEY, n INTEGER GENERATED ALWAYS AS IDENTITY "
    "(START WITH 10 INCREMENT BY 5), v TEXT)",
)

SCRIPTS = {
    "drawn": [
        "INSERT INTO made (v) VALUES ('a'), ('b') RETURNING id",
        "INSERT INTO made VALUES (DEFAULT, 'c') RETURNING *",
        "INSERT INTO made (v) SELECT 'd' RETURNING id",
        "INSERT INTO beside (k) VALUES (1), (2) RETURNING n",
    ],
    "given": ["INSERT INTO made (id, v) VALUES (7, 'a')"],
    "given without a list": ["INSERT INTO made VALUES (7, 'a')"],
    "given in one row": ["INSERT INTO made VALUES (DEFAULT, 'a'), (7, 'b')"],
    "given by a query": ["INSERT INTO made SELECT 7, 'a'"],
    "given NULL": ["INSERT INTO made VALUES (NULL, 'a')"],
    "overridden": [
        "INSERT INTO made OVERRIDING SYSTEM VALUE VALUES (7, 'a'), (DEFAULT, 'b') RETURNING id",
        "INSERT INTO made OVERRIDING SYSTEM VALUE SELECT 8, 'c' RETURNING id",
        "INSERT INTO made OVERRIDING SYSTEM VALUE VALUES (7, 'a') ON CONFLICT DO NOTHING",
    ],
    "left out": [
        "INSERT INTO made OVERRIDING USER VALUE VALUES (7, 'a'), (DEFAULT, 'b') RETURNING *",
        "INSERT INTO beside OVERRIDING USER VALUE VALUES (7, 1, 'a'), (8, NULL, 'b') RETURNING *",
        "INSERT INTO beside (k) OVERRIDING USER VALUE SELECT 9 RETURNING *",
    ],
    "of a wrong type": [
        "INSERT INTO made OVERRIDING SYSTEM VALUE SELECT 'x'::text, 'c'"
    ],
    "updated": ["INSERT INTO made (v) VALUES ('a')", "UPDATE made SET id = 5"],
    "updated in a list": ["UPDATE beside SET (n, v) = (1, 'a')"],
    "updated by a subquery": ["UPDATE beside SET (n, v) = (SELECT 1, 'a')"],
    "updated to the default": [
        "INSERT INTO beside (k) VALUES (1)",
        "UPDATE beside SET n = DEFAULT RETURNING n",
    ],
    "updated in a conflict": [
        "INSERT INTO beside (k) VALUES (1)",
        "INSERT INTO beside (k) VALUES (1) ON CONFLICT (k) DO UPDATE SET n = 5",
    ],
    "other columns": [
        "INSERT INTO beside (k, v) VALUES (1, 'a')",
        "INSERT INTO beside (k, v) VALUES (1, 'b') ON CONFLICT (k) DO UPDATE "
        "SET v = excluded.v RETURNING *",
        "UPDATE beside SET v = 'c', k = 4 RETURNING *",
    ],
    "merged": [
        "MERGE INTO beside AS b USING (SELECT 1 AS k) AS s ON b.k = s.k "
        "WHEN NOT MATCHED THEN INSERT (k, n) VALUES (s.k, 5)",
    ],
    "merged with the default": [
        "MERGE INTO beside AS b USING (SELECT 1 AS k) AS s ON b.k = s.k "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, 'm')",
    ],
    "merged to another": [
        "INSERT INTO beside (k) VALUES (1)",
        "MERGE INTO beside AS b USING (SELECT 1 AS k) AS s ON b.k = s.k "
        "WHEN MATCHED THEN UPDATE SET n = 5",
    ],
}


@pytest.fixture
def tables(pair):
    for connection in (pair.native, pair.ours):
        for statement in TABLES:
            connection.execute(statement)
        connection.commit()
    yield
    for connection in (pair.native, pair.ours):
        connection.rollback()
        connection.execute("DROP TABLE made, beside")
        connection.commit()


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_as_natively(pair, script):
    def body(connection):
        results = []
        for statement in script:
            cursor = connection.execute(statement)
            results.append(cursor.fetchall() if cursor.description else cursor.rowcount)
        for table in ("made", "beside"):
            found = connection.execute(f"SELECT * FROM {table} ORDER BY 1")
            results.append(found.fetchall())
        return results

    pair.same(body)


def rows(connection, table):
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


@pytest.mark.parametrize("count", [1, 3000], ids=["few", "many"])
def test_what_was_drawn_is_stored(database, count):
    """P4: by a fold, in a bulk, and after a crash; also another row with a stored key."""
    connection = database.connect(autocommit=True, checkpoint="manual")
    for statement in TABLES:
        connection.execute(statement)
    series = f"generate_series(1, {count}) AS s (g)"
    for _ in range(2):
        connection.execute(f"INSERT INTO made (v) SELECT 'v' || g FROM {series}")
        connection.execute("UPDATE made SET v = v || '+' WHERE id % 2 = 1")
        connection.execute(f"INSERT INTO beside (k, v) SELECT g, 'v' FROM {series}")
        connection.execute("UPDATE beside SET v = 'w' WHERE k % 2 = 1")
        expected = rows(connection, "made"), rows(connection, "beside")
        connection.checkpoint()
        assert (rows(connection, "made"), rows(connection, "beside")) == expected
        connection.execute("DELETE FROM beside")
    connection.execute(f"INSERT INTO beside (k, v) SELECT g, 'z' FROM {series}")
    connection.execute("UPDATE made SET v = 'last' WHERE id = 1")
    expected = rows(connection, "made"), rows(connection, "beside")
    database.restart()
    connection = database.connect(autocommit=True, checkpoint="manual")
    assert (rows(connection, "made"), rows(connection, "beside")) == expected
    connection.checkpoint()
    assert (rows(connection, "made"), rows(connection, "beside")) == expected
    connection.close()
    with closing(database.native()) as native:
        for table, there in zip(("made", "beside"), expected, strict=True):
            found = native.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            assert found == there


def test_rows_of_a_copy_are_taken(database):
    connection = database.connect(autocommit=True)
    connection.execute(TABLES[0])
    with connection.cursor() as cursor, cursor.copy("COPY made FROM STDIN") as copy:
        copy.write_row((41, "a"))
    assert rows(connection, "made") == [(41, "a")]


def test_a_column_is_added(database):
    connection = database.connect(autocommit=True)
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1), (2)")
    connection.execute(
        "ALTER TABLE t ADD COLUMN n INTEGER GENERATED ALWAYS AS IDENTITY"
    )
    assert rows(connection, "t") == [(1, 1), (2, 2)]
    connection.execute("INSERT INTO t VALUES (3)")
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("INSERT INTO t VALUES (4, 9)")
    assert caught.value.sqlstate == "428C9"
    connection.checkpoint()
    assert rows(connection, "t") == [(1, 1), (2, 2), (3, 3)]


def test_a_column_becomes_one(database):
    """As dumps have it, behind CREATE TABLE; rows that are there stay (P4)."""
    connection = database.connect(autocommit=True)
    connection.execute(
        "CREATE TABLE t (id INTEGER NOT NULL, n BIGINT NOT NULL, v TEXT)"
    )
    connection.execute("INSERT INTO t VALUES (1, 2, 'a')")
    with pytest.raises(tique.OperationalError) as caught:
        # NULL may be in it.
        connection.execute(
            "ALTER TABLE t ALTER COLUMN v TYPE INTEGER USING 5, "
            "ALTER COLUMN v ADD GENERATED ALWAYS AS IDENTITY"
        )
    assert caught.value.sqlstate == "55000"
    connection.execute(
        "ALTER TABLE public.t ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY ("
        "SEQUENCE NAME public.t_id_seq START WITH 10 INCREMENT BY 1 NO MINVALUE "
        "NO MAXVALUE CACHE 1)"
    )
    connection.execute("ALTER TABLE t ALTER n ADD GENERATED BY DEFAULT AS IDENTITY")
    connection.execute("INSERT INTO t (v) VALUES ('b')")
    connection.execute("SELECT pg_catalog.setval('public.t_id_seq', 20, true)")
    connection.execute("INSERT INTO t (n, v) VALUES (5, 'c')")
    with pytest.raises(tique.ProgrammingError) as refused:
        connection.execute("INSERT INTO t (id) VALUES (9)")
    assert refused.value.sqlstate == "428C9"
    expected = [(1, 2, "a"), (10, 1, "b"), (21, 5, "c")]
    assert rows(connection, "t") == expected
    database.restart()
    connection = database.connect(autocommit=True)
    connection.checkpoint()
    assert rows(connection, "t") == expected
    connection.execute("ALTER TABLE t DROP COLUMN n")
    assert rows(connection, "t") == [(1, "a"), (10, "b"), (21, "c")]


@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_an_ordinary_role_folds_them(shop, key):
    """P11: with the rights of the schema's owner, as the engine's own INSERT has them."""
    shop.owner.commit(
        f"CREATE TABLE made (id BIGINT GENERATED ALWAYS AS IDENTITY {key}, v TEXT)"
    )
    shop.owner.commit("GRANT SELECT, INSERT, UPDATE, DELETE ON made TO writer")
    writer = shop.process("writer")
    writer.commit("INSERT INTO made OVERRIDING SYSTEM VALUE VALUES (5, 'a'), (6, 'b')")
    writer.commit("UPDATE made SET v = 'c' WHERE id = 5")
    shop.owner.close()
    writer.connection.checkpoint()
    with shop.by_hand() as native:
        found = native.execute("SELECT * FROM public.made ORDER BY id").fetchall()
    assert (
        found == writer.rows("SELECT * FROM made ORDER BY id") == [(5, "c"), (6, "b")]
    )
