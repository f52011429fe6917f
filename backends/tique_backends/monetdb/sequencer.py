"""A process's client of the sequencer inside a MonetDB server.

The sequencer's functions are called over connections of their own, a few of which are
kept. A call whose reply got lost is repeated where that does no harm. Where it might
have handed out a timestamp, the client leaves: the timestamp is in doubt then, and
a process that waits for it fences it.

A fence is durable before the sequencer knows of it (P6): first its row, and the
versions that a bulk write left in the cache tables, unless the log says that it is none
(:mod:`tique_backends.sharing`), then ``tique.fence``, after which sts passes it. A log entry that a stopped process appends later is not removed; no
process reads it.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from tique_backends.concurrency.pool import Pool
from tique_backends.concurrency.retrying import persist
from tique_backends.errors import (
    ConflictError,
    EngineError,
    ErrorKind,
)
from tique_backends.monetdb.log import decode_commits, drop_fenced, logged_commits
from tique_backends.monetdb.sessions.owner import OWN_SERIAL
from tique_backends.monetdb.sessions.reply import read_reply
from tique_backends.monetdb.sessions.session import MonetDBSession
from tique_backends.names import cache_label, quote
from tique_backends.servers.leased_locks import DEADLOCK, GONE, INTERRUPTED, LeasedLocks
from tique_backends.servers.row_locks import RowsLockedError
from tique_backends.sharing import (
    Anchor,
    FencedError,
    SharedSnapshot,
    SteppedSequencer,
    milliseconds,
)
from tique_udfs.monetdb import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from tique_backends.monetdb.sessions.connection import Connection
    from tique_backends.monetdb.sessions.owner import Ownership
    from tique_backends.records import CommitRecord, Row
    from tique_backends.servers.row_locks import RowLocks
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

_SCHEMA = (
    "CREATE TABLE tique.clients (client BIGINT NOT NULL, token INTEGER NOT NULL, "
    "epoch BIGINT NOT NULL)",
    "CREATE TABLE tique.checkpointer (holder BIGINT NOT NULL, expires BIGINT NOT NULL)",
    "INSERT INTO tique.checkpointer VALUES (0, 0)",
)

_PROBE = 'CREATE FUNCTION tique_probe() RETURNS BIGINT EXTERNAL NAME tique."{function}"'
_NEWEST, _OLDEST = "locks", "sts"
_NOT_BOUND = "not bound"

_RECOVERY_PATIENCE = 60.0

_NOW = "epoch_ms(now())"

_NUMBER = "CAST(? AS BIGINT)"
"""An argument: MonetDB looks for a function that takes a larger type, without CAST."""

_WORDS = {"deadlock": DEADLOCK, "interrupted": INTERRUPTED, "gone": GONE}


class MonetDBSequencer(SteppedSequencer):
    """The functions of schema ``tique``, called for one client."""

    def __init__(self, ownership: Ownership) -> None:
        super().__init__(Pool(self._connection))
        self._ownership = ownership

    @staticmethod
    def is_loaded(ownership: Ownership) -> bool:
        """Whether the server has tique's module.

        Raises
        ------
        EngineError
            It has that of an earlier release.
        """
        if _is_bound(ownership, _NEWEST):
            return True
        if _is_bound(ownership, _OLDEST):
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                "the server has the module of an earlier release of tique: build it "
                "anew (tique udf build monetdb), and start the server with that",
            )
        return False

    def schema(self) -> list[str]:
        """Return the statements that create sharing's objects in schema ``tique``."""
        return [*_SCHEMA, *(function.definition for function in FUNCTIONS)]

    @contextmanager
    @override
    def recovering(self) -> Iterator[bool]:
        self._define()
        if not self._is_unrecovered():
            yield False
            return
        self._ownership.claim(_RECOVERY_PATIENCE)
        try:
            yield self._is_unrecovered()
        finally:
            self._ownership.give_up()

    def _define(self) -> None:
        """Create what a database lacks that was made without the module, or before."""
        if not self._missing():
            return

        def create() -> None:
            for statement in self._missing():
                session.execute(statement)

        connection = self._ownership.connect()
        with closing(MonetDBSession(connection, self._ownership)) as session:
            try:
                session.transact(create)
            except EngineError:
                # Another process may have been faster.
                if self._missing():
                    raise

    def _missing(self) -> list[str]:
        """The statements of :meth:`schema` that have not been run."""
        there = {
            name
            for (name,) in self._ownership.ask(
                "SELECT _f.name FROM sys.functions AS _f JOIN sys.schemas AS _s "
                "ON _s.id = _f.schema_id WHERE _s.name = R'tique'"
            )
        }
        missing = [f.definition for f in FUNCTIONS if f.name not in there]
        return missing if there else [*_SCHEMA, *missing]

    def _is_unrecovered(self) -> bool:
        try:
            self._ask("SELECT tique.sts()")
        except FencedError:
            return True
        return False

    @override
    def recovered(self, sts: int) -> None:
        # All clients that could still have appended an entry are gone with the server.
        self._change("DELETE FROM tique.clients")
        with closing(MonetDBSession(self._ownership.connect(), self._ownership)) as s:
            s.transact(lambda: drop_fenced(s))
        self._ask(f"SELECT tique.recover({sts}, 0)")

    @override
    def join(self, lease: float) -> None:
        self._lease = lease
        self._client = self._number(f"SELECT tique.join_client({milliseconds(lease)})")

    @override
    def introduce(self, epoch: int) -> None:
        self._change(
            "INSERT INTO tique.clients VALUES "
            f"({self._client}, {self._ownership.token}, {epoch})"
        )

    @override
    def renew(self, lease: float) -> None:
        self._ask(f"SELECT tique.renew_client({self._client}, {milliseconds(lease)})")

    @override
    def leave(self) -> None:
        with suppress(FencedError):
            self._ask(f"SELECT tique.leave_client({self._client})")
        with suppress(ConflictError):
            self._ask(f"DELETE FROM tique.clients WHERE client = {self._client}")

    @override
    def snapshot(self, after: int) -> SharedSnapshot:
        found = self._call(
            f"SELECT tique.sts_for({_NUMBER}), tique.clients()", [str(self._client)]
        )
        sts, *fences = map(int, found[0].split())
        return SharedSnapshot(sts, frozenset(fences), clients=found[1])

    @override
    def hold(self) -> Anchor:
        # A lost reply leaves a snapshot that goes with the client.
        ((found,),) = self._ask(f"SELECT tique.begin_transaction({self._client})")
        txid, sts, *_ = map(int, found.split())
        return Anchor(txid, sts)

    @override
    def advance(self, anchor: Anchor, sts: int) -> Anchor:
        self._ask(
            f"SELECT tique.advance_transaction({self._client}, {anchor.txid}, {sts})"
        )
        return anchor._replace(sts=sts)

    @override
    def certify(
        self,
        sts: int,
        write_sets: Sequence[Sequence[bytes]],
        lockers: Sequence[int],
    ) -> list[int | RowsLockedError]:
        call = f"tique.certify_as({_NUMBER}, {_NUMBER}, {_NUMBER}, ?)"
        calls = ", ".join([call] * len(write_sets))
        arguments: list[str] = []
        for keys, locker in zip(write_sets, lockers, strict=True):
            text = "".join([key.hex() for key in keys])
            arguments += (str(self._client), str(locker), str(sts), f"R'{text}'")
        return [_outcome(text) for text in self._take(f"SELECT {calls}", arguments)]

    @override
    def barrier(self) -> int:
        call = f"SELECT tique.next_cts({_NUMBER})"
        return int(self._take(call, [str(self._client)])[0])

    def _take(self, statement: str, arguments: Sequence[str]) -> Row:
        """Ask for timestamps, once; a client that lost some can only leave."""
        try:
            return self._call(statement, arguments, repeat=False)
        except EngineError as error:
            self._leave_if_lost(error)
            raise

    @override
    def finish(self, stamps: Sequence[int]) -> int:
        return self._settle("finish", stamps)

    @override
    def abort(self, stamps: Sequence[int]) -> None:
        self._settle("abort", stamps)

    def _settle(self, function: str, stamps: Sequence[int]) -> int:
        call = f"tique.{function}({_NUMBER}, {_NUMBER})"
        calls = ", ".join([call] * len(stamps))
        arguments = [str(n) for cts in stamps for n in (self._client, cts)]
        row = self._call(f"SELECT {calls}", arguments)
        return max(map(int, row))

    @override
    def wait(self, cts: int, seconds: float) -> bool:
        sql = f'SELECT tique."wait"({cts}, {milliseconds(seconds)})'
        return bool(self._number(sql))

    @override
    def tend(self) -> None:
        self._ownership.end_orphans()
        dead = self._ask(
            "SELECT client FROM tique.clients AS _c WHERE NOT EXISTS (SELECT 1 "
            "FROM sys.sessions AS _s WHERE _s.querytimeout = _c.token)"
        )
        for (client,) in dead:
            with suppress(FencedError):
                self._ask(f"SELECT tique.leave_client({client})")
            with suppress(ConflictError):
                self._ask(f"DELETE FROM tique.clients WHERE client = {client}")
        while cts := self._number("SELECT tique.doubtful()"):
            self._fence(cts)

    def _fence(self, cts: int) -> None:
        with closing(MonetDBSession(self._ownership.connect(), self._ownership)) as s:

            def disown() -> None:
                found = s.execute(f"SELECT commits FROM tique.log WHERE cts = {cts}")
                if any(
                    commit.defines
                    for (entry,) in found.fetch_all()
                    for commit in decode_commits(entry)
                ):
                    return
                s.change(f"INSERT INTO tique.fences VALUES ({cts})")
                tables = s.execute('SELECT id FROM tique."tables"')
                for (number,) in tables.fetch_all():
                    cache = f"tique.{quote(cache_label(number))}"
                    s.change(f"DELETE FROM {cache} WHERE _cts = {cts}")

            s.transact(disown)
        try:
            self._ask(f"SELECT tique.fence({cts})")
        except EngineError:
            # Another process may have been faster.
            if self._number("SELECT tique.doubtful()") == cts:
                raise

    @override
    def _others(self) -> list[Row]:
        return self._ask(
            "SELECT DISTINCT client, 'session ' || sessionid, 'user ' || username "
            "FROM tique.clients JOIN sys.sessions ON querytimeout = token "
            f"WHERE sessiontimeout = {OWN_SERIAL} AND client <> {self._client} LIMIT 5"
        )

    @override
    def logged(self, after: int) -> list[Row]:
        return self._ask(f"SELECT commits FROM tique.log WHERE cts > {after}")

    @override
    def read(
        self,
        entries: Sequence[Row],
        tables: Mapping[int, Table],
        known: Container[int] = (),
    ) -> list[CommitRecord]:
        texts = [entry for (entry,) in entries]
        return logged_commits(tables, texts, known, self.aside)

    @override
    def claim_versions(self, session: Session, table: Table, until: int) -> int:
        found = session.execute(
            f'SELECT drained, folded FROM tique."tables" WHERE id = {table.id}'
        ).fetch_all()
        if not found:
            raise EngineError(
                ErrorKind.PROGRAMMING,
                f"table {table.qualified_name} was dropped meanwhile",
            )
        ((drained, folded),) = found
        # Both columns, or a fold under way were no conflict (`claim_fold`).
        session.execute(
            f'UPDATE tique."tables" SET drained = {max(drained, until)}, '
            f"folded = folded WHERE id = {table.id}"
        )
        return max(int(drained), int(folded))

    @override
    def may_checkpoint(self, seconds: float) -> bool:
        # A process that was killed folds no more.
        mine = (
            f"(holder = {self._client} OR expires < {_NOW} OR holder NOT IN ("
            "SELECT _c.client FROM tique.clients AS _c JOIN sys.sessions AS _s "
            "ON _s.querytimeout = _c.token))"
        )
        # Most attempts of most processes are in vain, and an UPDATE is not for nothing.
        if not self._ask(f"SELECT 1 FROM tique.checkpointer WHERE {mine}"):
            holder = self._number("SELECT holder FROM tique.checkpointer")
            if not self._has_lapsed(holder):
                return False
            mine = f"holder = {holder}"
        with self._pool.connected() as connection:
            try:
                return bool(
                    connection.ask(
                        f"UPDATE tique.checkpointer SET holder = {self._client}, "
                        f"expires = {_NOW} + {milliseconds(seconds)} WHERE {mine}"
                    ).count
                )
            except ConflictError:
                return False

    def _has_lapsed(self, client: int) -> bool:
        """Whether a client was stopped for longer than its lease."""
        try:
            self._ask(f"SELECT tique.sts_for({client})")
        except FencedError:
            return True
        return False

    @override
    def end_checkpoint(self) -> None:
        self._change(
            f"UPDATE tique.checkpointer SET expires = 0 WHERE holder = {self._client}"
        )

    def expect_nobody(self, session: Session) -> None:
        """Refuse, in an engine transaction, if any process uses the database.

        Raises
        ------
        EngineError
            IN_USE.
        """
        ((others,),) = session.execute(
            "SELECT count(DISTINCT _c.client) FROM tique.clients AS _c "
            "JOIN sys.sessions AS _s ON _s.querytimeout = _c.token"
        ).fetch_all()
        if others:
            raise EngineError(
                ErrorKind.IN_USE,
                f"processes with an older version of tique use this database ({others}): "
                "end them, then it is upgraded to this version's format",
            )

    @override
    def row_locks(self) -> RowLocks:
        return LeasedLocks(
            lambda requests: ([self._call_for_locks(*each) for each in requests], None)
        )

    def _call_for_locks(
        self, function: str, arguments: Sequence[int | Sequence[int]]
    ) -> int:
        places = [_NUMBER] + [
            _NUMBER if isinstance(argument, int) else "?" for argument in arguments
        ]
        texts = [
            str(int(argument)) if isinstance(argument, int) else _digits(argument)
            for argument in (self._client, *arguments)
        ]
        (answer,) = self._call(f'SELECT tique."{function}"({", ".join(places)})', texts)
        return _WORDS.get(answer) or int(answer)

    def _connection(self) -> Connection:
        connection = self._ownership.connect(reads_whole=True)
        # Small statements: half of their time is the optimizer's.
        connection.ask("SET optimizer = 'minimal_fast'")
        return connection

    @override
    def _ask(self, sql: str) -> list[Row]:
        return self._pool.ask(lambda c: read_reply(c.ask_text(sql)).rows)

    def _change(self, sql: str) -> None:
        """Change a row of tique's own; a conflict with DDL is none here."""
        persist(lambda: self._ask(sql))

    def _call(
        self, statement: str, arguments: Sequence[str], *, repeat: bool = True
    ) -> Row:
        """Call the sequencer by a prepared statement; ``repeat`` if that does no harm."""
        (row,) = self._pool.ask(
            lambda c: read_reply(c.ask_prepared(statement, arguments)).rows,
            repeat=repeat,
        )
        return row

    def _number(self, sql: str) -> int:
        return int(self._ask(sql)[0][0])


def _digits(numbers: Sequence[int]) -> str:
    """Numbers as the sequencer reads them: 16 hexadecimal digits each."""
    digits = "".join(number.to_bytes(8, "big", signed=True).hex() for number in numbers)
    return f"R'{digits}'"


def _is_bound(ownership: Ownership, function: str) -> bool:
    """Whether the server has a function of the module."""
    # The list of all functions of all modules takes MonetDB 20 ms; a function that
    # is not bound it refuses at once. The transaction ends with its connection.
    with closing(ownership.connect()) as connection:
        connection.ask("START TRANSACTION")
        try:
            connection.ask(_PROBE.format(function=function))
        except EngineError as error:
            if _NOT_BOUND in str(error):
                return False
        else:
            return True
    # The role may not create functions here, or another process asks the same.
    return bool(
        ownership.ask(
            "SELECT 1 FROM sys.malfunctions() AS _m "
            f"""WHERE _m."module" = R'tique' AND _m."function" = R'{function}'"""
        )
    )


def _outcome(text: str) -> int | RowsLockedError:
    """A timestamp, or the numbers of the locks that were met."""
    first, *numbers = text.split()
    if first == "locked":
        return RowsLockedError(frozenset(map(int, numbers)))
    return int(first)
