"""FOREIGN KEY in CREATE TABLE: from the words to a constraint's definition.

tique keeps these constraints itself (``tique/query/write/foreign_keys.py``): the engine's text
of the table has none, so each clause also says which words are left out of it.

*Several spellings of one type:* ``DOUBLE PRECISION`` and ``FLOAT8``, ``TIMESTAMPTZ(3)``.
A catalog has one of them, the application's text any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from tique_rewriter.errors import UnknownKey, WrongDefinition
from tique_rewriter.local.values import kind_of, normal_type
from tique_rewriter.schema import Action, ForeignKey
from tique_rewriter.scope.references import column_position
from tique_rewriter.text.names import expect_exact, unmanaged
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from tique_rewriter.schema import Column, Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.cursor import Cursor
    from tique_rewriter.text.source import Source, Word


_COMPARED_ACROSS_TYPES = frozenset({"integer", "text", "decimal"})
"""Families of types whose values are equal in the engine if they are in Python."""


@dataclass
class Clause:
    """A FOREIGN KEY clause as it is written.

    ``words`` are all of it, with ``CONSTRAINT name``; ``columns`` are the child's,
    ``key`` the words that name the parent's, None for its primary key.
    """

    words: list[Word]
    name: str | None
    columns: tuple[int, ...]
    schema: str | None
    table: str
    place: int
    key: list[Word] | None
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    is_deferred: bool = False


def read_clause(cursor: Cursor, name: str | None, columns: tuple[int, ...]) -> Clause:
    """Read from REFERENCES on."""
    source, start = cursor.source, cursor.take().start
    schema, table = _relation(cursor, start)
    place = cursor.before.start
    clause = Clause([], name, columns, schema, table, place, cursor.brackets())
    is_deferrable: bool | None = None
    while True:
        begin = cursor.start
        if cursor.accept("MATCH"):
            if not cursor.accept("SIMPLE"):
                raise source.unsupported(f"MATCH {cursor.keyword}", begin)
        elif cursor.accept("ON DELETE"):
            clause.on_delete = _action(cursor, begin)
        elif cursor.accept("ON UPDATE"):
            clause.on_update = _action(cursor, begin)
        elif cursor.accept("NOT DEFERRABLE"):
            is_deferrable = False
        elif cursor.accept("DEFERRABLE"):
            is_deferrable = True
            if "deferrable" not in source.rules.constraints:
                raise source.unsupported("DEFERRABLE", start)
        elif mode := cursor.accept("INITIALLY DEFERRED", "INITIALLY IMMEDIATE"):
            clause.is_deferred = mode == "INITIALLY DEFERRED"
            if clause.is_deferred and "deferrable" not in source.rules.constraints:
                raise source.unsupported("DEFERRED", begin)
        else:
            break
    if clause.is_deferred and is_deferrable is False:
        raise source.error(
            WrongDefinition, "INITIALLY DEFERRED and NOT DEFERRABLE", start
        )
    return clause


def _relation(cursor: Cursor, start: int) -> tuple[str | None, str]:
    parts: list[str] = []
    while not parts or cursor.accept("."):
        if cursor.is_done:
            raise cursor.source.syntax("a table's name is expected", start)
        parts.append(cursor.name())
    if len(parts) > 2:
        raise cursor.source.unsupported(
            "a name with a database in it", start, "write schema.table"
        )
    return parts[0] if len(parts) == 2 else None, parts[-1]


def _action(cursor: Cursor, start: int) -> Action:
    action = cursor.accept(*[action.value for action in Action])
    if not action:
        raise cursor.source.syntax("an action is expected after ON", start)
    if cursor.follows("("):
        raise cursor.source.unsupported(
            f"{action} with a list of columns", cursor.start
        )
    return Action(action)


def resolve(
    source: Source, catalog: Catalog, child: Table, clauses: Iterable[Clause]
) -> tuple[ForeignKey, ...]:
    """Find the keys that new clauses of a table reference, and check them."""
    found: list[ForeignKey] = []
    given = [c.name.lower() for c in clauses if c.name is not None]
    given += [check.name.lower() for check in child.checks if check.name is not None]
    given += [key.name.lower() for key in child.foreign_keys]
    if len(set(given)) < len(given):
        raise source.error(
            WrongDefinition, "two constraints with one name", source.start
        )
    taken = set(given)
    for clause in clauses:
        parent = _parent(source, catalog, child, clause)
        key = _key(source, parent, clause)
        pairs = dict(zip(key, clause.columns, strict=True))
        if len(pairs) < len(key):
            raise source.error(
                WrongDefinition, "a column twice in one FOREIGN KEY", clause.place
            )
        whole = next(
            (k for k in (parent.primary_key, *parent.unique) if set(k) == set(key)),
            None,
        )
        if whole is None:
            names = ", ".join(parent.columns[i].name for i in key)
            raise source.error(
                UnknownKey,
                f"{parent.qualified_name} has no PRIMARY KEY or UNIQUE key ({names})",
                clause.place,
            )
        columns = tuple(pairs[i] for i in whole)
        for mine, other in zip(columns, whole, strict=True):
            _check_types(source, child.columns[mine], parent.columns[other], clause)
        found.append(
            ForeignKey(
                clause.name or _free_name(child, clause.columns, taken),
                columns,
                (parent.schema, parent.name),
                whole,
                clause.on_delete,
                clause.on_update,
                clause.is_deferred,
            )
        )
    return tuple(found)


def _parent(source: Source, catalog: Catalog, child: Table, clause: Clause) -> Table:
    schema = clause.schema
    home = child.schema if source.rules.views_look_at_home else catalog.default_schema
    is_own_schema = (schema or home).lower() == child.schema.lower()
    if clause.table.lower() == child.name.lower() and is_own_schema:
        parent: Table | None = child
    else:
        parent = None
        if schema is None and source.rules.views_look_at_home:
            parent = catalog.find(child.schema, clause.table)
        parent = parent or catalog.find(schema, clause.table)
    if parent is None:
        name = f"{schema}.{clause.table}" if schema else clause.table
        raise unmanaged(
            source,
            f'FOREIGN KEY references "{name}", which tique does not manage,',
            clause.place,
        )
    expect_exact(source, schema or parent.schema, parent.schema, clause.place)
    expect_exact(source, clause.table, parent.name, clause.place)
    return parent


def _key(source: Source, parent: Table, clause: Clause) -> tuple[int, ...]:
    if clause.key is None:
        if parent.is_keyless:
            raise source.error(
                UnknownKey,
                f"{parent.qualified_name} has no PRIMARY KEY",
                clause.place,
                "name the columns of a UNIQUE key",
            )
        key = parent.primary_key
    else:
        key = tuple(_positions(source, parent, clause.key, clause.place))
    if len(key) != len(clause.columns):
        raise source.error(
            WrongDefinition,
            f"a FOREIGN KEY of {len(clause.columns)} columns that references {len(key)}",
            clause.place,
        )
    return key


def _positions(
    source: Source, parent: Table, words: list[Word], place: int
) -> Iterator[int]:
    for piece in split(words):
        if len(piece) != 1:
            raise source.syntax("a list of columns is expected", place)
        name = source.identifier(piece[0])
        yield column_position(source, parent, name, piece[0].start)


def are_comparable(mine: Column, other: Column, spellings: Mapping[str, str]) -> bool:
    """Whether a column may reference another, whose types have these names too."""
    if mine.collation != other.collation:
        # The engine compares no columns of two collations.
        return False
    if is_same_type(mine.type, other.type, spellings):
        return True
    kinds = kind_of(mine.type), kind_of(other.type)
    families = {kind.family if kind is not None else "" for kind in kinds}
    return len(families) == 1 and families <= _COMPARED_ACROSS_TYPES


def _check_types(source: Source, mine: Column, other: Column, clause: Clause) -> None:
    spellings = source.rules.type_spellings
    if are_comparable(mine, other, spellings):
        return
    # A catalog's types have schemas, and its columns of a domain the domain's type.
    # When the table is there, both have one.
    if mine.collation == other.collation and any(
        may_be_same_type(mine.type, name, spellings)
        for name in (other.type, other.domain)
        if name is not None
    ):
        return
    raise source.unsupported(
        f"a FOREIGN KEY of {mine.type} that references {other.type}",
        clause.place,
        "give both columns one type",
    )


def _free_name(child: Table, columns: tuple[int, ...], taken: set[str]) -> str:
    names = "_".join(child.columns[i].name for i in columns)
    for number in count():
        name = f"{child.name}_{names}_fkey{number or ''}"
        if name.lower() not in taken:
            taken.add(name.lower())
            return name
    raise AssertionError  # count() does not end


def text_without(source: Source, body: list[Word], clauses: list[Clause]) -> str:
    """The text of CREATE TABLE without these clauses.

    ``body`` are the words from the first bracket to the last.
    """
    words = source.words
    if not clauses:
        return source.words_text(words)
    left_out = {word.start for clause in clauses for word in clause.words}
    elements = [kept_text(source, each, left_out) for each in split(body[1:-1])]
    before = source.text[words[0].start : body[0].end]
    after = source.text[body[-1].start : words[-1].end]
    return f"{before}{', '.join(filter(None, elements))}{after}"


def kept_text(source: Source, element: list[Word], left_out: Container[int]) -> str:
    """Return the text of words without those that begin at places to leave out."""
    if not element:
        return ""
    text, end = "", element[0].start
    for word, following in zip(element, [*element[1:], None], strict=True):
        stop = word.end if following is None else following.start
        if word.start not in left_out:
            text += source.text[end:stop]
        end = stop
    return text.rstrip()


_SHAPE = re.compile(
    r"(?:PG_CATALOG\.)?(.*?)(\(\d+(?:,-?\d+)?\))?( WITH(?:OUT)? TIME ZONE)?((?:\[\d*\])*)"
)
_ZONED = " WITH TIME ZONE"
_SCHEMA = re.compile(r'(?:"(?:[^"]|"")*"|[^".(\[ ]+)\.')


def is_same_type(one: str, other: str, spellings: Mapping[str, str]) -> bool:
    """Whether two texts are one type.

    ``spellings`` has the catalog's name of each name without a length that has another.
    """
    return _parts(one, spellings) == _parts(other, spellings)


def may_be_same_type(one: str, other: str, spellings: Mapping[str, str]) -> bool:
    """Whether two texts are one type if the engine finds it in the schema that one lacks."""
    schemas = [_SCHEMA.match(text) for text in (one, other)]
    if sum(schema is not None for schema in schemas) != 1:
        return False
    return is_same_type(_SCHEMA.sub("", one, 1), _SCHEMA.sub("", other, 1), spellings)


def _parts(type_: str, spellings: Mapping[str, str]) -> tuple[str, str, bool, str]:
    """The name, the length, whether there is a time zone, and an array's brackets."""
    found = _SHAPE.fullmatch(normal_type(type_))
    assert found is not None
    name = spellings.get(found[1], found[1])
    is_zoned = found[3] == _ZONED or name.endswith(_ZONED)
    return name.removesuffix(_ZONED), found[2] or "", is_zoned, found[4]
