"""Group commit in a database that other processes use too.

The argument of :mod:`tique.commit.committer` holds within the process. Between
processes:

*First committer wins (P3).* A batch is certified twice: by this process against all
commits that it has followed, up to ``sts``; then by the shared sequencer, against the
commits after ``sts``: it knows their keys, or else knows up to where some may be
missing and refuses. In the same step it hands out the timestamp, so that of two commits
with one key the second is refused while the first is still under way. A ticket that is
refused so waits until the commit in its way is finished; then this process follows that
commit and certifies the ticket again: the commit may have been aborted, or have other
keys.

*Publication (P2).* The log entry is durable before the timestamp is finished.
``commit()`` returns when the shared sts covers the timestamp; the index learns of it
before the next transaction begins, unless that begins blindly (:mod:`tique.query.write.blind`).

*What a SERIALIZABLE transaction saw* (:mod:`tique.commit.validation`) is compared with the commits that this
process has followed. So its group gets timestamps that follow these, or none: a commit that another
process has under way may change what was seen, and is decided and followed before the group is validated again.
After some such refusals a ticket is committed behind a barrier, as bulk writes are: every earlier
commit is decided then, no later one is before it, and no other process waits for longer than for these.

There are two ways to do that; the engine says which.

:class:`AppendingCommitter`: certification, log entry and timestamp belong to one engine
transaction, which is one request. Even if this process dies, the server commits it or
rolls it back. If the reply is lost the log decides, once it is certain that the
server no longer works on the request. If the server refuses one commit of a group (a
privilege was revoked) nothing of the group is there, and each is tried alone.

Updates of one row that merge (:mod:`tique.commit.mergeable`) may be in one group, each computed on the one
before it. Then the request appends the whole group or nothing, and each key is certified with the
last ticket that writes it. Every commit of the key by others is then before the group, and
refuses it; or after that ticket's timestamp, and is refused until the group is over, also by a
process that has followed only a part of it. A reader may see a part: the tickets are commits of their own.

:class:`SteppedCommitter`: each step is a request of its own, because MonetDB goes on
with a string of statements after one failed, and would publish a commit that is not
there. Bulk writes go this way on every engine, with a barrier for a timestamp.

*If the process dies*, or is stopped for longer than its lease: before a batch is
certified, no other process knows of it. From then on its timestamps hold sts back until
another process fences them; a fenced commit counts as aborted whatever the log has, unless it defines
(:mod:`tique_backends.sharing`).
Once they are finished it is committed. A process acknowledges a commit only when it has
finished it itself, so that no acknowledged commit is ever fenced.

*If a statement's outcome is not known* the log decides, as for one process: a commit
that is in it is finished, any other is aborted. If the client is gone by then, its
unfinished timestamps are fenced first, and then the log decides.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from typing_extensions import override

from tique import errors
from tique._translation import given_up
from tique.commit.certification import key_hashes
from tique.commit.committer import Committer
from tique.commit.referential import reference_hashes
from tique.writes.tickets import (
    Conflict,
    OvertakenError,
    failure,
    serialization_error,
)
from tique_backends.errors import EngineError, ErrorKind, may_have_run
from tique_backends.servers.row_locks import RowsLockedError
from tique_backends.sharing import (
    MOST_KEYS,
    AppendingSequencer,
    FencedError,
    GroupRefusedError,
    OverdueError,
    SteppedSequencer,
)
from tique_udfs import lock_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.timeline.shared import SharedTimeline
    from tique.writes.table import TableWrites
    from tique.writes.tickets import Committing, Ticket
    from tique_backends.records import CommitRecord
    from tique_backends.session import Session


class SharedCommitter(Committer):
    """Commits this process's transactions among those of other processes."""

    most_refusals = 10
    """So often a ticket is certified, while other processes' commits are in its way.

    The next attempt reserves its row (:mod:`tique.commit.server_locks`).
    """
    refusals_before_barrier = 3
    """So often a ticket is validated, while other processes' commits come between."""
    _timeline: SharedTimeline
    _certified_until = 0
    _stamped: Sequence[Ticket] = ()
    """Tickets whose timestamps in the shared sequencer this process has to finish."""

    @override
    def prepare(self, transaction: Committing) -> None:
        """Commit in bulk if there are more keys than are certified at a time."""
        most = MOST_KEYS - 2 * len(transaction.references)
        if sum(map(_most_keys, transaction.writes.values())) > most:
            largest = sorted(transaction.writes.values(), key=_most_keys)
            while largest and sum(map(_most_keys, largest)) > most:
                largest.pop().switch_to_stage(transaction.session)

    @property
    @override
    def is_in_doubt(self) -> bool:
        return super().is_in_doubt or bool(self._stamped)

    @property
    @override
    def is_left(self) -> bool:
        # Or a schema change's barrier; while that goes on its thread has the lock.
        return super().is_left or (self._timeline.has_barrier and not self._stamped)

    @override
    def _certify(self, batch: list[Ticket], session: Session) -> list[Ticket]:
        if batch[0].needs_barrier:
            # The shared sequencer does not know its keys, or what it saw: it is certified
            # here, against every commit before the barrier.
            batch[0].cts = self._timeline.bar()
            self._stamped = batch
        # Commits that are followed meanwhile are certified by the shared sequencer.
        self._certified_until = self._sequencer.sts()
        certified = super()._certify(batch, session)
        for ticket in certified:
            ticket.computed_hashes = self._certifier.computed_hashes(ticket, session)
        return certified

    @override
    def _bar(self, ticket: Ticket) -> None:
        ticket.cts = self._timeline.bar()
        self._stamped = [ticket]

    @override
    def _take_timestamps(self, certified: list[Ticket]) -> list[Ticket]:
        if self._stamped and not certified:
            self._settle_earlier()
        return certified

    def _accepted(
        self, certified: Sequence[Ticket], stamps: Sequence[int]
    ) -> list[Ticket]:
        """The tickets that have a timestamp; put the others back into the queue."""
        stamped: list[Ticket] = []
        refused: list[Ticket] = []
        for ticket, cts in zip(certified, stamps, strict=True):
            ticket.cts = cts
            (stamped if cts > 0 else refused).append(ticket)
        if refused and not stamped:
            # Tickets with a timestamp must not wait for other commits, which wait for
            # them.
            self._timeline.wait(max(-ticket.cts for ticket in refused))
            self._timeline.catch_up()
        for ticket in reversed(refused):
            self._put_back(ticket)
        return stamped

    def _put_back(self, ticket: Ticket) -> None:
        self._timeline.fall_behind()
        ticket.refusals += 1
        if ticket.is_validated and ticket.refusals >= self.refusals_before_barrier:
            ticket.settle(OvertakenError())
        elif ticket.refusals < self.most_refusals:
            self._queue.appendleft(ticket)
        else:
            ticket.settle(serialization_error(self._refusal(ticket)))

    def _refusal(self, ticket: Ticket) -> Conflict:
        """The key at which a ticket was refused, if the commit in its way was followed."""
        winner = -ticket.cts
        for writes in ticket.writes:
            with suppress(errors.Error):
                last_commit = self._catalog.versions(writes.table).last_commit
                for key in writes.rows:
                    if last_commit(key) >= winner:
                        return Conflict(writes.table, key, winner)
        return Conflict(ticket.writes[0].table, (), winner)

    @override
    def _publish(self, certified: Sequence[Ticket], staged: dict[int, int]) -> None:
        self._timeline.finish(certified, staged)
        self._stamped = ()

    @override
    def _settle_earlier(self) -> None:
        """Look up the outcome of a batch that was cut short; finish its timestamps."""
        self._reload_definitions()
        if not self._stamped:
            self._timeline.lift()
            return
        appended, stamped = self._unsettled, self._stamped
        try:
            if appended and self._is_recorded(appended[0].transaction.txid):
                self._timeline.finish(appended, _staged_rows(appended))
                self._acknowledge(appended)
            else:
                self._timeline.abort([ticket.cts for ticket in stamped])
        except OverdueError as error:
            # It counts as aborted; once it is fenced, every process learns that.
            self._timeline.wait(max(ticket.cts for ticket in stamped))
            for ticket in stamped:
                ticket.settle(failure(error))
        except FencedError as error:
            self._timeline.fence_own(max(ticket.cts for ticket in stamped))
            for ticket in stamped:
                is_there = appended and self._is_recorded(ticket.transaction.txid)
                ticket.settle(None if is_there else given_up(error))
        self._unsettled = self._stamped = ()


class SteppedCommitter(SharedCommitter):
    """Takes timestamps, logs the commits, and finishes the timestamps.

    A transaction whose rows others have locked gets none, and waits; the others of its
    group go on.
    """

    @property
    def _shared(self) -> SteppedSequencer:
        assert isinstance(self._engine.shared, SteppedSequencer)
        return self._engine.shared

    @override
    def _take_timestamps(self, certified: list[Ticket]) -> list[Ticket]:
        if self._stamped or not certified:
            return super()._take_timestamps(certified)
        stamped: list[Ticket] = []

        def keep(found: list[int | RowsLockedError]) -> None:
            outcomes = list(zip(certified, found, strict=True))
            for ticket, outcome in outcomes:
                if not isinstance(outcome, RowsLockedError):
                    ticket.cts = outcome
                    stamped.append(ticket)
            # From here on these have to be finished in any case.
            self._stamped = [ticket for ticket in stamped if ticket.cts > 0]
            for ticket, outcome in outcomes:
                if isinstance(outcome, RowsLockedError):
                    ticket.settle(outcome)

        write_sets = _write_sets(certified, list(map(_hashes, certified)))
        lockers = [ticket.transaction.locker for ticket in certified]
        self._timeline.take(
            lambda: self._shared.certify(self._certified_until, write_sets, lockers),
            keep,
        )
        stamps = [ticket.cts for ticket in stamped if ticket.cts > 0]
        if (
            any(ticket.is_validated for ticket in stamped)
            and stamps
            and max(stamps) > self._certified_until + len(stamps)
        ):
            # Others came between: these are given back, and all are validated again.
            self._settle_earlier()
            for ticket in stamped:
                ticket.cts = -max(stamps)
        return self._accepted(stamped, [ticket.cts for ticket in stamped])


class AppendingCommitter(SharedCommitter):
    """Commits buffered writes in one request; bulk writes go in steps."""

    most_refusals = 40
    """A refusal is one request; a row that is reserved costs each commit of it three."""
    _covered = 0
    """The shared sts while the last batch was appended."""

    @property
    def _shared(self) -> AppendingSequencer:
        assert isinstance(self._engine.shared, AppendingSequencer)
        return self._engine.shared

    @override
    def _log(
        self, certified: Sequence[Ticket], records: Sequence[CommitRecord]
    ) -> Sequence[Ticket]:
        self._unsettled = certified
        try:
            with self._timeline.noticing():
                hashes = [_hashes(ticket) for ticket in certified]
                whole = any(ticket.depends_on_batch for ticket in certified)
                next_to = any(ticket.is_validated for ticket in certified)
                stamps, self._covered = self._shared.append(
                    self._certified_until,
                    _write_sets(certified, _once_each(hashes) if whole else hashes),
                    records,
                    _rows(certified, hashes),
                    whole=whole,
                    next_to=next_to,
                )
        except GroupRefusedError as error:
            self._unsettled = ()
            self._timeline.wait(error.winner)
            self._timeline.catch_up()
            for ticket in reversed(certified):
                ticket.cts = -error.winner
                self._put_back(ticket)
            return ()
        except RowsLockedError as error:
            # Nothing is committed: each is tried alone, and that one waits for the lock.
            self._unsettled = ()
            if len(certified) == 1:
                certified[0].settle(error)
                return ()
            self._try_alone(certified)
            return ()
        except EngineError as error:
            if may_have_run(error):
                raise
            # It was refused, or never sent for want of a connection.
            self._unsettled = ()
            if error.kind is not ErrorKind.PROGRAMMING or len(certified) == 1:
                raise
            # One of them is refused: each is tried alone.
            self._try_alone(certified)
            return ()
        self._unsettled = [
            t for t, cts in zip(certified, stamps, strict=True) if cts > 0
        ]
        return self._accepted(certified, stamps)

    def _try_alone(self, certified: Sequence[Ticket]) -> None:
        for ticket in reversed(certified):
            ticket.stands_alone = True
            self._queue.appendleft(ticket)

    @override
    def _publish(self, certified: Sequence[Ticket], staged: dict[int, int]) -> None:
        if self._stamped:
            super()._publish(certified, staged)
        elif certified:
            self._timeline.appended(certified, self._covered)

    @override
    def _settle_earlier(self) -> None:
        if self._stamped:
            super()._settle_earlier()
            return
        while self._unsettled:
            ticket, *others = self._unsettled
            cts = self._recorded(ticket.transaction.txid)
            if cts is not None:
                ticket.cts = cts
                self._timeline.wait(cts)
                self._acknowledge([ticket])
            self._unsettled = others


def _most_keys(writes: TableWrites) -> int:
    table = writes.table
    keys = 1 + len(table.unique) + len(table.computed_keys)
    deleted = sum(write.deleted for write in writes.rows.values())
    return (len(writes.rows) + len(writes.copies)) * keys + deleted


def _hashes(ticket: Ticket) -> list[bytes]:
    plain = (key for writes in ticket.writes for key in key_hashes(writes))
    return [*plain, *ticket.computed_hashes]


def _write_sets(
    tickets: Sequence[Ticket], hashes: Sequence[list[bytes]]
) -> list[list[bytes]]:
    return [
        [*keys, *reference_hashes(ticket.references)]
        for ticket, keys in zip(tickets, hashes, strict=True)
    ]


def _once_each(hashes: Sequence[list[bytes]]) -> list[list[bytes]]:
    """Leave each key to the last ticket that writes it."""
    last = {key: place for place, keys in enumerate(hashes) for key in keys}
    return [
        [key for key in keys if last[key] == place] for place, keys in enumerate(hashes)
    ]


def _rows(tickets: Sequence[Ticket], hashes: Sequence[list[bytes]]) -> list[int]:
    """The numbers of the row locks that no other transaction may have."""
    rows: list[int] = []
    for ticket, keys in zip(tickets, hashes, strict=True):
        own = ticket.transaction.server_locks
        rows.extend(n for n in map(lock_number, keys) if n not in own)
    return rows


def _staged_rows(tickets: Sequence[Ticket]) -> dict[int, int]:
    return {
        writes.table.id: writes.staged_count
        for ticket in tickets
        for writes in ticket.writes
        if writes.is_staged
    }
