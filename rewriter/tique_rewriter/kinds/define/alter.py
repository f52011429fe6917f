"""ALTER TABLE: from the text to a table's definition afterwards.

The engine changes its storage table by the application's own words. They are read here to
know the definition that comes out: the driver has to make the cache table anew, and
FOREIGN KEY constraints are kept by tique alone, so that their clauses are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tique_rewriter.errors import WrongDefinition
from tique_rewriter.kinds.define.collations import collated, read_collation
from tique_rewriter.kinds.define.definition import (
    TABLE_CONSTRAINTS,
    Draft,
    check_parameters,
    column_constraints,
    free_name,
    position_of,
    read_column,
    read_constraints,
    read_type,
)
from tique_rewriter.kinds.define.foreign_keys import kept_text, resolve
from tique_rewriter.kinds.define.identity import accept_identity
from tique_rewriter.plans.plan import Plan
from tique_rewriter.safety.token_checks import check_calls
from tique_rewriter.scope.targets import named_table, unknown_name
from tique_rewriter.text.cursor import Cursor, refuse_placeholders
from tique_rewriter.text.names import check_reserved, expect_exact
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.schema import ForeignKey, Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source, Word


@dataclass(frozen=True)
class AlterTable(Plan):
    """ALTER TABLE of a managed table.

    ``changes`` is the application's text behind the table's name, without FOREIGN KEY
    constraints; it is empty if the engine has nothing to do. ``after`` is the definition
    afterwards, of which the columns' names and the FOREIGN KEY constraints are sure.
    ``origins`` are the positions that its columns had before, None for a new one, ``retyped`` those of columns
    that have other values afterwards. ``new_keys`` are the names of FOREIGN KEY
    constraints that are added. With ``cascade``, constraints of other tables go that need
    what is dropped. ``statement`` is run in place of ALTER TABLE with ``changes``.
    ``adds`` is the name of the constraint or unique index that is added.
    """

    before: Table
    after: Table
    changes: str
    origins: tuple[int | None, ...]
    retyped: frozenset[int]
    new_keys: frozenset[str]
    cascade: bool
    statement: str = ""
    adds: str | None = None


_MOVES = ["SET", "SCHEMA"]
_STORED = [f"SET STORAGE {how}" for how in ("PLAIN", "EXTERNAL", "EXTENDED", "MAIN")]


@dataclass(frozen=True)
class AlterNothing(Plan):
    """ALTER TABLE IF EXISTS of a table that is not there."""


def plan_alter(
    source: Source, catalog: Catalog, *, is_materialized: bool = False
) -> AlterTable | AlterNothing:
    """Return the plan of ALTER TABLE, or of ALTER MATERIALIZED VIEW.

    Of the latter's forms there are those that change names.
    """
    cursor = Cursor(source, number=3 if is_materialized else 2)
    if_exists = cursor.accept("IF EXISTS")
    if _has(source, "only"):
        cursor.accept("ONLY")
    first = cursor.number
    table = named_table(cursor, catalog, is_materialized=is_materialized)
    if table is None:
        if if_exists:
            return AlterNothing(0, ())
        raise unknown_name(cursor, first)
    refuse_placeholders(source, "ALTER TABLE")
    if cursor.is_done:
        raise source.syntax("a change is expected", source.words[-1].start)
    is_renamed = cursor.keyword == "RENAME" or cursor.keywords[:-1] == _MOVES
    if is_materialized and not is_renamed:
        raise source.unsupported("this form of ALTER MATERIALIZED VIEW", source.start)
    return _Alteration(source, catalog, table).plan(cursor.rest)


def _has(source: Source, form: str) -> bool:
    return form in source.rules.alterations


class _Alteration:
    """The changes of one statement, as they are read."""

    def __init__(self, source: Source, catalog: Catalog, table: Table) -> None:
        self._source = source
        self._catalog = catalog
        self._table = table
        self._draft = Draft(
            table.name,
            list(table.columns),
            set(table.spellings),
            table.primary_key,
            list(table.unique),
            list(table.checks),
            generated=list(table.generated),
        )
        self._origins: list[int | None] = list(range(len(table.columns)))
        self._keys = list(table.foreign_keys)
        """FOREIGN KEY constraints that were there and stay, as they were."""
        self._names = [key.name for key in self._keys]
        """Their names afterwards."""
        self._schema = table.schema
        self._retyped: set[int] = set()
        self._cascade = False
        self._adds: str | None = None

    def plan(self, words: list[Word]) -> AlterTable:
        """Read all changes."""
        source, table, draft = self._source, self._table, self._draft
        pieces = split(words)
        if not all(pieces):
            raise source.syntax("a change is expected", words[0].start)
        if len(pieces) > 1:
            renaming = next((p for p in pieces if p[0].keyword == "RENAME"), None)
            if renaming is not None or not _has(source, "several"):
                raise source.unsupported(
                    "several changes in one ALTER TABLE",
                    (renaming or pieces[1])[0].start,
                    "write a statement for each",
                )
        texts = [""] * len(pieces)
        for i in sorted(range(len(pieces)), key=lambda i: _rank(pieces[i])):
            texts[i] = self._read(pieces[i])
        after = draft.table(self._schema)
        after = replace(after, foreign_keys=self._kept_keys())
        added = resolve(source, self._catalog, after, draft.references)
        return AlterTable(
            0,
            (),
            table,
            replace(after, foreign_keys=(*after.foreign_keys, *added)),
            ", ".join(filter(None, texts)),
            tuple(self._origins),
            frozenset(self._retyped),
            frozenset(key.name for key in added),
            self._cascade,
            adds=self._adds,
        )

    def _kept_keys(self) -> tuple[ForeignKey, ...]:
        """The constraints that stay, by the columns' new positions."""
        table = self._table
        place = {old: i for i, old in enumerate(self._origins) if old is not None}
        kept = []
        for key, name in zip(self._keys, self._names, strict=True):
            if key.parent == (table.schema, table.name):
                key = replace(
                    key,
                    parent=(self._schema, self._draft.name),
                    key=tuple([place[i] for i in key.key if i in place]),
                )
            columns = tuple([place[i] for i in key.columns])
            kept.append(replace(key, name=name, columns=columns))
        return tuple(kept)

    def _read(self, piece: list[Word]) -> str:
        """Read one change; return the engine's text of it."""
        source, cursor = self._source, Cursor(self._source, piece)
        verb, following = cursor.take().keyword, cursor.keyword
        match verb:
            case "ADD" if following in TABLE_CONSTRAINTS:
                return self._add_constraint(piece)
            case "ADD":
                return self._add_column(cursor)
            case "DROP" if following == "CONSTRAINT":
                return self._drop_constraint(cursor)
            case "DROP":
                return self._drop_column(cursor)
            case "ALTER":
                return self._alter_column(cursor)
            case "RENAME" if following == "TO" and len(piece) == 3:
                return self._rename_table(piece)
            case "RENAME" if following == "CONSTRAINT" and len(piece) == 5:
                return self._rename_constraint(piece)
            case "RENAME":
                return self._rename_column(cursor)
            case "SET" if following == "SCHEMA" and len(piece) == 3:
                return self._set_schema(piece)
            case "VALIDATE" if following == "CONSTRAINT" and len(piece) == 3:
                return self._validate_constraint(piece)
            case "SET" | "RESET" if (
                following == "(" and source.rules.storage_parameters
            ):
                return self._set_parameters(cursor)
        shown = " ".join(source.raw(word) for word in piece[: 1 + bool(following)])
        refused = source.unsupported(f"ALTER TABLE … {shown}", piece[0].start)
        raise source.unread(refused)

    def _is_generated(self, word: Word) -> bool:
        """Whether a generated column is named, which no version holds."""
        name = self._source.identifier(word)
        found = self._table.computed(name)
        if found is not None:
            expect_exact(self._source, name, found.name, word.start)
        return found is not None

    def _column(self, word: Word) -> int:
        """The position of an existing column; the place counts in the draft."""
        position = position_of(self._source, self._draft, word)
        name = self._source.identifier(word)
        expect_exact(self._source, name, self._draft.columns[position].name, word.start)
        return position

    def _add_column(self, cursor: Cursor) -> str:
        source, draft = self._source, self._draft
        cursor.accept("COLUMN")
        head = cursor.text_from(0)
        unless = cursor.accept("IF NOT EXISTS")
        if not cursor.left:
            raise source.syntax("a column is expected", cursor.start)
        element = cursor.rest
        if cursor.keywords[1:2] == ["."]:
            raise source.unsupported(
                "a field in ADD COLUMN",
                element[0].start,
                "give the column that has it another type: ALTER COLUMN … TYPE STRUCT(…)",
            )
        if unless and source.identifier(element[0]).lower() in draft.taken:
            self._column(element[0])
            return ""
        references = len(draft.references)
        constraints = column_constraints(element)
        before = len(draft.columns)
        read_column(source, draft, element)
        self._origins += [None] * (len(draft.columns) - before)
        read_constraints(source, draft, constraints, element[0])
        _check_expressions(source, constraints)
        left_out = {
            word.start
            for clause in draft.references[references:]
            for word in clause.words
        }
        return f"{head} {kept_text(source, element, left_out)}"

    def _add_constraint(self, piece: list[Word]) -> str:
        source, draft = self._source, self._draft
        if using := next(
            (w for w in piece if w.keyword == "USING" and not w.depth), None
        ):
            return self._add_key_of_index(piece, using)
        if [w.keyword for w in piece[-2:]] == ["NOT", "VALID"] and _has(
            source, "not valid"
        ):
            # Rows that are there are checked all the same: then it is valid.
            piece = piece[:-2]
        references = len(draft.references)
        read_constraints(source, draft, piece[1:], None)
        _check_expressions(source, piece[1:])
        if piece[1].keyword == "CONSTRAINT":
            self._adds = source.identifier(piece[2])
        if len(draft.references) > references:
            return ""
        return source.words_text(piece)

    def _add_key_of_index(self, piece: list[Word], using: Word) -> str:
        """A UNIQUE constraint in the place of a unique index; PostgreSQL renames that."""
        source = self._source
        cursor = Cursor(source, piece, 1)
        if cursor.accept("CONSTRAINT"):
            cursor.take()
        is_unique = cursor.accept("UNIQUE USING INDEX")
        if not _has(source, "using index") or not is_unique or cursor.left != 1:
            raise source.unsupported("this constraint USING INDEX", using.start)
        return source.words_text(piece)

    def _drop_column(self, cursor: Cursor) -> str:
        source, draft = self._source, self._draft
        cursor.accept("COLUMN")
        head = cursor.text_from(0)
        if_exists = cursor.accept("IF EXISTS")
        if not cursor.left:
            raise source.syntax("a column is expected", cursor.start)
        rest = cursor.rest
        name = cursor.take()
        cascades = self._behaviour(cursor)
        if if_exists and source.identifier(name).lower() not in draft.taken:
            return ""
        if self._is_generated(name):
            draft.taken.remove(source.identifier(name).lower())
            return f"{head} {source.words_text(rest)}"
        position = self._column(name)
        old = self._origins[position]
        for key in [key for key in self._keys if old in key.columns]:
            if source.rules.keeps_referencing and not cascades:
                raise source.error(
                    WrongDefinition,
                    f"the column is still needed: the FOREIGN KEY {key.name} is of it",
                    name.start,
                    "drop the constraint first",
                )
            self._forget(key)
        draft.taken.remove(draft.columns[position].name.lower())
        del draft.columns[position], self._origins[position]
        draft.primary_key = next(iter(_without(position, [draft.primary_key])), ())
        draft.unique = _without(position, draft.unique)
        return f"{head} {source.words_text(rest)}"

    def _behaviour(self, cursor: Cursor) -> bool:
        """Read CASCADE or RESTRICT, if it is there; whether it is CASCADE."""
        cascades = cursor.accept("CASCADE", "RESTRICT") == "CASCADE"
        cursor.finish("in ALTER TABLE")
        self._cascade |= cascades
        return cascades

    def _forget(self, key: ForeignKey) -> None:
        place = self._keys.index(key)
        del self._keys[place], self._names[place]

    def _own_key(self, word: Word) -> ForeignKey | None:
        """The FOREIGN KEY constraint of that name."""
        name = self._source.identifier(word)
        same = self._source.rules.same
        for key, known in zip(self._keys, self._names, strict=True):
            if same(known) == same(name):
                return key
        return None

    def _drop_constraint(self, cursor: Cursor) -> str:
        source = self._source
        cursor.accept("CONSTRAINT")
        cursor.accept("IF EXISTS")
        if not cursor.left:
            raise source.syntax("a constraint is expected", cursor.start)
        word = cursor.take()
        self._behaviour(cursor)
        key = self._own_key(word)
        if key is not None:
            self._forget(key)
            return ""
        if not _has(source, "drop constraint"):
            name = source.identifier(word)
            raise source.unsupported(
                f'DROP CONSTRAINT "{name}", which is no FOREIGN KEY of the table',
                word.start,
                f"{source.rules.engine} drops no other constraints",
            )
        # It may be the one that stands in another one's way.
        self._draft.primary_key = ()
        return cursor.text_from(0)

    def _alter_column(self, cursor: Cursor) -> str:
        source, draft = self._source, self._draft
        cursor.accept("COLUMN")
        if cursor.left < 3:
            raise source.syntax(
                "a change of a column is expected", cursor.words[-1].start
            )
        name, written = cursor.take(), source.words_text(cursor.words)
        if self._is_generated(name):
            if cursor.accept_last("SET NOT NULL", "DROP NOT NULL"):
                return written
            raise source.unsupported(
                "this change of a generated column",
                cursor.start,
                "drop it and add another one",
            )
        position = self._column(name)
        column = draft.columns[position]
        if cursor.left > 2 and cursor.accept("SET DEFAULT"):
            check_calls(source, cursor.rest)
            _check_expressions(source, cursor.rest)
            default = source.words_text(cursor.rest)
            draft.columns[position] = replace(column, default=default)
        elif cursor.accept_last("DROP DEFAULT"):
            draft.columns[position] = replace(column, default=None)
        elif cursor.accept_last("SET NOT NULL"):
            draft.columns[position] = replace(column, not_null=True)
        elif cursor.accept_last("DROP NOT NULL") or (
            _has(source, "null") and cursor.accept_last("SET NULL")
        ):
            draft.columns[position] = replace(column, not_null=False)
            if _has(source, "null"):
                return f"ALTER COLUMN {source.raw(name)} SET NULL"
        elif _has(source, "statistics") and cursor.accept("SET STATISTICS"):
            if not "".join(cursor.keywords).lstrip("-").isdigit():
                cursor.finish("in ALTER TABLE")
        elif _has(source, "storage") and cursor.accept_last(*_STORED):
            pass
        elif cursor.accept("TYPE", "SET DATA TYPE"):
            self._change_type(position, cursor)
        elif _has(source, "identity") and cursor.accept("ADD"):
            if not accept_identity(cursor) or cursor.left:
                raise cursor.unexpected("in ALTER TABLE")
        else:
            shown = " ".join(cursor.keywords[:2])
            refused = source.unsupported(
                f"ALTER TABLE … ALTER COLUMN … {shown}", cursor.start
            )
            raise source.unread(refused)
        return written

    def _change_type(self, position: int, cursor: Cursor) -> None:
        source, draft = self._source, self._draft
        if not _has(source, "type"):
            raise source.unsupported(
                "the change of a column's type",
                source.find("TYPE"),
                f"{source.rules.engine} has none; add a column, UPDATE it, and drop the "
                "old one",
            )
        type_words, collation = cursor.take_until({"USING"}), None
        lacks = cursor.accept("USING") and not cursor.left
        if collate := [i for i, w in enumerate(type_words) if w.keyword == "COLLATE"]:
            clause = Cursor(source, type_words, collate[0])
            start, collation = clause.start, read_collation(clause)
            if collation is None or clause.left:
                raise source.unsupported("COLLATE", start)
            type_words = type_words[: collate[0]]
        if not type_words or lacks:
            raise source.syntax("a type is expected", source.words[-1].start)
        check_calls(source, cursor.rest)
        _check_expressions(source, cursor.rest)
        type_ = read_type(source, type_words)
        column = replace(draft.columns[position], type=type_, collation=None)
        if collation is not None:
            column = collated(source, column, collation)
        draft.columns[position] = column
        self._retyped.add(position)

    def _rename_table(self, piece: list[Word]) -> str:
        source = self._source
        name = source.identifier(piece[2])
        found = self._catalog.named(self._table.schema, name)
        if found is not None and found is not self._table:
            raise source.error(
                WrongDefinition,
                f"table {found.qualified_name} exists already, the name",
                piece[2].start,
            )
        self._draft.name = name
        return source.words_text(piece)

    def _validate_constraint(self, piece: list[Word]) -> str:
        """All constraints are valid; the engine knows those that are its own."""
        if not _has(self._source, "not valid"):
            raise self._source.unsupported("VALIDATE CONSTRAINT", piece[0].start)
        if self._own_key(piece[2]) is not None:
            return ""
        return self._source.words_text(piece)

    def _set_schema(self, piece: list[Word]) -> str:
        source = self._source
        if not _has(source, "schema"):
            raise source.unsupported("ALTER TABLE … SET SCHEMA", piece[0].start)
        schema = source.identifier(piece[2])
        check_reserved(source, schema, piece[2].start)
        self._schema = schema
        return source.words_text(piece)

    def _set_parameters(self, cursor: Cursor) -> str:
        source, listed = self._source, cursor.rest
        if source.closing(listed) != len(listed) - 1:
            raise cursor.unexpected("in ALTER TABLE")
        check_parameters(source, listed, has_values=cursor.before.keyword == "SET")
        return source.words_text(cursor.words)

    def _rename_column(self, cursor: Cursor) -> str:
        source, draft = self._source, self._draft
        cursor.accept("COLUMN")
        if cursor.left != 3 or cursor.keywords[1] != "TO":
            raise source.unsupported("this form of RENAME", cursor.words[0].start)
        old, _, new = cursor.rest
        position = None if self._is_generated(old) else self._column(old)
        draft.taken.remove(source.identifier(old).lower())
        name = free_name(source, draft, new)
        draft.taken.add(name.lower())
        if position is not None:
            column = draft.columns[position]
            draft.columns[position] = replace(column, name=name)
        return source.words_text(cursor.words)

    def _rename_constraint(self, piece: list[Word]) -> str:
        source = self._source
        new = source.identifier(piece[4])
        if piece[3].keyword != "TO":
            raise source.syntax("TO is expected", piece[3].start)
        if self._own_key(piece[4]) is not None:
            raise source.error(
                WrongDefinition, "two constraints with one name", piece[4].start
            )
        key = self._own_key(piece[2])
        if key is not None:
            self._names[self._keys.index(key)] = new
            return ""
        if not _has(source, "rename constraint"):
            raise source.unsupported(
                "RENAME CONSTRAINT of another constraint than a FOREIGN KEY",
                piece[1].start,
                f"{source.rules.engine} renames none",
            )
        return source.words_text(piece)


def _rank(piece: list[Word]) -> int:
    """When a change counts: columns that go or come count for all others."""
    keywords = [word.keyword for word in piece[:2]]
    if keywords[0] == "DROP":
        return 0
    return 1 + (keywords[0] != "ADD" or keywords[-1] in TABLE_CONSTRAINTS)


def _without(position: int, keys: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The keys that lack a column which is dropped, by the others' new positions."""
    return [
        tuple([i - (i > position) for i in key]) for key in keys if position not in key
    ]


def _check_expressions(source: Source, words: list[Word]) -> None:
    """Refuse queries, and functions that read tables, in an expression of a change.

    The engine computes it for the rows of storage, outside any snapshot.
    """
    refused = source.rules.refused_functions
    for number, word in enumerate(words):
        before = words[number - 1].keyword if number else ""
        if word.keyword in ("SELECT", "VALUES", "TABLE", "PIVOT", "UNPIVOT") or (
            word.keyword == "FROM" and before == "("
        ):
            raise source.unsupported("a query in ALTER TABLE", word.start)
        following = words[number + 1].keyword if number + 1 < len(words) else ""
        name = source.raw(word).strip('"').lower()
        if following == "(" and name in refused:
            raise source.unsupported(f"the function {name}()", word.start)
