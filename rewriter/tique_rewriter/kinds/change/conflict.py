"""Plans of ON CONFLICT, and of INSERT OR IGNORE and OR REPLACE, which mean the same.

*Arbiters:* the unique index that the target of ON CONFLICT means, as PostgreSQL calls it.
PostgreSQL infers it from the target's columns, expressions and condition. Here it is the
index whose parts are those of the target, and whose condition is the target's, as text: but
for brackets, the order of the parts, and casts of texts to TEXT, which PostgreSQL writes
into the text of an index and which change no value. So an index is found that PostgreSQL
infers, too, and one that only follows from the target's condition is not.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import UnknownConstraint, UnknownKey, UnknownTable
from tique_rewriter.kinds.change.assignments import plan_assignments
from tique_rewriter.kinds.change.clauses import ClauseText
from tique_rewriter.plans.change_plans import PROPOSED, Conflict, ConflictUpdate
from tique_rewriter.plans.plan import ColumnValue, Expression
from tique_rewriter.schema import ComputedKey
from tique_rewriter.scope.bindings import Scope
from tique_rewriter.scope.references import column_position, unknown_column
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import quote
from tique_rewriter.text.placeholders import OWN_STYLE, number_placeholders
from tique_rewriter.text.source import Mark, Source
from tique_rewriter.tree.scalars import outside_subqueries, split, stands_for_value
from tique_rewriter.tree.shape import starts_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tique_rewriter.plans.text import Text
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Word


Key = tuple[int, ...]

_EXCLUDED = "excluded"


def conflict_parts(tree: exp.Expr) -> list[exp.Expr]:
    """Return the trees of an INSERT's ON CONFLICT that may read tables."""
    conflict = tree.args.get("conflict")
    if conflict is None:
        return []
    where = conflict.args.get("where")
    return [*conflict.expressions, *([where] if where is not None else [])]


def plan_alternative(
    source: Source, word: str, table: Table, columns: Sequence[int]
) -> Conflict:
    """Return the plan of INSERT OR IGNORE or OR REPLACE, into these columns."""
    start, word = source.find("OR"), word.upper()
    keys = _keys(source, table, start)
    if word == "IGNORE":
        return Conflict(keys)
    if word != "REPLACE":
        raise source.unsupported(f"INSERT OR {word}", start, "use ON CONFLICT")
    key = _only(source, table, keys, start)
    width = len(table.columns)
    assignments = tuple(
        (i, Expression((proposed_name(i),), ColumnValue(width + i)))
        for i in columns
        if i not in key
    )
    if not assignments:
        return Conflict(keys)
    return Conflict(keys, ConflictUpdate((), assignments, (), quote(table.name)))


def plan_conflict(
    source: Source, tree: exp.Expr, target: Read, words: list[Word], reads: Reads
) -> Conflict | None:
    """Return the plan of the ON CONFLICT clause, which these words are.

    None if no row can be in conflict with another.
    """
    start = words[0].start
    table = target.table
    nothing = [word.keyword for word in words[2:]] == ["DO", "NOTHING"]
    computed = table.computed_keys if source.rules.conflict_computes_keys else ()
    needs_key = source.rules.conflict_needs_key and not table.computed_keys
    if nothing and not needs_key and not computed and not _all_keys(table):
        return None
    keys = _all_keys(table) if computed else _keys(source, table, start)
    named, action = _target(source, tree, table, keys, words[2:])
    match [word.keyword for word in action]:
        case ["DO", "NOTHING"]:
            return named or Conflict(keys, computed=computed)
        case ["DO", "UPDATE", "SET", *_]:
            if named is None:
                named = Conflict((_only(source, table, keys, start),))
            update = _plan_update(source, tree, target, action[3:], reads)
            return replace(named, update=update)
        case ["ON", "CONSTRAINT", *_]:
            refusal = source.unsupported(
                "ON CONSTRAINT", action[0].start, "name the key's columns"
            )
            raise source.unread(refusal)
        case ["WHERE", *_]:
            raise source.unsupported(
                "WHERE in the target of ON CONFLICT", action[0].start
            )
    raise source.unsupported(
        f"this form of ON {words[1].keyword}",
        start,
        "write ON CONFLICT … DO NOTHING or DO UPDATE SET …",
    )


def proposed_name(position: int) -> str:
    """Return the quoted name of a column of the proposed row in the plan's texts."""
    return quote(f"{PROPOSED}{position}")


def _all_keys(table: Table) -> tuple[Key, ...]:
    return tuple(key for key in (table.primary_key, *table.unique) if key)


def _keys(source: Source, table: Table, start: int) -> tuple[Key, ...]:
    keys = _all_keys(table)
    if not keys:
        raise source.error(
            UnknownKey,
            f'no PRIMARY KEY or UNIQUE key of "{table.name}" for ON CONFLICT',
            start,
        )
    return keys


def _only(source: Source, table: Table, keys: Sequence[Key], start: int) -> Key:
    if len(keys) + len(table.computed_keys) > 1:
        raise source.error(
            UnknownKey,
            "an update of rows in conflict with one of several keys",
            start,
            "name the key: ON CONFLICT (column, …) DO UPDATE",
        )
    return keys[0]


def _target(
    source: Source,
    tree: exp.Expr,
    table: Table,
    keys: Sequence[Key],
    words: list[Word],
) -> tuple[Conflict | None, list[Word]]:
    """Return the plan for the key that is named (None: none is), and the words after it."""
    named = [word.keyword for word in words[:2]] == ["ON", "CONSTRAINT"]
    if named and len(words) > 2 and source.rules.names_keys:
        return _named(source, table, words[2]), words[3:]
    if not words or words[0].keyword != "(":
        return None, words
    end = source.closing(words)
    if table.computed_keys and source.rules.conflict_computes_keys:
        arbiter = find_arbiter(source, table, tree.args["conflict"])
        cursor = Cursor(source, words)
        cursor.take_until({"DO"})
        rest = cursor.rest
        if arbiter is None:
            raise source.error(
                UnknownKey,
                f'the target of ON CONFLICT is no key and no unique index of "{table.name}"',
                words[0].start,
                "write the expressions and the condition of the index as they are there",
            )
        if isinstance(arbiter, ComputedKey):
            return Conflict((), computed=(arbiter,)), rest
        return Conflict((arbiter,)), rest
    positions = set()
    for piece in split(words[1:end]):
        if len(piece) != 1:
            raise source.unsupported(
                "this target of ON CONFLICT", words[0].start, "name the key's columns"
            )
        name = source.identifier(piece[0])
        positions.add(column_position(source, table, name, piece[0].start))
    for key in keys:
        if set(key) == positions:
            return Conflict((key,)), words[end + 1 :]
    names = ", ".join(table.columns[i].name for i in sorted(positions))
    raise source.error(
        UnknownKey,
        f'({names}) is neither the PRIMARY KEY nor a UNIQUE key of "{table.name}"',
        words[0].start,
    )


def _named(source: Source, table: Table, word: Word) -> Conflict:
    """Return the plan for the constraint of that name."""
    name = source.identifier(word)
    for known, key in table.key_names:
        if known == name:
            return Conflict((key,))
    for computed in table.computed_keys:
        if computed.is_constraint and computed.name == name:
            return Conflict((), computed=(computed,))
    raise source.error(
        UnknownConstraint,
        f'"{name}" is the name of no PRIMARY KEY or UNIQUE constraint of "{table.name}"',
        word.start,
    )


def _plan_update(
    source: Source, tree: exp.Expr, target: Read, words: list[Word], reads: Reads
) -> ConflictUpdate:
    """Return the plan of the assignments after DO UPDATE SET."""
    table = target.table
    if not words:
        raise source.syntax("SET without a column", source.find("SET"))
    _check_reserved(source, tree, target, reads)
    text = ClauseText(source, words, reads, list(_proposed(source, tree, table)))
    for part in conflict_parts(tree):
        _check_columns(source, part, target)
    scope = Scope.of(target)

    def position_of(node: exp.Column) -> int | None:
        if node.table.lower() == _EXCLUDED:
            return len(table.columns) + table.positions[node.name.lower()]
        return scope.position(node)

    cursor = Cursor(source, words)
    assigned, condition = cursor.take_until({"WHERE"}), cursor.rest[1:]
    nodes = tree.args["conflict"].expressions

    def texts(
        cut: Callable[[int, int], Text],
    ) -> tuple[tuple[tuple[int, Expression], ...], Text]:
        planned = plan_assignments(source, table, assigned, nodes, position_of, cut)
        return planned, (
            cut(condition[0].start, condition[-1].end) if condition else ()
        )

    assignments, checked = texts(text.cut)
    counted: tuple[Text, ...] = ()
    if text.parameters:
        values, again = texts(text.counted)
        counted = (again, *(value.text for _, value in values))
    return ConflictUpdate(
        text.parameters,
        assignments,
        checked,
        target.qualifier,
        counted,
        source.parameters_before(words[-1].end),
    )


def _check_columns(source: Source, part: exp.Expr, target: Read) -> None:
    """Refuse names of nothing: the engine sees them only when a row is in conflict.

    Raises
    ------
    UnknownTable, UnknownColumn
        Outside of subqueries, which have tables of their own.
    """
    if part.find(exp.Lambda):
        return
    for node in outside_subqueries(part):
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            continue
        start = starts_at(node)
        if node.args.get("db"):
            raise source.unsupported(
                "a column qualified by schema and table", start, "leave the schema out"
            )
        if node.table and node.table.lower() not in (target.name, _EXCLUDED):
            raise source.error(
                UnknownTable, f'no table "{node.table}" in ON CONFLICT', start
            )
        name = node.name.lower()
        is_row = not node.table and name == target.name
        is_known = name in (
            target.table.positions
            if node.table.lower() == _EXCLUDED
            else target.table.spellings
        )
        if not is_known and not stands_for_value(node) and not is_row:
            raise unknown_column(source, target.table, node.name, start)


def _proposed(source: Source, tree: exp.Expr, table: Table) -> Iterator[Mark]:
    """Yield the places that name a column of the proposed row, with its name there."""
    for part in conflict_parts(tree):
        for name in part.find_all(exp.Identifier):
            if name.name.lower() != _EXCLUDED:
                continue
            start, column = name.meta["start"], name.parent
            if (
                not isinstance(column, exp.Column)
                or not isinstance(column.this, exp.Identifier)
                or [id(part) for part in column.parts] != [id(name), id(column.this)]
            ):
                raise source.unsupported(
                    "EXCLUDED as anything but the proposed row",
                    start,
                    "write EXCLUDED.column",
                )
            position = column_position(source, table, column.name, start)
            yield Mark(start, column.this.meta["end"] + 1, proposed_name(position))


def _check_reserved(source: Source, tree: exp.Expr, target: Read, reads: Reads) -> None:
    """Refuse names that could be taken for the proposed row's or its columns'."""
    if target.name == _EXCLUDED:
        raise source.unsupported(
            f'the table name "{_EXCLUDED}" with DO UPDATE',
            target.span.start,
            "give the table an alias",
        )
    tables = [target.table, *(read.table for read in reads.reads)]
    columns = [column.name for table in tables for column in table.columns]
    for name in [*columns, *(name.name for name in tree.find_all(exp.Identifier))]:
        if name.lower().startswith(PROPOSED):
            raise source.unsupported(
                f'the name "{name}" with DO UPDATE',
                source.find("SET"),
                "it is reserved",
            )


_TEXT = re.compile(r"(?:TEXT|VARCHAR)\b", re.IGNORECASE)


def find_arbiter(
    source: Source, table: Table, clause: exp.Expr
) -> tuple[int, ...] | ComputedKey | None:
    """Return the key of a table that a clause's target means; None if none is.

    One of columns alone goes before others, and one without a condition before those with
    one: it has every row in the way that these have.
    """
    parts = {_plain(node, table) for node in clause.args.get("conflict_keys") or ()}
    where = clause.args.get("index_predicate")
    for key in (table.primary_key, *table.unique):
        columns = [exp.column(table.columns[i].name, quoted=True) for i in key]
        names = {_plain(column, table) for column in columns}
        if key and names == parts:
            return key
    condition = None if where is None else _plain(where.this, table)
    for computed in sorted(table.computed_keys, key=lambda k: k.condition is not None):
        if {
            _plain(_parsed(source, text), table) for text in computed.parts
        } == parts and (
            computed.condition is None
            or _plain(_parsed(source, computed.condition), table) == condition
        ):
            return computed
    return None


def _parsed(source: Source, text: str) -> exp.Expr:
    lexicon = source.rules.lexicon
    lexed = number_placeholders(f"SELECT {text}", OWN_STYLE, lexicon=lexicon)
    parsed: exp.Expr = Source(lexed, source.rules).parse().expressions[0]
    return parsed


def _plain(node: exp.Expr, table: Table) -> str:
    """The text of an expression, the same for all ways to write it that are known."""
    root = exp.Tuple(expressions=[node.copy()])
    for part in list(root.find_all(exp.Paren, exp.Ordered)):
        if not part.args.get("desc"):
            part.replace(part.this)
    for cast in reversed(list(root.find_all(exp.Cast))):
        if _TEXT.fullmatch(cast.to.sql()) and _is_text(cast.this, table):
            cast.replace(cast.this)
    for name in root.find_all(exp.Identifier):
        name.set("quoted", True)
    return root.sql(dialect="postgres")


def _is_text(node: exp.Expr, table: Table) -> bool:
    if isinstance(node, exp.Literal):
        return bool(node.is_string)
    if not isinstance(node, exp.Column) or node.table:
        return False
    position = table.positions.get(node.name.lower())
    return position is not None and bool(_TEXT.match(table.columns[position].type))
