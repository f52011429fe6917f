"""Statements about a connection's session: settings, and prepared statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tique import errors
from tique.connection.routing.options import ROUTING
from tique.connection.settings import Settings
from tique.query.base import Outcome
from tique.query.kinds import executable
from tique.query.transaction.constraint_modes import named_constraints
from tique.query.transaction.isolation import IsolationLevel
from tique.query.transaction.notifications import checked
from tique.query.write.foreign_keys import set_constraints
from tique_backends.records import ResultColumn
from tique_backends.settings import (
    CONNECTIONS,
    LOCK_TIMEOUT,
    SEARCH_PATH,
    STATEMENT_TIMEOUT,
)
from tique_rewriter.kinds.define.maintenance import Checkpoint, Maintain
from tique_rewriter.kinds.session.calls import Notify, SetConfig, ShowGiven
from tique_rewriter.kinds.session.cursors import CloseCursor, DeclareCursor, FetchCursor
from tique_rewriter.kinds.session.prepare import (
    Deallocate,
    ExecuteStatement,
    PrepareStatement,
)
from tique_rewriter.kinds.session.session import (
    Discard,
    Nothing,
    ResetAll,
    Scope,
    SessionPlan,
    SetCharacteristics,
    SetConstraints,
    SetSetting,
    ShowSetting,
)
from tique_rewriter.plans.plan import (
    DEFAULT_ISOLATION,
    DEFAULT_READ_ONLY,
    ISOLATION,
    READ_ONLY,
    Literal,
    Parameter,
)
from tique_rewriter.safety.attaching import AttachDatabase, DetachDatabase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tique.connection.execution import Execution
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.plans.plan import Operand

_ON = frozenset({"on", "true", "yes", "1"})
_OFF = frozenset({"off", "false", "no", "0"})
_MOST_PREPARED = 10_000
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}
_DRIVERS = CONNECTIONS | {
    *(DEFAULT_ISOLATION, DEFAULT_READ_ONLY, LOCK_TIMEOUT, STATEMENT_TIMEOUT),
    *ROUTING,
}
"""Settings that the engine's session need not have."""
_MEANINGLESS = _DRIVERS | {"application_name", "timezone", SEARCH_PATH}
"""Settings with which a query means the same, or that are followed where it runs."""


def _seconds(duration: str) -> float | None:
    """The seconds of a time-out in the engine's words; None: there is none."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise errors.NotSupportedError(
            f'"{duration}" as a time-out is not supported: write 500, 500ms or 2s'
        )
    return float(found[1]) * _UNITS[found[2] or "ms"] or None


def _duration(seconds: float) -> str:
    """A time-out as PostgreSQL shows it: by the largest unit of which it is a multiple."""
    milliseconds = round(seconds * 1e3)
    for unit in ("d", "h", "min", "s", "ms"):
        count, rest = divmod(milliseconds, round(_UNITS[unit] * 1e3))
        if count and not rest:
            return f"{count}{unit}"
    return "0"


@dataclass(frozen=True)
class _Named:
    """A prepared statement; ``types`` are those of its parameters, if they have any."""

    body: str
    types: Sequence[str]


class SessionStatements:
    """The settings and the prepared statements of one connection."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._rules = execution.database.engine.settings
        self._first: dict[str, str] = {}
        """The settings that the session began with, and are the driver's."""
        self._first_lock_timeout = execution.lock_timeout
        self.settings = Settings(
            self._assign, is_transactional=self._rules.is_transactional
        )
        self._prepared: dict[str, _Named] = {}
        portals = execution.portals
        self._handlers: dict[
            type[SessionPlan], Callable[[Any, Sequence[Any]], Outcome | None]
        ] = {
            SetSetting: self._set,
            SetCharacteristics: self._set_characteristics,
            Nothing: self._nothing,
            ResetAll: self._reset_all,
            ShowSetting: self._show,
            ShowGiven: self._show_given,
            Discard: self._discard,
            DeclareCursor: portals.declare,
            FetchCursor: lambda plan, _: portals.fetch(plan),
            CloseCursor: lambda plan, _: portals.close(plan),
            SetConstraints: self._set_constraints,
            SetConfig: self._set_config,
            Notify: self._notify,
            PrepareStatement: self._prepare,
            ExecuteStatement: self._execute,
            Deallocate: self._deallocate,
            Checkpoint: self._checkpoint,
            Maintain: self._maintain,
            AttachDatabase: self._attach,
            DetachDatabase: self._detach,
        }

    def obey(self, first: Mapping[str, str]) -> None:
        """Begin with the settings with which the engine's session does."""
        self._first = {**first}
        for name, value in first.items():
            try:
                self._assign(name, value)
            except errors.NotSupportedError as error:
                raise errors.NotSupportedError(
                    f'setting "{name}" of the URL, the role or the database: {error}',
                    sqlstate="0A000",
                ) from error

    @property
    def are_usual(self) -> bool:
        """Whether each session of the engine's has the connection's settings."""
        return not self.settings.names() and self._first.keys() <= _DRIVERS

    def changes_meaning(self) -> str | None:
        """A changed setting by which a query may mean something else; None: there is none."""
        names = {*self.settings.names(), *self._first} - _MEANINGLESS
        return min(names, default=None)

    def give_all(self) -> None:
        """Give a new session all settings."""
        for name in self._first.keys() - self.settings.names():
            self._assign(name, None)
        self.settings.give_all()

    def run(self, plan: SessionPlan, bound: Sequence[Any]) -> Outcome:
        """Carry out the statement."""
        return self._handlers[type(plan)](plan, bound) or Outcome()

    def _nothing(self, plan: Nothing, bound: Sequence[Any]) -> None:
        """Ask the engine for nothing, which fails if it is not there."""
        self._execution.live_session().execute("SELECT 1").fetch_all()

    # Settings

    def _set(self, plan: SetSetting, bound: Sequence[Any]) -> None:
        rules = self._rules
        name = rules.name(plan.name)
        self._check_scope(name, plan.scope)
        if name in rules.paths and rules.path_text is not None:
            values = plan.values
            path = None if values is None else (rules.path_text(name, values),)
            self._change(SEARCH_PATH, path, is_local=plan.scope is Scope.LOCAL)
            return
        if name in ROUTING or name in (DEFAULT_ISOLATION, DEFAULT_READ_ONLY):
            self._change(name, plan.values, is_local=plan.scope is Scope.LOCAL)
            return
        if self._is_there(name, plan.values):
            return
        rules.check(name, plan.values)
        if name in rules.fixed:
            return
        if rules.instance.fullmatch(name):
            value = None if plan.values is None else ", ".join(plan.values)
            self._execution.session.assign(name, value)
            return
        self._change(name, plan.values, is_local=plan.scope is Scope.LOCAL)

    def _is_there(self, name: str, values: Sequence[str] | None) -> bool:
        """Whether a setting that nothing changes has this value; None is its first one."""
        query = self._rules.kept.get(name)
        if query is None:
            return False
        if values is None:
            return self._rules.resets_all
        rows = self._execution.live_session().execute(query).fetch_all()
        return [*values] in [[row[0]] for row in rows]

    def _check_scope(self, name: str, scope: Scope) -> None:
        rules = self._rules
        if scope is Scope.LOCAL and not rules.has_local:
            raise errors.NotSupportedError(
                f"SET LOCAL is not supported by {rules.engine}"
            )
        if scope is Scope.GLOBAL:
            if rules.has_local:
                raise errors.ProgrammingError(
                    'syntax error near "GLOBAL"', sqlstate="42601"
                )
            if not rules.instance.fullmatch(name):
                raise errors.NotSupportedError(
                    f"SET GLOBAL {name} is not supported: tique's own sessions would "
                    "follow it; SET it without GLOBAL"
                )
        if scope is Scope.SESSION and rules.instance.fullmatch(name):
            raise errors.ProgrammingError(
                f"setting {name} is the instance's and cannot be set for a session",
                sqlstate="22023",
            )

    def _change(
        self, name: str, values: Sequence[str] | None, *, is_local: bool
    ) -> None:
        execution = self._execution
        if is_local and execution.commits_each:
            # Its transaction would end with it.
            return
        transaction = execution.transaction
        sequence = 0
        if transaction is not None:
            transaction.sequence += 2
            transaction.visible_sequence = sequence = transaction.sequence
        value = None if values is None else ", ".join(values)
        execution.live_session()
        self.settings.change(name, value, sequence, is_local=is_local)
        if execution.commits_each:
            self.settings.end(committed=True)

    def _assign(self, name: str, value: str | None) -> None:
        execution = self._execution
        value = self._first.get(name) if value is None else value
        if name == DEFAULT_ISOLATION:
            execution.controls.always_isolation = IsolationLevel.parse(
                value or "SNAPSHOT"
            )
        elif name == DEFAULT_READ_ONLY:
            folded = (value or "off").lower()
            if folded not in _ON | _OFF:
                raise errors.ProgrammingError(
                    f'"{value}" is no value of {name}: on or off', sqlstate="22023"
                )
            execution.controls.is_always_read_only = folded in _ON
        elif name in ROUTING:
            execution.expect_router().assign(name, value)
        elif name in CONNECTIONS:
            execution.deadlines.limit(name, None if value is None else _seconds(value))
        else:
            seconds = None
            if value is not None and name in (LOCK_TIMEOUT, STATEMENT_TIMEOUT):
                seconds = _seconds(value)
            execution.session.assign(name, value)
            if name == SEARCH_PATH:
                execution.planner.look_along(value)
            elif name == LOCK_TIMEOUT:
                # Row locks are the driver's.
                execution.lock_timeout = (
                    self._first_lock_timeout if value is None else seconds
                )
            elif name == STATEMENT_TIMEOUT:
                # So is a statement that takes several of the engine's.
                execution.deadlines.limit(name, seconds)

    def _set_characteristics(
        self, plan: SetCharacteristics, bound: Sequence[Any]
    ) -> None:
        if plan.isolation is not None:
            self._change(DEFAULT_ISOLATION, [plan.isolation], is_local=False)
        if plan.read_only is not None:
            shown = "on" if plan.read_only else "off"
            self._change(DEFAULT_READ_ONLY, [shown], is_local=False)

    def _reset_all(self, plan: ResetAll, bound: Sequence[Any]) -> None:
        if not self._rules.resets_all:
            raise errors.NotSupportedError(
                f"RESET ALL is not supported by {self._rules.engine}"
            )
        for name in self.settings.names():
            self._change(name, None, is_local=False)

    def _show(self, plan: ShowSetting, bound: Sequence[Any]) -> Outcome:
        execution = self._execution
        name = plan.name if plan.name is None else self._rules.name(plan.name)
        own = self._own_values() if self._rules.is_transactional else {}
        if name in own:
            column = ResultColumn(str(name), "TEXT")
            return Outcome(1, [column], [(own[str(name)],)])
        result = execution.live_session().show(name)
        if name is not None:
            return Outcome(result.row_count, result.columns, result=result)
        rows = [
            (row[0], own.get(row[0], row[1]), *row[2:])
            for row in result.fetch_all()
            if not row[0].startswith("tique.")
        ]
        return Outcome(len(rows), result.columns, rows)

    def _show_given(self, plan: ShowGiven, bound: Sequence[Any]) -> Outcome:
        name = _value(plan.name, bound)
        if not isinstance(name, str | None):
            raise errors.NotSupportedError("current_setting() takes a text as the name")
        own = self._own_values()
        if name is not None and name.lower() in own:
            column = ResultColumn(plan.result, "TEXT")
            return Outcome(1, [column], [(own[name.lower()],)])
        result = self._execution.live_session().execute(plan.text, bound)
        return Outcome(result.row_count, result.columns, result=result)

    def _own_values(self) -> dict[str, str]:
        """The settings of transactions, which the driver has."""
        execution = self._execution
        controls = execution.controls
        transaction = execution.transaction
        if transaction is None:
            level, is_read_only = controls.level, controls.is_read_only
        else:
            level, is_read_only = transaction.isolation, transaction.read_only
        return {
            ISOLATION: level.shown,
            DEFAULT_ISOLATION: controls.always_isolation.shown,
            READ_ONLY: "on" if is_read_only else "off",
            DEFAULT_READ_ONLY: "on" if controls.is_always_read_only else "off",
            **{name: _duration(s) for name, s in execution.deadlines.shown().items()},
            **({} if execution.router is None else execution.router.shown()),
        }

    def _discard(self, plan: Discard, bound: Sequence[Any]) -> None:
        execution = self._execution
        if plan.what in ("ALL", "TEMP") and execution.in_transaction:
            raise errors.ProgrammingError(
                f"DISCARD {plan.what} cannot run inside a transaction", sqlstate="25001"
            )
        session = execution.live_session()
        if plan.what in ("ALL", "TEMP"):
            execution.temporaries.forget()
        if plan.what != "ALL":
            session.discard(plan.what)
            return
        for name in self.settings.names():
            self._change(name, None, is_local=False)
        self.settings.end(committed=True)
        self._prepared.clear()
        execution.portals.close_all()
        session.discard("TEMP")
        session.discard("SEQUENCES")

    def _set_config(self, plan: SetConfig, bound: Sequence[Any]) -> Outcome:
        """SET each of them; the results are the values that they have then."""
        given: list[tuple[str, str | None, Scope]] = []
        for setting in plan.settings:
            name, value, is_local = (
                _value(operand, bound)
                for operand in (setting.name, setting.value, setting.is_local)
            )
            if not isinstance(name, str) or not isinstance(is_local, bool):
                raise errors.NotSupportedError(
                    "set_config() takes a name, a text and a truth value"
                )
            if not isinstance(value, str | None):
                raise errors.NotSupportedError("set_config() takes a text as the value")
            scope = Scope.LOCAL if is_local else Scope.UNSAID
            given.append((name.strip().lower(), value, scope))
        results = []
        for name, value, scope in given:
            values: tuple[str, ...] | None = None if value is None else (value,)
            split = self._rules.split_path
            if split is not None and value is not None and name == SEARCH_PATH:
                values = tuple(split(value))
            self._set(SetSetting(0, (), name, values, scope), ())
            is_gone = scope is Scope.LOCAL and self._execution.commits_each
            shown = None if is_gone else self._shown(name)
            results.append(value if shown is None else shown)
        columns = [ResultColumn(each.result, "TEXT") for each in plan.settings]
        return Outcome(1, columns, [tuple(results)])

    def _shown(self, name: str) -> str:
        outcome = self._show(ShowSetting(0, (), name), ())
        rows = outcome.rows or []
        if outcome.result is not None:
            rows = outcome.result.fetch_all()
        return str(rows[0][0])

    def _set_constraints(self, plan: SetConstraints, bound: Sequence[Any]) -> None:
        execution = self._execution
        if execution.commits_each:
            # Its transaction would end with it.
            return
        transaction = execution.transaction or execution.begin()
        names = None
        if plan.names is not None:
            path = execution.planner.search_path
            names = named_constraints(transaction.catalog, plan.names, path)
        set_constraints(transaction, names, is_deferred=plan.is_deferred)

    def _notify(self, plan: Notify, bound: Sequence[Any]) -> Outcome:
        """Send a message when the transaction commits."""
        message = checked(_value(plan.channel, bound), _value(plan.payload, bound))
        execution = self._execution
        if execution.commits_each:
            execution.live_session().notify([message])
        else:
            transaction = execution.transaction or execution.begin()
            with transaction.statement():
                transaction.notifications.add(transaction.sequence, message)
        if plan.result is None:
            return Outcome()
        return Outcome(1, [ResultColumn(plan.result, "VOID")], [("",)])

    # Maintenance

    def _checkpoint(self, plan: Checkpoint, bound: Sequence[Any]) -> None:
        self._execution.database.checkpointer.checkpoint_now()

    def _maintain(self, plan: Maintain, bound: Sequence[Any]) -> None:
        self._execution.live_session().maintain(plan.text)

    def _attach(self, plan: AttachDatabase, bound: Sequence[Any]) -> None:
        self._execution.database.catalog.attachments.attach(
            plan.path, plan.name, plan.options, is_enough=plan.is_enough
        )

    def _detach(self, plan: DetachDatabase, bound: Sequence[Any]) -> None:
        self._execution.database.catalog.attachments.detach(
            plan.name, may_lack=plan.may_lack
        )

    # Prepared statements

    def _prepare(self, plan: PrepareStatement, bound: Sequence[Any]) -> None:
        if self._rules.prepares_once and plan.name in self._prepared:
            raise errors.ProgrammingError(
                f'prepared statement "{plan.name}" exists already', sqlstate="42P05"
            )
        if len(self._prepared) >= _MOST_PREPARED:
            raise errors.OperationalError(
                f"a connection has at most {_MOST_PREPARED:,} prepared statements: "
                "DEALLOCATE some",
                sqlstate="54000",
            )
        body = plan.body.rstrip("; \t\r\n")
        execution = self._execution
        session = execution.live_session()
        if self._rules.prepares_once and execution.temporaries:
            # The engine looks at the text for its types, and knows them by other names.
            body_plan = execution.planner.rewriter.plan_body(body).plan
            tables = [table for table, _ in executable(body_plan).needs]
            tables += [reference.table for reference in body_plan.references]
            if any(table.is_temporary for table in tables):
                raise errors.NotSupportedError(
                    "PREPARE of a statement with a temporary table or view is not "
                    "supported: give it to execute() with its parameters"
                )
        types = session.types_to_prepare(body, plan.types)
        self._prepared[plan.name] = _Named(body, types)

    def _execute(self, plan: ExecuteStatement, bound: Sequence[Any]) -> Outcome:
        execution = self._execution
        named = self._prepared.get(plan.name)
        if named is None:
            raise _no_statement(plan.name)
        transaction = execution.transaction or execution.begin()
        values = self._values(plan.arguments, named, bound, transaction)
        prepared = execution.planner.rewriter.plan_body(named.body)
        positions = [int(position) for position in prepared.arguments]
        count = len(named.types) or max(positions, default=-1) + 1
        if len(values) != count:
            execution.drop_statement()
            raise errors.ProgrammingError(
                f'prepared statement "{plan.name}" has {count} '
                f"parameter{'' if count == 1 else 's'}, but {len(values)} "
                f"{'was' if len(values) == 1 else 'were'} given",
                sqlstate="42601",
            )
        statement = execution.planner.statement(prepared)
        assert statement is not None  # PREPARE takes no other.
        bound = [values[position] for position in positions]
        return execution.run_in_transaction(statement, bound, statement.run)

    def _values(
        self,
        arguments: Sequence[tuple[str, Operand | None]],
        named: _Named,
        bound: Sequence[Any],
        transaction: DDLTransaction,
    ) -> list[Any]:
        """The values of EXECUTE's arguments; the engine is asked for some of them."""
        values: list[Any] = []
        asked: list[int] = []
        for number, (_, operand) in enumerate(arguments):
            value = None
            if isinstance(operand, Parameter):
                value = bound[operand.number - 1]
            elif isinstance(operand, Literal) and not named.types:
                value = operand.value
            elif number < len(named.types) or not named.types:
                asked.append(number)
            values.append(value)
        if asked:
            found = self._execution.live_session().typed(
                [named.types[number] for number in asked] if named.types else (),
                [transaction.default(arguments[number][0]) for number in asked],
            )
            for number, value in zip(asked, found, strict=True):
                values[number] = value
        return values

    def _deallocate(self, plan: Deallocate, bound: Sequence[Any]) -> None:
        is_strict = self._rules.prepares_once
        if plan.name is None:
            if not is_strict:
                raise errors.ProgrammingError(
                    'syntax error near "ALL"', sqlstate="42601"
                )
            self._prepared.clear()
        elif self._prepared.pop(plan.name, None) is None and is_strict:
            raise _no_statement(plan.name)


def _value(operand: Operand, bound: Sequence[Any]) -> Any:
    """The value of an operand, which is a parameter or a literal."""
    if isinstance(operand, Parameter):
        return bound[operand.number - 1]
    return operand.value


def _no_statement(name: str) -> errors.ProgrammingError:
    return errors.ProgrammingError(
        f'prepared statement "{name}" does not exist', sqlstate="26000"
    )
