"""Two tables, a parent and its children, and what tests ask of them."""

from __future__ import annotations

import pytest

import tique

MORE_PARENTS = (
    "INSERT INTO parent (id, v, code) SELECT id + 2, v, code || 'x' FROM parent"
)


def parents(engine):
    connection = engine.connect(autocommit=True)
    connection.execute(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, v INTEGER, code TEXT UNIQUE)"
    )
    connection.execute("INSERT INTO parent VALUES (1, 10, 'a'), (2, 20, 'b')")
    return connection


def child(connection, action="", default=""):
    """A table that references the parent's primary key."""
    connection.execute(
        "CREATE TABLE child (id INTEGER PRIMARY KEY, "
        f"ref INTEGER {default} CONSTRAINT of_parent REFERENCES parent {action})"
    )
    connection.execute("INSERT INTO child VALUES (1, 1), (2, 1), (3, 2), (4, NULL)")


def rows(connection, table="child"):
    return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def violated(connection, sql, parameters=None, error=tique.errors.ForeignKeyViolation):
    with pytest.raises(error) as caught:
        connection.execute(sql, parameters)
    return caught.value


def count(connection, what="*", table="small"):
    ((found,),) = connection.execute(f"SELECT count({what}) FROM {table}").fetchall()
    return found
