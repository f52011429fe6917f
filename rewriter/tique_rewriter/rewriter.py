"""The entry point: statements to plans, with a cache of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tique_rewriter.dialects import rules_of
from tique_rewriter.errors import ParameterError, UnsupportedSQL
from tique_rewriter.kinds.define.views import catalog_of
from tique_rewriter.kinds.planner import Planner, refusal
from tique_rewriter.kinds.registry import registry_of
from tique_rewriter.kinds.session.calls import (
    may_notify,
    may_set_config,
    may_show_given,
    plan_notifying_query,
    plan_set_config,
    plan_show_given,
)
from tique_rewriter.kinds.session.prepare import PREPARES, plan_prepare
from tique_rewriter.kinds.session.session import Nothing
from tique_rewriter.safety.hidden_calls import check_hidden
from tique_rewriter.text.placeholders import OWN_STYLE, number_placeholders
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.schema import Definitions
    from tique_rewriter.scope.catalog import SearchPath, Temporaries

PARAMSTYLES = ("pyformat", "qmark")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A plan, and which of the application's arguments is which placeholder's.

    For placeholder ``$n``, ``arguments[n - 1]`` is the position (int) or the name
    (str) of the argument.
    """

    plan: Plan
    arguments: tuple[int | str, ...]

    def bind(self, parameters: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
        """Return the values of ``$1 … $n``.

        Raises
        ------
        ParameterError
            When the number or the names do not fit the statement.
        """
        arguments = self.arguments
        count = len(arguments)
        if (
            type(parameters) is tuple
            and len(parameters) == count
            and (not count or type(arguments[0]) is int)
        ):
            # The most common case, without looking at abstract classes.
            return list(parameters)
        if arguments and isinstance(arguments[0], str):
            return self._bind_names(parameters)
        if isinstance(parameters, Mapping):
            if parameters or arguments:
                raise ParameterError(
                    f"the statement has {_positional(len(arguments))}: "
                    "give a sequence, not a mapping"
                )
            return []
        given = 0 if parameters is None else _length(parameters)
        if given != len(arguments):
            raise ParameterError(
                f"the statement has {_positional(len(arguments))}, "
                f"but {given} parameter{'' if given == 1 else 's'} "
                f"{'was' if given == 1 else 'were'} given"
            )
        return [] if parameters is None else list(parameters)

    def _bind_names(self, parameters: object) -> list[Any]:
        if not isinstance(parameters, Mapping):
            raise ParameterError(
                "the statement has named placeholders: give a mapping, "
                f"with {_listed(self.arguments)}"
            )
        try:
            return [parameters[name] for name in self.arguments]
        except KeyError:
            missing = [name for name in self.arguments if name not in parameters]
            raise ParameterError(f"the parameters lack {_listed(missing)}") from None


def _positional(count: int) -> str:
    return f"{count} placeholder{'' if count == 1 else 's'}"


def _listed(names: Sequence[object]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _length(parameters: object) -> int:
    if isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes):
        return len(parameters)
    raise ParameterError("parameters are given as a sequence or a mapping")


class Rewriter:
    """Makes plans of statements.

    Parameters
    ----------
    definitions
        The managed tables and the views. Plans are made anew when their version changes.
    dialect
        The name of the engine's dialect: ``duckdb``, ``monetdb`` or ``postgresql``.
    paramstyle
        ``pyformat`` or ``qmark``.
    cache_size
        How many plans are kept.
    search_path
        The session's, if it is not that of a new connection.
    temporaries
        The session's temporary tables and views, if it has any.

    Notes
    -----
    Safe to share between threads: the cache is replaced as a whole when it is full
    or the catalog has changed, and a plan that two threads make is the same plan.
    """

    def __init__(
        self,
        definitions: Definitions,
        dialect: str = "duckdb",
        paramstyle: str = "pyformat",
        cache_size: int = 1000,
        *,
        search_path: SearchPath | None = None,
        temporaries: Temporaries | None = None,
    ) -> None:
        if paramstyle not in PARAMSTYLES:
            raise ValueError(f"paramstyle must be one of {', '.join(PARAMSTYLES)}")
        self._rules = rules_of(dialect)
        self.catalog = catalog_of(definitions, dialect, search_path, temporaries)
        self._planner = Planner(self.catalog, self._rules, paramstyle)
        self._paramstyle = paramstyle
        self._cache_size = cache_size
        self._cache: dict[tuple[str, int, bool | str], Prepared] = {}

    def plan(self, sql: str, has_parameters: bool = True) -> Prepared:
        """Return the plan of one statement.

        Parameters
        ----------
        sql
            The application's text.
        has_parameters
            Under ``pyformat``, whether the application gave parameters: if it did
            not, percent signs are taken as they stand.

        Raises
        ------
        RewriteError
            One of its subclasses, naming the problem and its place.
        """
        key = (sql, self.catalog.version, has_parameters)
        return self._cache.get(key) or self._cached(key, self._paramstyle)

    def plan_beside(
        self, sql: str, has_parameters: bool, given: frozenset[str]
    ) -> Prepared:
        """As :meth:`plan`, where names that nothing else has are relations that are given.

        The names are in small letters. The relations are those of the transaction.

        Raises
        ------
        RewriteError
            As :meth:`plan`; for statements that only name what lasts, too.
        """
        key = (sql, self.catalog.version, f"{has_parameters} {sorted(given)}")
        found = self._cache.get(key)
        if found is not None:
            return found
        lexed = number_placeholders(
            sql, self._paramstyle, has_parameters, lexicon=self._rules.lexicon
        )
        plan = self._planner.plan(lexed, dict.fromkeys(given, True))
        if not plan.may_read_given:
            raise UnsupportedSQL("a Python variable in this statement is not supported")
        self._cache[key] = prepared = Prepared(plan, lexed.arguments)
        return prepared

    def plan_body(self, sql: str) -> Prepared:
        """Return the plan of a statement that was prepared by PREPARE.

        Its placeholders are the engine's own; :attr:`Prepared.arguments` are the
        positions of EXECUTE's.

        Raises
        ------
        RewriteError
            As :meth:`plan`.
        """
        key = (sql, self.catalog.version, OWN_STYLE)
        return self._cache.get(key) or self._cached(key, OWN_STYLE)

    def command_tag(self, sql: str, has_parameters: bool, rowcount: int) -> str:
        """Return the command tag of a statement that has run.

        They are PostgreSQL's, which psycopg shows as ``cursor.statusmessage``; the other
        engines have none, and get the same. Empty for a text without a statement.

        Parameters
        ----------
        sql, has_parameters
            As for :meth:`plan`.
        rowcount
            The number of its rows; -1 if that is not known: the tag is without one.
        """
        style = OWN_STYLE if PREPARES.match(sql) else self._paramstyle
        lexed = number_placeholders(
            sql, style, has_parameters, lexicon=self._rules.lexicon
        )
        if lexed.is_empty:
            return ""
        tag = registry_of(self._rules.name).tag(Source(lexed, self._rules))
        name, is_counted, _ = tag.partition(" #")
        if is_counted and rowcount >= 0:
            return f"{name} {rowcount}"
        return name.removesuffix(" 0")

    def _cached(self, key: tuple[str, int, bool | str], paramstyle: str) -> Prepared:
        prepared = self._prepare(key[0], paramstyle, has_parameters=bool(key[2]))
        if len(self._cache) >= self._cache_size:
            self._cache = {}
        self._cache[key] = prepared
        return prepared

    def _prepare(self, sql: str, paramstyle: str, *, has_parameters: bool) -> Prepared:
        lexicon = self._rules.lexicon
        plan: Plan | None = None
        if paramstyle != OWN_STYLE and PREPARES.match(sql):
            plan = self._preparing(sql)
            if plan is not None:
                return Prepared(plan, ())
        lexed = number_placeholders(sql, paramstyle, has_parameters, lexicon=lexicon)
        if lexed.is_empty and paramstyle != OWN_STYLE:
            return Prepared(Nothing(0, ()), ())
        try:
            if paramstyle != OWN_STYLE and may_set_config(sql):
                plan = plan_set_config(Source(lexed, self._rules))
            if plan is None and paramstyle != OWN_STYLE and may_notify(sql):
                plan = plan_notifying_query(Source(lexed, self._rules))
            if plan is None and paramstyle != OWN_STYLE and may_show_given(sql):
                plan = plan_show_given(Source(lexed, self._rules))
            plan = plan or self._planner.plan(lexed)
        except RecursionError:
            raise UnsupportedSQL("the statement is nested too deeply") from None
        return Prepared(plan, lexed.arguments)

    def _preparing(self, sql: str) -> Plan | None:
        """Return the plan of PREPARE; None if the text is another statement."""
        lexed = number_placeholders(sql, OWN_STYLE, lexicon=self._rules.lexicon)
        source = Source(lexed, self._rules)
        if source.words[0].keyword != "PREPARE":
            return None
        if registry_of(self._rules.name).kind(source) is None:
            raise refusal(source)
        check_hidden(source, self.catalog)
        plan = plan_prepare(source)
        self.plan_body(plan.body)
        return plan
