"""ATTACH and DETACH of other databases, which queries read beside the managed tables.

Only their tables are read, and nothing changes them while they are attached: a query needs
no snapshot of them, and their names stay in its text. A view of theirs is code that
might read anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.errors import UnknownTable
from tique_rewriter.kinds.session.session import (
    SessionPlan,
    after_verb,
    finish,
    refused,
)
from tique_rewriter.text.names import PRIVATE_SCHEMA
from tique_rewriter.tree.shape import starts_at

if TYPE_CHECKING:
    from sqlglot import expressions as exp

    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.cursor import Cursor
    from tique_rewriter.text.source import Source

_READ_ONLY = (
    ["READ_ONLY"],
    ["READONLY"],
    ["READ_ONLY", "TRUE"],
    ["READ_ONLY", "1"],
    ["READ_ONLY", "'true'"],
)
_DUCKDB = (["TYPE", "DUCKDB"], ["TYPE", "'duckdb'"], ["TYPE", "'DUCKDB'"])


_OF_FILE = frozenset(
    ["BLOCK_SIZE", "ROW_GROUP_SIZE", "STORAGE_VERSION", "ENCRYPTION_KEY"]
)
"""Options, each with a value, that say how the engine has to read a file."""


@dataclass(frozen=True)
class AttachDatabase(SessionPlan):
    """ATTACH of a file, read-only; ``is_enough`` that one of the name is attached.

    The engine is given the ``options`` as they are written, beside those that are tique's.
    """

    path: str
    name: str
    is_enough: bool
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class DetachDatabase(SessionPlan):
    """DETACH; ``may_lack`` that there is none."""

    name: str
    may_lack: bool


def plan_attaching(source: Source) -> SessionPlan:
    """Return the plan of ``ATTACH 'file' AS name (READ_ONLY)`` or DETACH.

    Raises
    ------
    UnsupportedSQL
        Without a name or READ_ONLY, and for other options.
    """
    verb, cursor = source.words[0].keyword, after_verb(source)
    cursor.accept("DATABASE")
    if verb == "DETACH":
        may_lack = bool(cursor.accept("IF EXISTS"))
        if not cursor.left:
            raise source.syntax("a name is missing", source.words[0].start)
        word = cursor.take()
        finish(cursor)
        return DetachDatabase(0, (), source.identifier(word), may_lack)
    if cursor.follows("OR REPLACE"):
        raise refused(source, "ATTACH OR REPLACE", cursor.start, "DETACH it first")
    is_enough = bool(cursor.accept("IF NOT EXISTS"))
    raw = source.raw(cursor.word) if cursor.left else ""
    if not raw.startswith("'"):
        place = cursor.start if cursor.left else source.words[0].start
        raise refused(source, "ATTACH without a file's name in quotes", place)
    start = cursor.take().start
    if cursor.left < 2 or not cursor.accept("AS"):
        raise refused(source, "ATTACH without a name", start, "write ATTACH … AS name")
    name = cursor.name()
    path, options = raw[1:-1].replace("''", "'"), _options(cursor)
    return AttachDatabase(0, (), path, name, is_enough, options)


def _options(cursor: Cursor) -> tuple[str, ...]:
    """Return the file's options; READ_ONLY has to be there, and no format but the engine's."""
    source, place, is_read_only = cursor.source, cursor.start, False
    options: list[str] = []
    listed = cursor.brackets()
    if listed is not None:
        option: list[str] = []
        for word in [*listed, None]:
            if word is not None and word.keyword != ",":
                option.append(word.keyword or source.raw(word))
                continue
            if option in _READ_ONLY:
                is_read_only = True
            elif _is_of_file(option):
                options.append(" ".join(option))
            elif option not in _DUCKDB:
                raise refused(
                    source,
                    f"ATTACH ({' '.join(option)})",
                    place,
                    "tique attaches DuckDB's files, with (READ_ONLY)",
                )
            option = []
    if not is_read_only:
        raise refused(
            source,
            "ATTACH without (READ_ONLY)",
            place,
            "what a transaction wrote there would be in no snapshot: attach it "
            "(READ_ONLY), or connect() to it",
        )
    finish(cursor)
    return tuple(options)


def _is_of_file(option: list[str]) -> bool:
    """Whether these words are such an option and its value, a number or a string."""
    value = option[1] if len(option) == 2 else ""
    is_known = option[:1] != [] and option[0] in _OF_FILE
    return is_known and (value.isdecimal() or value.startswith("'"))


def is_attached(source: Source, node: exp.Table, catalog: Definitions) -> bool:
    """Whether a relation is a table of another database, and can be read.

    Raises
    ------
    UnknownTable
        For a name that is none of that database's tables.
    UnsupportedSQL
        For one of its views.
    """
    name = node.catalog or node.db
    found = catalog.attached(name) if name else None
    if found is None:
        return False
    schema = node.db if node.catalog else source.rules.default_schema
    key = (schema.lower(), node.name.lower())
    shown = ".".join(part.name for part in node.parts)
    if key in found.views:
        raise source.unsupported(
            f'the view "{shown}" of another database',
            starts_at(node),
            "read the tables that it reads",
        )
    if key not in found.tables or schema.lower() == PRIVATE_SCHEMA:
        raise source.error(UnknownTable, f'unknown table "{shown}"', starts_at(node))
    return True
