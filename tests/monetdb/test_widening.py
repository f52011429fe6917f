"""P1: reads beside appends return the written values (see monetdb/catalog/widening.py)."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import Any

import pytest

import tique
from tests.plugins.monetdb import connect_natively

_COLUMNS = (
    "id BIGINT PRIMARY KEY, a VARCHAR(1) NOT NULL, b CLOB, c CHAR(16), d TINYINT "
    "NOT NULL, e DECIMAL(5,2) NOT NULL, f DATE NOT NULL, g TIMESTAMP NOT NULL, "
    "h TIME NOT NULL, i BLOB NOT NULL, j UUID NOT NULL, k JSON NOT NULL, "
    "l BOOLEAN NOT NULL, m DOUBLE NOT NULL, n SMALLINT NOT NULL, o REAL NOT NULL"
)


def _bytes_per_offset(url: str) -> dict[tuple[str, str], int]:
    with closing(connect_natively(url)) as connection:
        cursor = connection.cursor()
        cursor.execute(
            'SELECT "table", "column", columnsize / count FROM sys.storage() '
            "WHERE type IN ('varchar', 'clob', 'char') AND count > 0 "
            "AND \"schema\" IN ('sys', 'tique_cache', 'tique')"
        )
        return {(table, column): width for table, column, width in cursor.fetchall()}


@pytest.fixture
def url(home) -> str:
    return home.url


def test_text_is_wide_from_the_start(url: str) -> None:
    with tique.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE wide ({_COLUMNS})")
        cursor.execute("CREATE TABLE bag (a VARCHAR(7))")
        cursor.execute("CREATE TABLE pair (a TINYINT, b CHAR(2), PRIMARY KEY (a, b))")
        # A cast to the type that the number has: MonetDB gives both its name.
        cursor.execute("CREATE TABLE twins (a HUGEINT, b HUGEINT, c CLOB)")
        cursor.execute("SELECT count(*) FROM wide")
        assert cursor.fetchall() == [(0,)]
    widths = _bytes_per_offset(url)
    expected = {"a", "b", "c"}
    assert {column for table, column in widths if table == "wide"} == expected
    mine = {
        place: width
        for place, width in widths.items()
        if place[0] in {"wide", "bag", "pair", "twins", "log"}
        or place[0].startswith("tique_cache_")
    }
    assert ("log", "commits") in mine
    assert set(mine.values()) == {4}


def test_keys_without_enough_values_are_left(url: str) -> None:
    with tique.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE few (a TINYINT PRIMARY KEY, b CLOB)")
        cursor.execute("INSERT INTO few VALUES (1, 'x')")
        connection.commit()
        cursor.execute("SELECT * FROM few")
        assert cursor.fetchall() == [(1, "x")]


def test_reads_beside_appends(url: str) -> None:
    """Fill a log past 64 KB while another connection reads all of it."""
    with tique.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, body CLOB)")
    done = threading.Event()
    wrong: list[Any] = []

    def read() -> None:
        with closing(connect_natively(url)) as connection:
            cursor = connection.cursor()
            while not done.is_set():
                cursor.execute("SELECT commits FROM tique.log")
                wrong.extend(
                    entry
                    for (entry,) in cursor.fetchall()
                    if not (entry.startswith("[[") and entry.endswith("]]"))
                )

    reader = threading.Thread(target=read)
    reader.start()
    try:
        with tique.connect(url, autocommit=True) as connection:
            cursor = connection.cursor()
            for number in range(300):
                body = chr(65 + number % 26) * (200 + number)
                cursor.execute("INSERT INTO note VALUES (%s, %s)", (number, body))
    finally:
        done.set()
        reader.join()
    assert wrong == []
