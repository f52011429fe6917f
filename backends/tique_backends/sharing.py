"""The interface between the driver and a database that several processes share.

One sequencer in the server orders all processes' commits. Each process is a *client* of
it with a lease: when that runs out, the client's snapshots no longer hold λ back, and
its unfinished timestamps are in doubt until another client fences them.

*Fences (P5, P6).* A commit is there if the log has its entry, and no fence its timestamp; the table of
fences says so to every reader that asks the engine. The client that fences looks at the log when no COMMIT for the
timestamp can come any more. An entry that *defines* belongs to an engine transaction that has changed the engine's
own catalog, which no reader can overlook: so there is no fence then, and no version is dropped. The sequencer
finishes both kinds alike: of its list in memory :meth:`SharedSnapshot.counts` makes that of the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tique_backends.catalog.managed import MANAGED
from tique_backends.catalog.slots import FURTHEST
from tique_backends.errors import EngineError, ErrorKind, may_have_run
from tique_backends.servers.aside import Aside, SetAside
from tique_backends.session import COMMIT
from tique_udfs import KEYS_PER_CALL

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Container,
        Iterable,
        Mapping,
        Sequence,
    )
    from contextlib import AbstractContextManager

    from tique_backends.concurrency.pool import Pool
    from tique_backends.records import CommitRecord, Row
    from tique_backends.servers.row_locks import RowLocks, RowsLockedError
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

MOST_KEYS = KEYS_PER_CALL
"""Keys that a write set may have; a larger one is written in bulk, under a barrier."""


class FencedError(EngineError):
    """The process was given up for dead, or the server has been restarted.

    None of its timestamps can be finished any more: its uncommitted transactions are
    aborted, and its knowledge of the database is no longer true.
    """


class FoldedMeanwhileError(EngineError):
    """Another process has folded a table that this one was about to fold."""


class OverdueError(EngineError):
    """A bulk commit that was not finished in time: other clients go on without it.

    Its timestamp is in doubt, and will be fenced. The client is still there.
    """


class UnstoredRowError(EngineError):
    """A fold from memory has changes of a row that storage does not have."""


LONGEST_COMMIT = 10.0
"""Seconds that a server may take for COMMIT after it was asked for."""


def milliseconds(seconds: float) -> int:
    """A time as the sequencer's functions take it."""
    return int(seconds * 1000)


class SharedSnapshot(NamedTuple):
    """A timestamp up to which all are finished, and those below that no client did.

    The latter are the *fences*. ``entries`` are the result of :meth:`SharedSequencer.logged`, if the log was read in
    the same request, and ``clients`` the number of processes, this one too.
    """

    sts: int
    fences: frozenset[int]
    entries: Sequence[Row] | None = None
    moment: int = 0
    clients: int = 1

    def counts(self, commit: CommitRecord) -> bool:
        """Whether a commit is there: it is not fenced, or there is no fence for it."""
        return commit.defines or commit.cts not in self.fences


class Anchor(NamedTuple):
    """A snapshot that is registered in the server: λ is not later than its sts."""

    txid: int
    sts: int


class Appended(NamedTuple):
    """The outcome of a group of commits, and sts at that moment.

    ``stamps`` are as :meth:`SteppedSequencer.certify` gives them.
    """

    stamps: Sequence[int]
    sts: int


class Position(NamedTuple):
    """The state of the shared sequencer, for operators."""

    sts: int
    cts: int
    stable: int
    clients: int


class GroupRefusedError(EngineError):
    """A group of commits is refused as a whole, because one of them is.

    Attributes
    ----------
    winner : int
        The last timestamp that is in the way of one.
    """

    def __init__(self, winner: int) -> None:
        super().__init__(
            ErrorKind.OPERATIONAL, f"a commit of the group is behind that at {winner}"
        )
        self.winner = winner


class SharedSequencer(ABC):
    """A process's client of the sequencer that a database's processes share.

    All methods may be called from any thread. Those that need the client raise
    FencedError once its lease has run out, for ever.
    """

    form: str | None = None
    """Which of the engine's sequencers it is, where there are several."""

    tells_privileges = False
    """Whether a snapshot says what this process's role may do (:meth:`expect_privileges`)."""

    appends_whole = False
    """Whether a group of commits can be appended as a whole or not at all."""

    limits_barriers = False
    """Whether a barrier that is not finished soon is taken away from this client."""

    _RENEW = "tique.renew_client"
    """The function that makes the lease last."""

    def __init__(self, pool: Pool[Any]) -> None:
        self.aside = Aside()
        """The log's versions that this process could not apply."""
        self._pool = pool
        self._client = 0
        self._lease = 0.0

    @abstractmethod
    def _ask(self, sql: str) -> list[Row]:
        """Ask; once more over a new connection if the first one is lost."""

    def set_aside(self) -> list[SetAside]:
        """Return the log's versions set aside, by this process or as it is recorded."""
        return self.aside.all()

    def expect_owner(self) -> None:  # noqa: B027
        """Refuse DDL that this process's role may not run.

        Raises
        ------
        EngineError
            PROGRAMMING, with SQLSTATE 42501.
        """

    def expect_privileges(  # noqa: B027
        self, needs: Iterable[tuple[Table, str]]
    ) -> None:
        """Refuse a statement that this process's role may not run.

        ``needs`` are tables and the privilege needed on each: SELECT, INSERT, UPDATE,
        DELETE. Statements that the engine checks by itself need not be refused here:
        rows that are in memory, and those that are buffered, never meet it.

        Raises
        ------
        EngineError
            PROGRAMMING, with SQLSTATE 42501.
        """

    @abstractmethod
    def recovering(self) -> AbstractContextManager[bool]:
        """Keep other processes from recovering; yield whether recovery is needed.

        Raises
        ------
        EngineError
            LOCKED if another process has been recovering for too long.
        """

    @abstractmethod
    def recovered(self, sts: int) -> None:
        """Begin service behind ``sts``, the greatest timestamp ever handed out.

        The log may be kept, but for what is fenced; then the fences go (P1).
        """

    @abstractmethod
    def join(self, lease: float) -> None:
        """Become a client whose lease lasts so many seconds."""

    @abstractmethod
    def introduce(self, epoch: int) -> None:
        """Tell the other processes the epoch of this process's transaction ids."""

    def epochs(self) -> tuple[set[int], int]:
        """The epochs of the processes that live, this one's too, and the last one."""
        self.tend()
        alive = {epoch for (epoch,) in self._ask("SELECT epoch FROM tique.clients")}
        ((last,),) = self._ask("SELECT epoch FROM tique.format")
        return alive, int(last)

    @abstractmethod
    def renew(self, lease: float) -> None:
        """Let the lease last so many seconds from now on."""

    @abstractmethod
    def leave(self) -> None:
        """Stop being a client; unfinished timestamps become doubtful."""

    @abstractmethod
    def snapshot(self, after: int) -> SharedSnapshot:
        """Return the snapshot of a transaction that begins now.

        The caller knows the commits up to ``after``.
        """

    @abstractmethod
    def hold(self) -> Anchor:
        """Register a snapshot of now."""

    @abstractmethod
    def advance(self, anchor: Anchor, sts: int) -> Anchor:
        """Move a registered snapshot forward."""

    @abstractmethod
    def barrier(self) -> int:
        """Hand out the timestamp of a commit with any writes, or with DDL.

        From now on clients must catch up to it before their write sets are certified.
        """

    def _leave_if_lost(self, error: EngineError) -> None:
        """Leave if a request that failed may have taken timestamps: they are in doubt."""
        if may_have_run(error):
            with suppress(EngineError):
                self.leave()
            raise FencedError(
                ErrorKind.OPERATIONAL,
                "the connection was lost while commit timestamps were handed out; "
                "connect again",
            ) from error

    def commit(self, session: Session) -> None:
        """Commit the session's engine transaction if this client is not fenced.

        The server checks that in the same request: a process that is stopped before it
        sends COMMIT does not commit when it goes on.
        """
        session.commit(self._ending())

    def transact(self, session: Session, body: Callable[[], _Outcome]) -> _Outcome:
        """As the session's own method, and committed by :meth:`commit`."""
        return session.transact(body, self._ending())

    def _ending(self) -> str:
        """Return a COMMIT that needs the client; no process fences it meanwhile.

        The lease is made to last, so that the client is not given up.
        """
        longer, usual = (
            f"SELECT {self._RENEW}({self._client}, {milliseconds(lease)})"
            for lease in (max(self._lease, LONGEST_COMMIT), self._lease)
        )
        return f"{longer}; {COMMIT}; {usual}"

    @abstractmethod
    def finish(self, stamps: Sequence[int]) -> int:
        """Finish timestamps whose transactions are durable; return sts afterwards.

        Raises
        ------
        OverdueError
            One was taken away: its transaction counts for nothing, durable or not.
        """

    @abstractmethod
    def abort(self, stamps: Sequence[int]) -> None:
        """Finish timestamps that have no commit record and no versions."""

    @abstractmethod
    def wait(self, cts: int, seconds: float) -> bool:
        """Wait until sts covers a timestamp, or one before it is in doubt."""

    @abstractmethod
    def tend(self) -> None:
        """Drop the clients of processes that are gone; fence timestamps in doubt."""

    def others(self) -> str:
        """Name the other processes, for the error of a wait for one of them that is over.

        And what ends it; nothing if this process's role may not see them.
        """
        with suppress(EngineError):
            found = [
                f"client {client} ({', '.join(map(str, session))})"
                for client, *session in self._others()
            ]
            if found:
                return (
                    f"another process, of {'; '.join(found)}: end its transaction, or "
                    "SELECT tique.leave_client(client), by which the others give it up"
                )
        return ""

    @abstractmethod
    def _others(self) -> list[Row]:
        """The other processes: client, and what the engine shows of its session."""

    def position(self) -> Position:
        """Return the sequencer's state: its sts of no later moment than its cts."""
        (row,) = self._ask(
            'SELECT tique.sts(), tique.cts(), tique."lambda"(), tique.clients()'
        )
        return Position(*map(int, row))

    @abstractmethod
    def logged(self, after: int) -> Sequence[Row]:
        """The log's entries with commits later than ``after``, for :meth:`read`.

        Some of the commits may not be finished yet.
        """

    @abstractmethod
    def read(
        self,
        entries: Sequence[Row],
        tables: Mapping[int, Table],
        known: Container[int] = (),
    ) -> list[CommitRecord]:
        """The commits of log entries, in cts order; not those ``known``, by cts.

        Columns that an entry lacks are ``MISSING``.
        """

    def managed(self) -> list[Row]:
        """The managed tables as they are now: schema, name and number of each."""
        return self._ask(MANAGED)

    def folds(self) -> dict[int, int]:
        """Up to which cts each table is folded, by table id."""
        return dict(self._ask('SELECT id, folded FROM tique."tables"'))

    def replicated(self) -> tuple[int | None, int]:
        """Up to where all replicas have the log (None: there are none), and only they need it."""
        ((least, folded),) = self._ask(FURTHEST)
        return None if least is None else int(least), int(folded)

    @abstractmethod
    def claim_versions(self, session: Session, table: Table, until: int) -> int:
        """Claim, in the session's engine transaction, the filling of the cache table.

        Returns the cts up to which it was filled, or folded, before; a concurrent
        transaction that fills or folds the same table conflicts with this one.
        """

    def fill(
        self,
        session: Session,
        table: Table,
        until: int,
        write: Callable[[int], object],
    ) -> None:
        """Fill a cache table up to a cts, in an engine transaction, if it is not.

        ``write`` is given the cts up to which it is filled, or folded.
        """
        session.transact(lambda: write(self.claim_versions(session, table, until)))

    def part(  # noqa: B027
        self, session: Session, cts: int, tables: Collection[Table]
    ) -> None:
        """Commit what a bulk commit has written to cache tables, and begin again.

        Where the log's row must not be committed together with it.
        """

    @abstractmethod
    def may_checkpoint(self, seconds: float) -> bool:
        """Take the checkpointer's lease; False if another process has it."""

    @abstractmethod
    def end_checkpoint(self) -> None:
        """Give the checkpointer's lease back."""

    @abstractmethod
    def row_locks(self) -> RowLocks:
        """Begin to lock rows for a transaction."""

    def expect_alone(self, session: Session) -> None:
        """Refuse, in the session's engine transaction, if there are other processes.

        One that joins meanwhile conflicts with the transaction or learns of it.

        Raises
        ------
        EngineError
            IN_USE.
        """
        self.tend()
        # A process that joins changes the same row before it reads the catalog.
        session.execute("UPDATE tique.format SET epoch = epoch")
        ((clients,),) = self._ask("SELECT tique.clients()")
        if clients > 1:
            raise EngineError(
                ErrorKind.IN_USE,
                f"other processes use this database ({clients - 1}): detaching all of it "
                "needs the database alone; end them first",
            )

    def close(self) -> None:
        """Close the connections that it uses."""
        self._pool.close()


class SteppedSequencer(SharedSequencer):
    """A sequencer with which a commit is three steps: certify, log, finish.

    Between the first and the last step the client owns its timestamp.
    """

    @abstractmethod
    def certify(
        self,
        sts: int,
        write_sets: Sequence[Sequence[bytes]],
        lockers: Sequence[int],
    ) -> list[int | RowsLockedError]:
        """Certify write sets, each on its own, and hand out commit timestamps.

        Parameters
        ----------
        sts
            Up to here the caller has certified by itself.
        write_sets
            The hashes of each transaction's keys.
        lockers
            The owner of each transaction's row locks (:attr:`RowLocks.locker`).

        Returns
        -------
        list
            For each the commit timestamp; or, negated, that of another transaction
            that has committed a key after ``sts`` or is about to, or the one up to
            which keys are forgotten or not known (:meth:`barrier`). Or the error of one
            whose rows others have locked, which has no timestamp.
        """


class AppendingSequencer(SharedSequencer):
    """A sequencer with which a commit is one step: the server settles timestamps."""

    appends_whole = True

    @abstractmethod
    def append(
        self,
        sts: int,
        write_sets: Sequence[Sequence[bytes]],
        commits: Sequence[CommitRecord],
        rows: Sequence[int] = (),
        *,
        whole: bool = False,
        next_to: bool = False,
    ) -> Appended:
        """Certify write sets, each on its own, and log those without a conflict.

        Parameters
        ----------
        sts, write_sets
            As :meth:`SteppedSequencer.certify` takes them.
        commits
            Each one's record, whose timestamp is not known yet.
        rows
            The numbers of row locks that no other transaction may have.
        whole
            Whether nothing is logged if one is refused.
        next_to
            Whether nothing is logged if anything was committed since ``sts``, or is about to be.

        Returns
        -------
        Appended
            Commits with a timestamp are durable, and finished.

        Raises
        ------
        RowsLockedError
            Rows are locked: nothing was logged.
        GroupRefusedError
            One of a whole is refused, or another commit came before: nothing was logged.
        """
