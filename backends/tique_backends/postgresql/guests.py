"""A process whose role may use the database, but does not own schema ``tique``.

Such a *guest* calls functions that run with the owner's rights and check the guest's
own (``guests_sql``, where the argument is); the owner, and members of the owning role,
work with the tables of the schema directly, without checks of tique's.

*Reading (P11).* PostgreSQL checks statements that reach the server: storage tables are
the application's own, and a cache table shows its rows to the roles that may read the
table. Statements that are answered from memory are checked here, by the privileges that
came with the latest snapshot: it is taken when a transaction begins, and with each
beat. Versions in memory are never newer than the rows that the role might read when it
took them in: versions that it may not read come as a number of bulk rows, which are in
the cache table only. If the role is granted the table later, the server fills the cache
table first.

*Writing.* The server checks each commit, by the privileges of that moment. The driver
refuses it earlier, and tells INSERT from UPDATE. Every table that is written has to be
readable too, because the process looks at its keys. Staging tables are the guest's own,
and no function with more rights looks at them: a commit hands their rows over.

*Moving versions.* The server does it, from the log and the cache table, up to what its
own sts and λ allow. So any guest may fold any table: it does not decide which rows are
written there. Only recovery is the owner's, and pruning of histories: any process of the owner that
checkpoints does it, also if guests do all the folding. Until one comes images take space, and nothing
else: a point beyond the retention is refused whether its images are there or not.

*If the process dies* the same holds as for any other: each function is one engine
transaction.
A fence takes two, as the owner's does.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.engine import FORMAT_VERSION
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import cache_name, quote
from tique_backends.postgresql.engine import PostgreSQLEngine
from tique_backends.postgresql.log import encode_content
from tique_backends.postgresql.names import stage_name
from tique_backends.postgresql.sequencer import (
    NOW,
    PostgreSQLSequencer,
    rows_of,
    unless_held_up,
)
from tique_backends.postgresql.sessions.session import PostgreSQLSession
from tique_backends.servers.server_forms import newest_staged
from tique_backends.sharing import FencedError, FoldedMeanwhileError, SharedSnapshot

if TYPE_CHECKING:
    from collections.abc import (
        Collection,
        Container,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.records import CommitRecord, Images, Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_LETTERS = {"SELECT": "r", "INSERT": "a", "UPDATE": "w", "DELETE": "d"}

_FOLLOW = (
    f"SELECT sts, fences, privileges, stamps, txids, entries, {NOW}, tique.clients() "
    "FROM tique.guest_follow($1, $2)"
)

_DENIED = "42501"


def is_guest(presence: Presence) -> bool:
    """Whether this role only uses the schema, which must exist for that.

    Raises
    ------
    EngineError
        PROGRAMMING if it may not even do that, or not make the schema.
    """
    found = presence.ask(
        "SELECT current_user, rolname, pg_has_role(nspowner, 'USAGE'), "
        "has_schema_privilege('tique', 'USAGE') FROM pg_catalog.pg_namespace "
        "JOIN pg_catalog.pg_roles AS r ON r.oid = nspowner WHERE nspname = 'tique'"
    )
    if not found:
        ((role, database, may_create),) = presence.ask(
            "SELECT current_user, current_database(), "
            "has_database_privilege(current_database(), 'CREATE')"
        )
        if not may_create:
            raise _denied(
                f"tique was not installed in database {database}, and {role} may not "
                "make a schema in it: connect once as a role that may, and let that "
                f"GRANT USAGE ON SCHEMA tique TO {quote(role)}"
            )
        return False
    ((role, owner, is_owner, may_use),) = found
    if not may_use:
        raise _denied(
            f"{role} may not use tique in this database: {owner} has to GRANT USAGE ON "
            f"SCHEMA tique TO {quote(role)}"
        )
    return not is_owner


def _denied(what: str) -> EngineError:
    return EngineError(ErrorKind.PROGRAMMING, what, _DENIED)


def _entry(commit: CommitRecord) -> str:
    """Encode a commit; a guest is not believed which columns it has set (P11)."""
    return encode_content(commit._replace(columns_set={}))


class GuestSequencer(PostgreSQLSequencer):
    """The functions that a guest may call."""

    _JOIN, _RENEW = "tique.guest_join", "tique.guest_renew"
    _APPEND = "tique.guest_append"
    _entry = staticmethod(_entry)

    limits_barriers = True
    tells_privileges = True

    def __init__(self, presence: Presence) -> None:
        super().__init__(presence)
        self._said = ""
        self._barrier = 0
        """The timestamp of the bulk commit under way; the committer's lock is held."""
        self._privileges: Mapping[int, str] = {}
        self._hiding = threading.Lock()
        self._hidden: dict[int, int] = {}
        """By table id, the newest cts with rows that could not be read."""

    @property
    def client(self) -> int:
        """The number of this process's client."""
        return self._client

    @override
    def expect_owner(self) -> None:
        raise _denied(
            "only the owner of schema tique, or a member of that role, can create, drop, "
            "adopt, detach or replicate tables; connect as one"
        )

    @override
    def expect_privileges(self, needs: Iterable[tuple[Table, str]]) -> None:
        for table, privilege in needs:
            allowed = self._privileges.get(table.id, "")
            if _LETTERS[privilege] not in allowed:
                raise _denied(
                    f"permission denied for table {table.qualified_name}: it takes "
                    f"{privilege}, and USAGE of its schema"
                )
            until = self._hidden.get(table.id)
            if until is not None:
                self.drain(table, until)
                with self._hiding:
                    if self._hidden.get(table.id) == until:
                        del self._hidden[table.id]

    @contextmanager
    @override
    def recovering(self) -> Iterator[bool]:
        if not self._is_ready():
            raise EngineError(
                ErrorKind.LOCKED,
                "the server was restarted: a process of the role that owns schema tique "
                "has to connect first, and recover this database",
            )
        yield False

    @override
    def introduce(self, epoch: int) -> None:
        """Do nothing: :meth:`next_epoch` has done it."""

    def next_epoch(self) -> int:
        """Count this opening of the database, and tell the other processes of it."""
        ((epoch,),) = self._presence.ask(
            "SELECT tique.guest_introduce($1, $2, $3)",
            [self._client, self._presence.mark, FORMAT_VERSION],
        )
        return int(epoch)

    @override
    def leave(self) -> None:
        self._ask("SELECT tique.guest_leave($1)", [self._client])

    @override
    def snapshot(self, after: int) -> SharedSnapshot:
        ((sts, fences, privileges, stamps, txids, entries, *rest),) = self._ask(
            _FOLLOW, [self._client, after]
        )
        if privileges != self._said:
            self._privileges = {
                int(entry.rstrip("rawd")): entry for entry in (privileges or "").split()
            }
            self._said = privileges
        found = rows_of(stamps, txids, entries)
        return SharedSnapshot(sts, frozenset(fences), found, *rest)

    @override
    def logged(self, after: int) -> list[Row]:
        return self._ask("SELECT cts, txid, commits FROM tique.guest_log($1)", [after])

    @override
    def read(
        self,
        entries: Sequence[Row],
        tables: Mapping[int, Table],
        known: Container[int] = (),
    ) -> list[CommitRecord]:
        return [
            self._uncovered(commit) for commit in super().read(entries, tables, known)
        ]

    def _uncovered(self, commit: CommitRecord) -> CommitRecord:
        """Note a commit's tables that could not be read: one bulk row for each."""
        if not any(rows < 0 for rows in commit.bulk.values()):
            return commit
        with self._hiding:
            for number, rows in commit.bulk.items():
                if rows < 0:
                    self._hidden[number] = max(commit.cts, self._hidden.get(number, 0))
        return commit._replace(bulk={n: abs(rows) for n, rows in commit.bulk.items()})

    @override
    def claim_versions(self, session: Session, table: Table, until: int) -> int:
        self.drain(table, until, session)
        return until

    def drain(self, table: Table, until: int, session: Session | None = None) -> None:
        """Let the server fill the cache table from the log."""
        sql, parameters = "SELECT tique.guest_drain($1, $2)", [table.id, until]
        if session is None:
            self._ask(sql, parameters)
        else:
            session.execute(sql, parameters)

    @override
    def barrier(self) -> int:
        try:
            self._barrier = self._value(
                "SELECT tique.guest_barrier($1)", [self._client], repeat=False
            )
            return self._barrier
        except FencedError:
            raise
        except EngineError as error:
            # It may have been handed out.
            self.leave()
            raise FencedError(
                ErrorKind.OPERATIONAL,
                f"a commit timestamp may have been handed out: {error}; connect again",
            ) from error

    @override
    def _ending(self) -> str:
        check = f"SELECT tique.guest_in_time({self._client}, {self._barrier})"
        lock, rest = super()._ending().split("; ", 1)
        return "; ".join((lock, check, rest) if self._barrier else (lock, rest))

    @override
    def finish(self, stamps: Sequence[int]) -> int:
        sts = super().finish(stamps)
        self._barrier = 0
        return sts

    @override
    def abort(self, stamps: Sequence[int]) -> None:
        super().abort(stamps)
        self._barrier = 0

    @override
    def tend(self) -> None:
        with unless_held_up():
            ((marks,),) = self._ask("SELECT tique.guest_tend()")
            for mark in marks:
                if mark != self._presence.mark:
                    self._presence.end(mark)
            self._fence()


class GuestSession(PostgreSQLSession):
    """A session whose writes to the schema's tables are calls of functions."""

    def __init__(self, presence: Presence, sequencer: GuestSequencer) -> None:
        super().__init__(presence.connect(), presence)
        self._sequencer = sequencer

    @override
    def append_staged(self, table: Table, cts: int) -> int:
        staged = newest_staged(table, stage_name(table), cts)
        ((rows,),) = self.execute(
            "SELECT tique.guest_append_rows($1, $2, $3, ARRAY(SELECT "
            f"CAST(ROW(_r.*) AS {cache_name(table)}) FROM ({staged}) AS _r))",
            [self._sequencer.client, table.id, cts],
        ).fetch_all()
        return int(rows)

    @override
    def log(self, commits: Sequence[CommitRecord]) -> None:
        for commit in commits:
            self.execute(
                "SELECT tique.guest_log_bulk($1, $2, $3, $4)",
                [
                    self._sequencer.client,
                    commit.cts,
                    commit.txid,
                    _entry(commit),
                ],
            )


class GuestEngine(PostgreSQLEngine):
    """A database that another role owns."""

    shared: GuestSequencer
    writes_storage = False

    @override
    def _client(self) -> GuestSequencer:
        return GuestSequencer(self._presence)

    @override
    def session(self, *, logs_only: bool = False) -> PostgreSQLSession:
        return GuestSession(self._presence, self.shared)

    @override
    def renew_format(self, session: Session) -> None:
        raise EngineError(
            ErrorKind.LOCKED,
            "an older version of tique has written this database: a process of the role "
            "that owns schema tique has to connect first, which upgrades the database",
        )

    @override
    def next_epoch(self, session: Session) -> int:
        return self.shared.next_epoch()

    @override
    def store(
        self,
        session: PostgreSQLSession,
        table: Table,
        rows: Mapping[Row, Row | None],
        until: int,
        new: Collection[Row] = (),
        *,
        since: int | None = None,
        images: Images | None = None,
    ) -> None:
        self.fold(session, table, until, since=since)

    @override
    def fold(
        self,
        session: PostgreSQLSession,
        table: Table,
        until: int,
        *,
        since: int | None = None,
        appended: bool = False,
        columns_set: Collection[int] | None = None,
    ) -> int:
        ((rows,),) = session.execute(
            "SELECT tique.guest_fold($1, $2, $3)", [table.id, until, since]
        ).fetch_all()
        if rows is None:
            raise FoldedMeanwhileError(
                ErrorKind.OPERATIONAL,
                f"another process has folded {table.qualified_name} meanwhile",
            )
        return int(rows)

    @override
    def prune_history(
        self, session: Session, table: Table, until: int, points: Sequence[int]
    ) -> int:
        # A process of the owner's does it.
        return 0

    @override
    def prune_moments(self, session: Session, oldest: int) -> None:
        # As above.
        return

    @override
    def prune_log(self, session: Session, until: int, retention: float) -> None:
        session.execute("SELECT tique.guest_prune($1)", [retention])
