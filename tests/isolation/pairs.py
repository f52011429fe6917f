"""Pairs of transactions of READ COMMITTED that want the same rows, and what PostgreSQL does.

Of each pair the first transaction runs its statements, the second one begins its own, which
wait or do not, the first one ends, and the second goes on. ``pairs.txt`` has what native
PostgreSQL answered: the row counts, rows or SQLSTATEs of the first, those of the second,
and the tables' content at the end.

Where the first one's end is ROLLBACK TO, its statements were behind a savepoint, or some of them, and the second
one goes on or still waits. If it goes on it commits, and the first one reads what it wrote.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

RECORDS = Path(__file__).with_name("pairs.txt")
PATIENCE = 30
MOMENT = 1
"""Seconds in which a transaction goes on for which another one has made way."""

SETUP = (
    "CREATE TABLE w (id INTEGER PRIMARY KEY, k INTEGER UNIQUE, n INTEGER, m INTEGER)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, w INTEGER REFERENCES w (id))",
    "INSERT INTO w VALUES (1, 10, 0, 0), (2, 20, 0, 0)",
)
FINALS = (
    "SELECT id, k, n, m FROM w ORDER BY id",
    "SELECT id, w FROM child ORDER BY id",
)


def upsert(row: str, target: str = "id") -> str:
    return (
        f"INSERT INTO w VALUES ({row}) ON CONFLICT ({target}) DO UPDATE SET n = w.n + 1"
    )


ADD = "UPDATE w SET n = n + 1 WHERE id = 1"
"""It merges."""
TAKE = "UPDATE w SET n = n + 1 WHERE id = 1 AND n < 1"
CHANGE = "UPDATE w SET n = abs(n) + 1 WHERE id = 1"
SWAP = "UPDATE w SET n = 7 WHERE id = 1 AND n = 0"
READ = "SELECT n FROM w WHERE id = 1"
SAVEPOINT = "SAVEPOINT s"
DELETE = "DELETE FROM w WHERE id = 1"
NEW = "INSERT INTO w VALUES (3, 30, 0, 0)"
NOTHING = "INSERT INTO w VALUES (3, 30, 5, 5) ON CONFLICT DO NOTHING"
MERGE = (
    "MERGE INTO w USING (SELECT 1 AS i) AS s ON w.id = s.i "
    "WHEN MATCHED THEN UPDATE SET n = w.n + 10"
)
FROM = "UPDATE w SET n = w.n + s.n + 1 FROM w AS s WHERE s.id = 2 AND w.id = 1"

PAIRS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "upsert of a row that is there": (
        (upsert("1, 10, 1, 1"),),
        (upsert("1, 11, 1, 1"),),
    ),
    "upsert of a new row": ((upsert("3, 30, 1, 1"),), (upsert("3, 30, 1, 1"),)),
    "upsert by the other key": (
        (upsert("4, 10, 1, 1", "k"),),
        (upsert("5, 10, 1, 1", "k"),),
    ),
    "upsert of a new value": (
        (upsert("4, 40, 1, 1", "k"),),
        (upsert("5, 40, 1, 1", "k"),),
    ),
    "upserts with one value": ((upsert("4, 40, 1, 1"),), (upsert("5, 40, 1, 1"),)),
    "upserts by two keys": ((upsert("3, 30, 1, 1"),), (upsert("3, 30, 1, 1", "k"),)),
    "compare and swap": ((SWAP,), ("UPDATE w SET n = 8 WHERE id = 1 AND n = 0",)),
    "counter": ((ADD,), (ADD,)),
    "counter that does not merge": ((CHANGE,), (CHANGE,)),
    "counter with a bound": ((TAKE,), (TAKE,)),
    "counter and change": ((ADD,), (CHANGE,)),
    "bounded counter and change": ((TAKE,), (CHANGE,)),
    "counter and delete": ((ADD,), (DELETE,)),
    "counter and another column": (
        (ADD,),
        ("UPDATE w SET m = abs(m) + 1 WHERE id = 1",),
    ),
    "counter that is read": ((ADD, READ), (ADD, READ)),
    "counter and read-modify-write": (
        (ADD,),
        (READ, "UPDATE w SET n = 5 WHERE id = 1"),
    ),
    "counter with an insert": (
        ("INSERT INTO w VALUES (3, 30, 0, 0)", ADD),
        ("INSERT INTO w VALUES (4, 40, 0, 0)", ADD),
    ),
    "change with an insert": (
        ("INSERT INTO w VALUES (3, 30, 0, 0)", CHANGE),
        ("INSERT INTO w VALUES (4, 40, 0, 0)", CHANGE),
    ),
    "insert of one key": ((NEW,), ("INSERT INTO w VALUES (3, 31, 1, 1)",)),
    "insert of one value": ((NEW,), ("INSERT INTO w VALUES (4, 30, 1, 1)",)),
    "insert by a query": (
        (NEW,),
        ("INSERT INTO w SELECT 3, 31, n, m FROM w WHERE id = 1",),
    ),
    "delete and update": ((DELETE,), ("UPDATE w SET m = abs(m) + 1 WHERE id = 1",)),
    "delete and delete": ((DELETE,), (DELETE,)),
    "delete and insert of the key": (
        (DELETE,),
        ("INSERT INTO w VALUES (1, 11, 5, 5)",),
    ),
    "delete and insert of the value": (
        (DELETE,),
        ("INSERT INTO w VALUES (5, 10, 5, 5)",),
    ),
    "delete and upsert": ((DELETE,), (upsert("1, 10, 5, 5"),)),
    "delete and DO NOTHING": (
        (DELETE,),
        ("INSERT INTO w VALUES (1, 10, 5, 5) ON CONFLICT DO NOTHING",),
    ),
    "out of the condition": (
        ("UPDATE w SET n = 5 WHERE id = 1",),
        ("UPDATE w SET m = 9 WHERE n = 0",),
    ),
    "into the condition": (
        ("UPDATE w SET n = 5 WHERE id = 1",),
        ("UPDATE w SET m = 9 WHERE n = 5",),
    ),
    "DO NOTHING": ((NOTHING,), (NOTHING,)),
    "DO NOTHING of a value": (
        (NOTHING,),
        ("INSERT INTO w VALUES (4, 30, 5, 5) ON CONFLICT (k) DO NOTHING",),
    ),
    "insert and DO NOTHING": ((NEW,), (NOTHING,)),
    "child and its parent's delete": (("INSERT INTO child VALUES (1, 1)",), (DELETE,)),
    "child and its parent's update": (("INSERT INTO child VALUES (1, 1)",), (CHANGE,)),
    "child and its parent's counter": (("INSERT INTO child VALUES (1, 1)",), (ADD,)),
    "child and its parent's insert": (("INSERT INTO child VALUES (1, 3)",), (NEW,)),
    "value that is taken": (
        ("UPDATE w SET k = 30 WHERE id = 1",),
        ("UPDATE w SET k = 30 WHERE id = 2",),
    ),
    "value that is given up": (
        ("UPDATE w SET k = 30 WHERE id = 1",),
        ("INSERT INTO w VALUES (5, 10, 5, 5)",),
    ),
    "key that is given up": (
        ("UPDATE w SET id = 7 WHERE id = 1",),
        ("INSERT INTO w VALUES (1, 50, 5, 5)",),
    ),
    "key that moves": (("UPDATE w SET id = 7 WHERE id = 1",), (CHANGE,)),
    "update from a table": ((FROM,), (FROM,)),
    "update of the source": ((FROM,), ("UPDATE w SET n = abs(n) + 5 WHERE id = 2",)),
    "merge": ((MERGE,), (MERGE,)),
    "merge and delete": ((MERGE,), (DELETE,)),
    "merge and change": ((MERGE,), (CHANGE,)),
    "RETURNING": (
        ("UPDATE w SET n = n + 1 WHERE id = 1 RETURNING n",),
        ("UPDATE w SET n = n + 1 WHERE id = 1 RETURNING n",),
    ),
    "FOR UPDATE": (
        (f"{READ} FOR UPDATE", "UPDATE w SET n = 5 WHERE id = 1"),
        (f"{READ} FOR UPDATE", "UPDATE w SET n = 6 WHERE id = 1"),
    ),
    "FOR UPDATE and counter": ((f"{READ} FOR UPDATE",), (ADD,)),
    "many rows": (
        ("UPDATE w SET n = abs(n) + 1",),
        ("UPDATE w SET n = abs(n) + 2 WHERE id < 9",),
    ),
}

COMPUTED = "CREATE UNIQUE INDEX apart ON w (abs(n - id))"
"""A unique key whose values the engine computes."""
OTHER = "INSERT INTO w VALUES (4, 40, 1, 0)"
"""It has the first one's value as :data:`NEW` does."""

COMPUTED_PAIRS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "insert of one computed value": ((NEW,), (OTHER,)),
    "DO NOTHING of a computed value": ((NEW,), (f"{OTHER} ON CONFLICT DO NOTHING",)),
    "upserts by a computed value": (
        (upsert("3, 30, 0, 0", "abs(n - id)"),),
        (f"{OTHER} ON CONFLICT (abs(n - id)) DO UPDATE SET m = w.m - 1",),
    ),
    "computed value that is taken": (
        ("UPDATE w SET n = -2 WHERE id = 1",),
        ("UPDATE w SET n = -1 WHERE id = 2",),
    ),
    "computed value that is given up": (
        ("UPDATE w SET n = 5 WHERE id = 1",),
        ("INSERT INTO w VALUES (5, 50, 4, 0)",),
    ),
    "delete and insert of the computed value": (
        (DELETE,),
        ("INSERT INTO w VALUES (5, 50, 4, 0)",),
    ),
    "computed value and another column": (
        ("UPDATE w SET k = 50 WHERE id = 1",),
        ("UPDATE w SET m = abs(m) - 1 WHERE id = 2",),
    ),
    "other computed values": ((NEW,), ("INSERT INTO w VALUES (4, 40, 0, 0)",)),
}

UNDO = "rollback to"
UNDONE = (
    *("upsert of a row that is there", "upsert of a new row", "upsert of a new value"),
    *(
        "compare and swap",
        "counter",
        "counter that does not merge",
        "counter and change",
    ),
    *("counter and delete", "counter that is read", "insert of one key", "FOR UPDATE"),
    *("insert of one value", "delete and update", "delete and insert of the key"),
    *("DO NOTHING", "child and its parent's delete", "value that is given up"),
    *("key that moves", "FOR UPDATE and counter", "RETURNING"),
    *("insert of one computed value", "computed value that is given up"),
)
"""Pairs that are played with all of the first transaction behind a savepoint, too."""

LOCK = f"{READ} FOR UPDATE"
PARTLY_UNDONE = {
    "change before and behind": ((CHANGE, SAVEPOINT, CHANGE), (CHANGE,)),
    "change before, another row behind": (
        (CHANGE, SAVEPOINT, "UPDATE w SET n = abs(n) + 1 WHERE id = 2"),
        ("UPDATE w SET n = abs(n) + 2 WHERE id = 2",),
    ),
    "counter before and behind": ((ADD, SAVEPOINT, ADD), (CHANGE,)),
    "counter before, change behind": ((ADD, SAVEPOINT, CHANGE), (CHANGE,)),
    "counter before, read behind": ((ADD, SAVEPOINT, READ), (CHANGE,)),
    "lock before, change behind": ((LOCK, SAVEPOINT, CHANGE), (CHANGE,)),
    "lock before, counter behind": ((LOCK, SAVEPOINT, ADD), (ADD,)),
    "change before, delete behind": ((CHANGE, SAVEPOINT, DELETE), (CHANGE,)),
    "insert before, change behind": (
        (NEW, SAVEPOINT, "UPDATE w SET n = abs(n) + 1 WHERE id = 3"),
        (NOTHING,),
    ),
}


class Case(NamedTuple):
    """A pair, in one of its orders, with an end of its first transaction."""

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    end: str

    @property
    def is_computed(self) -> bool:
        """Whether it is about keys whose values the engine computes."""
        return self.name.removesuffix(", turned") in COMPUTED_PAIRS

    @property
    def label(self) -> str:
        return f"{self.name}: {self.end}"


def cases() -> list[Case]:
    found = []
    pairs = PAIRS | COMPUTED_PAIRS
    for name, (one, two) in pairs.items():
        for end in ("commit", "rollback"):
            found.append(Case(name, one, two, end))
            if one != two:
                found.append(Case(f"{name}, turned", two, one, end))
    for name in UNDONE:
        one, two = pairs[name]
        found.append(Case(name, (SAVEPOINT, *one), two, UNDO))
        if one != two:
            found.append(Case(f"{name}, turned", (SAVEPOINT, *two), one, UNDO))
    found += [Case(name, *pair, UNDO) for name, pair in PARTLY_UNDONE.items()]
    return found


def parameters() -> list[Any]:
    """The cases, each for the engines that have its indexes."""
    marks = [
        pytest.mark.written_for(names, reason="their unique indexes of expressions")
        for names in (["postgresql"], ["duckdb", "postgresql"])
    ]
    return [
        pytest.param(
            case,
            id=case.label,
            marks=[marks["ON CONFLICT" not in f"{case.first}{case.second}"]]
            if case.is_computed
            else [],
        )
        for case in cases()
    ]


def recorded() -> dict[str, str]:
    lines = RECORDS.read_text().splitlines() if RECORDS.exists() else []
    return dict(line.split(" -> ", 1) for line in lines)


def _run(connection: Any, statements: tuple[str, ...], outcome: list[Any]) -> None:
    try:
        for sql in statements:
            cursor = connection.cursor()
            cursor.execute(sql)
            rows = cursor.fetchall() if cursor.description else cursor.rowcount
            if sql != SAVEPOINT:
                outcome.append(rows)
    except Exception as error:
        outcome.append(getattr(error, "sqlstate", None) or repr(error))
        if SAVEPOINT in statements:
            connection.cursor().execute("ROLLBACK TO s")
        else:
            connection.rollback()


def _end(connection: Any, end: str, outcome: list[Any]) -> None:
    try:
        getattr(connection, end)()
    except Exception as error:
        outcome.append(f"{end}: {getattr(error, 'sqlstate', None) or error!r}")


def play(case: Case, first: Any, second: Any, waits: Any) -> str:
    """The outcome of a case; ``waits`` says whether the second transaction waits."""
    for sql in SETUP:
        first.cursor().execute(sql)
    first.commit()
    if case.is_computed:
        first.cursor().execute(COMPUTED)
        first.commit()
    # The second one knows the tables, so that it looks nothing up while the first is open.
    for sql in FINALS:
        second.cursor().execute(sql)
    second.commit()
    one: list[Any] = []
    two: list[Any] = []
    _run(first, case.first, one)
    thread = threading.Thread(target=_run, args=(second, case.second, two))
    thread.start()
    end = time.monotonic() + PATIENCE
    while thread.is_alive() and not waits() and time.monotonic() < end:
        time.sleep(0.001)
    if case.end == UNDO:
        first.cursor().execute("ROLLBACK TO s")
        thread.join(MOMENT)
        if not thread.is_alive():
            _end(second, "commit", two)
            two.append("goes on")
            _run(first, (READ,), one)
    _end(first, "commit" if case.end == UNDO else case.end, one)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    _end(second, "commit", two)
    finals = []
    for sql in FINALS:
        cursor = second.cursor()
        cursor.execute(sql)
        finals.append(cursor.fetchall())
    second.rollback()
    return f"{one} | {two} | {finals}"
