"""The interface of all sequencers, in C or in Python."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

KEY_BYTES = 16
"""The length of a key as certification takes it."""

NUMBER_BYTES = 8
"""The length of a row lock's number: that many first bytes of a key."""

RING_CAPACITY = 65536
"""Timestamps that may be handed out and not yet covered by sts."""

SNAPSHOT_CAPACITY = 65536
"""Transactions that may be active."""

CLIENT_CAPACITY = 4096
"""Clients whose leases may run."""

FENCE_CAPACITY = 65536
"""Fences that may be there."""

KEY_CAPACITY = 262144
"""Keys that certification remembers."""

SNAPSHOTS_PER_CLIENT = 256
"""Transactions that one client may have active."""

BARRIERS_PER_CLIENT = 16
"""Timestamps that a client may have to finish when it takes a barrier."""

KEYS_PER_CALL = 65536

LOCKER_CAPACITY = 4096
"""Owners of row locks that may be open."""

LOCK_CAPACITY = 65536
"""Row locks that may be held."""

LOCKERS_PER_CLIENT = 256
"""Owners of row locks that one client may have open."""

LOCKS_PER_CLIENT = 16384
"""Row locks that one client may have."""

LOCKS_PER_LOCKER = 1024
"""Row locks that one owner may have."""

SHARED_PREFIX = b"\0tique\0S"
EXCLUSIVE_PREFIX = b"\0tique\0X"
"""The first eight bytes of keys that have modes; the other eight are the key.

A key in shared mode conflicts with the same one in exclusive mode only. A caller that passes a key in
exclusive mode passes it in shared mode too: so it conflicts also in a server's sequencer of
an earlier release, to which they are two keys as any others.
"""


def rivals(key: bytes) -> tuple[bytes, ...]:
    """The keys, as recorded, that a key is in conflict with."""
    if key.startswith(SHARED_PREFIX):
        return (EXCLUSIVE_PREFIX + key[len(SHARED_PREFIX) :],)
    if key.startswith(EXCLUSIVE_PREFIX):
        return (key, SHARED_PREFIX + key[len(EXCLUSIVE_PREFIX) :])
    return (key,)


"""Keys that one write set may have: others wait while it is certified."""

LARGEST_TXID = 2**63 - 2
"""The last transaction id that may be skipped, or recovered behind."""

_LARGEST_STS = 2**62 - 1
_LONGEST_WAIT = 10.0**9


class SequencerError(Exception):
    """The sequencer refused a call; nothing was changed."""


class SequencerClosedError(SequencerError):
    """The sequencer was closed, possibly while the caller was waiting."""


class RingFullError(SequencerError):
    """Too many timestamps are unfinished to hand out another one."""


class FencedError(SequencerError):
    """The client's lease has run out; its commits under way count as aborted."""


class KeyConflictError(SequencerError):
    """Another transaction committed a key first, or perhaps did.

    Attributes
    ----------
    winner : int
        Its timestamp, or the barrier.
    """

    def __init__(self, winner: int) -> None:
        super().__init__(f"{winner}, after the snapshot, is in the way")
        self.winner = winner

    @override
    def __reduce__(self) -> tuple[type[KeyConflictError], tuple[int]]:
        """Pickle with the winner."""
        return type(self), (self.winner,)


class KeysLockedError(SequencerError):
    """Others have locked keys that a transaction would commit.

    Attributes
    ----------
    numbers : collection of int
        The numbers of some of these locks.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__("keys are locked by another transaction")
        self.numbers = numbers

    @override
    def __reduce__(self) -> tuple[type[KeysLockedError], tuple[Collection[int]]]:
        """Pickle with the numbers."""
        return type(self), (self.numbers,)


class NoLockerError(SequencerError):
    """The client has no such owner of row locks."""


class DeadlockError(SequencerError):
    """The wait for a lock would never end."""


class InterruptedWaitError(SequencerError):
    """The wait for a lock was interrupted."""


class ActiveSnapshot(NamedTuple):
    """A transaction that holds λ back.

    Attributes
    ----------
    txid
        The transaction.
    sts
        The timestamp it reads at.
    age
        Seconds since this snapshot was taken, or last refreshed.
    """

    txid: int
    sts: int
    age: float


class Sequencer(ABC):
    """Hands out transaction ids and timestamps, and knows the active transactions.

    Commit timestamps are dense (1, 2, 3, …) and each must be finished, whether
    its transaction committed or aborted: ``sts`` covers the contiguous prefix of
    the finished ones, in whatever order they finish. ``stable()`` (λ) is a lower
    bound of every snapshot that is active or will ever begin, and never
    decreases; ``core/sequencer.h`` has the argument.

    Where several processes share one sequencer, in a server, each is a *client*
    with a lease: see the methods from :meth:`join` on. A process that owns the
    sequencer alone needs none of them.

    All methods may be called from any thread. Only :meth:`end` may be called
    from a finaliser (``__del__``, a weak reference's callback), which can run at
    any moment inside another method of the same thread.

    Every method but :meth:`end` and :meth:`close` raises
    :exc:`SequencerClosedError` after :meth:`close`.

    Its memory is bounded, whatever its callers do. :meth:`begin`,
    :meth:`join`, :meth:`fence` and their like are refused when their table is full, or
    when a client has its share of it. So is the time that one call keeps others waiting.
    """

    kind: ClassVar[str]
    """``"c"`` or ``"python"``."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The name of its database, for messages."""

    @abstractmethod
    def recover(self, *, sts: int, txid: int) -> None:
        """Continue behind a durable state, before service starts.

        Parameters
        ----------
        sts
            The last timestamp that was handed out in an earlier life: both sts
            and cts afterwards, so that the next cts is ``sts + 1``.
        txid
            The last transaction id of an earlier life.

        Raises
        ------
        SequencerError
            A transaction is active or a timestamp unfinished, or a number would
            be handed out for the second time.
        """

    @abstractmethod
    def skip_txids(self, txid: int) -> None:
        """Hand out no transaction id up to this one from now on.

        Transactions may be active. None is handed out twice, whatever is skipped.
        """

    @abstractmethod
    def begin(self) -> tuple[int, int]:
        """Start a transaction: its txid and its sts, atomically registered."""

    @abstractmethod
    def refresh(self, txid: int) -> int:
        """Move an active transaction's snapshot to the current sts; return it.

        READ COMMITTED does this before each statement.

        Raises
        ------
        SequencerError
            The transaction is not active.
        """

    @abstractmethod
    def end(self, txid: int) -> None:
        """Forget a transaction's snapshot; it no longer holds λ back.

        Idempotent, and without effect once the sequencer is closed.

        Raises
        ------
        SequencerError
            The txid was never handed out.
        """

    @abstractmethod
    def next_cts(self) -> int:
        """Hand out the next commit timestamp; it must be finished some day.

        Raises
        ------
        RingFullError
            ``RING_CAPACITY`` timestamps are waiting for an unfinished one.
        """

    @abstractmethod
    def finish(self, cts: int) -> None:
        """Mark a timestamp as committed or aborted; sts may advance.

        Idempotent. Wakes the threads that wait for a timestamp that sts now covers.

        Raises
        ------
        SequencerError
            The cts was never handed out.
        """

    @abstractmethod
    def sts(self) -> int:
        """Return the timestamp up to which all timestamps are finished."""

    @abstractmethod
    def cts(self) -> int:
        """Return the last commit timestamp that was handed out."""

    @abstractmethod
    def stable(self) -> int:
        """Return λ: the smallest sts of any active transaction, else sts itself."""

    @abstractmethod
    def wait(self, cts: int, timeout: float) -> bool:
        """Wait until sts covers a timestamp; other threads run meanwhile.

        A Ctrl-C interrupts it, and so does a doubtful timestamp that stands in
        the way.

        Parameters
        ----------
        cts
            The timestamp; it need not have been handed out yet.
        timeout
            Seconds; 0 or less only looks.

        Returns
        -------
        bool
            False when the time passed first.

        Raises
        ------
        ValueError
            The timeout is infinite or not a number: every wait is bounded.
        """

    @abstractmethod
    def active(self) -> list[ActiveSnapshot]:
        """List the active transactions' snapshots, the oldest first."""

    @abstractmethod
    def join(self, lease: float) -> int:
        """Register a client; its lease lasts that many seconds.

        Returns
        -------
        int
            Its number, which cannot be guessed: it stands for the client.
        """

    @abstractmethod
    def renew(self, client: int, lease: float) -> None:
        """Let a client's lease last that many seconds from now on.

        This and every other method that takes a client raises :exc:`FencedError`
        once its lease has run out, for ever.
        """

    @abstractmethod
    def leave(self, client: int) -> None:
        """Drop a client as if its lease had run out."""

    @abstractmethod
    def sts_for(self, client: int) -> int:
        """As :meth:`sts`, for a client whose snapshots still count."""

    @abstractmethod
    def begin_for(self, client: int) -> tuple[int, int]:
        """As :meth:`begin`; the snapshot goes when the client does."""

    @abstractmethod
    def advance_for(self, client: int, txid: int, sts: int) -> None:
        """Move the snapshot of a transaction of this client forward, to ``sts``.

        Raises
        ------
        SequencerError
            The transaction is not active, or its snapshot newer, or sts not there yet.
        """

    @abstractmethod
    def end_for(self, client: int, txid: int) -> None:
        """As :meth:`end`, for a transaction of this client."""

    @abstractmethod
    def next_cts_for(self, client: int) -> int:
        """As :meth:`next_cts`, and a barrier; only this client can finish it.

        Its write set is unknown: :meth:`certify_for` refuses every write set that was
        not certified up to the barrier.

        If the client goes first, the timestamp is *doubtful*: its commit record and
        versions may be durable or not, and may still arrive. sts stops in front of it.

        Raises
        ------
        SequencerError
            The client has ``BARRIERS_PER_CLIENT`` timestamps to finish.
        """

    @abstractmethod
    def finish_for(self, client: int, cts: int) -> None:
        """As :meth:`finish`, for a timestamp of this client."""

    @abstractmethod
    def certify_for(
        self, client: int, sts: int, keys: Sequence[bytes], locker: int = 0
    ) -> int:
        """Certify a write set and take its commit timestamp: first committer wins.

        Parameters
        ----------
        client
            The client that commits.
        sts
            Up to here the client has certified it by itself, or it was written under
            snapshots that are not older.
        keys
            16 bytes each: a hash of the table and the key in it. At most
            ``KEYS_PER_CALL``; a larger write set takes a barrier (:meth:`next_cts_for`).
        locker
            The owner of the transaction's row locks; 0: it has none.

        Raises
        ------
        KeysLockedError
            Others have locked keys, of which nothing else is known then.
        KeyConflictError
            A key was committed after ``sts``, or is being committed now; or ``sts`` is
            older than the barrier, before which keys are forgotten or not known.
            A client that then waits for the winner, certifies up to there by itself
            and asks again is not refused for the same reason.
        SequencerError
            Not everything up to ``sts`` is finished, or there are too many keys.
        """

    @abstractmethod
    def abort_for(self, client: int, cts: int) -> None:
        """Finish a timestamp whose transaction did not commit; its keys are free."""

    @abstractmethod
    def open_locker(self, client: int) -> int:
        """Open an owner of row locks; its number, for this client's calls.

        Its locks are there until it is closed, or the client is gone. The other calls for
        it raise NoLockerError if this client has no such owner.

        Raises
        ------
        SequencerError
            There is no room for it, or the client has ``LOCKERS_PER_CLIENT``.
        """

    @abstractmethod
    def close_locker(self, client: int, locker: int) -> None:
        """Close an owner of row locks, and give back what it has."""

    @abstractmethod
    def lock(
        self,
        client: int,
        locker: int,
        numbers: Sequence[int],
        *,
        shared: bool,
        timeout: float = 0.0,
    ) -> int:
        """Lock as many of the first numbers as are free; return how many that are.

        With a timeout, in seconds, there is one number, and it is waited for. An owner
        whose wait was over by that keeps its place among those that wait, until its next
        call, if that does anything else than to go on waiting.

        Raises
        ------
        DeadlockError
            The wait would close a circle.
        InterruptedWaitError
            By :meth:`interrupt_locker`, or another call for the owner.
        SequencerError
            There is no room for them, or the owner or the client has its share.
        """

    @abstractmethod
    def unlock(
        self, client: int, locker: int, numbers: Sequence[int], *, shared: bool
    ) -> None:
        """Give numbers back, as far as the owner has them in this mode."""

    @abstractmethod
    def interrupt_locker(self, client: int, locker: int) -> None:
        """Let the owner's wait fail, if it waits."""

    @abstractmethod
    def locks(self) -> int:
        """Count the row locks that are held."""

    @abstractmethod
    def keys(self) -> int:
        """Count the keys that are remembered, each as often as it was recorded."""

    @abstractmethod
    def clients(self) -> int:
        """Count the clients whose leases run."""

    @abstractmethod
    def doubtful(self) -> int:
        """Return the smallest doubtful timestamp; 0 if there is none."""

    @abstractmethod
    def doubts(self, most: int) -> list[int]:
        """List the smallest doubtful timestamps, ``most`` at the most."""

    @abstractmethod
    def fence(self, cts: int) -> None:
        """Finish a doubtful timestamp as aborted; idempotent.

        Before that it must be recorded durably that it counts for nothing.

        Raises
        ------
        SequencerError
            The timestamp is not doubtful.
        """

    @abstractmethod
    def fences(self) -> list[int]:
        """List the fenced timestamps, whose versions no transaction may read."""

    @abstractmethod
    def forget_fences(self, until: int) -> int:
        """Drop all fences up to a timestamp; how many.

        Their versions are gone and no more of them can come.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the sequencer and wake the threads that wait. Idempotent."""

    def _closed(self) -> SequencerClosedError:
        return SequencerClosedError(
            f"the sequencer of {self.name!r} is closed; open the database again"
        )

    def _not_active(self, txid: int) -> SequencerError:
        return SequencerError(
            f"transaction {txid} is not active in the sequencer of {self.name!r}; "
            "begin a new one"
        )

    def _never_handed_out(self, what: str, number: int) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} never handed out {what} {number}"
        )

    def _not_finished(self, sts: int) -> SequencerError:
        return SequencerError(
            f"not everything up to {sts} is finished in the sequencer of {self.name!r}"
        )

    def _fenced(self) -> FencedError:
        return FencedError(
            f"the sequencer of {self.name!r} has given this client up: its lease ran "
            "out, and its commits under way are aborted; connect again"
        )

    def _not_doubtful(self, cts: int) -> SequencerError:
        return SequencerError(
            f"timestamp {cts} is not in doubt in the sequencer of {self.name!r}"
        )

    def _ring_full(self) -> RingFullError:
        return RingFullError(
            f"the sequencer of {self.name!r} has {RING_CAPACITY} timestamps that "
            "wait for an unfinished commit; finish it, or close the database and "
            "open it again"
        )

    def _snapshots_full(self) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} has {SNAPSHOT_CAPACITY} active "
            "transactions and no room for more; end some"
        )

    def _clients_full(self) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} has {CLIENT_CAPACITY} clients and no "
            "room for more; close the database in some processes"
        )

    def _client_too_much(self) -> SequencerError:
        return SequencerError(
            f"one client of the sequencer of {self.name!r} has {SNAPSHOTS_PER_CLIENT} "
            f"active transactions, {BARRIERS_PER_CLIENT} timestamps to finish, or as many "
            "row locks as it may have, and may have no more; end some"
        )

    def _locks_full(self) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} has no room for more row locks; end some "
            "transactions that have locked rows"
        )

    def _no_locker(self, locker: int) -> NoLockerError:
        return NoLockerError(
            f"the sequencer of {self.name!r} has no row locks of number {locker} for "
            "this client"
        )

    def _deadlock(self) -> DeadlockError:
        return DeadlockError(
            f"the wait for a row lock in the sequencer of {self.name!r} would close a "
            "circle; roll back and run the transaction again"
        )

    def _interrupted(self) -> InterruptedWaitError:
        return InterruptedWaitError("the wait for a row lock was interrupted")

    def _too_many_keys(self) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} certifies {KEYS_PER_CALL} keys at a time "
            "and no more; take a barrier"
        )

    def _fences_full(self) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} has {FENCE_CAPACITY} fences and no room "
            "for more; restart the server, whose recovery needs none"
        )

    def _in_use(self) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} cannot recover while transactions are "
            "active or commits under way; recover before the first transaction"
        )

    def _backwards(self, sts: int, txid: int) -> SequencerError:
        return SequencerError(
            f"the sequencer of {self.name!r} cannot go back to sts {sts} and "
            f"txid {txid}: numbers would be handed out for the second time"
        )


def check_start(*, sts: int, txid: int) -> None:
    """Refuse a start state that no sequencer can have reached."""
    for name, number, largest in (
        ("sts", sts, _LARGEST_STS),
        ("txid", txid, LARGEST_TXID),
    ):
        if not 0 <= number <= largest:
            raise ValueError(f"{name} must be from 0 to {largest}, not {number}")


def joined(keys: Sequence[bytes]) -> bytes:
    """The keys one after the other, each of the right length."""
    if any(len(key) != KEY_BYTES for key in keys):
        raise ValueError(f"a key has {KEY_BYTES} bytes")
    return b"".join(keys)


def lock_number(key: bytes) -> int:
    """The number of the lock of a key's row."""
    return int.from_bytes(key[:NUMBER_BYTES], "big", signed=True)


def bounded(timeout: float) -> float:
    """Seconds to wait, as a number that every clock can add to its time."""
    if not math.isfinite(timeout):
        raise ValueError(f"the timeout of a wait must be finite, not {timeout}")
    return min(max(timeout, 0.0), _LONGEST_WAIT)
