"""Scripts to be killed in: lists of steps, each with one state before and after.

A step is a transaction (a tuple of statements), or the name of an action that does
not change the tables' rows. The expected rows after each step are those that DuckDB
itself has after the same statements.
"""

from __future__ import annotations

from tests.portable import numbers

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
