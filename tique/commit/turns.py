"""Turns: a transaction that lost its keys to another one is served before newcomers (P6).

First committer wins (P3) says which of two transactions fails, not which of them succeeds
at last: a thread that has just committed has the newest snapshot, and without a rule wins
again. The paper (section 2.3.4) gives priority to a transaction that failed: the keys of
its next attempt are reserved, for a bounded time.

A :class:`Contender` is one connection. When its commit loses, it takes a place in the
queues of all keys that it wrote, and :meth:`Contender.wait` returns when it is the first
in each: its *turn*. Until its next transaction ends, or the turn's time is over, other
contenders that are about to commit one of these keys wait (:meth:`Contender.give_way`).

A key at which a commit was just lost is *contested*. A transaction that is about to read
such a row takes a place before it does (:meth:`Contender.wait_for_turn`), so that it does not
lose: a :class:`Habit` tells statements whose transactions write the row back from others.
If it had found the row in a group, the rows with one prefix of the key, and looked at columns that
had changed, the group is contested as well: transactions that take the first job of a
queue choose the same one. Only statements that may choose a row come to a group in turn.

Other processes have turns of their own. A key at which a commit was lost in a turn, or behind
another's row lock, is wanted by them: in a turn at it the row is *reserved* in the server
(:mod:`tique.query.transaction.contested`), for about as long as the turn lasts.

A SERIALIZABLE transaction loses as well by what it only saw, and a long one again and again. From
its second loss in a row on it takes a place at the tables that it saw or wrote, as wholes:
in its turn no other contender commits to these. One that was about to when the turn began may
be in its way once more. So the turn is kept then: those that wait for its end would be, otherwise.

A place says which columns its contender looks at. An update that can be computed again
(:mod:`tique.commit.mergeable`) and changes none of them need not wait.

Argument
--------
*Safety.* Turns decide when a transaction is certified, never whether it may commit: that
is the certifier's alone. A turn that is lost, late or wrong costs time or an attempt.

*No deadlock.* A place is taken in all queues at once, under ``_lock``, so that places are
totally ordered: the oldest one is the first in each of its queues. Only the holder of a turn
makes others wait, and it waits for no turn: a contender ends its own before it takes
another place. The holder of a turn at tables gives way to no other turn.

*Bounds.* A turn lasts for a few times as long as the attempt that failed, at most
``_LONGEST_TURN``, or ``_LONGEST_PRIORITY`` where the application asks for it; each look at a queue removes turns that are over. A waiting
contender looks again when the turn before it is over. No wait for a turn of one's own is
longer than ``PATIENCE``, none for another's longer than that one. The wait for a reservation, of
``PATIENCE`` at most, comes on top of a turn. So a contender that does not come back, or whose
thread died, holds others up for the rest of one turn; one that says so, as ``run_transaction`` does, for no more.

*No reservation for a contender that does not try again.* One that did not begin a
transaction for as long as a turn lasts gets none until it does so after a failure.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from tique.commit.certification import written_keys

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from tique.errors import SerializationError
    from tique.store.rows import Key
    from tique.writes.predicates import SeenPredicate
    from tique.writes.tickets import Committing
    from tique_rewriter.schema import Table

Claim: TypeAlias = "tuple[int, tuple[int, ...], Key]"
"""A table's id, the positions of a key in it, and the key."""
_Claims: TypeAlias = "Mapping[Claim, frozenset[int] | None]"
"""Keys, with the columns that a transaction looks at or changes; None: all of them."""

_SHORTEST_TURN = 0.05
"""In seconds: a thread may have to wait so long for the GIL, among others."""
_LONGEST_TURN = 1.0
_LONGEST_PRIORITY = 30.0
"""That of a transaction with priority."""
_TIMES = 4.0
"""A turn lasts for so many times as long as the attempt that failed."""
PATIENCE = 5.0
_MOST_CLAIMS = 64
"""Of a larger write set only so many keys are reserved."""
_MOST_WITH_PRIORITY = 4096
_MOST_IN_A_TURN = 4
"""After so many losses in a row a turn at tables ends: they have another reason."""
_CONTESTED = 1.0
"""For so many seconds after a commit was lost, or a turn waited for, a key is contested."""
_MOST_CONTESTED = 1024
_SELDOM = 16
"""A statement whose transactions do not write the row back has a turn each so many times."""


class Habit:
    """Whether transactions that read a row by one statement go on to write it."""

    __slots__ = ("is_bad", "times")

    def __init__(self) -> None:
        self.is_bad = False
        self.times = 0

    @property
    def is_worth_a_turn(self) -> bool:
        """Whether to wait this time."""
        self.times += 1
        return not self.is_bad or self.times % _SELDOM == 0


@dataclass(slots=True)
class _Contest:
    """A key at which a commit was lost, and the columns that had changed; None: all."""

    until: float
    columns: frozenset[int] | None
    wanted: float
    """Until when other processes are taken to want it, too."""


def _overlap(one: frozenset[int] | None, other: frozenset[int] | None) -> bool:
    """Whether two sets of columns have one in common; None is all columns."""
    return one is None or other is None or not one.isdisjoint(other)


class _Place:
    """A contender's place in the queues of some keys."""

    __slots__ = ("claims", "gone", "lasting", "opened", "over")

    def __init__(self, claims: _Claims, lasting: float) -> None:
        self.claims = claims
        self.lasting = lasting
        self.over: float | None = None
        """When its turn is over, by the monotonic clock; None: it is not its turn yet."""
        self.opened = threading.Event()
        self.gone = threading.Event()


def _alone() -> bool:
    return False


class Turns:
    """The queues of one database's contenders, by key.

    Parameters
    ----------
    has_company
        Whether other processes use the database.
    """

    def __init__(self, has_company: Callable[[], bool] = _alone) -> None:
        self._has_company = has_company
        self._lock = threading.Lock()
        self._queues: dict[Claim, deque[_Place]] = {}
        self._contested: dict[Claim, _Contest] = {}

    @property
    def are_contested(self) -> bool:
        """Whether any key is, or was a while ago."""
        return bool(self._contested)

    def is_contested(self, claim: Claim, columns: frozenset[int] | None) -> bool:
        """Whether a commit has just been lost at one of a key's columns."""
        contest = self._contested.get(claim)
        return (
            contest is not None
            and contest.until > time.monotonic()
            and _overlap(contest.columns, columns)
        )

    def contest(
        self, claim: Claim, columns: frozenset[int] | None, *, to_others: bool = False
    ) -> None:
        """Note that a commit was lost at a key, where these columns had changed.

        ``to_others`` says that no turn within this process would have saved it.
        """
        now = time.monotonic()
        with self._lock:
            known = self._contested.get(claim)
            wanted = 0.0 if known is None else known.wanted
            if to_others and self._has_company():
                wanted = now + _CONTESTED
            if len(self._contested) >= _MOST_CONTESTED:
                self._contested = {
                    each: contest
                    for each, contest in self._contested.items()
                    if contest.until > now
                }
                if len(self._contested) >= _MOST_CONTESTED:
                    self._contested.clear()
            self._contested[claim] = _Contest(now + _CONTESTED, columns, wanted)

    def wanted(self, claims: Iterable[Claim]) -> list[Claim]:
        """Those of some keys that other processes want, too."""
        now = time.monotonic()
        found = ((claim, self._contested.get(claim)) for claim in claims)
        return [
            claim
            for claim, contest in found
            if contest is not None and contest.wanted > now
        ]

    def want(self, claims: Iterable[Claim]) -> None:
        """Note that other processes have been met at these keys."""
        with self._lock:
            for claim in claims:
                contest = self._contested.get(claim)
                if contest is not None:
                    contest.until = contest.wanted = time.monotonic() + _CONTESTED

    def extend(self, place: _Place, seconds: float) -> None:
        """Let a turn last for so long from now on, and then as long as any."""
        with self._lock:
            if place.over is not None:
                place.over = time.monotonic() + seconds + place.lasting

    @property
    def tables(self) -> set[Claim]:
        """The tables that are claimed as wholes."""
        with self._lock:
            return {claim for claim in self._queues if claim[0] < 0}

    @property
    def are_taken(self) -> bool:
        """Whether there is any place; without the lock a newcomer may be too early."""
        return bool(self._queues)

    def take(self, claims: _Claims, lasting: float) -> _Place:
        """Take a place behind all others, in the queues of all these keys."""
        place = _Place(claims, lasting)
        with self._lock:
            for claim in claims:
                queue = self._queues.setdefault(claim, deque())
                contest = self._contested.get(claim)
                if queue and contest is not None:
                    contest.until = time.monotonic() + _CONTESTED
                queue.append(place)
            self._open(place)
        return place

    def leave(self, place: _Place) -> None:
        """Give a place up; idempotent."""
        with self._lock:
            self._remove(place)

    def holders(self, claims: _Claims) -> set[_Place]:
        """The open turns with one of these keys, and one of the changed columns."""
        now = time.monotonic()
        with self._lock:
            return {
                place
                for claim, columns in claims.items()
                for place in self._open_in((claim,), now)
                if _overlap(place.claims[claim], columns)
            }

    def patience(self, place: _Place) -> float:
        """Seconds after which to look again whether a turn ahead of a place is over."""
        now = time.monotonic()
        with self._lock:
            found = [ahead.over or now for ahead in self._open_in(place.claims, now)]
        return max(0.0, min(found, default=now + _SHORTEST_TURN) - now)

    def _open_in(self, claims: Collection[Claim], now: float) -> Iterator[_Place]:
        """The open turns among the keys' first places; removes those that are over."""
        for claim in claims:
            while queue := self._queues.get(claim):
                first = queue[0]
                if first.over is None:
                    break
                if first.over > now:
                    yield first
                    break
                self._remove(first)

    def _remove(self, place: _Place) -> None:
        place.gone.set()
        behind = []
        for claim in place.claims:
            queue = self._queues.get(claim)
            if queue is None or place not in queue:
                continue
            queue.remove(place)
            if queue:
                behind.append(queue[0])
            else:
                del self._queues[claim]
        for each in behind:
            self._open(each)

    def _open(self, place: _Place) -> None:
        """Begin its turn if it is the first everywhere."""
        if place.over is None and all(
            self._queues[claim][0] is place for claim in place.claims
        ):
            place.over = time.monotonic() + place.lasting
            place.opened.set()


class Contender:
    """One connection among those that want the same keys; used by one thread at a time.

    Parameters
    ----------
    turns
        The database's.
    """

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self._place: _Place | None = None
        self._came_by: Habit | None = None
        """That of the statement that took the place, unless :meth:`lose` did."""
        self._losses = 0
        """How many of its transactions have lost, one after the other."""
        self._has_tables = False
        """Whether its place is one at tables."""
        self._lasted = 0.0
        """The seconds from the last place that :meth:`wait_for_turn` took to the end."""
        self._began = 0.0
        self._expected: float | None = None
        """Until when a transaction is expected that tries again."""
        self._tries_again = True
        self.has_priority = False
        """Whether the transaction is long, and its next attempt may hold others up."""

    def begin(self) -> bool:
        """Note that a transaction begins; whether it is the next after one that lost."""
        self._began = time.monotonic()
        if self._expected is None:
            return False
        self._tries_again = self._began < self._expected
        self._expected = None
        return True

    def end(self, transaction: Committing | None = None) -> None:
        """Note that a transaction ended: the turn is over."""
        place, self._place = self._place, None
        self._losses, self._has_tables = 0, False
        if place is None:
            return
        self.turns.leave(place)
        habit, self._came_by = self._came_by, None
        if habit is not None and transaction is not None:
            self._lasted = time.monotonic() - self._began
            (claim,) = place.claims
            habit.is_bad = not _writes(transaction, claim)

    def wait_for_turn(
        self, claim: Claim, columns: frozenset[int] | None, habit: Habit
    ) -> bool:
        """Wait for the turn at a contested key, before its row is read.

        Returns
        -------
        bool
            Whether other transactions may have committed the row since this one began.
        """
        if (
            self._place is not None
            or not self.turns.is_contested(claim, columns)
            or not habit.is_worth_a_turn
        ):
            return False
        lasting = _lasting(self._lasted, _LONGEST_TURN)
        self._place = self.turns.take({claim: columns}, lasting)
        self._came_by = habit
        self._await()
        return True

    @property
    def has_place(self) -> bool:
        """Whether it has its turn, or waits for it."""
        return self._place is not None

    def reserve(self, lock: Callable[[Sequence[Claim], float], bool | None]) -> bool:
        """Reserve the keys of its turn that other processes want, too.

        Parameters
        ----------
        lock
            Locks keys for so many seconds, and says whether others had them; None: they
            are not locked.

        Returns
        -------
        bool
            Whether they are.
        """
        place = self._place
        claims = [] if place is None else self.turns.wanted(place.claims)
        if place is None or not claims:
            return False
        self.turns.extend(place, PATIENCE)
        try:
            were_taken = lock(claims, place.lasting)
        finally:
            self.turns.extend(place, 0.0)
        if were_taken is not False:
            self.turns.want(claims)
        return were_taken is not None

    def give_way(self, transaction: Committing) -> None:
        """Wait for the turns that other contenders have now at keys of the write set.

        Not for later ones: if such a turn ends with a commit, this transaction loses
        and has a place of its own.
        """
        if not self.turns.are_taken or self._has_tables:
            return
        claims = _claims(transaction)
        claims |= dict.fromkeys(
            self.turns.tables.intersection(map(_whole, transaction.writes))
        )
        if self._place is not None:
            for claim in self._place.claims:
                claims.pop(claim, None)
        for place in self.turns.holders(claims):
            # It is gone when its time is over.
            while not place.gone.wait(self.turns.patience(place)):
                pass

    def lose(
        self, transaction: Committing, error: SerializationError | None = None
    ) -> None:
        """Take a place in the queues of the keys, for the next attempt.

        The error says at which of them the commit was lost.
        """
        had_turn = self._place is not None and self._place.over is not None
        losses = self._losses + 1
        if self._keeps_tables(losses):
            return
        self.end(transaction)
        self._losses = losses
        now = time.monotonic()
        longest = _LONGEST_PRIORITY if self.has_priority else _LONGEST_TURN
        lasting = _lasting(now - self._began, longest)
        self._expected = now + lasting
        most = _MOST_WITH_PRIORITY if self.has_priority else _MOST_CLAIMS
        claims = _claims(transaction, most)
        groups: list[Claim] = []
        if error is not None and error.key:
            groups = self._contest(transaction, error, had_turn=had_turn)
        tables = set()
        if transaction.is_validated and losses > 1:
            tables = {
                *map(_whole, [*transaction.writes, *transaction.seen.definitions])
            }
        if (claims or tables) and self._tries_again:
            looked_at = {
                claim: None if columns is None else _seen(transaction, claim)
                for claim, columns in claims.items()
            }
            looked_at |= dict.fromkeys([*groups[:most], *tables])
            self._has_tables = bool(tables)
            self._place = self.turns.take(looked_at, lasting)

    def _keeps_tables(self, losses: int) -> bool:
        """Go on with a turn at tables in which a commit was lost, so many in a row."""
        place = self._place
        if (
            not self._has_tables
            or place is None
            or place.gone.is_set()
            or losses > _MOST_IN_A_TURN
        ):
            return False
        self._losses = losses
        self.turns.extend(place, 0.0)
        self._expected = time.monotonic() + place.lasting
        return True

    def wait(self) -> None:
        """Wait for the turn that :meth:`lose` asked for; at most ``PATIENCE`` seconds."""
        place = self._place
        if place is not None:
            self._await()
            self._expected = time.monotonic() + place.lasting

    def _contest(
        self, transaction: Committing, error: SerializationError, *, had_turn: bool
    ) -> list[Claim]:
        """Note the key at which a commit was lost, if it is a written row's.

        Returns
        -------
        list
            The groups that are contested therefore: of all in which it wrote, since it
            came to one after another.
        """
        try:
            hash(error.key)
        except TypeError:
            # A list or an object: such rows are staged, and read by no key here.
            return []
        groups: list[Claim] = []
        for writes in transaction.writes.values():
            table, key = writes.table, error.key
            if table.qualified_name == error.table and key in writes.rows:
                names = [column.name for column in table.columns]
                columns = frozenset(names.index(name) for name in error.columns)
                self.turns.contest(
                    (table.id, table.primary_key, key),
                    columns or None,
                    to_others=had_turn or bool(transaction.server_locks),
                )
                found = {
                    _group(table, predicate)
                    for predicate in transaction.seen.predicates
                    if predicate.table.id == table.id
                    and _overlap(columns or None, predicate.columns)
                }
                groups += [
                    group
                    for group in found
                    if any(
                        _has(table, group, each)
                        for each in islice(writes.rows, _MOST_CLAIMS)
                    )
                ]
        for group in groups:
            self.turns.contest(group, None)
        return groups

    def _await(self) -> None:
        """Wait until it is the place's turn; give it up after ``PATIENCE`` seconds."""
        place = self._place
        assert place is not None
        latest = time.monotonic() + PATIENCE
        try:
            while not place.opened.wait(self.turns.patience(place)):
                if time.monotonic() > latest:
                    self.end()
                    return
        except BaseException:
            self.end()
            raise


def _whole(table_id: int) -> Claim:
    """The claim of a table as a whole."""
    return ~table_id, (), ()


def _seen(transaction: Committing, claim: Claim) -> frozenset[int] | None:
    """The columns of a row that a transaction looked at; the row can be computed again."""
    table, _, key = claim
    if (table, key) in transaction.seen.own:
        return None
    _, columns = transaction.seen.rows.get((table, key), (None, frozenset()))
    return columns


def _writes(transaction: Committing, claim: Claim) -> bool:
    """Whether a transaction writes a row of a claim, a key or a group."""
    table_id, positions, values = claim
    writes = transaction.writes.get(table_id)
    if writes is None:
        return False
    if positions == writes.table.primary_key:
        return values in writes.rows
    return any(_has(writes.table, claim, key) for key in writes.rows)


def _group(table: Table, predicate: SeenPredicate) -> Claim:
    """The rows with the values that a predicate binds key columns to."""
    found, values = predicate.group(table.primary_key)
    bound = dict(zip(found, values, strict=True))
    positions = tuple([i for i in table.primary_key if i in bound])
    in_order = tuple([bound[i] for i in positions])
    return table.id, positions, in_order


def _has(table: Table, claim: Claim, key: Key) -> bool:
    """Whether a row with a primary key is one of a group."""
    _, positions, values = claim
    places = [table.primary_key.index(i) for i in positions]
    return tuple([key[i] for i in places]) == values


def _lasting(attempt: float, longest: float) -> float:
    """The seconds that a turn lasts, given those of an attempt."""
    return min(max(_SHORTEST_TURN, _TIMES * attempt), longest)


def _claims(
    transaction: Committing, most: int = _MOST_CLAIMS
) -> dict[Claim, frozenset[int] | None]:
    claims: dict[Claim, frozenset[int] | None] = {}
    for writes in transaction.writes.values():
        if writes.is_staged:
            continue
        for positions, entries in written_keys(writes):
            for key, write in entries:
                claim = writes.table.id, positions, key
                claims[claim] = None if write.merge is None else write.merge.columns
                if len(claims) >= most:
                    return claims
    return claims
