"""Settings and engine transactions over one PostgreSQL connection.

The application's timeouts, and its settings of the planner, are settings that tique's own
transactions and checks are not under. Where there are such, a statement before these takes
them back and one behind gives them again; where there are none, that costs nothing.
Those of the URL, the role or the database are the application's, too: every session begins
without them (:attr:`Connection.usual`), and an application's gets them.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from tique_backends.concurrency.retrying import insist
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_backends.postgresql.catalog.paths import USER, without_user
from tique_backends.postgresql.sessions.settings import PLANNING, TIMEOUTS
from tique_backends.postgresql.sessions.starting import obeyed
from tique_backends.postgresql.sessions.statements import MARK, StatementSession
from tique_backends.session import COMMIT
from tique_backends.settings import SEARCH_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tique_backends.postgresql.sessions.connection import Connection
    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.session import Result, Session

_Outcome = TypeVar("_Outcome")

LOCK_PATIENCE = "5s"
"""How long DDL waits for a lock of PostgreSQL's, and a look at the definitions."""

FOLD_PATIENCE = "100ms"
"""How long an uncommitted fold waits for one: less than until PostgreSQL looks for
deadlocks, so that it is the one that gives up."""


class TransactionSession(StatementSession):
    """A session with settings and an engine transaction of its own."""

    def __init__(self, connection: Connection, presence: Presence) -> None:
        super().__init__(connection, presence)
        self._timeouts: dict[str, str] = {}
        """The application's own, which tique's statements are not under."""
        self._planning: dict[str, str] = {}
        """Those of the planner."""
        self._is_unhurried = False
        self._first_path: str | None = None
        """The search path that it began with, if it was changed."""

    @override
    def starting(self) -> Mapping[str, str]:
        if self._connection.path_fault is not None:
            raise self._connection.path_fault
        return obeyed(self._connection.began)

    @override
    def assign(self, name: str, value: str | None) -> None:
        self.is_as_opened = False
        if name == SEARCH_PATH:
            self._assign_path(value)
            return
        usual = self._connection.usual.get(name) if value is None else value
        if usual is None:
            self._run(f"RESET {'.'.join(map(quote, name.split('.')))}")
        else:
            self._run("SELECT set_config($1, $2, FALSE)", [name, usual])
        # Loaders remember the time zone.
        self._showing = None
        own = self._timeouts if name in TIMEOUTS else self._planning
        own.pop(name, None)
        if value is not None and (name in TIMEOUTS or PLANNING.fullmatch(name)):
            own[name] = value

    def _assign_path(self, value: str | None) -> None:
        """Look for names along another path; None is the first one."""
        if self._first_path is None:
            ((self._first_path,),) = self._ask(
                "SELECT pg_catalog.current_setting('search_path')"
            )
        path = self._first_path if value is None else value
        if USER in path:
            # For a role that is called tique it would be tique's own schema.
            ((role,),) = self._ask("SELECT current_user::TEXT")
            path = without_user(path, role)
        self._run("SELECT pg_catalog.set_config('search_path', $1, FALSE)", [path])
        # A text means other tables' columns, of other types, perhaps.
        self._deallocate()
        self._types = self._showing = None

    @override
    def show(self, name: str | None) -> Result:
        if name is None:
            return self.execute("SHOW ALL")
        return self.execute(f"SHOW {'.'.join(map(quote, name.split('.')))}")

    @override
    def discard(self, what: str) -> None:
        self._run(f"DISCARD {what}", prepare=False)

    @property
    @override
    def _is_own(self) -> bool:
        return super()._is_own or self._is_unhurried

    @property
    def _own_settings(self) -> list[str]:
        """Settings of the application's that tique's transactions are not under."""
        return [*self._timeouts, *self._planning]

    def _without(self, scope: str, given: Iterable[str]) -> str:
        """Statements after which these settings of the application's do not count."""
        usual = self._connection.usual
        return "".join(
            f"; SET {scope} {name} TO "
            + (f"'{usual[name]}'" if name in usual else "DEFAULT")
            for name in given
        )

    @override
    @contextmanager
    def unhurried(self) -> Iterator[None]:
        if self._is_own:
            yield
            return
        with self._apart(self._timeouts):
            self._is_unhurried = True
            try:
                yield
            finally:
                self._is_unhurried = False

    @override
    @contextmanager
    def planned_apart(self) -> Iterator[None]:
        with self._apart({} if super()._is_own else self._planning):
            yield

    @contextmanager
    def _apart(self, given: Mapping[str, str]) -> Iterator[None]:
        if given:
            self._run(self._without("SESSION", given)[2:])
        try:
            yield
        finally:
            # Another session gets the application's settings anew.
            if given and not self.is_lost:
                for name, value in given.items():
                    self._run("SELECT set_config($1, $2, FALSE)", [name, value])

    @override
    def begin(self) -> None:
        self._begin(f"BEGIN{self._without('LOCAL', self._own_settings)}")

    def _begin(self, statement: str) -> None:
        # One may be left of which an interruption stopped the second half.
        self.rollback()
        self._in_transaction = True
        self._run(statement)

    @override
    def hold(self, opens_aside: Callable[[], Session]) -> None:
        super().hold(opens_aside)
        # What it locks other clients wait for: it must not wait for long for them (P6).
        # And it lasts as long as the application's transaction does.
        self._run(
            f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'; "
            "SET LOCAL idle_in_transaction_session_timeout = 0"
        )

    @override
    def hold_snapshot(self, opens_aside: Callable[[], Session]) -> None:
        self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self._run(
            f"SET LOCAL idle_in_transaction_session_timeout = 0; SAVEPOINT {MARK}"
        )
        self._opens_aside, self._keeps_snapshot = opens_aside, True

    @override
    def let_go(self) -> None:
        self._keeps_snapshot = False
        super().let_go()

    @override
    def end_hold(self) -> None:
        self._keeps_snapshot = False
        super().end_hold()

    def begin_repeatable(self) -> None:
        """Start an engine transaction whose statements share one snapshot."""
        ending = self._without("LOCAL", self._own_settings)
        self._begin(f"BEGIN ISOLATION LEVEL REPEATABLE READ{ending}")

    @override
    def begin_uncommitted_fold(self) -> None:
        self.begin_repeatable()
        self._run(f"SET LOCAL lock_timeout = '{FOLD_PATIENCE}'")

    @override
    def commit(self, ending: str = COMMIT) -> None:
        self._in_transaction = False
        try:
            cursor = self._run(ending)
        except EngineError:
            with suppress(EngineError):
                insist(lambda: self._run("ROLLBACK"))
            raise
        if ending == COMMIT and cursor.statusmessage == "ROLLBACK":
            raise EngineError(
                ErrorKind.OPERATIONAL, "a statement of the transaction had failed"
            )

    @override
    def rollback(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            insist(lambda: self._run("ROLLBACK"))

    def transact_repeatable(self, body: Callable[[], _Outcome]) -> _Outcome:
        """As :meth:`transact`; the body's statements share one snapshot.

        They are not held up for long by a role that has locked a table (P6).
        """

        def begin() -> None:
            self.begin_repeatable()
            self._run(f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'")

        return self._transact(begin, body, self.commit)

    def look(self, body: Callable[[], _Outcome]) -> _Outcome:
        """Read the catalog, where PostgreSQL locks what it spells out, for a bounded time."""
        return body() if self._in_transaction else self.transact_repeatable(body)
