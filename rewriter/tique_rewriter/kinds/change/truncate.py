"""TRUNCATE: a DELETE of all rows that the snapshot has, and so a part of the transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.plans.change_plans import Delete
from tique_rewriter.plans.plan import Plan, Reference
from tique_rewriter.plans.text import Hole
from tique_rewriter.scope.targets import named_table, unknown_name
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import quote
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source, Word

_IDENTITIES = ("RESTART", "CONTINUE")
_BEHAVIOURS = ("CASCADE", "RESTRICT")


@dataclass(frozen=True)
class Truncate(Plan):
    """TRUNCATE of managed tables.

    Where it ``is_delete``, FOREIGN KEY constraints act on the rows as in a DELETE. Else no
    other table may have one that references these; with ``cascade`` such tables are
    emptied too. If it ``restarts``, the sequences of the tables' columns do.
    """

    tables: tuple[Table, ...]
    cascade: bool
    is_delete: bool
    restarts: bool = False


def deletion(table: Table) -> Delete:
    """Return the plan of a DELETE of all rows."""
    name = quote(table.name)
    reference = Reference(table, f" AS {name}", {})
    return Delete(0, (reference,), table, (" FROM ", Hole(0)), name, is_bound=True)


def plan_truncate(source: Source, catalog: Catalog) -> Truncate:
    """Return the plan of TRUNCATE."""
    rules = source.rules
    words = source.words[1:]
    if words and words[0].keyword == "TABLE":
        words = words[1:]
    behaviour: Word | None = None
    if words and "options" in rules.truncates:
        if len(words) > 1 and words[-1].keyword in _BEHAVIOURS:
            *words, behaviour = words
        words = _without_identity(source, words)
    tables: list[Table] = []
    for piece in split(words):
        tables.append(_table(source, catalog, piece))
        if len(tables) > 1 and "several" not in rules.truncates:
            raise source.syntax("a second table", piece[0].start)
    if not tables:
        raise source.syntax("a table's name is expected", source.words[-1].start)
    cascade = behaviour is not None and behaviour.keyword == "CASCADE"
    return Truncate(
        0,
        (),
        tuple(tables),
        cascade,
        is_delete="options" not in rules.truncates,
        restarts=_restarts(source, tables, cascade=cascade),
    )


def _restarts(source: Source, tables: list[Table], *, cascade: bool) -> bool:
    """Whether sequences may have to be restarted, also of tables that are not named."""
    restart = next((w for w in source.words if w.keyword == "RESTART"), None)
    if restart is None:
        return False
    counted = [
        (table, column)
        for table in tables
        for column in table.columns
        if column.default and "next" in column.default.lower()
    ]
    if counted and not source.rules.restarts_identities:
        table, column = counted[0]
        raise source.unsupported(
            "RESTART IDENTITY",
            restart.start,
            f'the column "{column.name}" of {table.qualified_name} has a sequence, whose '
            "numbers are in no snapshot",
        )
    return source.rules.restarts_identities and (cascade or bool(counted))


def _without_identity(source: Source, words: list[Word]) -> list[Word]:
    if [w.keyword for w in words[-1:]] != ["IDENTITY"] or len(words) < 3:
        return words
    if words[-2].keyword not in _IDENTITIES:
        raise source.syntax("RESTART or CONTINUE is expected", words[-1].start)
    return words[:-2]


def _table(source: Source, catalog: Catalog, words: list[Word]) -> Table:
    if words and words[0].keyword == "ONLY" and "only" in source.rules.alterations:
        words = words[1:]
    if not words:
        raise source.syntax("a table's name is expected", source.words[-1].start)
    first = source.number(words[0].start)
    cursor = Cursor(source, number=first)
    table = named_table(cursor, catalog)
    if cursor.number < first + len(words):
        raise cursor.unexpected("in TRUNCATE")
    if table is None:
        raise unknown_name(cursor, first)
    return table
