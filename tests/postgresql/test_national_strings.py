"""N'…', as dumps of other databases have it: of the type character, as natively (P12)."""

from __future__ import annotations

QUERY = (
    "SELECT N'abc  ' || 'x', pg_typeof(N'a')::text, N'a ' = 'a', octet_length(n'a   ')"
)
TABLE = "CREATE TABLE {} (id INTEGER PRIMARY KEY, v VARCHAR(10), w TEXT, c CHAR(5))"
INSERT = "INSERT INTO {} VALUES (1, N'it''s  ', N'b  ', N'c  '), (2, N'', NULL, N'%')"


def test_a_query(database):
    natively = database.native().execute(QUERY).fetchall()
    assert database.connect().execute(QUERY).fetchall() == natively


def test_rows(database):
    native = database.native()
    native.execute(TABLE.format("theirs"))
    native.execute(INSERT.format("theirs"))
    expected = native.execute("SELECT * FROM theirs ORDER BY id").fetchall()
    with database.connect() as connection:
        connection.execute(TABLE.format("ours"))
        connection.execute(INSERT.format("ours"))
        query = "SELECT * FROM ours ORDER BY id"
        assert connection.execute(query).fetchall() == expected
        connection.execute("UPDATE ours SET v = N'q  ' WHERE w = N'b' AND id = %s", [1])
        connection.commit()
        assert connection.execute(query).fetchall()[0] == (1, "q", *expected[0][2:])
