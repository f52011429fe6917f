"""Random transactions over a small table, and the serial orders that explain what they did.

A *program* is what one transaction does, a list of statements; each has its SQL and its
meaning, a function over the table as a dict from ``id`` to ``(c, v)``. An *interleaving* says
whose turn it is, again and again. What has been committed is explained by an order if the
programs, one after the other in it, give each the results that it had, and the table that
is there; and if none comes before another one that had ended when it began.
"""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

import tique

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from random import Random

    State = dict[int, tuple[int, int | None]]

CREATE = "CREATE TABLE t (id INTEGER PRIMARY KEY, c INTEGER, v INTEGER)"
STORED = {1: (0, 3), 2: (1, 5)}
RECENT = {3: (0, 7), 4: (1, None)}
TAKEN = "23505"
"""The result of a statement that a key forbids."""


class Statement(NamedTuple):
    """Its text, and what it does to the table and answers."""

    sql: str
    run: Callable[[State], Any]


class Condition(NamedTuple):
    """Its text, and whether it is true of a row."""

    sql: str
    holds: Callable[[int, int, int | None], bool]


SAVEPOINT = Statement("SAVEPOINT s", lambda _: None)
ROLLBACK_TO = Statement("ROLLBACK TO s", lambda _: None)
"""These two are the replay's own."""


def rows(state: State, where: Condition) -> list[tuple[int, int, int | None]]:
    """The rows of which a condition is true, by their keys."""
    found = [(id, *row) for id, row in sorted(state.items())]
    return [row for row in found if where.holds(*row)]


def _condition(chance: Random) -> Condition:
    x, y, k = chance.randint(0, 2), chance.randint(0, 9), chance.randint(1, 6)
    other = chance.randint(1, 6)
    return chance.choice(
        [
            Condition(f"c = {x}", lambda i, c, v: c == x),
            Condition(f"v > {y}", lambda i, c, v: v is not None and v > y),
            Condition(
                f"c = {x} AND v < {y}",
                lambda i, c, v: c == x and v is not None and v < y,
            ),
            Condition(f"(c = {x} OR v = {y})", lambda i, c, v: c == x or v == y),
            Condition(f"id = {k} AND c = {x}", lambda i, c, v: i == k and c == x),
            Condition(f"c <> {x} AND id > {k}", lambda i, c, v: c != x and i > k),
            Condition("v IS NULL", lambda i, c, v: v is None),
            Condition("id > 0", lambda i, c, v: True),
            Condition(f"id IN ({k}, {other})", lambda i, c, v: i in (k, other)),
            _at(k),
            _at(k),
        ]
    )


def _at(key: int) -> Condition:
    return Condition(f"id = {key}", lambda i, c, v: i == key)


def _reads(where: Condition) -> list[Statement]:
    def values(state: State) -> list[int]:
        return [v for _, _, v in rows(state, where) if v is not None]

    def joined(state: State) -> list[tuple[int, int]]:
        every = Condition("", lambda *_: True)
        return [
            (a, b)
            for a, c, _ in rows(state, where)
            for b, d, _ in rows(state, every)
            if c == d and a < b
        ]

    text = f"FROM t WHERE {where.sql}"
    return [
        Statement(f"SELECT id, c, v {text} ORDER BY id", lambda s: rows(s, where)),
        Statement(
            f"SELECT id {text} ORDER BY id",
            lambda s: [(i,) for i, *_ in rows(s, where)],
        ),
        Statement(f"SELECT count(*) {text}", lambda s: [(len(rows(s, where)),)]),
        Statement(
            f"SELECT sum(v) {text}",
            lambda s: [(sum(values(s)) if values(s) else None,)],
        ),
        Statement(
            f"SELECT min(v), max(v) {text}",
            lambda s: [(min(values(s), default=None), max(values(s), default=None))],
        ),
        Statement(
            f"SELECT id, v {text} ORDER BY id DESC LIMIT 1",
            lambda s: [(i, v) for i, _, v in rows(s, where)[-1:]],
        ),
        Statement(
            "SELECT a.id, b.id FROM (SELECT id, c "
            f"{text}) AS a JOIN t AS b ON a.c = b.c AND a.id < b.id ORDER BY 1, 2",
            joined,
        ),
    ]


def _updates(where: Condition, assigned: str, new: Callable[..., Any]) -> Statement:
    def run(state: State) -> int:
        found = rows(state, where)
        state.update({i: new(state, c, v) for i, c, v in found})
        return len(found)

    return Statement(f"UPDATE t SET {assigned} WHERE {where.sql}", run)


def _plus(v: int | None, number: int) -> int | None:
    return None if v is None else v + number


def _changes(where: Condition, other: Condition, key: int, x: int) -> list[Statement]:
    def insert(c: int, v: Callable[[State], int | None]) -> Callable[[State], Any]:
        def run(state: State) -> Any:
            if key in state:
                return TAKEN
            state[key] = c, v(state)
            return 1

        return run

    def count(state: State) -> int:
        return len(rows(state, other))

    def delete(state: State) -> int:
        found = rows(state, where)
        for id, *_ in found:
            del state[id]
        return len(found)

    def move(state: State) -> Any:
        if x + 1 not in state:
            return 0
        if key in state and key != x + 1:
            return TAKEN
        state[key] = state.pop(x + 1)
        return 1

    def upsert(state: State) -> int:
        c, v = state.get(key, (x % 3, 0))
        state[key] = (c, _plus(v, 1)) if key in state else (c, v)
        return 1

    def keep(state: State) -> int:
        if key in state:
            return 0
        state[key] = x % 3, x
        return 1

    target = f"INSERT INTO t VALUES ({key}, {x % 3}, {x})"
    return [
        Statement(target, insert(x % 3, lambda _: x)),
        Statement(f"{target} ON CONFLICT (id) DO NOTHING", keep),
        Statement(
            f"INSERT INTO t VALUES ({key}, {x % 3}, 0) "
            "ON CONFLICT (id) DO UPDATE SET v = t.v + 1",
            upsert,
        ),
        Statement(
            f"INSERT INTO t SELECT {key}, {x % 3}, CAST(count(*) AS INTEGER) FROM t "
            f"WHERE {other.sql}",
            insert(x % 3, count),
        ),
        _updates(where, f"v = {x}", lambda s, c, v: (c, x)),
        _updates(where, f"v = v + {x}", lambda s, c, v: (c, _plus(v, x))),
        _updates(where, f"c = {x % 3}", lambda s, c, v: (x % 3, v)),
        _updates(where, f"c = {x % 3}, v = NULL", lambda s, c, v: (x % 3, None)),
        Statement(
            f"UPDATE t SET v = (SELECT CAST(count(*) AS INTEGER) FROM t WHERE "
            f"{other.sql}) WHERE {where.sql}",
            lambda s: _counted(s, where, count(s)),
        ),
        Statement(f"DELETE FROM t WHERE {where.sql}", delete),
        Statement(f"UPDATE t SET id = {key} WHERE id = {x + 1}", move),
    ]


def _counted(state: State, where: Condition, count: int) -> int:
    found = rows(state, where)
    state.update({i: (c, count) for i, c, _ in found})
    return len(found)


def _step(chance: Random, *, nests: bool = True) -> list[Statement]:
    """A statement, or some between a savepoint and the return to it."""
    if nests and chance.random() < 0.15:
        inner = [s for _ in range(2) for s in _step(chance, nests=False)]
        return [SAVEPOINT, *inner, ROLLBACK_TO]
    where = _condition(chance)
    if chance.random() < 0.4:
        return [chance.choice(_reads(where))]
    key, x = chance.randint(1, 6), chance.randint(0, 5)
    return [chance.choice(_changes(where, _condition(chance), key, x))]


def program(chance: Random, most: int) -> list[Statement]:
    """What one transaction does, in so many steps."""
    return [s for _ in range(chance.randint(1, most)) for s in _step(chance)]


def interleaved(chance: Random, many: Sequence[Sequence[Statement]]) -> list[int]:
    """Whose turn it is, until all have done all that they do, and the commit."""
    turns = [n for n, program in enumerate(many) for _ in (*program, None)]
    chance.shuffle(turns)
    return turns


class Outcome(NamedTuple):
    """What a transaction did, and when, counted in steps of all."""

    program: Sequence[Statement]
    results: list[Any]
    began: int
    ended: int
    is_committed: bool


def replay(program: Iterable[Statement], state: State) -> tuple[list[Any], State]:
    """The results of a program that has the table for itself, and what it leaves."""
    results, state, kept = [], dict(state), dict(state)
    for statement in program:
        if statement is SAVEPOINT:
            kept = dict(state)
        elif statement is ROLLBACK_TO:
            state = dict(kept)
        results.append(statement.run(state))
    return results, state


def explanations(
    outcomes: Sequence[Outcome], first: State, last: State
) -> Iterator[list[Outcome]]:
    """The serial orders that give the committed ones their results, and the table its rows.

    Of each those that change the table in it.
    """
    committed = [outcome for outcome in outcomes if outcome.is_committed]
    for order in permutations(committed):
        state, writers = first, []
        for place, outcome in enumerate(order):
            if any(later.ended < outcome.began for later in order[place:]):
                break
            results, after = replay(outcome.program, state)
            if results != outcome.results:
                break
            if after != state:
                writers.append(outcome)
            state = after
        else:
            if state == last:
                yield writers


def _answer(connection: tique.Connection, statement: Statement) -> Any:
    try:
        cursor = connection.execute(statement.sql)
    except tique.IntegrityError as error:
        return error.sqlstate
    if cursor.description is not None:
        return [tuple(map(_number, row)) for row in cursor.fetchall()]
    return None if statement in (SAVEPOINT, ROLLBACK_TO) else cursor.rowcount


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


class Table:
    """A real table, on which programs run."""

    def __init__(self, url: str, **options: Any) -> None:
        self._connect = partial(tique.connect, url, checkpoint="manual", **options)
        self._keeper = self._connect()
        self._keeper.execute(CREATE)
        self._keeper.commit()
        self.refused = self.needlessly = 0
        """Transactions that were, and those that could have been committed at that moment."""

    def close(self) -> None:
        """Close the database."""
        self._keeper.close()

    def fill(self, *, folds: bool) -> State:
        """Begin anew."""
        self._keeper.execute("DELETE FROM t")
        for some in (STORED, RECENT):
            self._keeper.cursor().executemany(
                "INSERT INTO t VALUES (%s, %s, %s)",
                [(id, *row) for id, row in some.items()],
            )
            self._keeper.commit()
            if folds:
                self._keeper.checkpoint()
                folds = False
        return {**STORED, **RECENT}

    def state(self) -> State:
        """The committed rows."""
        found = self._keeper.execute("SELECT id, c, v FROM t").fetchall()
        self._keeper.rollback()
        return {id: (c, v) for id, c, v in found}

    def run(
        self,
        many: Sequence[Sequence[Statement]],
        interleaving: Iterable[int],
        state: State,
    ) -> list[Outcome]:
        """Run programs, and then what was left of them; each commits at its end."""
        connections = [self._connect(isolation_level="SERIALIZABLE") for _ in many]
        try:
            return self._run(many, interleaving, state, connections)
        finally:
            for connection in connections:
                connection.close()

    def _run(
        self,
        many: Sequence[Sequence[Statement]],
        interleaving: Iterable[int],
        state: State,
        connections: Sequence[tique.Connection],
    ) -> list[Outcome]:
        results: list[list[Any]] = [[] for _ in many]
        began: dict[int, int] = {}
        outcomes: dict[int, Outcome] = {}
        left = [number for number, program in enumerate(many) for _ in (*program, None)]
        for moment, number in enumerate([*interleaving, *left]):
            if number in outcomes:
                continue
            began.setdefault(number, moment)
            place, program = len(results[number]), many[number]
            if place < len(program):
                answer = _answer(connections[number], program[place])
                results[number].append(answer)
                continue
            alone, after = replay(program, state)
            try:
                connections[number].commit()
                state, is_committed = after, True
            except tique.SerializationError:
                self.refused += 1
                self.needlessly += alone == results[number]
                is_committed = False
            outcomes[number] = Outcome(
                program, results[number], began[number], moment, is_committed
            )
        return [outcomes[number] for number in range(len(many))]


def described(outcomes: Sequence[Outcome], last: State) -> str:
    """What happened, to read."""
    lines = []
    for number, one in enumerate(outcomes, 1):
        end = "committed" if one.is_committed else "refused"
        lines.append(f"{number}: steps {one.began} to {one.ended}, {end}")
        lines += [
            f"   {statement.sql} -> {result}"
            for statement, result in zip(one.program, one.results, strict=True)
        ]
    return "\n".join([*lines, f"then {dict(sorted(last.items()))}"])
