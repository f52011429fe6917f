"""A process's client of the sequencer inside a PostgreSQL server.

The sequencer's functions are called over connections of their own, a few of which are
kept. Its two forms, the extension and plain SQL, have the same functions.

A commit is one statement, ``tique.append``: the timestamp that it takes belongs to
PostgreSQL's transaction and is finished, or given back, with that. So when this process
dies the server settles the commits that it has under way; only the timestamp of a
barrier is the client's own, and in doubt when the client goes.

A fence is durable before the sequencer knows of it (P6): first its row, and the
versions that a bulk write left in the cache tables, unless the log says that it is none
(:mod:`tique_backends.sharing`), then ``tique.fence``, after which sts passes it. The engine transaction that is fenced may be in its COMMIT, though its
client is gone. From before the server looks at the client until that COMMIT is over the
transaction holds a lock on the table of fences, and a process that fences waits for it. A
transaction that asks for the lock later finds that its client is gone. If the fencing
process dies, the next one does it again. A thread that has a lease to renew waits for
no lock long: a timestamp whose fence is held up stays in doubt, and is tried again. It
fences one set of timestamps at a time, of a thousand. A fence that can have no more
effect is swept away and forgotten (``guests_sql/clients.sql``, whose functions the
owner calls too).
"""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from tique_backends.concurrency.pool import Pool
from tique_backends.engine import FORMAT_VERSION
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.postgresql.folding import AT_LEISURE
from tique_backends.postgresql.log import decoded, encode_content
from tique_backends.postgresql.sessions.presence import (
    ALIVE,
    HERE,
    LOCK_OF_MARK,
    LOCKS,
    sessions,
)
from tique_backends.postgresql.sessions.transactions import LOCK_PATIENCE
from tique_backends.servers.aside import SetAside
from tique_backends.servers.leased_locks import LeasedLocks
from tique_backends.servers.logged import records_of
from tique_backends.servers.row_locks import RowsLockedError
from tique_backends.sharing import (
    Anchor,
    Appended,
    AppendingSequencer,
    FencedError,
    GroupRefusedError,
    SharedSnapshot,
    milliseconds,
)

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Container,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.records import CommitRecord, Row
    from tique_backends.servers.leased_locks import Answers, Request
    from tique_backends.servers.row_locks import RowLocks
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

_RECOVERY_PATIENCE = "60s"

_RECOVERS = "SHARE UPDATE EXCLUSIVE"
"""Excludes itself, and no statement that reads or writes the table."""

_HURRY = "set_config('lock_timeout', '100ms', TRUE)"
"""For statements of a thread that has to renew the lease as well."""

_EXPECT_WHOLE = (
    "CASE WHEN CAST({whole} AS BOOLEAN) THEN CAST(coalesce((SELECT 'refused ' || "
    "max(-_s) FROM unnest(stamps) AS _s WHERE _s <= 0), '0') AS INTEGER) END"
)
"""An expression that fails if a commit is refused.

SQL has no other way to fail than by a value that cannot be converted.
"""

_EXPECT_NEXT = (
    "CASE WHEN CAST({next_to} AS BOOLEAN) THEN CAST(coalesce((SELECT 'refused ' || "
    "max(_s) - 1 FROM unnest(stamps) AS _s WHERE _s > 0 "
    "HAVING max(_s) > CAST({sts} AS BIGINT) + count(*)), '0') AS INTEGER) END"
)
"""An expression that fails if another timestamp was handed out since ``sts``."""

_REFUSED = re.compile(r'"refused ([0-9]{1,19})"')
_INVALID_TEXT = "22P02"

_LOCKED = re.compile(r"locked((?: -?[0-9]{1,20})+)\b")
_ROWS_LOCKED = "TQ005"

_HELD_UP = "55P03"
_NO_TABLE = "42P01"

SCHEMA = (
    # Each epoch that a client has, with the columns that all of its rows share. The
    # format is the one that its process knows: none begins in one that it does not.
    "CREATE TABLE tique.clients (client BIGINT NOT NULL, epoch BIGINT PRIMARY KEY, "
    "mark INTEGER NOT NULL, role NAME NOT NULL DEFAULT session_user, "
    f"format INTEGER NOT NULL CHECK (format = {FORMAT_VERSION}))",
    "CREATE INDEX ON tique.clients (client)",
    "CREATE UNLOGGED TABLE tique.barriers (cts BIGINT PRIMARY KEY, "
    "client BIGINT NOT NULL, role NAME NOT NULL)",
    "CREATE UNLOGGED TABLE tique.checkpointer (client BIGINT NOT NULL, "
    "expires TIMESTAMPTZ NOT NULL)",
    # The log is read by a statement, hence with a snapshot, of its own after sts.
    """
    CREATE FUNCTION tique.follow(
      client BIGINT, after BIGINT, OUT sts BIGINT, OUT fences BIGINT[],
      OUT stamps BIGINT[], OUT txids BIGINT[], OUT entries TEXT
    ) LANGUAGE plpgsql AS $$
    BEGIN
      SELECT s.sts, s.fences INTO sts, fences FROM tique.sts_for(client) AS s;
      IF sts > after THEN
        SELECT array_agg(l.cts ORDER BY l.cts), array_agg(l.txid ORDER BY l.cts),
               string_agg(l.commits, chr(31) ORDER BY l.cts)
        INTO stamps, txids, entries FROM tique.log AS l WHERE l.cts > after;
      END IF;
    END $$
    """,
    """
    CREATE FUNCTION tique.append(
      client BIGINT, after BIGINT, keys BYTEA, counts INTEGER[], txids BIGINT[],
      entries TEXT, OUT stamps BIGINT[], OUT sts BIGINT
    ) LANGUAGE plpgsql AS $$
    DECLARE
      entry TEXT[] := string_to_array(entries, chr(31));
      stamp BIGINT;
      start INTEGER := 1;
    BEGIN
      FOR i IN 1 .. cardinality(txids) LOOP
        stamp := tique.certify(
          client, after, substring(keys FROM start FOR 16 * counts[i])
        );
        start := start + 16 * counts[i];
        IF stamp > 0 THEN
          INSERT INTO tique.log VALUES
            (stamp, txids[i], extract(epoch FROM clock_timestamp()) * 1000000, entry[i]);
        END IF;
        stamps := stamps || stamp;
      END LOOP;
      sts := tique.sts();
    END $$
    """,
)
"""The driver's additions to either form of the sequencer."""

NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
_FOLLOW = (
    f"SELECT sts, fences, stamps, txids, entries, {NOW}, tique.clients() "
    "FROM tique.follow($1, $2)"
)

_CLAIM = (
    'WITH _was AS (SELECT id, drained, folded FROM tique."tables" WHERE id = $1 '
    'FOR UPDATE) UPDATE tique."tables" AS _t SET drained = greatest(_was.drained, $2) '
    f"FROM _was WHERE _t.id = _was.id RETURNING _was.drained, _was.folded, {AT_LEISURE}"
)

_SEPARATOR = chr(31)
"""Between entries, which are ASCII without it: an array would escape every quote."""


class PostgreSQLSequencer(AppendingSequencer):
    """The functions of schema ``tique``, called for one client."""

    _JOIN = "tique.join_client"
    _APPEND = "tique.append"
    _entry = staticmethod(encode_content)

    def __init__(self, presence: Presence) -> None:
        super().__init__(Pool(presence.connect_own))
        self._presence = presence

    @contextmanager
    @override
    def recovering(self) -> Iterator[bool]:
        if self._is_ready():
            yield False
            return
        # A session of its own has it: it ends with the process, and ends no other's.
        with closing(self._presence.connect()) as connection:
            connection.ask(
                f"BEGIN; SET LOCAL lock_timeout = '{_RECOVERY_PATIENCE}'; "
                "SET LOCAL idle_in_transaction_session_timeout = 0"
            )
            try:
                connection.ask(f"LOCK TABLE tique.format IN {_RECOVERS} MODE")
            except EngineError as error:
                raise EngineError(
                    ErrorKind.LOCKED,
                    f"another process has been recovering this database for "
                    f"{_RECOVERY_PATIENCE}: {error}",
                ) from error
            yield not self._is_ready()

    def _is_ready(self) -> bool:
        return bool(self._value("SELECT tique.ready()"))

    @override
    def recovered(self, sts: int) -> None:
        # All clients that could still have appended an entry are gone with the server.
        self._ask("DELETE FROM tique.clients")
        self._ask(
            "WITH _void AS (DELETE FROM tique.fences RETURNING cts) "
            "DELETE FROM tique.log WHERE cts IN (SELECT cts FROM _void)"
        )
        self._ask("SELECT tique.recover($1)", [sts])

    @override
    def join(self, lease: float) -> None:
        self._lease = lease
        self._client = self._value(f"SELECT {self._JOIN}($1)", [milliseconds(lease)])

    @override
    def introduce(self, epoch: int) -> None:
        self._ask(
            "INSERT INTO tique.clients VALUES ($1, $2, $3, DEFAULT, $4) "
            "ON CONFLICT DO NOTHING",
            [self._client, epoch, self._presence.mark, FORMAT_VERSION],
        )

    @override
    def renew(self, lease: float) -> None:
        self._ask(f"SELECT {self._RENEW}($1, $2)", [self._client, milliseconds(lease)])

    @override
    def leave(self) -> None:
        # In one statement, or other processes would take this client for a given-up
        # one.
        self._drop(self._client, "TRUE")

    def _drop_other(self, client: int, mark: int) -> None:
        """Let another client go, and forget it when none of its sessions is left.

        A commit that one of them has under way is not aborted; a process that asks for
        its outcome is told that it is active.
        """
        self._drop(client, f"NOT EXISTS ({sessions(mark)})", _HURRY)

    def _drop(self, client: int, condition: str, pace: str = "NULL") -> None:
        forget = f"DELETE FROM tique.clients WHERE client = $1 AND {condition}"
        try:
            self._ask(
                f"WITH _gone AS ({forget}) SELECT {pace}, tique.leave_client($1)",
                [client],
            )
        except FencedError:
            self._ask(forget, [client])

    @override
    def snapshot(self, after: int) -> SharedSnapshot:
        ((sts, fences, stamps, txids, entries, *rest),) = self._ask(
            _FOLLOW, [self._client, after]
        )
        found = rows_of(stamps, txids, entries)
        return SharedSnapshot(sts, frozenset(fences), found, *rest)

    @override
    def hold(self) -> Anchor:
        # A lost reply leaves a snapshot that goes with the client.
        ((txid, sts),) = self._ask(
            "SELECT txid, sts FROM tique.begin_transaction($1)", [self._client]
        )
        return Anchor(txid, sts)

    @override
    def advance(self, anchor: Anchor, sts: int) -> Anchor:
        self._ask(
            "SELECT tique.advance_transaction($1, $2, $3)",
            [self._client, anchor.txid, sts],
        )
        return anchor._replace(sts=sts)

    @override
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
        with self._pool.connected() as connection:
            try:
                ((stamps, covered, *_),) = connection.ask(
                    # The timestamps are taken before anything is looked for.
                    "SELECT stamps, sts, tique.expect_free($7), "
                    f"{_EXPECT_WHOLE.format(whole='$8')}, "
                    f"{_EXPECT_NEXT.format(next_to='$9', sts='$2')} FROM "
                    f"{self._APPEND}($1, $2, $3, $4, $5, $6)",
                    [
                        self._client,
                        sts,
                        b"".join([key for keys in write_sets for key in keys]),
                        _array(map(len, write_sets)),
                        _array(commit.txid for commit in commits),
                        _SEPARATOR.join(map(self._entry, commits)),
                        _array(rows),
                        whole,
                        next_to,
                    ],
                    prepare=True,
                )
            except EngineError as error:
                if connection.is_lost:
                    self._presence.lost(connection)
                found = _locked_rows(error) or _refused_group(error)
                if found is not None:
                    raise found from error
                raise
            except BaseException:
                if connection.is_lost:
                    self._presence.lost(connection)
                raise
        return Appended(stamps, covered)

    @override
    def barrier(self) -> int:
        try:
            return self._value(
                "SELECT tique.next_cts($1)", [self._client], repeat=False
            )
        except EngineError as error:
            self._leave_if_lost(error)
            raise

    @override
    def transact(self, session: Session, body: Callable[[], _Outcome]) -> _Outcome:
        def bounded() -> _Outcome:
            # All processes' commits wait for DDL, which must not wait for a client that
            # reads a result slowly (P6).
            session.change(f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'")
            return body()

        return super().transact(session, bounded)

    @override
    def _ending(self) -> str:
        # The lock is for the case that the client is given up all the same.
        return f"SELECT tique.guest_committing(); {super()._ending()}"

    @override
    def finish(self, stamps: Sequence[int]) -> int:
        return max(self._settle("finish", cts) for cts in stamps)

    @override
    def abort(self, stamps: Sequence[int]) -> None:
        for cts in stamps:
            self._settle("abort", cts)

    def _settle(self, function: str, cts: int) -> int:
        return self._value(f"SELECT tique.{function}($1, $2)", [self._client, cts])

    @override
    def wait(self, cts: int, seconds: float) -> bool:
        return bool(
            self._value('SELECT tique."wait"($1, $2)', [cts, milliseconds(seconds)])
        )

    @override
    def tend(self) -> None:
        with unless_held_up():
            self._end_dead()
            self._end_given_up()
            self._fence()

    def _end_dead(self) -> None:
        """Drop the clients of processes that are gone, and end their sessions."""
        dead = self._ask(
            "SELECT DISTINCT client, mark, role FROM tique.clients "
            f"WHERE ({LOCK_OF_MARK}, role) NOT IN ({ALIVE})"
        )
        for client, mark, role in dead:
            if client != self._client:
                self._presence.end(mark, role)
            self._drop_other(client, mark)

    def _end_given_up(self) -> None:
        """End the sessions of processes that live but whose leases ran out."""
        ((known, joined),) = self._ask(
            "SELECT (SELECT count(DISTINCT client) FROM tique.clients), tique.clients()"
        )
        if known <= joined:
            return
        others = self._ask(
            "SELECT DISTINCT client, mark, role FROM tique.clients WHERE client <> $1",
            [self._client],
        )
        for client, mark, role in others:
            try:
                self._ask("SELECT sts FROM tique.sts_for($1)", [client])
            except FencedError:
                self._presence.end(mark, role)
                self._drop_other(client, mark)

    def _fence(self) -> None:
        """Fence one set of timestamps in doubt, or forget fences without effect."""
        # A session that holds the sequencer's mutex must not hold this thread up too.
        ((_, _, is_doubtful, is_fenced),) = self._ask(
            f"SELECT tique.guest_release(), {_HURRY}, tique.doubtful() > 0, "
            "EXISTS (SELECT FROM tique.fences)"
        )
        if is_doubtful:
            self._ask("SELECT tique.guest_fence($1)", [self._disown()])
        elif is_fenced and self._sweep():
            self._ask("SELECT tique.guest_forget()")

    def _disown(self) -> Sequence[int]:
        """Make fences durable; return the timestamps that sts may pass then."""
        ((stamps,),) = self._persist("SELECT tique.guest_disown()")
        return list(stamps)

    def _sweep(self) -> bool:
        """Delete what fenced transactions left; whether there are fences to forget."""
        return self._persist("SELECT tique.guest_sweep()") == [(True,)]

    def _persist(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        while True:
            try:
                return self._ask(sql, parameters)
            except EngineError as error:
                # Another process dropped one of the tables.
                if error.sqlstate != _NO_TABLE:
                    raise

    @override
    def _others(self) -> list[Row]:
        return self._presence.ask(
            "SELECT DISTINCT client, 'pid ' || pid, 'role ' || usename, 'application ' || "
            "quote_literal(coalesce(application_name, '')) FROM tique.clients "
            f"JOIN pg_catalog.pg_locks ON objid = {LOCK_OF_MARK} JOIN "
            "pg_catalog.pg_stat_activity USING (pid) WHERE usename = role AND granted "
            f"AND {HERE} AND classid = {LOCKS} AND client <> $1 ORDER BY client LIMIT 5",
            [self._client],
        )

    @override
    def logged(self, after: int) -> list[Row]:
        return self._ask(
            "SELECT cts, txid, commits FROM tique.log WHERE cts > $1 ORDER BY cts",
            [after],
        )

    @override
    def read(
        self,
        entries: Sequence[Row],
        tables: Mapping[int, Table],
        known: Container[int] = (),
    ) -> list[CommitRecord]:
        rows = [row for row in entries if row[0] not in known]
        return records_of(tables, decoded(rows, self.aside), self.aside)

    @override
    def set_aside(self) -> list[SetAside]:
        written = self._ask("SELECT cts, id, reason FROM tique.aside ORDER BY cts, id")
        found = {
            (cts, number or None): SetAside(cts, number or None, reason)
            for cts, number, reason in written
        }
        for part in self.aside.all():
            found.setdefault((part.cts, part.table_id), part)
        return sorted(found.values(), key=lambda part: (part.cts, part.table_id or 0))

    @override
    def claim_versions(self, session: Session, table: Table, until: int) -> int:
        found = session.execute(_CLAIM, [table.id, until]).fetch_all()
        if not found:
            raise EngineError(
                ErrorKind.PROGRAMMING,
                f"table {table.qualified_name} was dropped meanwhile",
                "42P01",
            )
        ((drained, folded, _),) = found
        return max(int(drained), int(folded))

    @override
    def may_checkpoint(self, seconds: float) -> bool:
        return bool(
            self._value(
                "SELECT tique.guest_checkpoint($1, $2)::int",
                [self._client, milliseconds(seconds)],
            )
        )

    @override
    def end_checkpoint(self) -> None:
        self._value("SELECT tique.guest_checkpoint($1, 0)::int", [self._client])

    @override
    def row_locks(self) -> RowLocks:
        return LeasedLocks(self._call_for_locks)

    def _call_for_locks(self, requests: Sequence[Request]) -> Answers:
        calls = []
        values: list[int | str] = [self._client]
        for function, arguments in requests:
            first = len(values) + 1
            values += [a if isinstance(a, int) else _array(a) for a in arguments]
            places = [1, *range(first, len(values) + 1)]
            calls.append(f'tique."{function}"({", ".join(f"${n}" for n in places)})')
        # The timestamps that are taken are looked for when the locks are there.
        ((*answers, begun),) = self._ask(
            f"SELECT {', '.join(calls)}, tique.cts()", values
        )
        return [int(answer or 0) for answer in answers], int(begun)

    @override
    def _ask(
        self, sql: str, parameters: Sequence[Any] = (), *, repeat: bool = True
    ) -> list[Row]:
        return self._pool.ask(
            lambda connection: connection.ask(sql, parameters, prepare=True),
            repeat=repeat,
        )

    def _value(
        self, sql: str, parameters: Sequence[Any] = (), *, repeat: bool = True
    ) -> int:
        ((value,),) = self._ask(sql, parameters, repeat=repeat)
        return int(value)


def rows_of(
    stamps: Sequence[int] | None, txids: Sequence[int], entries: str
) -> list[Row]:
    """Split the log's rows ``(cts, txid, content)``, which came in one row."""
    if not stamps:
        return []
    return list(zip(stamps, txids, entries.split(_SEPARATOR), strict=True))


@contextmanager
def unless_held_up() -> Iterator[None]:
    """Leave the rest for the next time, if another engine transaction is in the way."""
    try:
        yield
    except EngineError as error:
        if error.sqlstate != _HELD_UP:
            raise


def _array(numbers: Iterable[int]) -> str:
    """An array's text: to look for the type of each element costs psycopg much more."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _locked_rows(error: EngineError) -> RowsLockedError | None:
    """The error for numbers that are locked."""
    found = _LOCKED.search(str(error)) if error.sqlstate == _ROWS_LOCKED else None
    return (
        None
        if found is None
        else RowsLockedError(frozenset(map(int, found[1].split())))
    )


def _refused_group(error: EngineError) -> GroupRefusedError | None:
    """The error for ``_EXPECT_WHOLE``."""
    found = _REFUSED.search(str(error)) if error.sqlstate == _INVALID_TEXT else None
    return None if found is None else GroupRefusedError(int(found[1]))
