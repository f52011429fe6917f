"""Plans: the rewriter's output for a statement's text.

A plan never contains a parameter's value. Here are the parts that all plans have, and
plans of queries and of transaction control; those of statements that change rows are in
:mod:`tique_rewriter.plans.change_plans`, those of DDL in :mod:`tique_rewriter.plans.ddl_plans`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique_rewriter.plans.past import Past
    from tique_rewriter.plans.text import Text
    from tique_rewriter.schema import Table


MOMENT = "'now'"
"""In a query's ``calls``: a string that some engine may read as the moment of a transaction."""

CONVERSION = "CAST TO TIME"
"""There: a conversion, to a moment, of what may be such a string in a row."""


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


@dataclass(frozen=True)
class Comparison:
    """A condition ``column operator operand``; the operator is =, <>, <, <=, > or >=."""

    position: int
    operator: str
    operand: Operand


@dataclass(frozen=True)
class IsNull:
    """The condition that a row's column is NULL."""

    position: int


@dataclass(frozen=True)
class Negation:
    """``NOT condition``."""

    condition: Condition


@dataclass(frozen=True)
class Junction:
    """``left operator right`` where operator is AND or OR."""

    operator: str
    left: Condition
    right: Condition


Condition = Comparison | IsNull | Negation | Junction
"""A condition on a row's columns, with SQL's three truth values."""


@dataclass(frozen=True)
class Choice:
    """CASE: the value of the first branch whose condition is true, or ``otherwise``."""

    branches: tuple[tuple[Condition, Kernel], ...]
    otherwise: Kernel


@dataclass(frozen=True)
class Coalesced:
    """COALESCE: the first of the values that is not NULL."""

    values: tuple[Kernel, ...]


Kernel = Parameter | Literal | ColumnValue | Arithmetic | Choice | Coalesced
"""The part of the expression language that the driver may evaluate itself."""


def kernel_columns(kernel: Kernel | Condition) -> Iterable[int]:
    """The positions of the columns that a kernel or a condition looks at."""
    parts: Iterable[Kernel | Condition] = ()
    if isinstance(kernel, ColumnValue | Comparison | IsNull):
        yield kernel.position
    elif isinstance(kernel, Arithmetic | Junction):
        parts = kernel.left, kernel.right
    elif isinstance(kernel, Negation):
        parts = (kernel.condition,)
    elif isinstance(kernel, Choice):
        parts = *chain.from_iterable(kernel.branches), kernel.otherwise
    elif isinstance(kernel, Coalesced):
        parts = kernel.values
    for part in parts:
        yield from kernel_columns(part)


@dataclass(frozen=True)
class Expression:
    """A scalar expression: its text, and its kernel where it is simple enough."""

    text: Text
    kernel: Kernel | None = None


class SiblingConstruct(Enum):
    """A part of a statement in whose presence a table may need another form."""

    COMPARISON = "an IN, ANY or ALL of a subquery, or LATERAL"
    WHOLE_WINDOW = "a window without PARTITION BY and ORDER BY"
    COMPUTED_ORDER = "a window ordered by an expression"
    JOINS = "a join of three tables or more, those of views among them"


ROW_NUMBER = "_tique_row"
"""The column that tells rows without a key apart within one statement."""


@dataclass(frozen=True)
class Reference:
    """One place where a managed table is read.

    ``alias`` must follow the text that fills the hole so that the
    statement's other names still resolve (`` AS "stock"``); it is empty when the
    application gave an alias itself. ``binding`` says which columns are bound by
    equality: rows with other values there cannot influence the result. Nor can rows of which
    one of the ``conditions`` is not true.
    ``columns`` is a superset of the columns that the statement looks at, None
    stands for all. ``beside`` lists the statement's constructs that not every engine
    keeps apart from the text that fills the hole. In the place of a view, of which
    ``table`` has the names and columns, its query is read. If it ``is_numbered``, its rows
    have one more column, :data:`ROW_NUMBER`, which tells equal ones apart. With a
    ``past`` they are those of then.
    """

    table: Table
    alias: str
    binding: dict[int, Operand]
    columns: frozenset[int] | None = None
    beside: frozenset[SiblingConstruct] = frozenset()
    view: ViewQuery | None = None
    is_numbered: bool = False
    past: Past | None = None
    conditions: tuple[Condition, ...] = ()


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
    may_read_given: ClassVar[bool] = False
    """Whether it may read relations that are given for one execution."""


@dataclass(frozen=True)
class Select(Plan):
    """A query. ``point``, ``group`` and ``join`` are set where it is no more than that.

    ``calls`` are the names of all that it calls, and other words by which its results
    may depend on more than rows; None if it reads anything but managed tables.
    """

    may_read_given = True

    text: Text
    point: PointRead | None = None
    group: GroupRead | None = None
    join: JoinRead | None = None
    calls: frozenset[str] | None = None


class Wait(Enum):
    """What a locking query does about rows that another transaction has locked."""

    WAIT = "wait"
    NOWAIT = "nowait"
    SKIP_LOCKED = "skip locked"


@dataclass(frozen=True)
class LockingSelect(Plan):
    """SELECT … FOR UPDATE or FOR SHARE, without that clause.

    After the application's results ``query`` has the key columns of the rows to lock: of
    each of ``tables`` the primary key. A ``limit`` is not in it: it counts only rows
    that were locked, and its parameter is none of ``parameters``. ``outputs`` are position
    and name of each result, where all of them are columns of the one table.
    """

    query: Select
    tables: tuple[Table, ...]
    wait: Wait
    limit: Operand | None = None
    shared: bool = False
    outputs: tuple[tuple[int, str], ...] | None = None


@dataclass(frozen=True)
class ViewQuery:
    """The query of a view; its results get the names ``columns``, unless there are none.

    ``bare_names`` are the folded names of relations that stay in its text without a
    schema, also of the views in it.
    """

    select: Select
    columns: tuple[str, ...]
    bare_names: frozenset[str]


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
    ``REPEATABLE READ``, ``SERIALIZABLE``); ``read_only`` None when not said. If it
    ``chains``, COMMIT and ROLLBACK begin another transaction like the one that ends. One
    ``as_of`` the past only reads.
    """

    control: Control
    savepoint: str | None = None
    isolation: str | None = None
    read_only: bool | None = None
    chains: bool = False
    as_of: Past | None = None
