"""COPY: files of DuckDB, and PostgreSQL's streams by cursor.copy() (P1, P5, P8, P9)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import psycopg
import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

FILES = pytest.mark.written_for(["duckdb"], reason="files are DuckDB's")
STREAMS = pytest.mark.written_for(["postgresql"], reason="streams are PostgreSQL's")


@pytest.fixture(params=["stored", "cached", "own", "staged"])
def connection(engine, request):
    """A table of three rows, wherever a row can be."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE team (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(30) UNIQUE, "
        f"n DECIMAL(10,2) DEFAULT 5 NOT NULL {engine.check('n >= 0')}, "
        "team INTEGER REFERENCES team (id))"
    )
    connection.execute("INSERT INTO team VALUES (1), (2)")
    connection.cursor().executemany(
        "INSERT INTO t VALUES (%s, %s, %s, %s)",
        [(1, "o,ne", 1, 1), (2, None, 2.5, 2), (3, "three", 3, None)],
    )
    if request.param == "staged":
        connection.execute(
            f"INSERT INTO t (id) SELECT number + 100000 FROM {numbers(2100)}"
        )
        connection.execute("DELETE FROM t WHERE id >= 100000")
    if request.param in ("stored", "cached"):
        connection.commit()
    if request.param == "stored":
        connection.checkpoint()
    return connection


ROWS = [
    (1, "o,ne", Decimal(1), 1),
    (2, None, Decimal("2.5"), 2),
    (3, "three", Decimal(3), None),
]


def content(connection):
    return connection.execute("SELECT * FROM t ORDER BY id").fetchall()


# Files


@FILES
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("csv", ""),
        ("csv", "(HEADER false, DELIMITER '|', NULLSTR 'nil')"),
        ("parquet", "(FORMAT parquet)"),
        ("json", "(FORMAT json)"),
    ],
)
def test_files(connection, tmp_path, kind, options):
    """The snapshot and own writes go out, and come back as they were."""
    file = f"{tmp_path}/it's.{kind}".replace("'", "''")
    cursor = connection.execute(f"COPY t TO '{file}' {options}")
    assert (cursor.rowcount, cursor.description) == (3, None)
    connection.execute("DELETE FROM t")
    cursor = connection.execute(f"COPY t FROM '{file}' {options}")
    assert (cursor.rowcount, cursor.description) == (3, None)
    assert content(connection) == ROWS
    connection.commit()
    connection.checkpoint()
    assert content(connection) == ROWS
    cursor = connection.execute(
        f"COPY (SELECT t.id + 10 AS id, t.team FROM t JOIN team ON team.id = t.team) "
        f"TO '{file}' {options}"
    )
    assert cursor.rowcount == 2
    connection.execute(f"COPY main.t (ID, team) FROM '{file}' {options}")
    assert content(connection) == [*ROWS, (11, None, 5, 1), (12, None, 5, 2)]


@FILES
@pytest.mark.parametrize("count", [5, 5000])
def test_rows_of_a_file_obey_the_constraints(connection, tmp_path, count):
    """P5, P9: all rows or none, as of INSERT."""
    for column, value, error in (
        ("id", "1", errors.UniqueViolation),
        ("id", "100", errors.UniqueViolation),
        ("id", "", errors.NotNullViolation),
        ("id", "x", tique.DataError),
        ("name", "three", errors.UniqueViolation),
        ("n", "-1", errors.CheckViolation),
        ("team", "3", errors.ForeignKeyViolation),
        ("team", "2", None),
    ):
        rows = [
            {"id": i, "name": f"n{i}", "n": i, "team": 1} for i in range(99, 99 + count)
        ]
        rows[-1][column] = value
        file = tmp_path / "rows.csv"
        lines = ["id,name,n,team", *(",".join(map(str, r.values())) for r in rows)]
        file.write_text("\n".join(lines) + "\n")
        connection.execute("SAVEPOINT s")
        if error is None:
            cursor = connection.execute(f"COPY t FROM '{file}'")
            assert cursor.rowcount == count
            assert len(content(connection)) == 3 + count
            connection.execute("ROLLBACK TO s")
        else:
            with pytest.raises(error):
                connection.execute(f"COPY t FROM '{file}'")
        assert content(connection) == ROWS


@FILES
def test_refused_files(connection, tmp_path):
    for statement, error in (
        ("COPY t FROM STDIN", tique.NotSupportedError),
        ("COPY t TO STDOUT", tique.NotSupportedError),
        (f"COPY nothing TO '{tmp_path}/x'", tique.ProgrammingError),
        (f"COPY t (nothing) TO '{tmp_path}/x'", tique.ProgrammingError),
        (f"COPY tique.log TO '{tmp_path}/x'", tique.NotSupportedError),
        (f"COPY (SELECT * FROM tique.log) TO '{tmp_path}/x'", tique.NotSupportedError),
        (
            f"COPY (DELETE FROM t RETURNING *) TO '{tmp_path}/x'",
            tique.NotSupportedError,
        ),
        (f"COPY t TO '{tmp_path}/x' (FORMAT (SELECT 'csv'))", tique.NotSupportedError),
        (f"COPY t FROM '{tmp_path}/missing.csv'", tique.Error),
    ):
        with pytest.raises(error):
            connection.execute(statement)
    with pytest.raises(tique.ProgrammingError, match=r"copy\(\)"):
        connection.cursor().copy(f"COPY t TO '{tmp_path}/x'")
    assert content(connection) == ROWS


@FILES
def test_a_snapshot_is_copied(engine, connection, tmp_path):
    """P1: what others committed since is not in the file."""
    connection.commit()
    connection.execute("SELECT count(*) FROM t")
    other = engine.connect(checkpoint="manual")
    other.execute("DELETE FROM t WHERE id = 1")
    other.commit()
    other.checkpoint()
    connection.execute(f"COPY t TO '{tmp_path}/rows.csv'")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 4


# Streams


def out(connection, statement):
    with connection.cursor().copy(statement) as copy:
        return b"".join(copy)


@STREAMS
def test_streams(connection):
    """The snapshot and own writes go out, and come back as they were."""
    for options in (
        "",
        " WITH (FORMAT csv, HEADER, NULL 'nil', DELIMITER E'\\t')",
        " (FORMAT binary)",
        " CSV DELIMITER '|'",
    ):
        data = out(connection, f"COPY t TO STDOUT{options}")
        connection.execute("DELETE FROM t")
        cursor = connection.cursor()
        with cursor.copy(f"COPY t FROM STDIN{options}") as copy:
            for start in range(0, len(data), 7):
                copy.write(data[start : start + 7])
        assert (cursor.rowcount, cursor.description) == (3, None)
        assert content(connection) == ROWS
    connection.commit()
    connection.checkpoint()
    assert content(connection) == ROWS
    data = out(
        connection,
        "COPY (SELECT t.id + 10, t.team FROM t JOIN team ON team.id = t.team ORDER BY 1) "
        "TO STDOUT",
    )
    assert data == b"11\t1\n12\t2\n"
    with connection.cursor().copy("COPY public.t (ID, team) FROM STDIN") as copy:
        copy.write(data.decode())
    assert content(connection) == [*ROWS, (11, None, 5, 1), (12, None, 5, 2)]


@STREAMS
def test_rows_as_in_psycopg(engine, connection):
    rows = [(10, "a\tb\\", Decimal("1.5"), 1), (11, None, Decimal(0), None)]
    cursor = connection.cursor()
    with cursor.copy("COPY t FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    assert cursor.rowcount == 2
    assert content(connection)[3:] == rows
    with cursor.copy("COPY (SELECT * FROM t ORDER BY id) TO STDOUT") as copy:
        copy.set_types(["int4", "varchar", "numeric", "int4"])
        assert copy.read_row() == ROWS[0]
        assert list(copy.rows()) == [*ROWS[1:], *rows]
        assert copy.read_row() is None
    assert cursor.rowcount == 5
    with cursor.copy("COPY (SELECT id, name FROM t WHERE id = 2) TO STDOUT") as copy:
        assert list(copy.rows()) == [("2", None)]
    with cursor.copy("COPY t FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "varchar", "numeric", "int4"])
        copy.write_row((12, "x", Decimal(7), 2))
    assert content(connection)[-1] == (12, "x", Decimal(7), 2)
    connection.commit()
    connection.checkpoint()
    native = engine.native()
    with native.cursor().copy("COPY (SELECT * FROM t ORDER BY id) TO STDOUT") as copy:
        assert isinstance(copy, psycopg.Copy)
        assert [row[0] for row in copy.rows()] == ["1", "2", "3", "10", "11", "12"]


@STREAMS
@pytest.mark.parametrize("count", [5, 3000])
def test_rows_of_a_stream_obey_the_constraints(connection, count):
    """P5, P9: all rows or none, as of INSERT."""
    for column, value, error in (
        (0, 1, errors.UniqueViolation),
        (0, 100, errors.UniqueViolation),
        (0, None, errors.NotNullViolation),
        (0, "x", tique.DataError),
        (1, "three", errors.UniqueViolation),
        (1, "x" * 31, tique.DataError),
        (2, -1, errors.CheckViolation),
        (3, 3, errors.ForeignKeyViolation),
        (3, 2, None),
    ):
        rows = [[i, f"n{i}", i, 1] for i in range(99, 99 + count)]
        rows[-1][column] = value
        connection.execute("SAVEPOINT s")
        cursor = connection.cursor()

        def load(rows=rows, cursor=cursor):
            with cursor.copy("COPY t FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

        if error is None:
            load()
            assert cursor.rowcount == count
            assert len(content(connection)) == 3 + count
            connection.execute("ROLLBACK TO s")
        else:
            with pytest.raises(error):
                load()
        assert content(connection) == ROWS


@STREAMS
def test_a_block_that_raises_writes_nothing(connection):
    def work():
        with connection.cursor().copy("COPY t FROM STDIN") as copy:
            copy.write_row((9, "nine", 9, None))
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert content(connection) == ROWS
    connection.commit()
    assert content(connection) == ROWS


@STREAMS
def test_the_connection_is_free_within_the_block(connection):
    with connection.cursor().copy("COPY t (id) FROM STDIN") as copy:
        for (key,) in connection.execute("SELECT id FROM t").fetchall():
            copy.write_row((key + 10,))
        connection.execute("DELETE FROM t WHERE id = 1")
    assert [row[0] for row in content(connection)] == [2, 3, 11, 12, 13]


@STREAMS
def test_refused_streams(connection):
    for statement, error in (
        ("COPY t FROM '/etc/passwd'", tique.NotSupportedError),
        ("COPY t TO '/tmp/x'", tique.NotSupportedError),
        ("COPY t FROM PROGRAM 'id'", tique.NotSupportedError),
        ("COPY (SELECT 1) TO PROGRAM 'id'", tique.NotSupportedError),
        ("COPY t FROM STDIN WHERE id > 1", tique.NotSupportedError),
        ("COPY t FROM STDIN (FREEZE)", tique.NotSupportedError),
        ("COPY tique.log TO STDOUT", tique.NotSupportedError),
        ("COPY (SELECT * FROM tique.log) TO STDOUT", tique.NotSupportedError),
        ("COPY (DELETE FROM t RETURNING *) TO STDOUT", tique.NotSupportedError),
        ("COPY (SELECT ctid FROM t) TO STDOUT", tique.NotSupportedError),
        ("COPY pg_authid TO STDOUT", tique.ProgrammingError),
        ("COPY nothing FROM STDIN", tique.ProgrammingError),
        ("COPY t (nothing) FROM STDIN", tique.ProgrammingError),
        ("SELECT 1", tique.ProgrammingError),
    ):
        with pytest.raises(error):
            connection.cursor().copy(statement)
    for statement in ("COPY t FROM STDIN", "COPY t TO STDOUT"):
        with pytest.raises(tique.ProgrammingError, match=r"cursor\.copy\(\)"):
            connection.execute(statement)
        copy = connection.cursor().copy(statement)
        for call in (copy.read, copy.read_row, lambda copy=copy: copy.write("1")):
            with pytest.raises(tique.ProgrammingError, match="with block"):
                call()
    with (
        pytest.raises(tique.DataError),
        connection.cursor().copy("COPY t FROM STDIN (FORMAT nonsense)") as copy,
    ):
        copy.write("1")
    assert content(connection) == ROWS


@STREAMS
def test_reading_and_writing_are_told_apart(connection):
    with connection.cursor().copy("COPY t TO STDOUT") as copy:
        with pytest.raises(tique.ProgrammingError):
            copy.write("x")
        assert copy.read()
        with pytest.raises(tique.ProgrammingError):
            copy.read_row()
    with (
        connection.cursor().copy("COPY t FROM STDIN") as copy,
        pytest.raises(tique.ProgrammingError),
    ):
        copy.read()


@STREAMS
def test_autocommit(engine, connection):
    connection.commit()
    connection.autocommit = True
    with connection.cursor().copy("COPY t (id) FROM STDIN") as copy:
        copy.write("4\n")
    assert len(content(engine.connect(checkpoint="manual"))) == 4
    assert not connection.in_transaction


@STREAMS
def test_values_that_are_kept_as_text(connection):
    connection.rollback()
    connection.execute(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, j JSONB, a INTEGER[], d DATE DEFAULT "
        "'2024-01-01', e TIMESTAMPTZ)"
    )
    text = (
        b'1\t{"k": [1, "\\\\\\\\"]}\t{1,NULL,3}\t2024-02-29\t2024-01-01 00:00:00+00\n'
    )
    with connection.cursor().copy("COPY k FROM STDIN") as copy:
        copy.write(text)
    with connection.cursor().copy("COPY k (id) FROM STDIN") as copy:
        copy.write(b"2\n")
    connection.commit()
    connection.checkpoint()
    found = connection.execute("SELECT a, d FROM k ORDER BY id").fetchall()
    assert found == [([1, None, 3], date(2024, 2, 29)), (None, date(2024, 1, 1))]
    assert out(connection, "COPY (SELECT * FROM k WHERE id = 1) TO STDOUT") == text


@pytest.mark.written_for(["monetdb"], reason="the other engines have some COPY")
def test_monetdb_has_none(connection):
    for statement in ("COPY INTO t FROM STDIN", "COPY SELECT 1 INTO 'x'"):
        with pytest.raises(tique.NotSupportedError, match=r"append\(\)"):
            connection.execute(statement)
