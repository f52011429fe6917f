"""Plans: the rewriter's output for a statement's text.

A plan never contains a parameter's value: it holds pieces of the application's
own text, *holes* where a managed table is read (the executor fills them with a
snapshot form of that table), and numbered placeholders ``$1 … $n``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_rewriter.schema import Table


@dataclass(frozen=True)
class Hole:
    """The place in a statement's text where reference number ``index`` is read."""

    index: int


@dataclass(frozen=True)
class Label:
    """The place after a result without an alias that is this ``expression``.

    The expression reads some table, so that the filled text is another one. The driver
    puts `` AS `` there and the name that the engine has for the expression.
    """

    expression: str


@dataclass(frozen=True)
class Variant:
    """A place where the engine gets ``text``.

    It gets ``written`` there where it is only asked what results are called.
    """

    written: str
    text: str


@dataclass(frozen=True)
class Outer:
    """The place where a member of the WITH list around a part of a statement is read.

    ``alias`` must follow the text that fills it; it is empty if the application gave one.
    """

    name: str
    alias: str


Piece = str | Hole | Label | Variant | Outer

UNNAMED = "_unnamed_"
"""How the names begin that results have in a plan and not in the application's text."""

Text = tuple[Piece, ...]
"""SQL text with holes. Placeholders in it are ``$n``, counted from 1."""


@dataclass(frozen=True)
class Parameter:
    """The value bound to placeholder ``$number`` (counted from 1)."""

    number: int


class SizedInteger(int):
    """A placeholder's value that the engine is told to be of a certain integer type."""


@dataclass(frozen=True)
class Literal:
    """A literal of the statement's text as a Python value (int, str, Decimal, bool, None)."""

    value: Any


Operand = Parameter | Literal


@dataclass(frozen=True)
class ColumnValue:
    """The value of a row's column at ``position``: of an updated one, before the update.

    In :class:`ConflictUpdate` the columns of the proposed row follow those of the
    row that is there.
    """

    position: int


@dataclass(frozen=True)
class Arithmetic:
    """``left operator right`` where operator is ``+`` or ``-``."""

    operator: str
    left: Kernel
    right: Kernel


Kernel = Parameter | Literal | ColumnValue | Arithmetic
"""The part of the expression language that the driver may evaluate itself."""


def kernel_columns(kernel: Kernel) -> Iterable[int]:
    """The positions of the columns that a kernel looks at."""
    if isinstance(kernel, ColumnValue):
        yield kernel.position
    elif isinstance(kernel, Arithmetic):
        yield from kernel_columns(kernel.left)
        yield from kernel_columns(kernel.right)


@dataclass(frozen=True)
class Expression:
    """A scalar expression: its text, and its kernel where it is simple enough."""

    text: Text
    kernel: Kernel | None = None


class Beside(Enum):
    """A part of a statement in whose presence a table may need another form."""

    COMPARISON = "an IN, ANY or ALL of a subquery, or LATERAL"
    WHOLE_WINDOW = "a window without PARTITION BY and ORDER BY"
    COMPUTED_ORDER = "a window ordered by an expression"


@dataclass(frozen=True)
class Reference:
    """One place where a managed table is read.

    ``alias`` must follow the text that fills the hole so that the
    statement's other names still resolve (`` AS "stock"``); it is empty when the
    application gave an alias itself. ``binding`` says which columns are bound by
    equality: rows with other values there cannot influence the result.
    ``columns`` is a superset of the columns that the statement looks at, None
    stands for all. ``beside`` lists the statement's constructs that not every engine
    keeps apart from the text that fills the hole.
    """

    table: Table
    alias: str
    binding: dict[int, Operand]
    columns: frozenset[int] | None = None
    beside: frozenset[Beside] = frozenset()

    @property
    def key(self) -> tuple[Operand, ...] | None:
        """The whole primary key's operands in key order, if all are bound."""
        if self.table.is_keyless:
            return None
        if any(i not in self.binding for i in self.table.primary_key):
            return None
        return tuple(self.binding[i] for i in self.table.primary_key)


@dataclass(frozen=True)
class PointRead:
    """A SELECT of plain columns of one row by its whole primary key, nothing else."""

    table: Table
    key: tuple[Operand, ...]
    columns: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Output:
    """A column of a result: a row's column, or an aggregate of one.

    ``function`` is COUNT, SUM, MIN or MAX, or None for the column itself. Only that
    of COUNT(*) has no ``position``. ``distinct``: equal values count once.
    """

    function: str | None
    position: int | None
    distinct: bool = False


@dataclass(frozen=True)
class Comparison:
    """A condition ``column operator operand``; the operator is <, <=, > or >=."""

    position: int
    operator: str
    operand: Operand


@dataclass(frozen=True)
class Lookup:
    """An inner join that finds the other table's rows by their whole primary key.

    ``outer`` is the number of the reference that is read first. ``key`` has the values
    of the other one's key columns, in key order: columns of the outer row, too.
    """

    outer: int
    key: tuple[Operand | ColumnValue, ...]


@dataclass(frozen=True)
class GroupRead:
    """A SELECT from one table whose WHERE clause is the reference's binding.

    The outputs are columns, or all of them aggregates. ``order`` has the columns to
    sort by, and whether in descending order. ``comparisons`` are further conditions.
    With a ``lookup`` a row is the outer table's with the other one's columns after it.
    """

    outputs: tuple[Output, ...]
    order: tuple[tuple[int, bool], ...] = ()
    limit: int | None = None
    comparisons: tuple[Comparison, ...] = ()
    lookup: Lookup | None = None


@dataclass(frozen=True)
class JoinRead:
    """A SELECT from an inner join of two tables, references 0 and 1.

    ``rows`` is a query for the joined rows. The statement is ``before``, these rows as
    a subquery, ``after``. Where tables come in parts, the joins of each part of one with
    each part of the other have, together, all of the rows.
    """

    before: str
    rows: Text
    after: str


@dataclass(frozen=True)
class Plan:
    """The common part of all plans: how many placeholders the texts have.

    ``references`` are numbered by the holes of all of the plan's texts. A
    :class:`Clause` counts its placeholders for itself; they are not among
    ``parameters``, but for those that stand before it too.
    """

    parameters: int
    references: tuple[Reference, ...]


@dataclass(frozen=True)
class Clause:
    """The end of a statement, which becomes a query of its own.

    ``$i`` in its texts is the statement's placeholder number ``parameters[i - 1]``.
    (Operands and kernels count as the statement does, everywhere.)
    """

    parameters: tuple[int, ...]

    def bound(self, values: Sequence[Any]) -> list[Any]:
        """Return the values of its own ``$1 … $n``, given the statement's."""
        return [values[number - 1] for number in self.parameters]


@dataclass(frozen=True)
class Returning(Clause):
    """RETURNING: a select list over the rows that the statement wrote.

    ``qualifier`` is the quoted name that those rows must go by. ``plain`` has position
    and name of every result where all of them are columns as they stand.
    """

    items: Text
    qualifier: str
    plain: tuple[tuple[int, str], ...] | None = None


@dataclass(frozen=True)
class JoinedReturning:
    """RETURNING over changed rows and the rows of other relations joined with them.

    ``items`` is a select list over relations called ``qualifier`` (quoted), with the
    changed row, and as ``relations`` say: quoted name and quoted columns of each. Its
    placeholders count as the statement's; there are ``parameters`` up to its end.
    """

    parameters: int
    items: Text
    qualifier: str
    relations: tuple[tuple[str, tuple[str, ...]], ...]


PROPOSED = "_excluded_"
"""The prefix of the column names of a row that is proposed for insertion."""


@dataclass(frozen=True)
class ConflictUpdate(Clause):
    """DO UPDATE: the assignments to an existing row.

    The texts are over a relation called ``qualifier`` (quoted), which has the columns
    of the existing row, and those of the proposed row, called ``_excluded_0``,
    ``_excluded_1`` … by position. ``where`` is a condition, empty for none.
    """

    assignments: tuple[tuple[int, Expression], ...]
    where: Text
    qualifier: str


@dataclass(frozen=True)
class Conflict:
    """ON CONFLICT: the keys at which it looks, and DO UPDATE; None: DO NOTHING."""

    keys: tuple[tuple[int, ...], ...]
    update: ConflictUpdate | None = None


@dataclass(frozen=True)
class Select(Plan):
    """A query. ``point``, ``group`` and ``join`` are set where it is no more than that."""

    text: Text
    point: PointRead | None = None
    group: GroupRead | None = None
    join: JoinRead | None = None


@dataclass(frozen=True)
class InsertRows(Plan):
    """INSERT … VALUES. A None in a row stands for the column's DEFAULT.

    ``columns`` are the positions that the rows give values for, in row order.
    """

    table: Table
    columns: tuple[int, ...]
    rows: tuple[tuple[Expression | None, ...], ...]
    conflict: Conflict | None = None
    returning: Returning | None = None


@dataclass(frozen=True)
class InsertQuery(Plan):
    """INSERT … SELECT.

    ``is_by_name`` says that the columns are those that the query's results are named
    after, and that only the engine knows these names.
    """

    table: Table
    columns: tuple[int, ...]
    query: Text
    conflict: Conflict | None = None
    returning: Returning | None = None
    is_by_name: bool = False


@dataclass(frozen=True)
class Update(Plan):
    """UPDATE.

    ``source`` is `` FROM <hole> <alias> WHERE …``: put after a select list, it
    yields the rows to change. ``qualifier`` is the quoted name that the select
    list must use for the row's columns. ``key`` is set where the WHERE clause is
    exactly an equality on the whole primary key. ``is_bound`` says that it is exactly
    the target's binding, and that nothing else is read. ``is_joined`` says that other
    relations are joined, so that ``source`` may yield a row of the table several times.
    ``joined_returning`` is there in place of ``returning`` if RETURNING looks at them.
    """

    table: Table
    assignments: tuple[tuple[int, Expression], ...]
    source: Text
    qualifier: str
    key: tuple[Operand, ...] | None = None
    is_bound: bool = False
    returning: Returning | None = None
    is_joined: bool = False
    joined_returning: JoinedReturning | None = None

    @property
    def changes_key(self) -> bool:
        """Whether a primary key column is assigned."""
        return any(i in self.table.primary_key for i, _ in self.assignments)


@dataclass(frozen=True)
class Delete(Plan):
    """DELETE; fields as in :class:`Update`."""

    table: Table
    source: Text
    qualifier: str
    key: tuple[Operand, ...] | None = None
    is_bound: bool = False
    returning: Returning | None = None
    is_joined: bool = False
    joined_returning: JoinedReturning | None = None


class MergeKind(Enum):
    """The rows that a WHEN clause of MERGE is for; the value is its text."""

    MATCHED = "MATCHED"
    BY_TARGET = "NOT MATCHED"
    BY_SOURCE = "NOT MATCHED BY SOURCE"


class MergeAction(Enum):
    """The action of a WHEN clause."""

    UPDATE = "UPDATE"
    DELETE = "DELETE"
    INSERT = "INSERT"
    NOTHING = "DO NOTHING"


@dataclass(frozen=True)
class MergeClause:
    """A WHEN clause of MERGE; ``condition`` is empty for none.

    ``assignments`` are the new values: of an inserted row all of them.
    """

    kind: MergeKind
    condition: Text
    action: MergeAction
    assignments: tuple[tuple[int, Expression], ...]


@dataclass(frozen=True)
class Merge(Plan):
    """MERGE.

    ``before`` is a WITH clause, ``target`` and ``source`` are relations as FROM has
    them, called ``qualifier`` and ``source_name`` (quoted); ``joined`` is the join's
    condition, with ON or USING. In RETURNING the action is a column of ``_action``.
    """

    table: Table
    before: Text
    target: Text
    qualifier: str
    source: Text
    source_name: str
    joined: Text
    clauses: tuple[MergeClause, ...]
    returning: JoinedReturning | None = None


@dataclass(frozen=True)
class Member:
    """A member of a WITH list: a query, or a change with RETURNING.

    ``columns`` is the list in brackets after its name, with these, or empty.
    ``parameters`` are the statement's placeholders that the plan's ``$1 … $n`` stand for.
    """

    name: str
    columns: str
    plan: Plan
    parameters: tuple[int, ...]


@dataclass(frozen=True)
class ChangingWith(Plan):
    """A statement with changes in its WITH list; the last member is the statement itself.

    Every member's plan is one of its own, whose texts name the members before it by
    :class:`Outer`.
    """

    members: tuple[Member, ...]


@dataclass(frozen=True)
class CopyIn(Plan):
    """COPY of rows into ``columns`` of a table.

    ``tail`` is the text from FROM on; ``is_stream`` says that the client has the rows.
    """

    table: Table
    columns: tuple[int, ...]
    tail: str
    is_stream: bool


@dataclass(frozen=True)
class CopyOut(Plan):
    """COPY of a query's rows, to the client if it ``is_stream``."""

    text: Text
    is_stream: bool


@dataclass(frozen=True)
class CreateTable(Plan):
    """CREATE TABLE: the definition, and the application's text for the engine.

    The text has no FOREIGN KEY constraints.
    """

    table: Table
    text: str
    if_not_exists: bool


@dataclass(frozen=True)
class DropTable(Plan):
    """DROP TABLE of managed tables."""

    tables: tuple[Table, ...]
    missing: tuple[str, ...]
    """Names under IF EXISTS that are not there."""
    cascade: bool = False
    """Whether FOREIGN KEY constraints of other tables that reference them go too."""


@dataclass(frozen=True)
class CreateIndex(Plan):
    """CREATE INDEX on a managed table: an index of the storage table."""

    table: Table
    text: str


@dataclass(frozen=True)
class DropIndex(Plan):
    """DROP INDEX, passed to the engine as it stands."""

    text: str


@dataclass(frozen=True)
class Explain(Plan):
    """EXPLAIN of another statement, with the engine's options; ANALYZE runs it too."""

    statement: Plan
    options: tuple[str, ...] = ()
    analyzes: bool = False


ISOLATION = "transaction_isolation"
DEFAULT_ISOLATION = "default_transaction_isolation"
READ_ONLY = "transaction_read_only"
DEFAULT_READ_ONLY = "default_transaction_read_only"
DRIVERS_OWN = frozenset({ISOLATION, DEFAULT_ISOLATION, READ_ONLY, DEFAULT_READ_ONLY})
"""Settings of transactions, which the driver keeps: the engine's are its own ones."""


class Control(Enum):
    """Transaction control in SQL text."""

    BEGIN = "BEGIN"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    SAVEPOINT = "SAVEPOINT"
    ROLLBACK_TO = "ROLLBACK TO"
    RELEASE = "RELEASE"
    SET_TRANSACTION = "SET TRANSACTION"


@dataclass(frozen=True)
class TransactionControl(Plan):
    """BEGIN … COMMIT, savepoints, SET TRANSACTION.

    ``savepoint`` is the savepoint's folded name; ``isolation`` an isolation
    level in upper case as written (``READ COMMITTED``, ``SNAPSHOT``,
    ``REPEATABLE READ``, ``SERIALIZABLE``); ``read_only`` None when not said.
    """

    control: Control
    savepoint: str | None = None
    isolation: str | None = None
    read_only: bool | None = None


def shift(text: Text, by: int) -> Text:
    """The same text with every hole's number raised by ``by``."""
    return tuple(Hole(p.index + by) if isinstance(p, Hole) else p for p in text)


def holes(text: Text) -> Iterable[int]:
    """The numbers of the holes in ``text``, in order."""
    return (piece.index for piece in text if isinstance(piece, Hole))


def labels(text: Text) -> Iterable[Label]:
    """The labels in ``text``, in order."""
    return (piece for piece in text if isinstance(piece, Label))
