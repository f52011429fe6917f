"""Pairs of concurrent transactions on a parent and a child, and whether they conflict."""

from __future__ import annotations

from typing import NamedTuple

from tests.portable import numbers

SCHEMA = (
    "CREATE TABLE p (id INTEGER PRIMARY KEY, code INTEGER UNIQUE, v INTEGER)",
    "CREATE TABLE k (id INTEGER PRIMARY KEY, ref INTEGER REFERENCES p {action}, "
    "code INTEGER REFERENCES p (code) {action}, v INTEGER)",
    "INSERT INTO p VALUES (1, 101, 0), (2, 102, 0), (3, 103, 0)",
    "INSERT INTO k VALUES (1, 1, 101, 0), (2, NULL, NULL, 0)",
)
ORPHANS = (
    "SELECT count(*) FROM k WHERE (ref IS NOT NULL AND ref NOT IN (SELECT id FROM p)) "
    "OR (code IS NOT NULL AND code NOT IN (SELECT code FROM p WHERE code IS NOT NULL))"
)


class Pair(NamedTuple):
    """What two transactions do at the same time."""

    name: str
    action: str
    one: str
    two: str
    conflict: bool


_CASCADE = "ON DELETE CASCADE ON UPDATE CASCADE"
_SET_NULL = "ON DELETE SET NULL ON UPDATE SET NULL"
_MANY_KEYS = numbers(3000)
_BULK_CHILDREN = f"INSERT INTO k SELECT number + 10, {{}}, NULL, 0 FROM {_MANY_KEYS}"

CONFLICTS = (
    Pair("insert and delete", "", "INSERT INTO k VALUES (7, 2, NULL, 0)",
         "DELETE FROM p WHERE id = 2", True),
    Pair("insert and change of the key", "", "INSERT INTO k VALUES (7, 2, NULL, 0)",
         "UPDATE p SET id = 9 WHERE id = 2", True),
    Pair("update and delete", "", "UPDATE k SET ref = 2 WHERE id = 2",
         "DELETE FROM p WHERE id = 2", True),
    Pair("insert and delete, by the other key", "",
         "INSERT INTO k VALUES (7, NULL, 102, 0)", "DELETE FROM p WHERE id = 2", True),
    Pair("insert and change of the other key", "",
         "INSERT INTO k VALUES (7, NULL, 102, 0)",
         "UPDATE p SET code = 9 WHERE id = 2", True),
    Pair("insert and cascade", _CASCADE, "INSERT INTO k VALUES (7, 1, NULL, 0)",
         "DELETE FROM p WHERE id = 1", True),
    Pair("insert and cascade of a change", _CASCADE,
         "INSERT INTO k VALUES (7, 1, NULL, 0)",
         "UPDATE p SET id = 9 WHERE id = 1", True),
    Pair("insert and SET NULL", _SET_NULL, "INSERT INTO k VALUES (7, 1, NULL, 0)",
         "DELETE FROM p WHERE id = 1", True),
    Pair("update of the row that SET NULL changes", _SET_NULL,
         "UPDATE k SET v = 5 WHERE id = 1 AND v + 0 < 5", "DELETE FROM p WHERE id = 1",
         True),
    Pair("update of the row that a cascade deletes", _CASCADE,
         "UPDATE k SET ref = 3, code = NULL WHERE id = 1",
         "DELETE FROM p WHERE id = 1", True),
    Pair("two deletes", _CASCADE, "DELETE FROM p WHERE id = 1",
         "DELETE FROM p WHERE id < 3", True),
    Pair("children in bulk and delete", "", _BULK_CHILDREN.format(2),
         "DELETE FROM p WHERE id = 2", True),
    Pair("parents deleted in bulk and insert", "",
         "INSERT INTO k VALUES (7, 2, NULL, 0)",
         f"INSERT INTO p SELECT number + 10, NULL, 0 FROM {_MANY_KEYS}; "
         "DELETE FROM p WHERE id <> 1", True),
)  # fmt: skip
NO_CONFLICTS = (
    Pair("two children of one parent", "", "INSERT INTO k VALUES (7, 2, 102, 0)",
         "INSERT INTO k VALUES (8, 2, 102, 0)", False),
    Pair("insert and update of other columns", "",
         "INSERT INTO k VALUES (7, 2, NULL, 0)",
         "UPDATE p SET v = v + 1 WHERE id = 2", False),
    Pair("insert and update of other columns, by the other key", "",
         "INSERT INTO k VALUES (7, NULL, 102, 0)",
         "UPDATE p SET v = v + 1 WHERE id = 2", False),
    Pair("insert and change of the key that it does not reference", "",
         "INSERT INTO k VALUES (7, 2, NULL, 0)",
         "UPDATE p SET code = 9 WHERE id = 2", False),
    Pair("insert and delete of another parent", "",
         "INSERT INTO k VALUES (7, 2, 102, 0)", "DELETE FROM p WHERE id = 3", False),
    Pair("update of a child's other columns and of its parent", "",
         "UPDATE k SET v = 9 WHERE id = 1", "UPDATE p SET v = 1 WHERE id = 1", False),
    Pair("a reference is taken away and its parent's other columns change", "",
         "UPDATE k SET ref = NULL WHERE id = 1", "UPDATE p SET v = 1 WHERE id = 1", False),
    Pair("children in bulk and update of other columns", "",
         _BULK_CHILDREN.format(2), "UPDATE p SET v = 1 WHERE id = 2", False),
)  # fmt: skip
PAIRS = CONFLICTS + NO_CONFLICTS


def run(connection, statements):
    """Run statements, one after the other."""
    for sql in statements.split("; "):
        connection.execute(sql)


def set_up(connection, action):
    """Create the tables."""
    for sql in SCHEMA:
        connection.execute(sql.format(action=action))
        connection.commit()
