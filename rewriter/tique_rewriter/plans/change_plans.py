"""Plans of statements that change rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from tique_rewriter.plans.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.plans.plan import Comparison, Expression, Operand
    from tique_rewriter.plans.text import Text
    from tique_rewriter.schema import ComputedKey, Table


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
    If there are ``parameters``, ``counted`` has the condition and the assigned values once
    more, with placeholders that count as the statement's: there are ``end`` up to its end.
    """

    assignments: tuple[tuple[int, Expression], ...]
    where: Text
    qualifier: str
    counted: tuple[Text, ...] = ()
    end: int = 0

    def within(
        self, parameters: Sequence[Any], bound: Sequence[Any]
    ) -> tuple[Sequence[Text], Sequence[Any]]:
        """The texts in one query with the proposed rows, and its parameters.

        ``bound`` are those of the query for the proposed rows, of the statement's.
        """
        if self.counted:
            return self.counted, parameters[: self.end]
        return (self.where, *(value.text for _, value in self.assignments)), bound


@dataclass(frozen=True)
class Conflict:
    """ON CONFLICT: the keys at which it looks, and DO UPDATE; None: DO NOTHING.

    ``computed`` are those whose values the engine computes. DO UPDATE has one key.
    """

    keys: tuple[tuple[int, ...], ...]
    update: ConflictUpdate | None = None
    computed: tuple[ComputedKey, ...] = ()


@dataclass(frozen=True)
class InsertRows(Plan):
    """INSERT … VALUES. A None in a row stands for the column's DEFAULT.

    ``columns`` are the positions that the rows give values for, in row order.
    """

    may_read_given = True

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

    may_read_given = True

    table: Table
    columns: tuple[int, ...]
    query: Text
    conflict: Conflict | None = None
    returning: Returning | None = None
    is_by_name: bool = False


@dataclass(frozen=True)
class SearchedChange(Plan):
    """UPDATE or DELETE.

    ``source`` is `` FROM <hole> <alias> WHERE …``: put after a select list, it
    yields the rows to change. ``qualifier`` is the quoted name that the select
    list must use for the row's columns. ``key`` is set where the WHERE clause is
    exactly an equality on the whole primary key and ``comparisons``. ``is_bound`` says that it is exactly
    the target's binding, and that nothing else is read. ``is_joined`` says that other
    relations are joined, so that ``source`` may yield a row of the table several times.
    ``joined_returning`` is there in place of ``returning`` if RETURNING looks at them.
    """

    may_read_given = True

    table: Table
    source: Text
    qualifier: str
    key: tuple[Operand, ...] | None = None
    is_bound: bool = False
    returning: Returning | None = None
    is_joined: bool = False
    joined_returning: JoinedReturning | None = None
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True)
class Delete(SearchedChange):
    """DELETE."""


@dataclass(frozen=True)
class Update(SearchedChange):
    """UPDATE."""

    assignments: tuple[tuple[int, Expression], ...] = ()

    @property
    def changes_key(self) -> bool:
        """Whether a primary key column is assigned."""
        return any(i in self.table.primary_key for i, _ in self.assignments)


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

    may_read_given = True

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

    may_read_given = True

    text: Text
    is_stream: bool
