"""Serial Safety Net: a transaction that saw what is no longer so may be placed before that.

After Wang, Johnson, Fekete and Pandis (VLDB Journal 2017), over snapshot isolation. A
transaction T has a *place* in the serial order: π(T), its own cts, or that of the first
transaction that changed what T saw, if T has to come before it. T is refused if π(T) ≤ η(T),
the place of a transaction that T has to come after. Both are known when T is certified.

* What T saw is validated first (:mod:`tique.commit.validation`), by value, in the columns that were looked at. If
  nothing has changed, π(T) = cts(T), and T is not refused: there is nothing that the exact check would
  have let pass. The net is under those that it would have refused.
* Else π(T) is the least of the places of the first transactions that changed each row that T saw,
  by its key or by a predicate: U's place is its cts, or earlier, if it was placed so itself.
* η(T) is at least T's snapshot: of that, and of no earlier commit, is what T read and wrote over. Besides it is the
  greatest of the *marks* at what T writes. A transaction that is committed marks each row that it saw with its
  place, and each table of which it saw a predicate (coarse: that can only refuse more).
* First committer wins, as ever; an update merges only in a transaction placed at its cts.
* R, which has written nothing, is placed right after its snapshot, and marks what it saw with that. It is refused
  if a later commit that wrote some of this was placed before: this is the one loss that the optimistic protocol does not know.

Argument
--------
*Strict serializability.* The order is that of places; of several with one place, that of *descending* cts. For transactions
that are committed, each has to come after another one because

* it read or wrote over the other's version: then that was committed in its snapshot, its place is at most its cts,
  and so before this one's, which is after the snapshot;
* it wrote over a version that the other one read, and was committed later: the other's mark is less than its place,
  if that was moved; else its place is its cts, which no earlier commit has reached;
* the same, but it was committed *earlier* than the reader: the reader's place is at most its own, and if it is the
  same the reader has the later cts, and comes first.

So all three agree with the order. Versions of a row are made in the order of their cts, which by the first case is that of places: a
reader that is placed before the first version with another value sees what it saw. And a
transaction that was acknowledged before another one began is in its snapshot, and placed before it: real time is
respected. The paper has cts(U) where this has U's place in a mark, and only promises an order; the place is never the greater one.

*Writers of other levels* are in this order with their cts, as if they had read nothing.

*Who decides when.* The leader, with nothing of the batch certified before a transaction that is moved: others' marks and
places are all known then. A place that is moved is noted before the commit is durable; R marks first and looks at
these places then, the leader notes and then looks at marks, both under one mutex: one of the two sees the other. If
the commit fails, more is refused for a while.

*Memory.* A mark, or a moved place, that no open transaction's snapshot is older than has no effect, and is forgotten
when there are many. If too many are left, they become one mark for the table; and no more are moved.

*One process* has all places and marks in its memory, and no other one sees them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from typing_extensions import override

from tique import errors
from tique.commit.protocols.optimistic import Optimistic
from tique.commit.validation import BehindBatchError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.commit.protocols.optimistic import Surroundings
    from tique.commit.validation import Change, Validation
    from tique.store.rows import Key
    from tique.writes.seen import Seen
    from tique.writes.tickets import Committing, Ticket
    from tique_backends.session import Session

_MOST_MARKS = 20_000
"""At rows of one table."""
_MOST_MOVED = 10_000


class _Moved(NamedTuple):
    """A transaction that is placed before its commit, and what it writes."""

    ticket: Ticket
    place: int
    tables: frozenset[int]
    keys: frozenset[tuple[int, Key]]

    def is_unseen(self, sts: int) -> bool:
        """Whether a snapshot is without its commit."""
        cts = self.ticket.cts
        return cts > sts if cts else not self.ticket.done

    def has_changed(self, seen: Seen) -> bool:
        """Whether it wrote what a transaction saw, or may have."""
        return (
            any(predicate.table.id in self.tables for predicate in seen.predicates)
            or not self.keys.isdisjoint(seen.rows)
            or not self.keys.isdisjoint(seen.own)
        )


class SafetyNet(Optimistic):
    """Places each transaction in the serial order, at its cts or before it."""

    obstacle: ClassVar[str | None] = "its stamps are in the memory of one process"

    def __init__(self, database: Surroundings) -> None:
        super().__init__(database)
        self._mutex = threading.Lock()
        self._marks: dict[int, dict[Key, int]] = {}
        """By table and key: the last place of a transaction that saw the row."""
        self._tables: dict[int, int] = {}
        """The same of tables, as wholes."""
        self._moved: list[_Moved] = []

    @override
    def validate(
        self, ticket: Ticket, validation: Validation, session: Session
    ) -> Change | None:
        ticket.place = None
        change = super().validate(ticket, validation, session)
        if change is None or ticket.is_bulk:
            return change
        if validation.has_batch:
            raise BehindBatchError
        firsts = validation.first_changes(ticket.transaction, session)
        if not firsts:
            return change
        with self._mutex:
            place = self._place(ticket, firsts)
        if place is None:
            return change
        ticket.place = place
        return None

    def _place(self, ticket: Ticket, firsts: set[int]) -> int | None:
        """The place of a transaction before the commits that changed what it saw, if any."""
        oldest = self._oldest()
        self._moved = [
            moved
            for moved in self._moved
            if moved.ticket is not ticket and moved.is_unseen(oldest)
        ]
        places = {moved.ticket.cts: moved.place for moved in self._moved}
        place = min(places.get(cts, cts) for cts in firsts)
        if place <= self._latest(ticket) or len(self._moved) >= _MOST_MOVED:
            return None
        tables = frozenset(writes.table.id for writes in ticket.writes)
        keys = frozenset((w.table.id, key) for w in ticket.writes for key in w.rows)
        self._moved.append(_Moved(ticket, place, tables, keys))
        return place

    def _latest(self, ticket: Ticket) -> int:
        """The last place that a transaction has to come after."""
        latest = ticket.transaction.sts
        for writes in ticket.writes:
            marks = self._marks.get(writes.table.id, {})
            latest = max(
                latest,
                self._tables.get(writes.table.id, 0),
                *(marks.get(key, 0) for key in writes.rows),
            )
        return latest

    @override
    def committed(self, tickets: Sequence[Ticket]) -> None:
        with self._mutex:
            for ticket in tickets:
                if ticket.is_validated:
                    place = ticket.cts if ticket.place is None else ticket.place
                    self._mark(ticket.transaction.seen, place)

    @override
    def ended(self, transaction: Committing) -> None:
        seen, sts = transaction.seen, transaction.sts
        with self._mutex:
            self._mark(seen, sts)
            for moved in self._moved:
                if (
                    moved.place <= sts
                    and moved.is_unseen(sts)
                    and moved.has_changed(seen)
                ):
                    self._database.counts.readers_refused += 1
                    raise errors.SerializationError(
                        "this transaction has seen a commit, but not a later one that "
                        "comes before that in the serial order; run the transaction again"
                    )

    def _mark(self, seen: Seen, place: int) -> None:
        for predicate in seen.predicates:
            self._mark_table(predicate.table.id, place)
        for rows in (seen.rows, seen.own):
            for table_id, key in rows:
                marks = self._marks.setdefault(table_id, {})
                marks[key] = max(place, marks.get(key, 0))
        for table_id in seen.definitions:
            if len(self._marks.get(table_id, ())) > _MOST_MARKS:
                self._forget(table_id)

    def _mark_table(self, table_id: int, place: int) -> None:
        self._tables[table_id] = max(place, self._tables.get(table_id, 0))

    def _forget(self, table_id: int) -> None:
        """Forget marks that have no effect; have one for the table, if there are too many."""
        oldest = self._oldest()
        marks = {
            k: place for k, place in self._marks[table_id].items() if place > oldest
        }
        if len(marks) > _MOST_MARKS // 2:
            self._mark_table(table_id, max(marks.values()))
            marks = {}
        self._marks[table_id] = marks

    def _oldest(self) -> int:
        """A timestamp that no open transaction's snapshot is older than."""
        database = self._database
        # A copy made in one step: other threads begin transactions.
        found = [each.sts for each in list(database.transactions.values())]
        return min([database.sequencer.stable(), *found])
