"""One connection to the server, through psycopg."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from typing_extensions import override

from tique_backends.concurrency.inherited import noted
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.postgresql.catalog.paths import (
    SET_PATH,
    USER,
    path_text,
    split_path,
)
from tique_backends.postgresql.errors import translated
from tique_backends.postgresql.sessions.holders import TIMED_OUT
from tique_backends.postgresql.sessions.starting import BEGAN, planning
from tique_backends.postgresql.values.parameters import DUMPERS
from tique_backends.postgresql.values.text_values import KeepingCursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from psycopg.abc import AdaptContext

    from tique_backends.records import Row, Statistics

_CANCEL_SECONDS = 5.0

SETTINGS = (
    ("standard_conforming_strings", "on"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_session_timeout", "0"),
    # A process that is stopped in one must not keep the rows that it locked (P6).
    ("idle_in_transaction_session_timeout", "10s"),
    ("DateStyle", "ISO"),
    # Values kept as text must be the same in every session, to the last digit.
    ("IntervalStyle", "postgres"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
)
"""Settings that tique's own statements need, whatever a role or a database sets."""


def _assigned(settings: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"set_config('{name}', '{to}', FALSE)" for name, to in settings)


_GREETING = (
    f"SELECT {BEGAN}, pg_backend_pid(), pg_is_in_recovery(), current_setting('server_encoding'), "
    + _assigned(SETTINGS)
    # Acknowledged commits are durable (P4); settings that wait for replicas stay.
    + ", CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') "
    "THEN set_config('synchronous_commit', 'on', FALSE) END, "
    # PostgreSQL 17 has one more.
    "CASE WHEN current_setting('transaction_timeout', TRUE) <> '0' "
    "THEN set_config('transaction_timeout', '0', FALSE) END, "
    "current_setting('search_path'), current_user::TEXT"
)


class _Tolerant(psycopg.adapt.Loader):
    """Loads dates and moments, as text those that Python cannot hold."""

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        usual = psycopg.adapters.get_loader(oid, psycopg.pq.Format.TEXT)
        assert usual is not None
        self._load = usual(oid, context).load

    @override
    def load(self, data: Any) -> Any:
        try:
            return self._load(data)
        except psycopg.DataError:
            return bytes(data).decode()


@dataclass(frozen=True)
class Address:
    """The place of a database and the role that logs in: libpq's parameters.

    The password stays out of ``repr``, with all of them.
    """

    parameters: Mapping[str, str] = field(repr=False)

    @override
    def __str__(self) -> str:
        known = self.parameters
        place = known.get("host", "its default place")
        if "port" in known:
            place += f":{known['port']}"
        return f"PostgreSQL database {known.get('dbname', '')!r} at {place}"


class Connection:
    """A connection in autocommit mode; for one thread at a time.

    ``greeting`` is an expression that it evaluates first.
    """

    def __init__(
        self, address: Address, statistics: Statistics, greeting: str = "NULL"
    ) -> None:
        self._statistics = statistics
        self.naming: Callable[[EngineError, int], EngineError] | None = None
        """Adds the holders of a lock to a wait's error, given the process id that waited."""
        self.is_lost = False
        """Whether it broke before a statement's reply: the server may still run it."""
        self.path_fault: EngineError | None = None
        """Why the application cannot have the search path that the session began with."""
        try:
            self.wire = psycopg.connect(
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                **address.parameters,  # type: ignore[arg-type]
            )
            noted(self.wire)
            for kind, dumper in DUMPERS:
                self.wire.adapters.register_dumper(kind, dumper)
        except psycopg.Error as error:
            raise EngineError(
                ErrorKind.OPERATIONAL, f"cannot connect to {address}: {error}"
            ) from error
        try:
            ((self.began, self.pid, is_standby, encoding, *_, path, role, _),) = (
                self.ask(f"{_GREETING}, {greeting}")
            )
            own = planning(self.began)
            self.usual = {**dict(SETTINGS), **own}
            """Values that tique's statements have, of settings that begin with others."""
            if own:
                self.ask(f"SELECT {_assigned(own.items())}")
            self._take_path(path, role)
            self._check(address, encoding, is_standby=is_standby)
        except BaseException:
            self.close()
            raise

    def _take_path(self, path: str, role: str) -> None:
        """Look for names along the path that the session began with, if that may be."""
        names = split_path(path)
        try:
            path_text(names)
        except EngineError as error:
            self.path_fault, names = error, []
        allowed = [name for name in names if role.casefold() != "tique" or name != USER]
        if allowed != split_path(path):
            self.ask(SET_PATH, [path_text(allowed)])

    def _check(self, address: Address, encoding: str, *, is_standby: bool) -> None:
        if self.pid != self.wire.info.backend_pid:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"between here and the {address} is a connection pooler, which gives "
                "one connection to several clients: tique needs sessions of its own "
                "(temporary tables, locks); connect to the server itself",
            )
        if is_standby:
            raise EngineError(
                ErrorKind.READ_ONLY, f"the {address} is a standby, which is read-only"
            )
        if encoding != "UTF8":
            # How far a name's bytes reach, and which letters are capital, depends on it.
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"the {address} has the encoding {encoding}: tique needs UTF8; dump it "
                "and restore it into a database made with ENCODING 'UTF8'",
            )

    def problem(self, sql: str) -> psycopg.Error | None:
        """Return the error of a statement, which is parsed and not run.

        By the message ``Parse``, which takes one statement only.
        """
        if self.wire.closed:
            raise ConnectionLostError(
                ErrorKind.OPERATIONAL, "the connection to PostgreSQL is closed"
            )
        found = self.wire.pgconn.prepare(b"", sql.encode())
        if found.status == ExecStatus.COMMAND_OK:
            return None
        return error_from_result(found, "utf-8")

    def cursor(self, *, keeping: bool = False) -> psycopg.RawCursor[Row]:
        """A cursor of its own; one for rows that are kept."""
        if self.wire.closed:
            raise ConnectionLostError(
                ErrorKind.OPERATIONAL, "the connection to PostgreSQL is closed"
            )
        if keeping:
            return KeepingCursor(self.wire)
        return self.wire.cursor()  # type: ignore[return-value]

    @contextmanager
    def running(self, *, fetches: bool = False) -> Iterator[None]:
        """Convert a statement's errors, and count it unless it only ``fetches``."""
        started = time.perf_counter()
        try:
            yield
        except (psycopg.Error, UnicodeError) as error:
            failure = translated(error)
            if self.wire.closed:
                self.is_lost = True
            if isinstance(failure, ConnectionLostError):
                self.lose()
            elif failure.sqlstate == TIMED_OUT and self.naming is not None:
                failure = self.naming(failure, self.pid)
            raise failure from error
        except EngineError:
            raise
        except BaseException:
            # This one's reply would be taken for that of the next statement.
            self.lose()
            raise
        finally:
            self._statistics.statements += not fetches
            self._statistics.seconds += time.perf_counter() - started

    def ask(
        self,
        sql: str,
        parameters: Sequence[Any] | None = None,
        *,
        prepare: bool = False,
    ) -> list[Row]:
        """Run one statement, or several without parameters; return the last one's rows.

        Raises
        ------
        EngineError
            ConnectionLostError if its outcome is not known.
        """
        with self.running():
            cursor = self.cursor()
            cursor.execute(sql, parameters, prepare=prepare or None)
            return cursor.fetchall() if cursor.description is not None else []

    def lose(self) -> None:
        """Close it; the outcome of the last statement is not known."""
        self.is_lost = True
        self.close()

    def interrupt(self) -> None:
        """Make the statement that another thread runs here fail soon."""
        with suppress(psycopg.Error):
            self.wire.cancel_safe(timeout=_CANCEL_SECONDS)

    @property
    def is_open(self) -> bool:
        """Whether the connection was neither closed nor lost."""
        return not self.wire.closed

    def close(self) -> None:
        """Close the connection; idempotent."""
        with suppress(psycopg.Error):
            self.wire.close()


def tolerate(reader: AdaptContext) -> None:
    """Let dates and moments that Python cannot hold be read as text."""
    assert reader.adapters is not None
    names = ["date", "timestamp"]
    if not isinstance(reader, KeepingCursor):
        names.append("timestamptz")
    for name in names:
        reader.adapters.register_loader(name, _Tolerant)


def rows_of(cursor: psycopg.RawCursor[Row]) -> list[Row]:
    """All rows of a result; dates and moments that Python cannot hold as text."""
    try:
        return cursor.fetchall()
    except psycopg.DataError:
        # Not asked for again: its values may be others then.
        result = cursor.pgresult
        assert result is not None
        tolerate(cursor)
        loading = Transformer(cursor)
        loading.set_pgresult(result)
        return loading.load_rows(0, result.ntuples, tuple)
