"""Scripts to be killed in: lists of steps, each with one state before and after.

A step is a transaction (a tuple of statements), or the name of an action that does
not change the tables' rows. The expected rows after each step are those that DuckDB
itself has after the same statements. A statement is a text, or :class:`Rows` that
come in another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

from duckdb import connect as connect_unwatched

from tests.portable import numbers


@dataclass(frozen=True)
class Rows:
    """Rows for a table, as a query of DuckDB has them."""

    table: str
    query: str

    @property
    def native(self):
        """The statement that inserts them."""
        return f"INSERT INTO {self.table} {self.query}"

    def bring(self, connection, engine):
        """Bring them through tique."""
        raise NotImplementedError


class Appended(Rows):
    """By ``cursor.append()``."""

    def bring(self, connection, engine):
        with connect_unwatched() as source:
            data = source.sql(self.query).to_arrow_table()
        connection.cursor().append(self.table, data)


class Copied(Rows):
    """By COPY: from a file on DuckDB, by ``cursor.copy()`` on PostgreSQL."""

    def bring(self, connection, engine):
        with TemporaryDirectory() as folder, connect_unwatched() as source:
            file = f"{folder}/rows.csv"
            source.execute(f"COPY ({self.query}) TO '{file}' (HEADER false)")
            if engine.name == "duckdb":
                connection.execute(f"COPY {self.table} FROM '{file}' (HEADER false)")
                return
            text = f"COPY {self.table} FROM STDIN (FORMAT csv)"
            with connection.cursor().copy(text) as copy, open(file, "rb") as rows:
                for piece in iter(partial(rows.read, 10_000), b""):
                    copy.write(piece)


def _brought(kind):
    """Few and many rows, with and without a key, beside other changes."""
    few = "SELECT 100 + i AS id, i AS balance FROM range(5) AS r (i)"
    bag = "SELECT i % 5 AS x, 'x' AS y FROM range(2500) AS r (i)"
    many = "SELECT 5000 + i AS id, 'm' || i AS name, 1 AS v FROM range(2600) AS r (i)"
    return [
        (kind("account", few), "UPDATE account SET balance = 7 WHERE id = 100"),
        (kind("many", many),),
        ("UPDATE many SET v = 2 WHERE id = 5001", kind("bag", bag)),
        "read",
        ("DELETE FROM many WHERE id = 5000",),
        "checkpoint",
        (kind("account", few.replace("100", "200")),),
        "reopen",
    ]


ACCOUNTS = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)",
    f"INSERT INTO account SELECT number, 100 FROM {numbers(10)}",
)
BAG = (
    "CREATE TABLE bag (x INTEGER, y TEXT)",
    "INSERT INTO bag VALUES (1, 'a'), (1, 'a'), (NULL, NULL), (2, NULL)",
)
MANY = (
    "CREATE TABLE many (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v INTEGER)",
    f"INSERT INTO many SELECT number, 'n' || number, 0 FROM {numbers(3000)}",
)
WIDE = (
    "CREATE TABLE wide (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c DOUBLE PRECISION, d DATE)",
    "INSERT INTO wide SELECT number, 0, 'b' || number, 0.5, DATE '2020-01-01' "
    f"FROM {numbers(5)}",
)

SCENARIOS = {
    "small": [
        (
            "UPDATE wide SET a = 1 WHERE id = 1",
            "UPDATE wide SET b = 'new' WHERE id = 2",
            "DELETE FROM wide WHERE id = 3",
        ),
        ("UPDATE wide SET c = 1.5 WHERE id = 1", "UPDATE wide SET a = 2 WHERE id = 2"),
        (
            "UPDATE account SET balance = balance - 10 WHERE id = 1",
            "UPDATE account SET balance = balance + 10 WHERE id = 2",
            "INSERT INTO bag VALUES (7, 'seven')",
        ),
        ("DELETE FROM account WHERE id = 3", "DELETE FROM bag WHERE x = 1"),
        ("INSERT INTO account VALUES (3, 33)", "INSERT INTO bag VALUES (1, 'a')"),
        "read",
        ("UPDATE account SET id = id + 100 WHERE id >= 8",),
        "checkpoint",
        ("UPDATE account SET balance = 0 WHERE id = 1", "DELETE FROM bag"),
        "checkpoint",
    ],
    "bulk": [
        ("UPDATE many SET v = v + 1 WHERE id = 1",),
        (
            "UPDATE many SET v = v + 1",
            "INSERT INTO bag VALUES (8, 'with it')",
            "UPDATE account SET balance = balance + 1 WHERE id = 1",
        ),
        ("UPDATE many SET v = v + 1 WHERE id = 1",),
        (f"INSERT INTO bag SELECT number % 5, 'x' FROM {numbers(2500)}",),
        ("DELETE FROM bag WHERE x = 3",),
        "checkpoint",
        ("DELETE FROM many WHERE id < 2900",),
        "checkpoint",
    ],
    "definitions": [
        ("CREATE TABLE made (id INTEGER PRIMARY KEY, v INTEGER)",),
        ("INSERT INTO made VALUES (1, 1), (2, 2)",),
        ("DROP TABLE made",),
        ("CREATE TABLE made (id INTEGER PRIMARY KEY, v TEXT)",),
        ("INSERT INTO made VALUES (1, 'again')",),
        ("CREATE INDEX by_v ON made (v)",),
        "checkpoint",
        ("DROP TABLE bag",),
    ],
    "unique indexes": [
        ("UPDATE account SET balance = 20 + id", "INSERT INTO bag VALUES (9, 'nine')"),
        ("CREATE UNIQUE INDEX sole ON account (balance)",),
        ("UPDATE account SET balance = 49 - balance",),
        ("DELETE FROM account WHERE id = 1", "INSERT INTO account VALUES (10, 28)"),
        "checkpoint",
        ("DROP INDEX sole",),
        ("UPDATE account SET balance = 0",),
        "reopen",
    ],
    "altering": [
        ("UPDATE wide SET a = 1 WHERE id = 1", "DELETE FROM wide WHERE id = 3"),
        ("ALTER TABLE wide ADD COLUMN e INTEGER DEFAULT 7",),
        ("UPDATE wide SET e = 8 WHERE id = 2", "INSERT INTO bag VALUES (9, 'nine')"),
        ("ALTER TABLE bag RENAME COLUMN y TO z",),
        ("DELETE FROM bag WHERE x = 1", "UPDATE wide SET b = 'new' WHERE id = 4"),
        ("ALTER TABLE wide DROP COLUMN c",),
        ("ALTER TABLE wide RENAME TO broad",),
        ("UPDATE broad SET e = 9",),
        ("CREATE TABLE copied AS SELECT id, e FROM broad WHERE id > 1",),
        "checkpoint",
    ],
    "migrating": [
        ("UPDATE wide SET a = 1 WHERE id = 1", "DELETE FROM wide WHERE id = 3"),
        (
            "BEGIN",
            "CREATE TABLE made (id INTEGER PRIMARY KEY, v INTEGER)",
            "INSERT INTO made VALUES (1, 10), (2, 20)",
            "UPDATE account SET balance = 0 WHERE id = 1",
            "INSERT INTO wide (id, a) VALUES (9, 9)",
            "ALTER TABLE wide ADD COLUMN e INTEGER DEFAULT 7",
            "UPDATE wide SET e = 8 WHERE id = 2",
            "CREATE TABLE copied AS SELECT id, e FROM wide",
            "ALTER TABLE made RENAME COLUMN v TO w",
            "DROP TABLE bag",
        ),
        ("UPDATE made SET w = 11 WHERE id = 1", "DELETE FROM copied WHERE id = 1"),
        "checkpoint",
    ],
    "remembering": [
        ("UPDATE account SET balance = 1 WHERE id = 1",),
        "remember",
        ("UPDATE account SET balance = 2 WHERE id = 1", "DELETE FROM bag WHERE x = 1"),
        (
            "UPDATE account SET balance = 3 WHERE id < 3",
            "INSERT INTO bag VALUES (1, 'a')",
        ),
        "checkpoint",
        ("DELETE FROM account WHERE id = 2", "UPDATE many SET v = v + 1"),
        ("INSERT INTO account VALUES (2, 4)", "DELETE FROM bag"),
        "reopen",
        ("UPDATE many SET v = 9 WHERE id < 3", "UPDATE account SET balance = 5"),
        "checkpoint",
        ("ALTER TABLE many RENAME TO several",),
        ("DELETE FROM several WHERE id < 2990",),
        "checkpoint",
    ],
    "reopening": [
        (
            "UPDATE account SET balance = 1 WHERE id = 1",
            "INSERT INTO bag VALUES (1, 'a')",
        ),
        "reopen",
        (
            "UPDATE account SET balance = 2 WHERE id = 1",
            "INSERT INTO bag VALUES (2, 'b')",
        ),
        "reopen",
    ],
    "adopting": [
        "detach",
        "adopt",
        ("UPDATE account SET balance = 5 WHERE id = 5", "DELETE FROM bag WHERE x = 2"),
        "detach",
    ],
    "appending": _brought(Appended),
    "copying": _brought(Copied),
    "forgetting": [
        ("UPDATE account SET balance = 1 WHERE id = 1",),
        "checkpoint",
        ("UPDATE account SET balance = 2 WHERE id = 1",),
        "checkpoint",
        "reopen",
    ],
}

SETUP = [ACCOUNTS[:1], ACCOUNTS[1:], BAG[:1], BAG[1:], MANY[:1], MANY[1:]]
SETUP += [WIDE[:1], WIDE[1:]]
