"""The entry point: statements to plans, with a cache of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tique_rewriter.alter import plan_alter
from tique_rewriter.change_plans import (
    ChangingWith,
    CopyOut,
    Delete,
    InsertQuery,
    InsertRows,
    Merge,
    Update,
)
from tique_rewriter.control import VERBS, plan_control
from tique_rewriter.copying import plan_copy
from tique_rewriter.create_as import (
    CreateTableAs,
    into_of,
    is_from_query,
    plan_create_as,
    plan_select_into,
)
from tique_rewriter.cursor import Cursor
from tique_rewriter.ddl import plan_create_index, plan_drop_index, plan_drop_table
from tique_rewriter.defining_functions import (
    FUNCTIONS,
    MACROS,
    plan_extension,
    plan_function,
    plan_macro,
)
from tique_rewriter.definition import plan_create_table
from tique_rewriter.dialects import rules_of
from tique_rewriter.errors import ParameterError, UnsupportedSQL
from tique_rewriter.hidden_calls import check_defaults, check_hidden, check_statement
from tique_rewriter.insert import plan_insert
from tique_rewriter.locking import (
    has_lock_clause,
    has_locking_member,
    has_locking_subquery,
    plan_locking,
    plan_locking_subqueries,
    without_rows,
)
from tique_rewriter.maintenance import plan_tidying
from tique_rewriter.materialized import plan_create_materialized, plan_refresh
from tique_rewriter.merging import plan_merge
from tique_rewriter.modify import plan_delete, plan_update
from tique_rewriter.objects import OBJECTS, plan_alter_index, plan_object
from tique_rewriter.placeholders import OWN_STYLE, Lexed, number_placeholders
from tique_rewriter.plan import Explain, LockingSelect, Plan, Select
from tique_rewriter.privileges import plan_default_privileges, plan_grant
from tique_rewriter.qualified import without_database, without_schemas
from tique_rewriter.query import plan_query
from tique_rewriter.schema import Catalog, Definitions
from tique_rewriter.session import Nothing, SessionPlan
from tique_rewriter.session_calls import (
    may_notify,
    may_set_config,
    plan_notify,
    plan_notifying_query,
    plan_set_config,
)
from tique_rewriter.session_cursors import CURSOR_VERBS, plan_cursor
from tique_rewriter.session_prepare import PREPARES, plan_prepare
from tique_rewriter.session_statements import (
    analyzes,
    explain_options,
    plan_session,
)
from tique_rewriter.source import Source
from tique_rewriter.table_queries import is_table_query, written_as_select
from tique_rewriter.temporary import (
    Lasting,
    is_temporary,
    plan_create_temporary,
    plan_drop_temporary_views,
    plan_temporary_view,
)
from tique_rewriter.truncate import plan_truncate
from tique_rewriter.types import TYPES, plan_comment, plan_type
from tique_rewriter.view_changes import through_view
from tique_rewriter.views import (
    WithViews,
    plan_alter_view,
    plan_create_view,
    plan_drop_view,
)
from tique_rewriter.with_changes import has_changes, plan_changing_with

PARAMSTYLES = ("pyformat", "qmark")

_WITH_GIVEN = (
    Select,
    InsertRows,
    InsertQuery,
    Update,
    Delete,
    Merge,
    CreateTableAs,
    CopyOut,
)
"""Plans that may read relations which are given for one execution."""


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
    catalog
        The managed tables. Plans are made anew when its version changes.
    dialect
        The name of the engine's dialect: ``duckdb``, ``monetdb`` or ``postgresql``.
    paramstyle
        ``pyformat`` or ``qmark``.
    cache_size
        How many plans are kept.

    Notes
    -----
    Safe to share between threads: the cache is replaced as a whole when it is full
    or the catalog has changed, and a plan that two threads make is the same plan.
    """

    def __init__(
        self,
        catalog: Definitions,
        dialect: str = "duckdb",
        paramstyle: str = "pyformat",
        cache_size: int = 1000,
    ) -> None:
        if paramstyle not in PARAMSTYLES:
            raise ValueError(f"paramstyle must be one of {', '.join(PARAMSTYLES)}")
        self._rules = rules_of(dialect)
        self._definitions = catalog
        self._catalog = WithViews(catalog, self._rules)
        self._lasting = self._catalog
        if catalog.lasting is not catalog:
            self._lasting = WithViews(Lasting(catalog), self._rules)
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
        key = (sql, self._definitions.version, has_parameters)
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
        key = (sql, self._definitions.version, f"{has_parameters} {sorted(given)}")
        found = self._cache.get(key)
        if found is not None:
            return found
        lexed = number_placeholders(
            sql, self._paramstyle, has_parameters, lexicon=self._rules.lexicon
        )
        plan = self._plan(lexed, dict.fromkeys(given, True))
        if not isinstance(plan, _WITH_GIVEN):
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
        key = (sql, self._definitions.version, OWN_STYLE)
        return self._cache.get(key) or self._cached(key, OWN_STYLE)

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
            plan = plan or self._plan(lexed)
        except RecursionError:
            raise UnsupportedSQL("the statement is nested too deeply") from None
        return Prepared(plan, lexed.arguments)

    def _preparing(self, sql: str) -> Plan | None:
        """Return the plan of PREPARE; None if the text is another statement."""
        lexed = number_placeholders(sql, OWN_STYLE, lexicon=self._rules.lexicon)
        source = Source(lexed, self._rules)
        if source.words[0].keyword != "PREPARE":
            return None
        if "PREPARE" not in self._rules.session_verbs:
            raise _refusal(source)
        check_hidden(source, self._catalog)
        plan = plan_prepare(source)
        self.plan_body(plan.body)
        return plan

    def _plan(self, lexed: Lexed, given: Mapping[str, bool] | None = None) -> Plan:
        source = without_database(Source(lexed, self._rules, given), self._definitions)
        keywords = source.keywords()
        if keywords[0] == "EXPLAIN" or keywords[0] in self._rules.plan_verbs:
            return self._explain(source)
        if keywords[0] in VERBS and (
            keywords[0] != "SET" or keywords[1:2] == ["TRANSACTION"]
        ):
            return plan_control(source)
        if keywords[0] in self._rules.session_verbs:
            return plan_session(source, self._catalog)
        if keywords[0] in CURSOR_VERBS and self._rules.has_cursors:
            return plan_cursor(source, self._plan)
        if keywords[0] == "NOTIFY" and self._rules.notifies:
            return plan_notify(source)
        if keywords[0] in self._rules.tidies:
            return plan_tidying(source)
        if keywords[0] in ("GRANT", "REVOKE") and self._rules.grants:
            return plan_grant(source)
        if keywords[0] == "REFRESH" and self._rules.materializes:
            return plan_refresh(source, self._lasting)
        known = {*_DEFINITIONS, "WITH", *_CHANGES, *self._rules.queries}
        if keywords[0] not in known:
            raise _refusal(source)
        check_statement(source, self._catalog)
        if keywords[0] in _DEFINITIONS:
            return self._definition(source, keywords)
        if (into := into_of(source)) is not None:
            return plan_select_into(source, self._lasting, into, self._statement)
        if is_table_query(source):
            return self._statement(written_as_select(source))
        if keywords[0] == "WITH" and (
            has_changes(source)
            or _verb_after_with(source) in _IN_PARTS
            or has_locking_member(source)
        ):
            return plan_changing_with(source, self._part, self._locking_or_other)
        if has_locking_subquery(source):
            return plan_locking_subqueries(
                source, self._part, self._without, self._locking_or_other
            )
        return self._locking_or_other(source)

    def _locking_or_other(self, source: Source) -> Plan:
        source = without_schemas(source)
        if has_lock_clause(source):
            rest = without_rows(source)
            if rest is not None:
                return self._statement(rest)
            return plan_locking(source, self._catalog)
        return self._statement(source)

    def _part(self, source: Source, start: int, end: int) -> Lexed:
        """Return a part of a statement as one of its own; all places stay."""
        lexed = source.lexed
        first, last = lexed.original_position(start), lexed.original_position(end)
        blank = re.sub(r"[^\n]", " ", lexed.original[:first])
        return number_placeholders(
            blank + lexed.original[first:last],
            self._paramstyle,
            bool(lexed.arguments),
            lexicon=self._rules.lexicon,
        )

    def _without(self, source: Source, holes: Mapping[tuple[int, int], str]) -> Lexed:
        """Return a statement with other texts in the places of longer ones."""
        lexed = source.lexed
        original = lexed.original
        for (start, end), text in holes.items():
            first, last = lexed.original_position(start), lexed.original_position(end)
            blank = re.sub(r"[^\n]", " ", original[first + len(text) : last])
            original = original[:first] + text + blank + original[last:]
        return number_placeholders(
            original,
            self._paramstyle,
            bool(lexed.arguments),
            lexicon=self._rules.lexicon,
        )

    def _statement(self, source: Source) -> Plan:
        """Plan a query or a change."""
        source = without_schemas(without_database(source, self._definitions))
        source = through_view(source, self._catalog)
        keywords = source.keywords()
        verb = _verb_after_with(source) if keywords[0] == "WITH" else keywords[0]
        plan = _CHANGES.get(verb, plan_query)(source, self._catalog)
        check_defaults(source, plan, self._catalog)
        return plan

    def _explain(self, source: Source) -> Explain:
        """Read the words after EXPLAIN afresh: the parser does not cut them."""
        explain = source.words[0]
        options, rest = explain_options(source)
        if explain.keyword != "EXPLAIN":
            options = (explain.keyword, *options)
        first = rest.words[0].keyword
        refused = {
            "ANALYZE",
            "EXPLAIN",
            "COPY",
            "REFRESH",
            *VERBS,
            *self._rules.plan_verbs,
        }
        if first in refused | self._rules.session_verbs:
            raise source.unsupported(f"{explain.keyword} {first}", explain.start)
        is_locking = has_locking_subquery(rest)
        inner = None if is_locking else self._plan(rest.lexed)
        if isinstance(inner, SessionPlan):
            raise source.unsupported(f"{explain.keyword} {first}", explain.start)
        if (
            inner is None
            or isinstance(inner, LockingSelect)
            or (
                isinstance(inner, ChangingWith)
                and any(isinstance(m.plan, LockingSelect) for m in inner.members)
            )
        ):
            what = f"{explain.keyword} of a query with FOR UPDATE"
            raise source.unsupported(what, explain.start, "leave FOR UPDATE out")
        return Explain(
            inner.parameters, inner.references, inner, options, analyzes(options)
        )

    def _definition(self, source: Source, keywords: list[str]) -> Plan:
        if keywords[0] == "CREATE" and is_temporary(source):
            return self._create_temporary(source)
        if (
            keywords[0] == "CREATE"
            and self._rules.temporary_views
            and is_temporary(source, "VIEW")
        ):
            return plan_temporary_view(source, self._definitions)
        if keywords[1:3] == ["MATERIALIZED", "VIEW"] and self._rules.materializes:
            return self._materialized(source, keywords[0])
        cursor = Cursor(source)
        verb = cursor.take().keyword
        is_long = verb == "CREATE" and cursor.left > 2
        replaces = is_long and cursor.accept("OR REPLACE")
        following = cursor.keywords[:2]
        match [verb, *following]:
            case ["COMMENT", *_]:
                return plan_comment(source, self._lasting)
            case ["ALTER", "TABLE", *_]:
                return plan_alter(source, self._lasting)
            case ["CREATE", "TABLE", *_] if not replaces or (
                self._rules.replaces_tables
            ):
                return self._create_table(source)
            case ["CREATE", "VIEW", *_]:
                return plan_create_view(source, self._lasting)
            case ["DROP", "TABLE", *_]:
                return plan_drop_table(source, self._catalog)
            case ["DROP", "INDEX", *_]:
                return plan_drop_index(source)
            case ["DROP", "VIEW", *_]:
                return plan_drop_temporary_views(
                    source, self._definitions
                ) or plan_drop_view(source, self._lasting)
            case ["ALTER", "VIEW", *_] if self._rules.alters_views:
                return plan_alter_view(source, self._lasting)
            case ["ALTER", "DEFAULT", "PRIVILEGES"] if self._rules.grants_ahead:
                return plan_default_privileges(source)
            case ["ALTER", "INDEX", *_] if self._rules.renames_indexes:
                return plan_alter_index(source, self._lasting)
            case [_, kind, *_] if kind in FUNCTIONS and self._rules.defines_functions:
                return plan_function(source, self._lasting)
            case [_, kind, *_] if kind in MACROS and self._rules.has_macros:
                return plan_macro(source, self._lasting)
            case [_, kind, *_] if kind in OBJECTS:
                return plan_object(source, self._lasting)
            case [_, kind, *_] if replaces:
                raise source.unsupported(
                    f"CREATE OR REPLACE {kind}", source.words[0].start
                )
            case ["CREATE", "UNLOGGED", "TABLE"] if self._rules.has_unlogged:
                return self._create_table(_logged(source))
            case ["CREATE", "INDEX", *_] | ["CREATE", "UNIQUE", "INDEX"]:
                return plan_create_index(source, self._lasting)
            case [_, kind, *_] if kind in TYPES:
                return plan_type(source, self._lasting)
            case [_, "EXTENSION", *_] if self._rules.extensions:
                return plan_extension(source)
            case [_, kind, *_]:
                raise source.unsupported(f"{verb} {kind}", source.words[0].start)
        raise source.syntax("the statement ends too early", source.words[0].start)

    def _create_table(self, source: Source) -> Plan:
        if is_from_query(source):
            return plan_create_as(source, self._lasting, self._part, self._statement)
        return plan_create_table(source, self._lasting)

    def _materialized(self, source: Source, verb: str) -> Plan:
        if verb == "CREATE":
            return plan_create_materialized(source, self._lasting)
        if verb == "DROP":
            return plan_drop_table(source, self._lasting, "MATERIALIZED VIEW")
        return plan_alter(source, self._lasting, is_materialized=True)

    def _create_temporary(self, source: Source) -> Plan:
        return plan_create_temporary(source, self._catalog.lasting, self._as_temporary)

    def _as_temporary(self, source: Source) -> Plan:
        lasting = WithViews(self._definitions.lasting, self._rules)
        if is_from_query(source):
            return plan_create_as(source, lasting, self._part, self._statement)
        return plan_create_table(source, lasting)


_IN_PARTS = ("UPDATE", "DELETE")
"""Changes whose own WITH list is planned apart."""

_DEFINITIONS = ("ALTER", "COMMENT", "CREATE", "DROP")

_Planner = Callable[[Source, Catalog], Plan]

_CHANGES: dict[str, _Planner] = {
    "INSERT": plan_insert,
    "UPDATE": plan_update,
    "DELETE": plan_delete,
    "COPY": plan_copy,
    "MERGE": plan_merge,
    "TRUNCATE": plan_truncate,
}

_INSTEAD = {
    "PREPARE": "give the values to execute()",
    "LISTEN": "open a connection of the engine's own driver for notifications",
    "UNLISTEN": "open a connection of the engine's own driver for notifications",
    "NOTIFY": "open a connection of the engine's own driver for notifications",
    "LOCK": "a conflicting change is found when you commit",
    "VACUUM": "checkpoints keep the tables tidy",
    "CHECKPOINT": "call Connection.checkpoint()",
    "EXPORT": "it copies storage without recent versions; detach first, or COPY the tables",
    "LOAD": "code of extensions may read tables outside the snapshot",
    "INSTALL": "code of extensions may read tables outside the snapshot",
}


def _verb_after_with(source: Source) -> str:
    """Return the first word outside all brackets that begins a statement."""
    for word in source.words[1:]:
        if word.depth == 0 and word.keyword in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            return word.keyword
        if word.depth == 0 and word.keyword in ("SELECT", "FROM", "VALUES", "TABLE"):
            return "SELECT"
    return "SELECT"


def _logged(source: Source) -> Source:
    """Return CREATE UNLOGGED TABLE without that word: its versions are in the log."""
    word = source.words[1]
    blank = " " * (word.end - word.start)
    text = source.lexed.replaced(word.start, word.end, blank)
    return Source(text, source.rules)


def _refusal(source: Source) -> UnsupportedSQL:
    word = source.words[0]
    shown = word.keyword or source.raw(word)
    refusal = source.unsupported(shown, word.start, _INSTEAD.get(shown, ""))
    return source.unread(refusal)
