"""Queries and changes of rows, and EXPLAIN of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.kinds.change.with_changes import verb_after_with
from tique_rewriter.kinds.query.locking import has_locking_subquery
from tique_rewriter.kinds.registry import Kind, phrases, registry_of
from tique_rewriter.kinds.session.session import SessionPlan, after_verb
from tique_rewriter.plans.change_plans import ChangingWith
from tique_rewriter.plans.plan import Explain, LockingSelect
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique_rewriter.kinds.planner import Planner
    from tique_rewriter.kinds.registry import Tag

_SWITCH = ("", "TRUE", "FALSE", "ON", "OFF")
_OPTIONS = {
    **dict.fromkeys(("ANALYZE", "VERBOSE", "COSTS", "SETTINGS", "BUFFERS"), _SWITCH),
    **dict.fromkeys(("WAL", "TIMING", "SUMMARY", "MEMORY"), _SWITCH),
    "FORMAT": ("TEXT", "JSON", "XML", "YAML", "HTML", "GRAPHVIZ", "MERMAID"),
}
"""Options of EXPLAIN with their values; the engine says which of them it has."""

_RUNS = frozenset({"ANALYZE", "ANALYZE TRUE", "ANALYZE ON"})


def _explain(source: Source, planner: Planner) -> Explain:
    explain = source.words[0]
    options, rest = _explain_options(source)
    if explain.keyword != "EXPLAIN":
        options = (explain.keyword, *options)
    kind = registry_of(source.rules.name).kind(rest)
    shown = f"{explain.keyword} {rest.words[0].keyword}"
    if kind is not None and not kind.explains:
        raise source.unsupported(shown, explain.start)
    inner = None if has_locking_subquery(rest) else planner.plan(rest.lexed)
    if isinstance(inner, SessionPlan):
        raise source.unsupported(shown, explain.start)
    members = inner.members if isinstance(inner, ChangingWith) else ()
    if (
        inner is None
        or isinstance(inner, LockingSelect)
        or any(isinstance(member.plan, LockingSelect) for member in members)
    ):
        what = f"{explain.keyword} of a query with FOR UPDATE"
        raise source.unsupported(what, explain.start, "leave FOR UPDATE out")
    analyzes = not _RUNS.isdisjoint(options)
    return Explain(inner.parameters, inner.references, inner, options, analyzes)


def _explain_options(source: Source) -> tuple[tuple[str, ...], Source]:
    """Return the options of EXPLAIN as they are written in brackets, and the statement.

    Raises
    ------
    UnsupportedSQL
        For an unknown one.
    """
    cursor, options = after_verb(source), list[str]()
    last = cursor.before
    while source.rules.explains and (option := cursor.accept("ANALYZE", "VERBOSE")):
        options.append(option)
        last = cursor.before
    is_listed = cursor.follows("(") and not cursor.follows("( SELECT")
    if source.rules.explains and not options and is_listed:
        start, listed = cursor.start, cursor.brackets() or []
        for part in " ".join(word.keyword for word in listed).split(" , "):
            name, _, value = part.partition(" ")
            if value not in _OPTIONS.get(name, ()):
                raise source.unsupported(f"EXPLAIN ({part})", start)
            options.append(part)
    if cursor.is_done:
        raise source.syntax(f"{last.keyword} of nothing", last.start)
    return tuple(options), Source(source.lexed.after(cursor.before.end), source.rules)


def _tag_after_with(source: Source) -> str:
    return registry_of(source.rules.name).tag(source, verb_after_with(source))


def _rows(begins: Mapping[str, Tag], *, explains: bool = True) -> Kind:
    return Kind(
        lambda source, planner: planner.plan_rows(source),
        begins,
        checks=True,
        explains=explains,
    )


EXPLAIN = Kind(_explain, phrases("EXPLAIN|PLAN"), explains=False)
QUERY = _rows(phrases("SELECT|VALUES|TABLE|FROM|PIVOT|UNPIVOT|(", tag="SELECT #"))
CHANGE = (
    _rows(
        {
            "WITH": _tag_after_with,
            "INSERT": "INSERT 0 #",
            "UPDATE": "UPDATE #",
            "DELETE": "DELETE #",
            "MERGE": "MERGE #",
            "TRUNCATE": "TRUNCATE TABLE",
        }
    ),
    _rows({"COPY": "COPY #"}, explains=False),
)
