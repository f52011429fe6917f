"""CREATE TABLE: from the text to a table's definition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tique_rewriter.errors import DuplicateColumn, WrongDefinition
from tique_rewriter.kinds.define.collations import collated, read_collation
from tique_rewriter.kinds.define.foreign_keys import (
    Clause,
    read_clause,
    resolve,
    text_without,
)
from tique_rewriter.kinds.define.generated import accept_generated, makes_generated
from tique_rewriter.kinds.define.identity import accept_identity
from tique_rewriter.local.values import normal_type
from tique_rewriter.plans.ddl_plans import CreateTable
from tique_rewriter.plans.plan import ROW_NUMBER
from tique_rewriter.safety.token_checks import check_calls
from tique_rewriter.schema import Check, Column, Generated, Table
from tique_rewriter.scope.references import unknown_column
from tique_rewriter.text.cursor import Cursor, refuse_placeholders
from tique_rewriter.text.names import check_writable, expect_exact, refusal, unmanaged
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source, Word

_RESERVED_COLUMNS = ("_cts", "_deleted", "_sequence", ROW_NUMBER)
_REFUSED_CONSTRAINTS = frozenset(
    {"COLLATE", "USING", "EXCLUDE", "LIKE", "STORAGE", "COMPRESSION"}
)
_CONSTRAINTS = _REFUSED_CONSTRAINTS.union(
    ("NOT", "NULL", "PRIMARY", "UNIQUE", "CHECK", "DEFAULT", "CONSTRAINT", "AS"),
    ("REFERENCES", "FOREIGN", "AUTO_INCREMENT", "GENERATED"),
)
TABLE_CONSTRAINTS = frozenset(
    {"PRIMARY", "UNIQUE", "CHECK", "CONSTRAINT", "FOREIGN", "EXCLUDE", "LIKE"}
)


@dataclass
class Draft:
    """A table's definition while it is read."""

    name: str
    columns: list[Column] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    """The columns' names, in small letters."""
    primary_key: tuple[int, ...] = ()
    unique: list[tuple[int, ...]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    references: list[Clause] = field(default_factory=list)
    generated: list[Generated] = field(default_factory=list)

    def computes(self, name: str) -> bool:
        """Whether a generated column has that name, in whichever case."""
        return any(each.name.lower() == name.lower() for each in self.generated)

    def table(self, schema: str) -> Table:
        """Return the definition as it is now, without FOREIGN KEY constraints."""
        columns = tuple(
            Column(
                c.name,
                c.type,
                c.not_null or i in self.primary_key,
                c.default,
                collation=c.collation,
            )
            for i, c in enumerate(self.columns)
        )
        return Table(
            schema,
            self.name,
            columns,
            self.primary_key,
            tuple(self.unique),
            tuple(self.checks),
            generated=tuple(self.generated),
        )


@dataclass(frozen=True)
class Head:
    """The beginning of CREATE TABLE; ``end`` is the number of the word after the name."""

    schema: str
    name: str
    if_not_exists: bool
    replaces: bool
    end: int


def read_head(source: Source, catalog: Definitions) -> Head:
    """Read CREATE [OR REPLACE] TABLE [IF NOT EXISTS] and the name.

    Raises
    ------
    UnsupportedSQL
        The table would be in tique's own schema.
    """
    cursor = Cursor(source, number=1)
    replaces = bool(cursor.accept("OR REPLACE"))
    cursor.accept("TABLE")
    if_not_exists = bool(cursor.accept("IF NOT EXISTS"))
    schema, name = cursor.qualified(catalog.default_schema)
    last = cursor.before
    check_writable(source, catalog, schema, last.start)
    if (table := catalog.find(schema, name)) is not None:
        expect_exact(source, schema, table.schema, last.start)
        expect_exact(source, name, table.name, last.start)
    if cursor.is_done:
        raise source.syntax("a list of columns is expected", last.start)
    return Head(schema, name, if_not_exists, replaces, cursor.number)


def plan_create_table(source: Source, catalog: Catalog) -> CreateTable:
    """Return the plan of CREATE TABLE with a list of columns and constraints."""
    words = source.words
    head = read_head(source, catalog)
    schema, name, number = head.schema, head.name, head.end
    following = source.keywords(number)[:1]
    if following in (["PARTITION"], ["OF"]):
        raise source.unsupported(
            f"CREATE TABLE … {following[0]}", words[number].start, "list the columns"
        )
    if following != ["("]:
        raise source.syntax("a list of columns is expected", words[-1].start)
    body = _without_storage(source, words[number:])
    if sum(w.keyword == "(" for w in words) != sum(w.keyword == ")" for w in words):
        raise source.syntax("the list of columns does not end", body[0].start)
    if body[-1].keyword != ")" or any(word.depth == 0 for word in body):
        last = next((w for w in body if w.depth == 0), body[-1])
        raise source.unexpected(last, "after the list of columns")
    if len(body) == 2:
        raise source.syntax("a table needs a column", body[0].start)
    draft = Draft(name)
    elements = split(body[1:-1])
    if source.rules.comma_may_end and len(elements) > 1 and not elements[-1]:
        elements.pop()
    for element in elements:
        if not element:
            raise source.syntax("a column is expected", body[0].start)
        if element[0].keyword == "LIKE" and source.rules.likes:
            _read_like(source, catalog, draft, element)
        elif element[0].keyword not in TABLE_CONSTRAINTS:
            read_column(source, draft, element)
    for element in elements:
        if element[0].keyword == "LIKE" and source.rules.likes:
            continue
        if element[0].keyword in TABLE_CONSTRAINTS:
            read_constraints(source, draft, element, None)
        else:
            read_constraints(source, draft, column_constraints(element), element[0])
    refuse_placeholders(source, "CREATE TABLE")
    table = draft.table(schema)
    keys = resolve(source, catalog, table, draft.references)
    text = text_without(source, body, draft.references)
    table = replace(table, foreign_keys=keys)
    return CreateTable(0, (), table, text, head.if_not_exists, head.replaces)


def _without_storage(source: Source, body: list[Word]) -> list[Word]:
    """Return the words without WITH (…) at their end, which is the engine's own affair."""
    if source.rules.storage_parameters is None:
        return body
    cursor = Cursor(source, body)
    kept = cursor.take_until({"WITH"})
    cursor.accept("WITH")
    given = cursor.rest
    if cursor.brackets() is None or cursor.left:
        return body
    check_parameters(source, given)
    return kept


def check_parameters(
    source: Source, words: list[Word], *, has_values: bool = True
) -> None:
    """Refuse a list in brackets of anything but storage's own parameters."""
    parameters = source.rules.storage_parameters
    for piece in split(words[1:-1]):
        text = "".join(source.raw(word) for word in piece)
        if not has_values:
            text += "=on"
        if parameters is None or not parameters.fullmatch(text.lower()):
            shown = source.words_text(piece) if piece else ","
            raise source.unsupported(f"the parameter ({shown})", words[0].start)


def _read_like(
    source: Source, catalog: Catalog, draft: Draft, element: list[Word]
) -> None:
    """Read LIKE of a managed table, which stands for its columns."""
    start = source.number(element[1].start) if len(element) > 1 else len(source.words)
    cursor = Cursor(source, number=start)
    schema, name = cursor.qualified(catalog.default_schema)
    table = catalog.find(schema if cursor.number > start + 1 else None, name)
    if table is not None and table.generated:
        raise source.unsupported(
            "LIKE of a table with a generated column", element[0].start
        )
    if table is None:
        raise unmanaged(
            source,
            f'LIKE names "{name}", which tique does not manage,',
            element[0].start,
        )
    options = element[1 + cursor.number - start :]
    for word in options[::2]:
        if word.keyword not in source.rules.likes or len(options) % 2:
            raise source.unexpected(word, "after LIKE")
    first = len(draft.columns)
    for column in table.columns:
        _check_untaken(source, draft, column.name, element[0].start)
        draft.taken.add(column.name.lower())
        draft.columns.append(
            Column(
                column.name,
                column.type,
                column.not_null,
                collation=column.collation,
            )
        )
    has_keys = False
    for including, what in zip(options[::2], options[1::2], strict=True):
        if what.keyword in ("INDEXES", "ALL"):
            has_keys = including.keyword == "INCLUDING"
    if has_keys:
        keys = [
            tuple([first + i for i in k]) for k in (table.primary_key, *table.unique)
        ]
        draft.primary_key = keys[0] or draft.primary_key
        draft.unique += keys[1:]


def column_constraints(element: list[Word]) -> list[Word]:
    """Return the constraints behind a column's name and type."""
    level = element[0].depth
    for i, word in enumerate(element[1:], start=1):
        if word.depth == level and word.keyword in _CONSTRAINTS:
            return element[i:]
    return []


def free_name(source: Source, draft: Draft, word: Word) -> str:
    """Return the name of a new column.

    Raises
    ------
    UnsupportedSQL
        It is reserved, or differs from another column's in the case of its letters alone
        where the engine takes them for two.
    DuplicateColumn
        The table has a column of that name.
    """
    name = source.identifier(word)
    if name.lower().startswith(_RESERVED_COLUMNS):
        raise source.unsupported(
            f'the column name "{name}"', word.start, "it is reserved"
        )
    _check_untaken(source, draft, name, word.start)
    return name


def _check_untaken(source: Source, draft: Draft, name: str, start: int) -> None:
    if name.lower() not in draft.taken:
        return
    same = source.rules.same
    names = [c.name for c in draft.columns] + [c.name for c in draft.generated]
    for other in names:
        if other.lower() == name.lower() and same(other) != same(name):
            raise refusal(source, name, other, start)
    raise source.error(DuplicateColumn, f'the column "{name}" is defined twice', start)


def read_column(source: Source, draft: Draft, element: list[Word]) -> None:
    """Read a column's name and type, which its constraints may follow."""
    name = free_name(source, draft, element[0])
    constraints = column_constraints(element)
    type_words = element[1 : len(element) - len(constraints)]
    if (
        constraints
        and constraints[0].keyword in _REFUSED_CONSTRAINTS
        and not accept_identity(Cursor(source, constraints))
        and read_collation(Cursor(source, constraints)) is None
    ):
        raise source.unsupported(constraints[0].keyword, constraints[0].start)
    if makes_generated(source, constraints):
        place = len(draft.columns) + len(draft.generated)
        draft.taken.add(name.lower())
        draft.generated.append(Generated(name, "", "", place))
        return
    if not type_words:
        raise source.syntax(f'the column "{name}" has no type', element[0].start)
    type_ = read_type(source, type_words)
    serial = source.rules.serials.get(normal_type(type_))
    draft.taken.add(name.lower())
    draft.columns.append(Column(name, serial or type_, not_null=serial is not None))
    if serial is not None and source.rules.serial_is_key and not draft.primary_key:
        draft.primary_key = (len(draft.columns) - 1,)


def read_type(source: Source, type_words: list[Word]) -> str:
    """Return a column's type as the catalog has it.

    Raises
    ------
    UnsupportedSQL
        The type is refused.
    """
    type_ = " ".join(source.words_text(type_words).split())
    types = source.rules.types
    if types is not None and not types.fullmatch(normal_type(type_)):
        raise source.unsupported(f"the type {type_}", type_words[0].start)
    return source.rules.column_type(type_)


def read_constraints(
    source: Source, draft: Draft, words: list[Word], column: Word | None
) -> None:
    """Read one constraint after the other; ``column`` is None for the table's."""
    cursor, name, begin = Cursor(source, words), None, 0
    while cursor.left:
        word = cursor.word
        if name is None:
            begin = cursor.number
        if column is not None:
            if accept_identity(cursor) or accept_generated(cursor):
                continue
            if (collation := read_collation(cursor)) is not None:
                if not draft.computes(source.identifier(column)):
                    position = position_of(source, draft, column)
                    changed = collated(source, draft.columns[position], collation)
                    draft.columns[position] = changed
                continue
        if word.keyword in _REFUSED_CONSTRAINTS:
            raise source.unsupported(word.keyword, word.start)
        if cursor.left > 2 and cursor.accept("CONSTRAINT"):
            name = cursor.name()
            continue
        if cursor.accept("PRIMARY KEY"):
            if draft.primary_key:
                raise source.error(WrongDefinition, "a second PRIMARY KEY", word.start)
            draft.primary_key = _key(cursor, draft, column)
        elif cursor.accept("UNIQUE"):
            nulls_equal = _read_nulls(cursor)
            key = _key(cursor, draft, column)
            # One in which NULL is equal to NULL is computed: the engine tells it.
            if not nulls_equal:
                draft.unique.append(key)
        elif cursor.accept("CHECK"):
            if "check" not in source.rules.constraints:
                raise source.unsupported(
                    "CHECK", word.start, f"{source.rules.engine} has no such constraint"
                )
            inside = _brackets(cursor, word)
            check_calls(source, inside)
            _check_bare(source, draft, inside)
            draft.checks.append(Check(source.words_text(inside), name))
        elif column is None and cursor.accept("FOREIGN KEY"):
            columns = _key(cursor, draft, None)
            if not cursor.follows("REFERENCES"):
                raise source.syntax("REFERENCES is expected", word.start)
            _read_reference(cursor, draft, begin, name, columns)
        elif column is None:
            raise cursor.unexpected(f"in {source.words[0].keyword} TABLE")
        elif cursor.accept("NOT NULL"):
            if not draft.computes(source.identifier(column)):
                position = position_of(source, draft, column)
                changed = replace(draft.columns[position], not_null=True)
                draft.columns[position] = changed
        elif cursor.left > 1 and cursor.accept("DEFAULT"):
            expression = _default(cursor)
            check_calls(source, expression)
            default = source.words_text(expression)
            position = position_of(source, draft, column)
            changed = replace(draft.columns[position], default=default)
            draft.columns[position] = changed
        elif cursor.follows("REFERENCES"):
            own = (position_of(source, draft, column),)
            _read_reference(cursor, draft, begin, name, own)
        elif not cursor.accept("NULL"):
            raise cursor.unexpected(f"in {source.words[0].keyword} TABLE")
        name = None


def _read_reference(
    cursor: Cursor, draft: Draft, begin: int, name: str | None, columns: tuple[int, ...]
) -> None:
    """Read REFERENCES of a constraint that begins at word ``begin``."""
    clause = read_clause(cursor, name, columns)
    clause.words = cursor.words[begin : cursor.number]
    draft.references.append(clause)


def _default(cursor: Cursor) -> list[Word]:
    first = cursor.take()
    level = first.depth - (first.keyword in ("(", "[", "{"))
    return [first, *cursor.take_until(_CONSTRAINTS, level)]


def _read_nulls(cursor: Cursor) -> bool:
    """Read NULLS [NOT] DISTINCT, if it is there; whether NULL is equal to NULL."""
    source = cursor.source
    nulls = cursor.follows("NULLS NOT DISTINCT", "NULLS DISTINCT")
    if nulls and "nulls distinct" not in source.rules.extra_syntax:
        shown = source.words_text(cursor.rest[: len(nulls.split())])
        remedy = (
            "leave it out"
            if nulls == "NULLS DISTINCT"
            else f"{source.rules.engine} takes NULLs for different values"
        )
        raise source.unsupported(shown, cursor.start, remedy)
    return cursor.accept(nulls) == "NULLS NOT DISTINCT"


def _key(cursor: Cursor, draft: Draft, column: Word | None) -> tuple[int, ...]:
    source = cursor.source
    if column is not None:
        return (position_of(source, draft, column),)
    if cursor.is_done:
        raise source.syntax("a list of columns is expected", source.words[-1].start)
    inside = _brackets(cursor, cursor.word)
    key: list[int] = []
    for piece in split(inside):
        if len(piece) != 1:
            raise source.unsupported("a key that is not just columns", inside[0].start)
        position = position_of(source, draft, piece[0])
        if position in key:
            raise source.error(
                DuplicateColumn, "a column twice in one key", piece[0].start
            )
        key.append(position)
    return tuple(key)


def _brackets(cursor: Cursor, before: Word) -> list[Word]:
    """Step over brackets, and return the words inside, of which there is one."""
    start, inside = cursor.start, cursor.brackets()
    if inside is None:
        raise cursor.source.syntax("( is expected", before.start)
    if not inside:
        raise cursor.source.syntax("something is expected inside ()", start)
    return inside


def position_of(source: Source, draft: Draft, word: Word) -> int:
    """Return the position of the column that a word names.

    Raises
    ------
    UnknownColumn
        There is none.
    """
    name = source.identifier(word)
    for i, column in enumerate(draft.columns):
        if column.name.lower() == name.lower():
            return i
    table = draft.table(source.rules.default_schema)
    raise unknown_column(source, table, name, word.start)


def _check_bare(source: Source, draft: Draft, words: list[Word]) -> None:
    """Refuse a CHECK that names its columns with the table's name."""
    for word, following in pairwise(words):
        name = source.raw(word).strip('"').lower()
        if following.keyword == "." and name == draft.name.lower():
            raise source.unsupported(
                "a column qualified by its table in CHECK",
                word.start,
                "write the column's name alone",
            )
