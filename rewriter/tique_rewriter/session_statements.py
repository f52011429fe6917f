"""Statements about the session, by their first words; and the options of EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.attaching import ATTACHING_VERBS, plan_attaching
from tique_rewriter.maintenance import MAINTAINING_VERBS, plan_maintenance
from tique_rewriter.session import (
    SETTING_VERBS,
    plan_discard,
    plan_set_constraints,
    plan_setting,
    plan_use,
    rest_of,
)
from tique_rewriter.session_describe import (
    DESCRIBING_VERBS,
    plan_description,
    plan_variable,
)
from tique_rewriter.session_prepare import plan_deallocate, plan_execute, plan_prepare
from tique_rewriter.source import Source

if TYPE_CHECKING:
    from tique_rewriter.plan import Plan
    from tique_rewriter.schema import Catalog

_OPTIONS = {
    "ANALYZE": ("", "TRUE", "FALSE", "ON", "OFF"),
    "VERBOSE": ("", "TRUE", "FALSE", "ON", "OFF"),
    "COSTS": ("", "TRUE", "FALSE", "ON", "OFF"),
    "SETTINGS": ("", "TRUE", "FALSE", "ON", "OFF"),
    "BUFFERS": ("", "TRUE", "FALSE", "ON", "OFF"),
    "WAL": ("", "TRUE", "FALSE", "ON", "OFF"),
    "TIMING": ("", "TRUE", "FALSE", "ON", "OFF"),
    "SUMMARY": ("", "TRUE", "FALSE", "ON", "OFF"),
    "MEMORY": ("", "TRUE", "FALSE", "ON", "OFF"),
    "FORMAT": ("TEXT", "JSON", "XML", "YAML", "HTML", "GRAPHVIZ", "MERMAID"),
}
"""Options of EXPLAIN with their values; the engine says which of them it has."""


def plan_session(source: Source, catalog: Catalog) -> Plan:
    """Return the plan of a statement whose verb is one of the dialect's for sessions."""
    verb = source.words[0].keyword
    if verb in DESCRIBING_VERBS and source.rules.describes:
        return plan_description(source, catalog)
    if source.rules.describes and verb in ("SET", "RESET"):
        words = rest_of(source).keywords()
        if words[0] == "VARIABLE" and len(words) > 1:
            return plan_variable(source, catalog)
    if source.rules.deferrable and source.keywords()[:2] == ["SET", "CONSTRAINTS"]:
        return plan_set_constraints(source)
    if verb in MAINTAINING_VERBS:
        return plan_maintenance(source, catalog)
    if verb in SETTING_VERBS:
        return plan_setting(source)
    if verb in ATTACHING_VERBS:
        return plan_attaching(source)
    if verb == "USE":
        return plan_use(rest_of(source))
    if verb == "DISCARD":
        return plan_discard(source)
    if verb == "PREPARE":
        return plan_prepare(source)
    if verb == "DEALLOCATE":
        return plan_deallocate(source)
    return plan_execute(source, catalog)


def explain_options(source: Source) -> tuple[tuple[str, ...], Source]:
    """Return the options of EXPLAIN as they are written in brackets, and the statement.

    Raises
    ------
    UnsupportedSQL
        For an unknown one.
    """
    rest = rest_of(source)
    options: list[str] = []
    while rest.words[0].keyword in ("ANALYZE", "VERBOSE") and source.rules.explains:
        options.append(rest.words[0].keyword)
        rest = rest_of(rest)
    if rest.words[0].keyword != "(" or options or not source.rules.explains:
        return tuple(options), rest
    if rest.keywords(1)[:1] == ["SELECT"]:
        return (), rest
    end = rest.closing(rest.words)
    text = " ".join(rest.keywords()[1:end])
    for part in text.split(" , "):
        name, _, value = part.partition(" ")
        if value not in _OPTIONS.get(name, ()):
            raise rest.unsupported(f"EXPLAIN ({part})", rest.words[0].start)
        options.append(part)
    lexed = rest.lexed.after(rest.words[end].end)
    if not lexed.text.strip():
        raise source.syntax("EXPLAIN of nothing", source.words[0].start)
    return tuple(options), Source(lexed, source.rules)


def analyzes(options: tuple[str, ...]) -> bool:
    """Whether EXPLAIN runs the statement."""
    return any(
        option in ("ANALYZE", "ANALYZE TRUE", "ANALYZE ON") for option in options
    )
