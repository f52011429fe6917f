"""The source of a replica: another database's commits in cts order, and its content.

Argument
--------
*Every commit once, in order (P1, P2).* The process has the source open as any that shares it;
its follower publishes each commit of all processes in cts order, with fences and aborts decided
(:mod:`tique.timeline.following`), and :class:`Source` listens. A poll takes the commits up to
an sts of after the poll began. What was committed before is read from the log, which is whole behind
the slot (:mod:`tique_backends.catalog.slots`): :meth:`Source.resume` refuses a position before that,
and one that the source has not reached (it is an older copy). A part of the log that no process
of the source can read, and that each ignores, is not ignored here: LogLostError.

*Rows of bulk commits* are in cache tables only. Nothing is folded beyond the snapshot ``_held``,
which is registered until the rows behind it are read: a poll takes its sts by another one, reads, and then
they change places, if it has read all. So a source whose replicator does not poll folds nothing, and DDL that has to may fail
there. Rows of before :meth:`Source.resume` may be gone: ``folded`` is read after
them, and if it has reached the commit they do not count: LogLostError.

*Tables are known by their numbers*, of which DDL gives new ones. The catalog may be newer than what
was polled, but shows no number before its DDL was. Rows of one that is gone already are left out,
and the table is not among :meth:`Source.tables` at that poll: a replica that compares these at each
epoch that ``defines``, before it publishes it, shows no table without its rows.

*If the process dies*, its client and snapshots go with it, the slot keeps the log, and the next one
resumes. *If the source is restarted*, or gives this process up, calls raise OperationalError:
close this one, open another one, resume. The slot outlasts that; bulk commits are folded then.

One thread at a time uses a Source.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack, closing, contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from tique import errors
from tique._connect import connect
from tique._translation import translating
from tique.database.database import acquire, release
from tique.store.rows import tuple_of
from tique.timeline.recovery import TXIDS_PER_EPOCH
from tique.timeline.shared import SharedTimeline
from tique_backends.catalog import slots
from tique_backends.errors import EngineError
from tique_backends.names import cache_name, column_list, storage_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow

    from tique.connection.connection import Connection
    from tique.database.database import Database
    from tique.store.rows import Key
    from tique.timeline.following import Published
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_FURTHEST = 1_000_000
"""A replica behind by more commits is faster copied anew; they are in memory at once."""
_BATCH_ROWS = 50_000
_GONE = ("42P01", "42703")
"""The SQLSTATEs of a table, and of a column, that is not there."""


class LogLostError(errors.OperationalError):
    """The commits behind the position are not all there: the replica is to be copied anew."""

    sqlstate = "55000"


class Epoch(NamedTuple):
    """All commits up to ``sts`` that were not in an epoch before, in cts order.

    All that were acknowledged before ``asked``, by the monotonic clock, are among these. If it
    ``defines``, :meth:`Source.tables` may have changed.
    """

    sts: int
    asked: float
    commits: Sequence[Published]
    defines: bool


def _tables(database: Database, sts: int) -> Sequence[Table]:
    """The managed tables that a snapshot may use, but for materialized views."""
    return [
        table
        for table in database.catalog.by_id().values()
        if not table.is_materialized
        and (versions := database.catalog.find_versions(table.id)) is not None
        and versions.since <= sts
    ]


class SourceSnapshot:
    """A state of the source, of all commits up to ``sts``, that a transaction holds.

    ``tables`` are the ordinary managed tables in it.
    """

    def __init__(self, connection: Connection[Any], database: Database) -> None:
        self._connection, self._database = connection, database
        self.sts = connection.version
        self.tables = _tables(database, self.sts)

    def rows(self, table: Table) -> Iterator[pyarrow.Table]:
        """All rows of a table, in batches, with its columns in their order.

        SerializationError: it was dropped since the snapshot was taken.
        """
        import pyarrow

        with self._connection.cursor("replica") as cursor:
            query = f"SELECT {column_list(table)} FROM {storage_name(table)}"
            try:
                cursor.execute(query)
            except errors.ProgrammingError as error:
                if error.sqlstate not in _GONE:
                    raise
                raise errors.SerializationError(
                    f"table {table.qualified_name} was dropped, or altered, as it was "
                    "to be copied",
                    table=table.qualified_name,
                ) from error
            for batch in cursor.fetch_record_batch(_BATCH_ROWS):
                yield pyarrow.Table.from_batches([batch])

    def count(self, table: Table) -> int:
        """About how many rows a table has."""
        engine = self._database.engine
        with closing(engine.session()) as session:
            return engine.storage_rows(session, table)


class Source:
    """A database that is replicated, as the replicating process has it open.

    It begins at the source's state of now: :meth:`resume` goes back. The slot ``name``, one per replica,
    is made if need be; the log is kept for it for ``keep`` seconds after the replica's last word.
    OperationalError (SQLSTATE 55006): another process has it; ProgrammingError (42501): the role
    does not own schema ``tique``; NotSupportedError: it is no database that processes share.
    """

    def __init__(self, url: str, name: str, *, keep: float) -> None:
        self._url, self._name, self._keep = url, name, keep
        self._queue: deque[Published] = deque()
        self._position, self._version = 0, -1
        self.last = 0
        """The last timestamp that was polled and not aborted, as :meth:`resume` takes it."""
        with ExitStack() as stack, translating():
            self._database = acquire(url, {})
            stack.callback(release, self._database)
            timeline, self._engine = self._database.timeline, self._database.engine
            if not isinstance(timeline, SharedTimeline) or self._engine.shared is None:
                raise errors.NotSupportedError(
                    "the source of a replica is a database on a PostgreSQL server, or on a "
                    "MonetDB server with tique's module"
                )
            self._timeline, self._shared = timeline, self._engine.shared
            self._shared.expect_owner()
            # λ is not beyond it from here on, nor is the log pruned so far before the slot is there.
            self._held, sts = timeline.begin()
            stack.callback(lambda: timeline.end(self._held))
            self._spare, _ = timeline.begin()
            stack.callback(lambda: timeline.end(self._spare))
            self._session = self._engine.session()
            stack.callback(self._session.close)
            self._holder = self._held // TXIDS_PER_EPOCH
            others, _ = timeline.epochs()
            self._durable = slots.claim(
                self._session, name, sts, self._expires(), self._holder, others
            )
            stack.callback(self._release)
            stack.callback(timeline.follower.forget, self._queue)
            self._follow(sts, sts)
            self._open = stack.pop_all()

    def tables(self) -> Sequence[Table]:
        """The tables that can be replicated, as of what was polled."""
        return _tables(self._database, self._position)

    def resume(self, position: int, last: int | None = None) -> None:
        """Begin behind what the replica has; LogLostError if not all behind that is there.

        ``last`` is :attr:`last` of the source before: timestamps between it and the position were
        aborted, and a server that was restarted may have handed them out again.
        """
        with translating():
            newest = self.newest()
            if not max(self._durable, newest - _FURTHEST) <= position <= newest:
                has = f"the source has the commits from {self._durable} to {newest}"
                raise LogLostError(f"{has}, the replica is at {position}: copied anew")
            # All up to the position is followed, so that it is read from the log.
            self._timeline.catch_up()
            self._follow(position, max(self._durable, last or position))

    def poll(self, until: float = inf) -> Epoch:
        """Ask the source, and return what was committed since the last call.

        With ``until``, the sts of a snapshot of the source, nothing of behind it; that the
        next call returns.
        """
        asked, commits = time.monotonic(), []
        with translating():
            newest = self._timeline.refresh(self._spare)
            self._timeline.check()
            sts, version = int(min(newest, until)), self._database.catalog.version
            while self._queue and self._queue[0].cts <= sts:
                commit = self._queue.popleft()
                self.last = max(self.last, commit.cts)
                if commit.cts > self._position:
                    commit = self._whole(commit)
                    commits += [commit] if commit.writes else []
            self._expect_read()
            defines = version != self._version
            self._position = sts
            if sts < until:
                self._held, self._spare = self._spare, self._held
                self._database.sequencer.refresh(self._spare)
                self._version = version
        return Epoch(sts, asked, commits, defines)

    @contextmanager
    def snapshot(self) -> Iterator[SourceSnapshot]:
        """Hold, in a block, a state of the source that has at least all that was polled."""
        with (
            translating(),
            closing(connect(self._url, isolation_level="SNAPSHOT")) as connection,
        ):
            connection.read_only = True
            connection.execute("BEGIN")
            for table in _tables(self._database, connection.version)[:1]:
                # A transaction that has seen nothing gets a newer snapshot when it is long.
                seeing = f"SELECT 1 FROM {storage_name(table)} LIMIT 1"
                connection.execute(seeing).fetchall()
            # Otherwise it may be one of a database that was opened anew.
            self._timeline.check()
            yield SourceSnapshot(connection, self._database)

    def note_durable(self, position: int) -> None:
        """Note that the replica lives, and needs the log behind this position only."""
        self._durable = max(self._durable, position)
        note = self._session, self._name, self._holder, self._durable
        with translating():
            if not slots.move(*note, self._expires()):
                raise errors.OperationalError(
                    f"the slot {self._name!r} was given up, after {self._keep:g} s without "
                    "a word, or was taken by another process",
                    sqlstate="55000",
                )

    def newest(self) -> int:
        """The source's sts now."""
        with translating():
            return self._timeline.position().sts

    def close(self) -> None:
        """Leave the source; the slot stays. Idempotent."""
        with suppress(errors.Error), translating():
            self._open.close()

    def drop(self) -> None:
        """Drop the slot: no replica resumes by it."""
        with translating():
            slots.release(self._session, self._name, self._holder, drops=True)

    def _expires(self) -> int:
        return self._engine.clock(self._session) + int(self._keep * 1e6)

    def _release(self) -> None:
        with suppress(EngineError):
            slots.release(self._session, self._name, self._holder)

    def _follow(self, position: int, last: int) -> None:
        """Have all commits behind a position in the queue; the next epoch defines."""
        follower = self._timeline.follower
        follower.forget(self._queue)
        self._queue.clear()
        earlier = follower.listen(self._queue, min(last, position))
        if earlier and earlier[0].cts <= position:
            raise _lost(
                earlier[0].cts, None, "its timestamp was an aborted one's before"
            )
        # Folds do not wait for these: their rows are read at once.
        self._queue.extendleft([self._whole(commit) for commit in reversed(earlier)])
        self._position, self._version, self.last = position, -1, last
        self._expect_read()

    def _expect_read(self) -> None:
        for part in self._shared.aside.all():
            if part.cts > self._position:
                raise _lost(part.cts, part.table_id, part.reason)

    def _whole(self, commit: Published) -> Published:
        """A commit with the rows of its bulk writes, too."""
        if not commit.bulk:
            return commit
        bulk = {
            n: self._bulk_rows(n, commit.cts) for n, rows in commit.bulk.items() if rows
        }
        return commit._replace(writes={**commit.writes, **bulk}, bulk={})

    def _bulk_rows(self, number: int, cts: int) -> Sequence[tuple[Key, Row, bool]]:
        """A bulk commit's rows of a table; none if that is gone."""
        table = self._database.catalog.by_id().get(number)
        if table is None:
            return ()
        columns, cache = column_list(table), cache_name(table)
        query = f"SELECT {columns}, _deleted FROM {cache} WHERE _cts = {cts}"
        try:
            found = self._session.rows_to_keep(query, of=table)
        except EngineError:
            if number not in self._shared.folds():
                return ()
            raise
        # Only now: a fold would have moved them before.
        folded = self._shared.folds().get(number, 0)
        if folded >= cts:
            raise _lost(cts, number, "its rows were written in bulk, and are folded")
        key = tuple_of(table.primary_key)
        return [(key(row), row[:-1], row[-1]) for row in found]


def _lost(cts: int, number: int | None, reason: str) -> LogLostError:
    which = "" if number is None else f" to table number {number}"
    return LogLostError(
        f"the log does not tell what commit {cts} wrote{which} ({reason}): the replica is "
        "to be copied anew"
    )
