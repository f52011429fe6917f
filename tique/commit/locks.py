"""Row locks, for SELECT … FOR UPDATE and FOR SHARE.

First committer wins (P3) finds a conflict when it is over. A lock keeps it from arising:
a row that a transaction has locked is locked, and written, by no other one until that
transaction ends. Locks decide who waits, never what may commit: that is the certifier's
alone, so that a lock that is lost or late costs an attempt and no update.

*Invariant.* A key has at most one owner, a txid, or several that share it. While a key is
locked, no transaction that writes it is between :meth:`Locks.enter` and the end of its
commit, but an only owner and those that the owners have yet to wait for by
:meth:`Locks.settle`, before they look whether the key was committed since their snapshots. So
no commit of the key comes between that look and the owner's end.

Argument
--------
*A commit without locks.* A transaction that commits notes itself in ``_committing``, and
then looks whether any lock is held. A locking transaction takes its locks, and then
looks into ``_committing``. Each is one operation on a dict, and these are in one order,
so at least one of the two sees the other: the committer steps back and waits, or the
locking one waits until the commit is over. A committer that waits for a lock is not in
``_committing``, so the two never wait for each other. Where no lock is held this costs
a commit an entry in a dict and a look at another.

*Several processes.* Where a server keeps row locks, each is taken there, too, and first
(:mod:`tique.commit.server_locks`); what follows is then the server's to decide. But those
that a statement takes of the rows that it writes (:mod:`tique.query.transaction.rereading`) are, without other processes, this one's
alone, under keys of their own, so that they cost no round trip. A transaction
that locks such a row in the server waits first until no other one writes it, and is waited for by
later writers. If a writer comes between, it waits at its commit, as one of another process
does: the one that has the server's lock never waits for that writer any more.

*Updates that merge* (:mod:`tique.commit.mergeable`) do not exclude one another. Such a transaction of
READ COMMITTED waits until its row is free, and then has the row's *merging* key, shared; one that locks the row
waits for all of these (:meth:`Locks.settle`), and a later one waits for the row. So while others have the
merging key, a row has no owner that goes on. One that has it and wants the row for itself, to look at it
or to write it otherwise, locks a third key, *seen*: others' commits of the row wait for that. It never waits for
the row, since the row's owner waits for it. Other processes see the merging key alone (:mod:`tique.commit.server_locks`).

*Waits and their order, deadlocks, and threads that die*: :mod:`tique.commit.key_locks`.

*A commit whose outcome is not known* is over for the locks when its call is: the certifier
lets no other commit pass before that outcome is looked up.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tique import errors
from tique.commit.key_locks import KeyLocks
from tique.commit.lock_keys import (
    in_order,
    is_shown,
    may_write,
    merging_key,
    own_key,
    seen_key,
)
from tique.commit.server_locks import (
    CANCELLED,
    LOCK_NOT_AVAILABLE,
    lock_not_available,
)

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Sequence,
    )

    from tique.commit.lock_keys import LockKey
    from tique.commit.server_locks import ServerLocks
    from tique.commit.turns import Claim
    from tique.writes.tickets import Committing


class Usual(float):
    """A number that the application has not given."""


LOCK_TIMEOUT = Usual(30.0)
"""Seconds that a wait for a lock may take, unless the application says otherwise."""

MOST_EVERYWHERE = 100
"""Locks of one transaction that other processes see: the server has room for some thousands."""


class Locks(KeyLocks):
    """The row locks of one database.

    Parameters
    ----------
    server
        Those in the server; None: there are no other processes.
    """

    def __init__(self, server: ServerLocks | None = None) -> None:
        super().__init__(server)
        self._committing: dict[int, Committing] = {}

    # Locking

    def take(
        self,
        owner: int,
        keys: Sequence[LockKey],
        sequence: int,
        *,
        shared: bool = False,
    ) -> bool:
        """Lock keys if no other transaction has; all of them or, if False, none."""
        try:
            self.lock(owner, keys, sequence, 0, shared=shared)
        except errors.OperationalError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            return False
        return True

    def lock(
        self,
        owner: int,
        keys: Sequence[LockKey],
        sequence: int,
        patience: float | None,
        *,
        shared: bool = False,
        everywhere: bool = False,
    ) -> None:
        """Lock keys in this order, each after those that came before.

        In the server, where there is one: rows, and ``everywhere`` values of UNIQUE keys,
        references and merging keys, too.

        Raises
        ------
        SerializationError
            The wait would never end: a deadlock (SQLSTATE 40P01).
        OperationalError
            It has taken ``patience`` seconds (SQLSTATE 55P03), or was cancelled (57014).
        """
        self.release_abandoned()
        written = self._written(owner, keys)
        new = [k for k in (*written, *keys) if k not in self._of.get(owner, {})]
        try:
            for key in written:
                self._lock(owner, key, sequence, patience, shared=shared)
            self._await_merged(owner, written, patience)
            asked = [
                key for key in keys if key[0] >= 0 or (everywhere and is_shown(key))
            ]
            if self.server is not None and asked:
                self.server.lock(
                    owner,
                    asked,
                    patience,
                    shared=shared,
                    waits=lambda user: self._note_wait(owner, user),
                )
            for key in keys:
                self._lock(owner, key, sequence, patience, shared=shared)
        except BaseException as error:
            named = None if patience == 0 else self._naming(owner, keys, error)
            self.release_keys(owner, new)
            if named is not None:
                raise named from error
            raise
        finally:
            self._waits.pop(owner, None)
            self._cancelled.discard(owner)

    @contextmanager
    def _waiting(self, owner: int) -> Iterator[Callable[[Hashable], None]]:
        """Wait in the server in this context, for what is told meanwhile."""
        try:
            yield lambda user: self._note_wait(owner, user)
        finally:
            self._waits.pop(owner, None)
            self._cancelled.discard(owner)

    def _naming(
        self, owner: int, keys: Iterable[LockKey], error: BaseException
    ) -> errors.Error | None:
        """The error of a wait for other transactions that is over, with the names of these."""
        if not isinstance(error, errors.Error) or error.sqlstate != LOCK_NOT_AVAILABLE:
            return None
        with self._mutex:
            others = {other for key in keys for other in self._others(owner, key)}
        if not others:
            return None
        return lock_not_available("lock_timeout is over: ", self.named(others))

    def reserve(
        self, owner: int, claims: Sequence[Claim], patience: float, lasting: float
    ) -> bool | None:
        """Lock keys in the server before they are read, for some time (see contested).

        Returns
        -------
        bool or None
            Whether other transactions had any; None: they are not locked.

        Raises
        ------
        OperationalError
            The wait was cancelled (SQLSTATE 57014).
        """
        assert self.server is not None
        self.has_waited(owner)
        try:
            with self._waiting(owner) as waits:
                self.server.reserve(owner, claims, patience, lasting, waits)
        except errors.Error as error:
            if error.sqlstate == CANCELLED:
                raise
            return None
        return self.has_waited(owner)

    def lock_written(
        self,
        owner: int,
        keys: Sequence[LockKey],
        sequence: int,
        patience: float | None,
        *,
        everywhere: bool = False,
        merges: bool = False,
    ) -> None:
        """Lock rows that a statement writes, behind updates that merge unless it does.

        Without asking the server if none has them here, unless ``everywhere``.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        if self.server is None:
            self.lock(owner, keys, sequence, patience)
            return
        own = set(self.of(owner))
        # Others that write a row alone wait for its lock in the server.
        alone = [own_key(key) for key in keys if key not in own]
        self.lock(owner, in_order(alone), sequence, patience)
        if not merges:
            self._await_merged(owner, alone, patience)
        met = [
            key
            for key in keys
            if (key[0] >= 0 and (everywhere or key in own or self._others(owner, key)))
            or (everywhere and is_shown(key))
        ]
        if met:
            self.lock(owner, met, sequence, patience, everywhere=everywhere)

    def lock_read(
        self,
        owner: int,
        row: LockKey,
        sequence: int,
        patience: float | None,
        *,
        everywhere: bool,
    ) -> None:
        """Lock a row that is read by its key, shared; in the server only if ``everywhere``.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        keys = [row if self.server is None or everywhere else own_key(row)]
        self.lock(owner, keys, sequence, patience, shared=True)
        self._await_merged(owner, keys, patience)
        self.settle(owner, keys, patience)

    def lock_merged(
        self,
        owner: int,
        keys: Iterable[LockKey],
        sequence: int,
        patience: float | None,
        *,
        everywhere: bool = False,
    ) -> None:
        """Lock rows that updates change that merge: from all but others of their kind.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        own = set(self.of(owner))
        new = [key for key in keys if own.isdisjoint((key, own_key(key)))]
        new = [key for key in new if merging_key(key) not in own]
        if not new:
            return
        self.lock_written(owner, new, sequence, patience, merges=True)
        merging = [merging_key(key) for key in new]
        self.lock(
            owner, merging, sequence, patience, shared=True, everywhere=everywhere
        )
        rows = {*new, *map(own_key, new)}
        self.release_keys(owner, [k for k in list(self.of(owner)) if k in rows])

    def _await_merged(
        self, owner: int, keys: Iterable[LockKey], patience: float | None
    ) -> None:
        """Wait for updates that merge of rows of which the transaction lets none begin."""
        for key in map(merging_key, keys):
            if key not in self.of(owner) and self._others(owner, key):
                self.lock(owner, [key], 0, patience)
                self.release_keys(owner, [key])

    def to_lock(
        self, owner: int, keys: Iterable[LockKey], *, everywhere: bool = False
    ) -> list[LockKey]:
        """What a transaction locks of rows: that it has seen those that it has merged.

        These themselves, too, for other processes; unless one waits here, which has them in
        memory (:meth:`lock_beyond`).
        """
        own = self.of(owner)
        found = []
        for key in keys:
            is_merged = merging_key(key) in own
            if is_merged:
                found.append(seen_key(key))
            if not is_merged or (everywhere and not self.is_taken(owner, key)):
                found.append(key)
        return found

    def lock_beyond(
        self, owner: int, keys: Iterable[LockKey], patience: float | None
    ) -> None:
        """Lock rows that it has merged in the server alone, where one waits here for them.

        That one waits for their merging keys first, and has nothing that this one waits for.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        own = self.of(owner)
        asked = [k for k in keys if merging_key(k) in own and self.is_taken(owner, k)]
        if self.server is not None and asked:
            with self._waiting(owner) as waits:
                self.server.lock(
                    owner, in_order(asked), patience, shared=False, waits=waits
                )

    def begun(self, owner: int) -> int | None:
        """The last timestamp taken when the server had the owner's last lock, if it is known."""
        return None if self.server is None else self.server.begun(owner)

    def is_taken(self, owner: int, key: LockKey) -> bool:
        """Whether another transaction of this process has locked a row."""
        return bool(self._others(owner, key) or self._others(owner, own_key(key)))

    def _written(self, owner: int, keys: Sequence[LockKey]) -> list[LockKey]:
        """The locks of others that rows have by :meth:`lock_written` alone."""
        if self.server is None or not self._held:
            return []
        return [
            (~table, values)
            for table, values in keys
            if table >= 0
            and (
                self._others(owner, (~table, values))
                or self._others(owner, merging_key((table, values)))
            )
            and (table, values) not in self._held
        ]

    def settle(
        self, owner: int, keys: Collection[LockKey], patience: float | None
    ) -> bool:
        """Wait until no commit of these keys is under way that began without the locks.

        And no transaction has changed them by an update that merges, unless this one has,
        too. With no patience at all it only looks. Whether there is none.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        latest = None if patience is None else time.monotonic() + patience
        if self.server is None:
            try:
                self._await_merged(owner, keys, patience)
            except errors.OperationalError:
                if patience == 0:
                    return False
                raise
        while self._is_committing(owner, keys):
            if patience == 0:
                return False
            with self._changed:
                self._pause(latest)
            self.release_abandoned()
        return True

    def _is_committing(self, owner: int, keys: Iterable[LockKey]) -> bool:
        # A copy made in one step: other threads add to it.
        others = [
            each for txid, each in list(self._committing.items()) if txid != owner
        ]
        return any(may_write(other, key) for other in others for key in keys)

    # Committing

    def enter(
        self, transaction: Committing, patience: float | None, *, whole: bool = False
    ) -> None:
        """Begin a commit: wait for the owners of the keys that it writes.

        The owners of other processes are waited for when it meets them, but for those of
        rows that are staged, and of tables of which it has staged rows without known keys;
        or, if it is ``whole``, of all its tables.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        owner = transaction.txid
        if self.server is not None:
            self.server.keep_reserved(owner)
            staged = [
                number
                for number, writes in transaction.writes.items()
                if whole or (writes.is_staged and writes.staged_keys is None)
            ]
            rows = [
                (number, key)
                for number, writes in transaction.writes.items()
                if writes.is_staged and not whole
                for key in writes.staged_keys or ()
            ]
            if rows:
                self.lock(owner, in_order(rows), 0, patience)
            if staged:
                with self._waiting(owner) as waits:
                    self.server.lock_tables(owner, staged, patience, waits)
        while True:
            self._committing[owner] = transaction
            if not self._held:
                return
            self.release_abandoned()
            with self._mutex:
                written = self._written_by(transaction)
                own = {
                    key
                    for key in written
                    if self._is_alone(owner, key)
                    # Its owner waits for this transaction.
                    or merging_key(key) in self._of.get(owner, ())
                }
                locked = [
                    (table, values)
                    for table, values in written
                    if (table, values) not in own
                    # Others that write a row alone wait for its lock in the server.
                    and (table >= 0 or (~table, values) not in own)
                ]
            if not locked:
                return
            self.leave(owner)
            first = [key for key in locked if key[0] >= 0]
            self.lock(owner, in_order(first or locked), 0, patience)

    def _is_alone(self, owner: int, key: LockKey) -> bool:
        lock = self._held[key]
        return not lock.shared and owner in lock.owners

    def _written_by(self, transaction: Committing) -> list[LockKey]:
        """The locked keys that a transaction writes."""
        found = transaction.writes.values()
        count = sum(len(writes.rows) for writes in found)
        if count > len(self._held) or any(writes.is_staged for writes in found):
            return [key for key in self._held if may_write(transaction, key)]
        return [
            key
            for number, writes in transaction.writes.items()
            for values in writes.rows
            for row in [(number, values)]
            for key in (row, own_key(row), seen_key(row))
            if key in self._held
        ]

    def lock_met(
        self, owner: int, numbers: Iterable[int], patience: float | None
    ) -> None:
        """Wait for locks of other processes that a commit has met, and have them."""
        assert self.server is not None
        with self._waiting(owner) as waits:
            self.server.lock_numbers(owner, numbers, patience, waits)

    def leave(self, owner: int) -> None:
        """End a commit; idempotent."""
        if self._committing.pop(owner, None) is not None and self._held:
            with self._changed:
                self._changed.notify_all()
