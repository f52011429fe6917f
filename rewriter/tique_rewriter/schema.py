"""The application's tables as the rewriter knows them.

An *abstract table*, which an application sees, is described by a :class:`Table`; the
:class:`Definitions` protocol is all that the rewriter asks of the catalog's owner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tique_rewriter.safety.hidden_calls import HiddenCalls


@dataclass(frozen=True)
class Column:
    """A column of an abstract table.

    ``type`` is the engine's own SQL text for the type (``DECIMAL(12,2)``) and
    ``default`` the SQL text of the DEFAULT expression, if there is one. If it
    ``is_always`` generated, a statement gives no other value but by OVERRIDING.
    ``collation`` is the name, for SQL, of one that its type does not have: it sorts
    values, and equal are those with the same bytes. ``equality`` is the operator by
    which values are equal, with its schema where the engine looks for it along a path.
    ``domain`` is the one that the engine holds its values to; ``type`` is what that is made
    of. One that ``is_opaque`` has values that the driver may not hold, for what its type
    consists of; one that ``is_named`` has an enumeration's: equal ones have the same name.
    """

    name: str
    type: str
    not_null: bool = False
    default: str | None = None
    is_always: bool = False
    collation: str | None = None
    equality: str = "="
    domain: str | None = None
    is_opaque: bool = False
    is_named: bool = False


@dataclass(frozen=True)
class Generated:
    """A column that no version holds: its value is computed where a row is read.

    ``expression`` is SQL text over the bare names of other columns; its value is
    converted to ``type``. ``place`` is the position among all columns, generated ones
    included. ``collation`` is that of its texts, for SQL, where the engine has several.
    """

    name: str
    type: str
    expression: str
    place: int
    collation: str | None = None
    not_null: bool = False


@dataclass(frozen=True)
class ComputedKey:
    """A unique index on expressions or with a condition: the engine computes its values.

    ``parts`` are SQL text over the table's bare column names, and so is the condition;
    ``equalities`` are the operators by which the values of each are equal, and ``columns``
    the positions of all columns in them. ``nulls_equal`` says that NULL is equal to NULL in
    it, and ``is_constraint`` that ``name`` is a UNIQUE constraint's too.
    """

    name: str
    parts: tuple[str, ...]
    equalities: tuple[str, ...]
    columns: tuple[int, ...]
    condition: str | None = None
    nulls_equal: bool = False
    is_constraint: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The values of a row: NULL, which is equal to nothing, where it is not in."""
        parts = self.parts
        if self.nulls_equal:
            # Arrays of NULL are equal; with a second one a domain's are of its base type.
            parts = tuple(f"ARRAY[{part}, NULL]" for part in parts)
        if self.condition is None:
            return parts
        return tuple(f"CASE WHEN {self.condition} THEN {part} END" for part in parts)


@dataclass(frozen=True)
class Check:
    """A CHECK constraint: SQL text over the table's bare column names."""

    expression: str
    name: str | None = None


class Action(Enum):
    """The effect on referencing rows when the row that they reference goes."""

    NO_ACTION = "NO ACTION"
    RESTRICT = "RESTRICT"
    CASCADE = "CASCADE"
    SET_NULL = "SET NULL"
    SET_DEFAULT = "SET DEFAULT"


@dataclass(frozen=True)
class ForeignKey:
    """A FOREIGN KEY constraint of the table that has it, the child.

    ``columns`` are positions in the child, ``key`` the referenced ones in the parent, in
    the order of its PRIMARY KEY or of one of its UNIQUE keys. ``parent`` is the parent's
    schema and name. One that ``is_deferred`` is checked at commit.
    """

    name: str
    columns: tuple[int, ...]
    parent: tuple[str, str]
    key: tuple[int, ...]
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION
    is_deferred: bool = False


@dataclass(frozen=True)
class Bound:
    """Rows that storage certainly takes; about all others the engine has to be asked.

    The values in ``columns`` weigh no more than ``most`` altogether: each of text or
    bytes its length in bytes, times the column's in ``weights``. With a negative ``most``
    the engine is asked about all of them. The other columns do not matter.
    """

    columns: tuple[int, ...]
    weights: tuple[int, ...]
    most: int


@dataclass(frozen=True)
class History:
    """How far back a table can be read.

    ``since`` is the first version that can be asked for, ``retention`` the text that says
    which later ones are kept, and for how long (:class:`tique.history.retention.Retention`).
    """

    since: int
    retention: str


@dataclass(frozen=True)
class Table:
    """An abstract table, which the application created and names in its SQL.

    ``primary_key`` and each entry of ``unique`` are column positions. A table
    without a primary key (a *keyless table*) tells its rows apart by value only.
    ``bounds`` are of the indexes and rows that storage may be too small for; there are
    mostly none. ``fault`` says why a table that was changed without tique cannot be
    used; nothing else is known of it then. ``referenced`` are the keys that FOREIGN KEY
    constraints reference, of this table or of others, and ``referencing`` these
    constraints, each as its table's schema and name and its own name. ``key_names`` has
    the names of PRIMARY KEY and UNIQUE constraints, with their columns. Behind the UNIQUE constraints,
    ``unique`` has the columns of unique indexes, by position; ``unique_names`` has the
    index's name at the same place, None for a constraint. One that
    ``is_temporary`` belongs to one connection. ``generated`` are further columns, each
    behind those that its expression names. ``indexed`` are the expressions of storage's
    indexes that may be an error for a row, where a staging table has to find that.
    ``computed_keys`` are the unique indexes on expressions. ``heads`` are the columns that
    an index of storage's begins with, where the engine takes these for unique. One that ``is_materialized`` is
    a materialized view: no statement changes single rows of it. ``conditions`` are those of the views
    through which one statement writes its rows, each by its view's name, over a relation ``_c``: they
    must be true, where a CHECK constraint must not be false. A table without a ``history`` can be
    read as it is alone.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[int, ...] = ()
    unique: tuple[tuple[int, ...], ...] = ()
    checks: tuple[Check, ...] = ()
    id: int = field(default=0, compare=False)
    bounds: tuple[Bound, ...] = ()
    fault: str | None = None
    foreign_keys: tuple[ForeignKey, ...] = ()
    referenced: frozenset[tuple[int, ...]] = frozenset()
    referencing: frozenset[tuple[str, str, str]] = frozenset()
    key_names: tuple[tuple[str, tuple[int, ...]], ...] = field(
        default=(), compare=False
    )
    unique_names: tuple[str | None, ...] = field(default=(), compare=False)
    is_temporary: bool = False
    generated: tuple[Generated, ...] = ()
    indexed: tuple[str, ...] = ()
    computed_keys: tuple[ComputedKey, ...] = ()
    heads: frozenset[int] = frozenset()
    is_materialized: bool = False
    conditions: tuple[Check, ...] = field(default=(), compare=False)
    history: History | None = field(default=None, compare=False)

    @cached_property
    def positions(self) -> dict[str, int]:
        """Column position by case-folded name."""
        return {column.name.lower(): i for i, column in enumerate(self.columns)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all columns, generated ones included, in their order."""
        names = [column.name for column in self.columns]
        for column in sorted(self.generated, key=lambda each: each.place):
            names.insert(column.place, column.name)
        return tuple(names)

    @cached_property
    def spellings(self) -> frozenset[str]:
        """The case-folded names of all columns, generated ones included."""
        return frozenset([name.lower() for name in self.names])

    def computed(self, name: str) -> Generated | None:
        """The generated column of that (case-insensitive) name, if there is one."""
        name = name.lower()
        return next((c for c in self.generated if c.name.lower() == name), None)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The columns' types."""
        return tuple([column.type for column in self.columns])

    @cached_property
    def domains(self) -> tuple[tuple[str, str], ...]:
        """The columns of domains, each with its domain."""
        return tuple([(c.name, c.domain) for c in self.columns if c.domain])

    @cached_property
    def judges_rows(self) -> bool:
        """Whether the engine has to say which rows the table takes."""
        parts = (self.checks, self.domains, self.generated, self.indexed)
        return any(parts) or bool(self.computed_keys or self.conditions)

    def key_name(self, columns: tuple[int, ...]) -> str | None:
        """The name of the constraint or index that keeps these columns unique."""
        names = dict(zip(self.unique, self.unique_names, strict=False))
        constraints = {key: name for name, key in self.key_names}
        return names.get(columns) or constraints.get(columns)

    @property
    def is_keyless(self) -> bool:
        """Whether the table has no primary key."""
        return not self.primary_key

    @property
    def qualified_name(self) -> str:
        """``schema.name``, for messages (not quoted, not for SQL)."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class View:
    """A view of the application's: one of the engine's own, over storage tables.

    ``table`` has its names, its columns and an id that no table has; its ``fault`` says
    why the engine cannot read the view. ``definition`` is CREATE VIEW as the engine keeps
    it. Only if it ``has_its_columns``, those are what a star in it stands for now.
    ``obstacle`` says what of it, beside its query, stands in the way of a change through it.
    ``check_option`` is its CHECK OPTION, LOCAL or CASCADED, if it has one.
    """

    table: Table
    definition: str
    has_its_columns: bool = True
    obstacle: str | None = None
    check_option: str | None = None


@dataclass(frozen=True)
class Function:
    """A function that is not the engine's own.

    ``signature`` is its name with its argument types, as the engine writes them, and
    ``digest`` changes with its definition. ``body`` is its text, or what SQL without
    quotes the engine keeps; ``defaults`` are those of arguments. ``extension`` is the one that it is a part of.
    ``is_plain`` says that it returns one value and has no settings of its own;
    ``is_shadowed`` that a function of the engine's has its name.
    """

    schema: str
    name: str
    signature: str
    language: str
    body: str
    defaults: str
    is_volatile: bool
    is_plain: bool
    is_shadowed: bool
    extension: str | None
    digest: str


class Named(Enum):
    """What it is whose name in a text calls the function."""

    OPERATOR = "operator"
    TYPE = "type"
    RELATION = "relation"
    FUNCTION = "function"
    DEFAULT = "default"
    ANYTHING = "anything"


@dataclass(frozen=True)
class HiddenCall:
    """A name that calls a function which may not be called.

    ``behind`` says how, for messages. ``function`` is the signature, or the bare name of
    one that is the engine's own (``is_engines``).
    """

    named: Named
    schema: str
    name: str
    behind: str
    function: str
    is_engines: bool = False
    advice: str = ""


@dataclass(frozen=True)
class Attached:
    """Another database, which nothing changes: the places of its relations, folded."""

    name: str
    tables: frozenset[tuple[str, str]]
    views: frozenset[tuple[str, str]]


class Relations(Protocol):
    """Tables and views, by their names."""

    def find(self, schema: str | None, name: str) -> Table | None:
        """The managed table of that (case-insensitive) name, or None.

        ``schema`` is None for an unqualified name.

        Raises
        ------
        Error
            The table cannot be used.
        """

    def named(self, schema: str | None, name: str) -> Table | None:
        """The same, whether or not the table can be used."""

    def view(self, schema: str | None, name: str) -> View | None:
        """The view of that (case-insensitive) name, or None."""


class Definitions(Relations, Protocol):
    """The managed tables and the views, as their owner gives them to the rewriter."""

    @property
    def version(self) -> int:
        """A number that changes whenever any table does: plan cache key."""

    @property
    def default_schema(self) -> str:
        """The schema in which a table is made that names none."""

    @property
    def database(self) -> str:
        """The database's own name, which may stand before a schema's; or empty."""

    def may_call(self, schema: str | None, name: str) -> bool:
        """Whether a function of the application's of that exact name may be called."""

    @property
    def has_unsafe_functions(self) -> bool:
        """Whether there is any function of the application's that may not be called."""

    def is_unsafe(self, name: str) -> bool:
        """Whether one of that name is there, whatever its case and schema."""

    @property
    def hidden_calls(self) -> HiddenCalls:
        """The names that call functions of the application's which may not be called."""

    def attached(self, name: str) -> Attached | None:
        """Another database that is attached by that (case-insensitive) name, or None."""
