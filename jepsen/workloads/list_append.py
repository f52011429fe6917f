"""Transactions that append to lists and read them.

A list is kept in one of four forms, by its key, so that one transaction writes several
tables:

* text, to which an UPDATE appends;
* text whose row is deleted and inserted again with each append;
* a row per element, at the next place;
* rows that are all deleted and inserted again with each append: tombstones over
  versions over tombstones.

Keys are chosen in two ways that take turns. With a few hot keys, chosen exponentially,
transactions meet all the time and torn commits show; with many keys, chosen uniformly,
and more of them in a transaction, long chains of dependencies come about.

A key is retired when its list has got long: a client that reads a long list goes on
with the next key in its place. Now and then all clients go on with other keys, so that
a client that was started again does not begin with lists that were long ago.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from jepsen.workloads.base import Operation, Workload, change, rows

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Sequence

    import tique
    from jepsen.recorder import Event

_SLICE = 2.5
"""Seconds until the settings change."""
_LONGEST = 32
_AGE = 10.0
"""Seconds until all go on with other keys."""
_RETIRED = 50
"""Keys of one place that may be retired in that time."""
_CLIENTS = 100_000
"""More than there ever are, those that were started again counted."""
_PLACES = 1000
"""Keys that are in use at one time are numbers below this, modulo this."""


class Setting(NamedTuple):
    """How transactions are made for a while."""

    keys: int
    is_hot: bool
    shortest: int
    longest: int


SETTINGS = (
    Setting(keys=12, is_hot=True, shortest=1, longest=5),
    Setting(keys=30, is_hot=False, shortest=2, longest=8),
    Setting(keys=6, is_hot=True, shortest=1, longest=5),
    Setting(keys=100, is_hot=False, shortest=2, longest=8),
)


class ListAppend(Workload):
    """Appends and reads, several in a transaction."""

    name: ClassVar[str] = "list-append"
    forms: ClassVar[Sequence[Form]]
    """A list has one of these, by its key."""

    def __init__(self, chance: random.Random, client: int, number: int) -> None:
        super().__init__(chance, client, number)
        self._generations: dict[int, int] = {}
        self._appended: dict[int, int] = {}

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make a table for each form."""
        for table in ("appended_text", "rewritten_text"):
            connection.execute(
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, elements VARCHAR(100000))"
            )
        for table in ("appended_row", "rewritten_row"):
            connection.execute(
                f"CREATE TABLE {table} (list BIGINT, place INTEGER, element BIGINT, "
                "PRIMARY KEY (list, place))"
            )
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose keys and the operations on them."""
        setting = SETTINGS[self.epoch(_SLICE) % len(SETTINGS)]
        steps: list[list[Any]] = []
        for _ in range(self.chance.randint(setting.shortest, setting.longest)):
            key = self._key(setting)
            if self.chance.random() < 0.5:
                steps.append(["r", key, None])
            else:
                steps.append(["append", key, self._element(key)])
        return Operation("txn", steps)

    def _key(self, setting: Setting) -> int:
        if setting.is_hot:
            place = min(int(self.chance.expovariate(0.5)), setting.keys - 1)
        else:
            place = self.chance.randrange(setting.keys)
        # No setting's keys are another's.
        place += SETTINGS.index(setting) * _PLACES // len(SETTINGS)
        return self._generation(place) * _PLACES + place

    def _generation(self, place: int) -> int:
        return max(self._generations.get(place, 0), self.epoch(_AGE) * _RETIRED)

    def _element(self, key: int) -> int:
        """A number that no other client appends to this list, mostly a short one.

        Most of a history is elements, again and again: histories are kept.
        """
        before = self._appended.get(key, 0)
        self._appended[key] = before + 1
        return before * _CLIENTS + self.number

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Append and read, in order."""
        done = []
        for kind, key, element in operation.value:
            form = self.forms[key % len(self.forms)]
            if kind == "append":
                form.append(connection, key, element)
                done.append([kind, key, element])
            else:
                found = form.read(connection, key)
                if len(found) >= _LONGEST:
                    generation, place = divmod(key, _PLACES)
                    self._generations[place] = max(
                        self._generation(place), generation + 1
                    )
                done.append([kind, key, found])
        return done

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read every key."""
        keys = sorted({step[1] for event in events for step in event.value})
        return [
            Operation("txn", [["r", key, None] for key in keys[first : first + 20]])
            for first in range(0, len(keys), 20)
        ]

    @classmethod
    @override
    def seen(cls, reads: Iterable[Event]) -> Callable[[Any], bool | None]:
        """Whether the transaction's elements are in its lists, any of them."""
        lists = {key: found for event in reads for _, key, found in event.value}

        def is_there(value: Any) -> bool | None:
            written = [
                element in lists[key]
                for kind, key, element in value
                if kind == "append" and key in lists
            ]
            return any(written) if written else None

        return is_there


class Form(NamedTuple):
    """How lists are read and appended to."""

    read: Callable[[tique.Connection, int], list[int]]
    append: Callable[[tique.Connection, int, int], None]


def _split(found: list[tuple[Any, ...]]) -> list[int]:
    return [int(element) for element in found[0][0].split()] if found else []


def read_text(
    table: str, name: str = "id"
) -> Callable[[tique.Connection, int], list[int]]:
    """Read a list that is text, by a column."""
    return lambda connection, key: _split(
        rows(connection, f"SELECT elements FROM {table} WHERE {name} = %s", key)
    )


def _append_text(connection: tique.Connection, key: int, element: int) -> None:
    if not change(
        connection,
        "UPDATE appended_text SET elements = elements || %s WHERE id = %s",
        f" {element}",
        key,
    ):
        change(
            connection, "INSERT INTO appended_text VALUES (%s, %s)", key, str(element)
        )


def _rewrite_text(connection: tique.Connection, key: int, element: int) -> None:
    found = read_text("rewritten_text")(connection, key)
    change(connection, "DELETE FROM rewritten_text WHERE id = %s", key)
    change(
        connection,
        "INSERT INTO rewritten_text VALUES (%s, %s)",
        key,
        " ".join(map(str, [*found, element])),
    )


def read_rows(table: str) -> Callable[[tique.Connection, int], list[int]]:
    """Read a list that is rows."""
    return lambda connection, key: [
        element
        for (element,) in rows(
            connection,
            f"SELECT element FROM {table} WHERE list = %s ORDER BY place",
            key,
        )
    ]


def _append_row(connection: tique.Connection, key: int, element: int) -> None:
    ((last,),) = rows(
        connection,
        "SELECT coalesce(max(place), 0) FROM appended_row WHERE list = %s",
        key,
    )
    change(
        connection,
        "INSERT INTO appended_row VALUES (%s, %s, %s)",
        key,
        last + 1,
        element,
    )


def _rewrite_rows(connection: tique.Connection, key: int, element: int) -> None:
    found = read_rows("rewritten_row")(connection, key)
    change(connection, "DELETE FROM rewritten_row WHERE list = %s", key)
    connection.cursor().executemany(
        "INSERT INTO rewritten_row VALUES (%s, %s, %s)",
        [(key, place, each) for place, each in enumerate([*found, element], 1)],
    )


ListAppend.forms = (
    Form(read_text("appended_text"), _append_text),
    Form(read_rows("appended_row"), _append_row),
    Form(read_text("rewritten_text"), _rewrite_text),
    Form(read_rows("rewritten_row"), _rewrite_rows),
)
