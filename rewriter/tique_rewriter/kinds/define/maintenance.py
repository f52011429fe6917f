"""Statements that tend the engine's own structures and change no row.

CHECKPOINT is the driver's own. ANALYZE and VACUUM are run on the storage tables, by names
that were looked up; LOAD takes what is a part of the engine anyway.

Elsewhere ANALYZE, VACUUM, REINDEX and CLUSTER come here: the engine keeps its storage tables tidy.
None of them changes what any query answers, so the engine runs them as they stand. Names
and options are words and numbers; no name is one of tique's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.errors import UnknownTable, UnsupportedSQL
from tique_rewriter.kinds.session.session import SessionPlan, after_verb, finish, unread
from tique_rewriter.plans.ddl_plans import Tidy
from tique_rewriter.scope.references import column_position
from tique_rewriter.text.names import PRIVATE_SCHEMA, quote
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.cursor import Cursor
    from tique_rewriter.text.source import Source, Word


_OF_TABLES = frozenset({"ANALYZE", "VACUUM"})


@dataclass(frozen=True)
class Checkpoint(SessionPlan):
    """CHECKPOINT: stable versions are folded into storage."""


@dataclass(frozen=True)
class Maintain(SessionPlan):
    """A statement for the engine, in which every name is that of a storage table."""

    text: str


def plan_maintenance(source: Source, catalog: Catalog) -> SessionPlan:
    """Return the plan of ANALYZE, VACUUM, CHECKPOINT or LOAD.

    Raises
    ------
    UnknownTable
        For a table that is not managed.
    UnsupportedSQL
        For an option, and for an extension that is no part of the engine.
    """
    verb = source.words[0].keyword
    is_bare = not source.lexed.after(source.words[0].end).text.strip(" ;\t\r\n")
    if is_bare and verb == "CHECKPOINT":
        return Checkpoint(0, ())
    if is_bare and verb in _OF_TABLES and "all tables" in source.rules.maintains:
        return Maintain(0, (), verb)
    cursor = after_verb(source)
    if verb == "FORCE" and cursor.keywords == ["CHECKPOINT"]:
        return Checkpoint(0, ())
    if verb == "LOAD":
        return _load(cursor)
    if verb not in _OF_TABLES:
        raise _refused(source, cursor.word)
    if verb == "VACUUM" and cursor.accept("ANALYZE"):
        verb = "VACUUM ANALYZE"
        if not cursor.left:
            return Maintain(0, (), verb)
    return Maintain(0, (), f"{verb} {_relation(cursor, catalog)}")


def _relation(cursor: Cursor, catalog: Catalog) -> str:
    """Return ``schema.table (columns)``, with all names quoted."""
    source, start = cursor.source, cursor.start
    schema, name = cursor.unreserved("")
    table = catalog.find(schema or None, name)
    if table is None:
        raise source.error(UnknownTable, f'unknown table "{name}"', start)
    text = f"{quote(table.schema)}.{quote(table.name)}"
    if (listed := cursor.brackets()) is not None:
        pieces = split(listed)
        text += f" ({', '.join(_column(source, table, piece) for piece in pieces)})"
    finish(cursor)
    return text


def _column(source: Source, table: Table, words: list[Word]) -> str:
    if len(words) != 1:
        raise _refused(source, words[0] if words else source.words[-1])
    name = source.identifier(words[0])
    position = column_position(source, table, name, words[0].start)
    return quote(table.columns[position].name)


def _load(cursor: Cursor) -> Maintain:
    """LOAD of a part of the engine, which is there already."""
    source, raw = cursor.source, cursor.source.words_text(cursor.rest)
    name = raw[1:-1] if raw[0] in "'\"" and raw[-1:] == raw[0] else raw
    if name.lower() not in source.rules.own_extensions:
        refusal = source.unsupported(
            f"LOAD {raw}",
            source.start,
            "code of extensions may read tables outside the snapshot",
        )
        raise source.unread(refusal)
    return Maintain(0, (), f"LOAD {name.lower()}")


def _refused(source: Source, word: Word) -> UnsupportedSQL:
    return unread(source, source.unexpected(word, "here"))


_INSIDE_TRANSACTIONS = frozenset({"ANALYZE", "ANALYSE"})


def plan_tidying(source: Source) -> Tidy:
    """Return the plan of a statement that keeps storage tidy.

    Raises
    ------
    UnsupportedSQL
        For anything but words, numbers and lists of them, or for a name of tique's.
    """
    verb, *rest = source.words
    for word in rest:
        raw = source.raw(word)
        if raw.strip('"').lower() == PRIVATE_SCHEMA:
            raise source.unsupported(
                f'the schema "{PRIVATE_SCHEMA}"', word.start, "it is reserved"
            )
        is_word = raw.startswith('"') or (word.keyword and raw.isidentifier())
        if not (is_word or raw in ("(", ")", ",", ".") or raw.isdigit()):
            shown = f'"{raw}" in {verb.keyword}'
            raise unread(source, source.unsupported(shown, word.start))
    text = f"{verb.keyword} {source.words_text(rest)}" if rest else verb.keyword
    return Tidy(0, (), text, is_alone=text.split()[0] not in _INSIDE_TRANSACTIONS)
