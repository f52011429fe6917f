"""A few transactions as one line, in the notation of Berenson et al. (SIGMOD 1995).

The rows are x, y, z and u of one table; x has the value 10, y has 20, the others are not
there. The digit is the transaction's, which begins with its first step.

    r1[x=10]        it reads the row by key; ``none`` if it finds none
    r1[v>15: 20]    it reads the values of the rows that match, in ascending order
    w1[x=v+1]       it updates the row by key
    w1[v>15: v+1]   it updates the rows that match
    i1[z=30]        it inserts the row
    d1[x]  d1[v>15] it deletes the row, or those that match
    o1              it opens a cursor over all rows, in the order x, y, z, u
    f1[10]          it fetches the cursor's next value
    c1  a1          it commits, or aborts
    c1!             its commit is refused: another transaction committed first
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import tique

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = {"x": 1, "y": 2, "z": 3, "u": 4}

_STEP = re.compile(r"([rwidofca])(\d)(?:\[([^]]*)\])?(!?)\s*")


class Player:
    """One transaction of a history."""

    def __init__(self, connection: tique.Connection) -> None:
        self._connection = connection
        self._cursor: tique.Cursor | None = None

    def play(self, kind: str, body: str, *, is_refused: bool) -> None:
        """Do one step, and see that its result is the history's."""
        if kind == "c":
            self._commit(is_refused=is_refused)
        elif kind == "a":
            self._connection.rollback()
        elif kind == "o":
            self._cursor = self._connection.execute("SELECT v FROM t ORDER BY id")
        elif kind == "f":
            assert self._cursor is not None
            assert self._cursor.fetchone() == (int(body),)
        elif kind == "i":
            name, value = body.split("=")
            self._connection.execute(
                f"INSERT INTO t (id, v) VALUES ({KEYS[name]}, {value})"
            )
        elif kind == "d":
            self._connection.execute(f"DELETE FROM t WHERE {_condition(body)}")
        else:
            self._read_or_write(kind, body)

    def _read_or_write(self, kind: str, body: str) -> None:
        separator = ":" if ":" in body else "="
        which, value = map(str.strip, body.split(separator))
        if kind == "w":
            self._connection.execute(
                f"UPDATE t SET v = {value} WHERE {_condition(which)}"
            )
            return
        rows = self._connection.execute(
            f"SELECT v FROM t WHERE {_condition(which)} ORDER BY v"
        ).fetchall()
        wanted = [] if value == "none" else [(int(v),) for v in value.split(",")]
        assert rows == wanted

    def _commit(self, *, is_refused: bool) -> None:
        if not is_refused:
            self._connection.commit()
            return
        with pytest.raises(tique.SerializationError) as caught:
            self._connection.commit()
        assert caught.value.sqlstate == "40001"
        assert caught.value.table in ("main.t", "sys.t", "public.t")


def _condition(which: str) -> str:
    return f"id = {KEYS[which]}" if which in KEYS else which


def fill(connection: tique.Connection) -> None:
    """Begin anew: x is in storage, y is a recent version."""
    connection.execute("DELETE FROM t")
    connection.execute("INSERT INTO t VALUES (1, 10)")
    connection.commit()
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (2, 20)")
    connection.commit()


def play(history: str, connect: Callable[[int], tique.Connection]) -> None:
    """Play a history, with a connection per transaction."""
    players: dict[int, Player] = {}
    place = 0
    while place < len(history):
        step = _STEP.match(history, place)
        assert step, f"no step: {history[place:]!r}"
        kind, digit, body, refused = step.groups()
        number = int(digit)
        if number not in players:
            players[number] = Player(connect(number))
        try:
            players[number].play(kind, body or "", is_refused=bool(refused))
        except (AssertionError, tique.Error) as failure:
            failure.add_note(f"at {step[0].strip()!r} of {history!r}")
            raise
        place = step.end()
