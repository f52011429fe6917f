"""The way from a statement to its plan, for the readers of all kinds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tique_rewriter.kinds.change.copying import plan_copy
from tique_rewriter.kinds.change.insert import plan_insert
from tique_rewriter.kinds.change.merging import plan_merge
from tique_rewriter.kinds.change.modify import plan_delete, plan_update
from tique_rewriter.kinds.change.truncate import plan_truncate
from tique_rewriter.kinds.change.view_changes import through_view
from tique_rewriter.kinds.change.with_changes import (
    has_changes,
    plan_changing_with,
    verb_after_with,
)
from tique_rewriter.kinds.define.create_as import into_of, plan_select_into
from tique_rewriter.kinds.query.locking import (
    has_lock_clause,
    has_locking_member,
    has_locking_subquery,
    plan_locking,
    plan_locking_subqueries,
    without_rows,
)
from tique_rewriter.kinds.query.query import plan_query
from tique_rewriter.kinds.query.table_queries import is_table_query, written_as_select
from tique_rewriter.kinds.registry import registry_of
from tique_rewriter.plans.change_plans import InsertQuery, InsertRows, Update
from tique_rewriter.safety.hidden_calls import check_defaults, check_statement
from tique_rewriter.scope.qualified import without_database, without_schemas
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique_rewriter.dialects import Rules
    from tique_rewriter.errors import UnsupportedSQL
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.placeholders import Lexed

_CHANGES: dict[str, Callable[[Source, Catalog], Plan]] = {
    "INSERT": plan_insert,
    "UPDATE": plan_update,
    "DELETE": plan_delete,
    "COPY": plan_copy,
    "MERGE": plan_merge,
    "TRUNCATE": plan_truncate,
}

_IN_PARTS = ("UPDATE", "DELETE")
"""Changes whose own WITH list is planned apart."""

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


class Planner:
    """Plans statements by a catalog.

    Attributes
    ----------
    catalog : Catalog
        The tables and views as statements see them.
    without_temporaries : Catalog
        What definitions may name: no temporary ones.
    """

    def __init__(self, catalog: Catalog, rules: Rules, paramstyle: str) -> None:
        self._rules = rules
        self._paramstyle = paramstyle
        self._registry = registry_of(rules.name)
        self.catalog = self.without_temporaries = catalog
        if catalog.temporaries is not None:
            self.without_temporaries = catalog.refusing_temporaries

    def plan(self, lexed: Lexed, given: Mapping[str, bool] | None = None) -> Plan:
        """Plan a statement, which may read relations that are ``given``."""
        source = without_database(Source(lexed, self._rules, given), self.catalog)
        kind = self._registry.kind(source)
        if kind is None:
            raise refusal(source)
        if kind.checks:
            check_statement(source, self.catalog)
        return kind.read(source, self)

    def plan_rows(self, source: Source) -> Plan:
        """Plan a query or a change, whose parts may be statements of their own."""
        if (into := into_of(source)) is not None:
            return plan_select_into(
                source, self.without_temporaries, into, self.plan_whole
            )
        if is_table_query(source):
            return self.plan_whole(written_as_select(source))
        if source.words[0].keyword == "WITH" and (
            has_changes(source)
            or verb_after_with(source) in _IN_PARTS
            or has_locking_member(source)
        ):
            return plan_changing_with(source, self.part, self._plan_part)
        if has_locking_subquery(source):
            return plan_locking_subqueries(
                source, self.part, self._without, self._plan_part
            )
        return self._plan_part(source)

    def _plan_part(self, source: Source) -> Plan:
        source = without_schemas(source)
        if has_lock_clause(source):
            rest = without_rows(source)
            if rest is not None:
                return self.plan_whole(rest)
            return plan_locking(source, self.catalog)
        return self.plan_whole(source)

    def plan_whole(self, source: Source) -> Plan:
        """Plan a query or a change that is one statement, and locks nothing."""
        source = without_schemas(without_database(source, self.catalog))
        source, conditions = through_view(source, self.catalog)
        verb = source.words[0].keyword
        verb = verb_after_with(source) if verb == "WITH" else verb
        plan = _CHANGES.get(verb, plan_query)(source, self.catalog)
        if conditions:
            assert isinstance(plan, InsertRows | InsertQuery | Update)
            table = replace(plan.table, conditions=conditions)
            plan = replace(plan, table=table)
        check_defaults(source, plan, self.catalog)
        return plan

    def part(self, source: Source, start: int, end: int) -> Lexed:
        """Return a part of a statement as one of its own; all places stay."""
        lexed = source.lexed
        first, last = lexed.original_position(start), lexed.original_position(end)
        blank = re.sub(r"[^\n]", " ", lexed.original[:first])
        return self._lexed_again(source, blank + lexed.original[first:last])

    def _without(self, source: Source, holes: Mapping[tuple[int, int], str]) -> Lexed:
        """Return a statement with other texts in the places of longer ones."""
        lexed = source.lexed
        original = lexed.original
        for (start, end), text in holes.items():
            first, last = lexed.original_position(start), lexed.original_position(end)
            blank = re.sub(r"[^\n]", " ", original[first + len(text) : last])
            original = original[:first] + text + blank + original[last:]
        return self._lexed_again(source, original)

    def _lexed_again(self, source: Source, text: str) -> Lexed:
        has_parameters, lexicon = bool(source.lexed.arguments), self._rules.lexicon
        return number_placeholders(
            text, self._paramstyle, has_parameters, lexicon=lexicon
        )


def refusal(source: Source) -> UnsupportedSQL:
    """Return the refusal of a statement of a kind that the dialect does not have."""
    word = source.words[0]
    shown = word.keyword or source.raw(word)
    found = source.unsupported(shown, word.start, _INSTEAD.get(shown, ""))
    return source.unread(found)
