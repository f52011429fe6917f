"""One process at a time: the database's owner, and how its statements are stopped.

The one thing that a session of the server can show to others is its query time-out
(``sys.sessions.querytimeout``). An engine draws a random token of more than thirty
years in seconds, and every connection of that engine sets it: it disables the
time-out and names the session's engine. ``tique.owner`` holds the owner's token.

Argument
--------
*At most one owner.* An opener marks its own session first, then looks for sessions
with the token that the row has, and only if there is none writes its own token over
it. Two openers at the same moment write the same row: the engine aborts one of them
(11.41: "Update failed due to conflict"), which then finds the other one alive.

*Dead processes do not write.* A session that still executes a dead process's statement
has the token: the database is taken over when the last of them is gone, never before.

*A restart of the server* ends all sessions, so that no owner looks alive; session ids
and login times, which start again, play no part. An engine that survives it must find
its token still in the row whenever it opens a connection, after having marked that
connection: if another process took over meanwhile, it is refused for good. A process
that takes over looks once more after it wrote the row: of a survivor that marks, then
reads, and an opener that writes, then looks, one at least sees the other.

*A connection that is lost* before the reply to a statement leaves a session that may
still run it, and commit. Each connection has a serial number of its own (its session
time-out, likewise of decades). A thread that asks for a statement's outcome waits until
the session with that number is gone (:meth:`Ownership.await_lost`).

*No session sends for ever.* A session that cannot send the rest of a result, as its client
has died or broken off, tries again without end, and shows its token (README.md). A session
time-out that is over ends it. The process that broke off sets that time-out at once, or,
should it be interrupted again or the server not answer, when it next connects, asks for an
outcome or looks for orphans. Those of
a process that has died are orphans: sessions of an engine without that engine's own connection,
which has a serial number that is the same for all engines, is there before the
others, and has whole replies alone, so that it ends with its process. Any other process ends
orphans. Should an engine's own connection have broken while the engine lives, its sessions
end like lost ones: one that waits for its client at once, one that runs a statement
after that, and with it what it did not commit.

*Stopping a statement.* ``sys.stop`` has no effect inside a long operator on 11.41
(measured: 15 s to the regular end); ``sys.setquerytimeout(session, 1)`` from another
connection ends it within 1 to 3 s and leaves the session usable.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import (
    ConflictError,
    ConnectionLostError,
    EngineError,
    ErrorKind,
)
from tique_backends.monetdb.sessions.connection import Connection
from tique_backends.monetdb.values.literals import literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_backends.monetdb.sessions.connection import Address
    from tique_backends.records import Row, Statistics

OWNER_SCHEMA = (
    "CREATE TABLE tique.owner (token INTEGER NOT NULL, process CLOB NOT NULL)",
    "INSERT INTO tique.owner VALUES (0, R'')",
)

_OWNER = "SELECT token, process FROM tique.owner"

_FIRST_TOKEN, _LAST_TOKEN = 1_000_000_000, 2_147_000_000

OWN_SERIAL = _FIRST_TOKEN
"""The serial number of each engine's own connection, below all others."""

_OVER = 1
"""A session time-out that is over, in seconds since the session began: the least there is."""

_REPRIEVE = 0.5
"""Seconds that an engine has to open its own connection again."""

_ORPHANS = (
    "SELECT sessionid, querytimeout FROM sys.sessions AS _s "
    f"WHERE querytimeout BETWEEN {_FIRST_TOKEN} AND {_LAST_TOKEN} "
    f"AND sessiontimeout > {OWN_SERIAL} AND NOT EXISTS (SELECT 1 FROM sys.sessions "
    f"AS _o WHERE _o.querytimeout = _s.querytimeout AND _o.sessiontimeout = {OWN_SERIAL})"
)

_PATIENCE = 2.0
"""Seconds for the server to notice that the last owner's process has ended."""

_LOST_PATIENCE = 10.0
"""Seconds for the server to notice that a connection is lost."""

_ATTEMPTS = 10


class Ownership:
    """An engine's token, and the connection that lives as long as the engine.

    The connection asks the catalog's small questions and stops statements of the
    engine's other connections; its lock makes it usable from any thread.
    """

    def __init__(self, address: Address, statistics: Statistics) -> None:
        self._address = address
        self._statistics = statistics
        self._lock = threading.Lock()
        self.token = _FIRST_TOKEN + secrets.randbelow(_LAST_TOKEN - _FIRST_TOKEN)
        """The mark that this engine's sessions show, and no other sessions."""
        self._serials = itertools.count(OWN_SERIAL + 1)
        self._lost: set[int] = set()
        self._left_sending: set[tuple[int, int]] = set()
        """Sessions of lost connections that may send for ever; by id and serial number."""
        self._orphans: dict[tuple[int, int], float] = {}
        """When each session without its engine was first seen; by its id and token."""
        self._is_owner = False
        self._is_closed = False
        self._connection = self._marked(OWN_SERIAL, reads_whole=True)
        try:
            self._expect_privileges()
        except BaseException:
            self.close()
            raise

    def connect(self, *, reads_whole: bool = False) -> Connection:
        """Open a connection of this engine.

        Parameters
        ----------
        reads_whole
            Whether each of its replies is to bring all rows.

        Raises
        ------
        EngineError
            LOCKED if another process has taken the database over.
        """
        self._end_left()
        return self._connect(next(self._serials), reads_whole=reads_whole)

    def _connect(self, serial: int, *, reads_whole: bool) -> Connection:
        connection = self._marked(serial, reads_whole=reads_whole)
        try:
            if self._is_owner and self._row_exists(connection):
                ((token, process),) = connection.ask(_OWNER).rows
                if token != self.token:
                    raise _locked(self._address, process, "has taken it over")
        except BaseException:
            connection.close()
            raise
        return connection

    def ask(self, sql: str) -> list[Row]:
        """Ask the engine's own connection.

        Ctrl-C must not end that: it is the process's sign of life.
        """
        return undisturbed(lambda: self._ask(sql))

    def _ask(self, sql: str) -> list[Row]:
        with self._lock:
            try:
                return self._connection.ask(sql).rows
            except EngineError:
                if self._connection.is_open or self._is_closed:
                    raise
                # The server was restarted, or ended the session.
                self._connection = self._connect(OWN_SERIAL, reads_whole=True)
                return self._connection.ask(sql).rows

    def claiming(self) -> str:
        """Return the statement that makes the creator of tique's schema the owner."""
        return self._claiming(0)

    def claimed(self) -> None:
        """Note that the statement of :meth:`claiming` was committed."""
        self._is_owner = True

    def claim(self, patience: float = _PATIENCE) -> None:
        """Become the owner; of nothing, if tique's schema is not there.

        Parameters
        ----------
        patience
            Seconds to wait for another owner to go.

        Raises
        ------
        EngineError
            LOCKED if another process has the database open.
        """
        if self._row_exists(self._connection):
            with self._lock:
                self._claim(patience)

    def give_up(self) -> None:
        """Own the database no longer."""
        self._is_owner = False
        self.ask(
            f"UPDATE tique.owner SET token = 0, process = R'' "
            f"WHERE token = {self.token}"
        )

    def lost(self, connection: Connection) -> None:
        """Note that a connection broke while the server may have had a statement."""
        self._lost.add(connection.serial)
        if connection.is_left_sending:
            self._left_sending.add((connection.session_id, connection.serial))
            self._end_left()

    def _end_left(self) -> None:
        """End the sessions of lost connections that may send for ever."""
        # Until they are ended they are asked for again; the server may be gone.
        with suppress(EngineError):
            for session_id, serial in list(self._left_sending):
                # By now another client's may have the id.
                if self.ask(
                    f"SELECT 1 FROM sys.sessions WHERE sessionid = {session_id} "
                    f"AND sessiontimeout = {serial} "
                    f"AND querytimeout IN ({self.token}, 1)"
                ):
                    self.ask(_ending(session_id))
                self._left_sending.discard((session_id, serial))

    def end_orphans(self) -> None:
        """End the sessions that have no process any more, when seen a second time."""
        self._end_left()
        self._end_orphans(self.ask)

    def _end_orphans(self, ask: Callable[[str], list[Row]]) -> None:
        now = time.monotonic()
        found = [(int(session), int(token)) for session, token in ask(_ORPHANS)]
        seen = self._orphans
        self._orphans = {orphan: seen.get(orphan, now) for orphan in found}
        for orphan, since in self._orphans.items():
            if now - since >= _REPRIEVE:
                # It may be gone by now.
                with suppress(EngineError):
                    ask(_ending(orphan[0]))

    def await_lost(self) -> None:
        """Wait until no statement of a lost connection can commit any more.

        Raises
        ------
        EngineError
            OPERATIONAL if one of them keeps running; it may be asked again.
        """
        self._end_left()
        deadline = time.monotonic() + _LOST_PATIENCE
        while self._lost:
            lost = set(self._lost)
            numbers = ", ".join(map(str, sorted(lost)))
            rows = self.ask(
                "SELECT sessionid, sessiontimeout FROM sys.sessions "
                f"WHERE sessiontimeout IN ({numbers}) "
                f"AND querytimeout IN ({self.token}, 1)"
            )
            self._lost.difference_update(lost - {serial for _, serial in rows})
            if not self._lost:
                return
            if time.monotonic() > deadline:
                raise EngineError(
                    ErrorKind.OPERATIONAL,
                    "MonetDB still runs a statement of a connection that was lost",
                )
            for session_id, _ in rows:
                # It may be gone by now.
                with suppress(EngineError):
                    self.stop(session_id)
            time.sleep(0.02)

    def stop(self, session_id: int) -> None:
        """Make a session's running statement fail soon."""
        self.ask(f"CALL sys.setquerytimeout({session_id}, 1)")

    def let_run(self, session_id: int) -> None:
        """Take :meth:`stop` back, for the session's next statements."""
        self.ask(f"CALL sys.setquerytimeout({session_id}, {self.token})")

    def close(self) -> None:
        """Close the engine's own connection, which gives the database up."""
        self._is_closed = True
        self._connection.close()

    def _marked(self, serial: int, *, reads_whole: bool) -> Connection:
        connection = Connection(
            self._address, self._statistics, reads_whole=reads_whole
        )
        try:
            connection.serial = serial
            # The token last: with it a session is seen.
            connection.ask(
                f"CALL sys.setsessiontimeout({serial}); "
                f"CALL sys.setquerytimeout({self.token})"
            )
        except BaseException:
            connection.close()
            raise
        return connection

    def _expect_privileges(self) -> None:
        try:
            found = self._connection.ask(_alive(self.token)).rows
        except ConnectionLostError:
            raise
        except EngineError as error:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                "tique needs a MonetDB user who may see sys.sessions and stop their "
                f"statements, such as the administrator: {error}",
            ) from error
        if found != [(1,)]:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                "this MonetDB does not show a session's query time-out",
            )

    @staticmethod
    def _row_exists(connection: Connection) -> bool:
        """Whether there is a row to own; none if tique's schema is not installed."""
        rows = connection.ask(
            "SELECT 1 FROM sys._tables AS t JOIN sys.schemas AS s "
            "ON s.id = t.schema_id WHERE s.name = R'tique' AND t.name = R'owner'"
        ).rows
        return bool(rows)

    def _claim(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        pause = 0.005
        conflicts = 0
        while True:
            ((token, process),) = self._connection.ask(_OWNER).rows
            if token != self.token:
                if self._connection.ask(_alive(token)).rows != [(0,)]:
                    if time.monotonic() > deadline:
                        raise _locked(self._address, process, "has it open")
                    self._end_orphans(lambda sql: self._connection.ask(sql).rows)
                    time.sleep(pause)
                    pause = min(2 * pause, 0.1)
                    continue
                try:
                    if not self._connection.ask(self._claiming(token)).count:
                        continue
                except ConflictError:
                    conflicts += 1
                    if conflicts == _ATTEMPTS:
                        raise
                    continue
                if self._connection.ask(_alive(token)).rows != [(0,)]:
                    # It came back meanwhile, and may have found its token in the row.
                    self._connection.ask(
                        f"UPDATE tique.owner SET token = {token}, "
                        f"process = {literal(process)} WHERE token = {self.token}"
                    )
                    continue
            self._is_owner = True
            return

    def _claiming(self, token: int) -> str:
        process = f"process {os.getpid()} on {socket.gethostname()}"
        return (
            f"UPDATE tique.owner SET token = {self.token}, "
            f"process = {literal(process)} WHERE token = {token}"
        )


def _ending(session_id: int) -> str:
    """Return the statement that ends a session without a client, within a moment."""
    return f"CALL sys.setsessiontimeout({session_id}, {_OVER})"


def _alive(token: int) -> str:
    return f"SELECT count(*) FROM sys.sessions WHERE querytimeout = {token}"


def _locked(address: Address, process: str, what: str) -> EngineError:
    return EngineError(
        ErrorKind.LOCKED,
        f"{process} {what}, and a {address} belongs to one process at a time: connect "
        "from threads of that process, or end it first",
    )
