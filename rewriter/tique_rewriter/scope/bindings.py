"""Which columns of a read are bound by equality.

A binding says: rows of this table with another value in that column cannot
influence the result. In doubt there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp

from tique_rewriter.plans.plan import Operand
from tique_rewriter.scope.relations import relations_of
from tique_rewriter.tree.operands import operand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source

Place = tuple[int, int]
"""A read's number and a column's position."""

Bindings = dict[int, dict[int, Operand]]
"""By read number: operand by column position."""


@dataclass(frozen=True)
class Scope:
    """The relations over which a condition is evaluated.

    ``reads`` are the managed tables among them by folded name; ``closed`` says
    that there are no others, so that an unqualified name can be looked up.
    """

    reads: dict[str, Read]
    closed: bool

    @classmethod
    def of(cls, read: Read) -> Scope:
        """Return the scope in which nothing but one table's columns are known."""
        return cls({read.name: read}, closed=True)

    def position(self, node: exp.Expr) -> int | None:
        """Return the position of a column, in its own table's rows; None if it is not known."""
        found = self.column(node)
        return None if found is None else found[1]

    def column(self, node: exp.Expr) -> tuple[Read, int] | None:
        """Return the read and position that a column certainly belongs to, or None."""
        if not isinstance(node, exp.Column) or len(node.parts) > 2:
            return None
        name = node.name.lower()
        if node.table:
            candidates = [self.reads.get(node.table.lower())]
        elif self.closed:
            candidates = [r for r in self.reads.values() if name in r.table.spellings]
        else:
            return None
        if len(candidates) != 1 or candidates[0] is None:
            return None
        read = candidates[0]
        position = read.table.positions.get(name)
        return None if position is None else (read, position)


def conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that AND joins, from left to right."""
    waiting = [] if node is None else [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Paren):
            waiting.append(node.this)
        elif isinstance(node, exp.And):
            waiting += [node.expression, node.this]
        else:
            yield node


def conditions_of(where: exp.Expr | None) -> list[exp.Expr]:
    """Return the conditions that AND joins in a WHERE clause; none where there is none."""
    return list(conjuncts(None if where is None else where.this))


def scope_of(relations: list[exp.Expr], reads: Reads) -> Scope:
    """Return the scope that these relations make."""
    found: dict[str, Read] = {}
    closed = True
    taken: set[str] = set()
    for relation in relations:
        name = relation.alias_or_name.lower()
        read = reads.of(relation)
        if read is None or relation.alias_column_names or name in taken:
            closed = False
            found.pop(name, None)
        else:
            found[name] = read
        taken.add(name)
    return Scope(found, closed)


def bindings_of(
    source: Source, scope: Scope, conditions: list[exp.Expr]
) -> dict[int, dict[int, Operand]]:
    """Return the bindings that conditions joined by AND give to the reads in scope."""
    bound: dict[Place, Operand] = {}
    linked: list[tuple[Place, Place]] = []
    for condition in conditions:
        if type(condition) is not exp.EQ:
            continue
        sides = condition.this, condition.expression
        left, right = (scope.column(side) for side in sides)
        if left is not None and right is not None:
            if _same_type(left, right):
                linked.append((_place(left), _place(right)))
        elif left is not None or right is not None:
            column, other = (left, sides[1]) if left else (right, sides[0])
            value = operand(source, other)
            if column is not None and value is not None:
                bound.setdefault(_place(column), value)
    _close(bound, linked)
    result: Bindings = {}
    for (index, position), value in bound.items():
        result.setdefault(index, {})[position] = value
    return result


def _place(column: tuple[Read, int]) -> Place:
    return column[0].span.index, column[1]


def _same_type(left: tuple[Read, int], right: tuple[Read, int]) -> bool:
    """Values of different types may be equal without being the same value."""
    left_type, right_type = (read.table.columns[i].type for read, i in (left, right))
    return left_type.upper() == right_type.upper()


def _close(bound: dict[Place, Operand], linked: list[tuple[Place, Place]]) -> None:
    changed = True
    while changed:
        changed = False
        for one, other in linked:
            for known, unknown in ((one, other), (other, one)):
                if known in bound and unknown not in bound:
                    bound[unknown] = bound[known]
                    changed = True


class Filter(NamedTuple):
    """Conditions joined by AND, and the scope over which they are evaluated.

    Rows of which one of them is false or unknown cannot influence the result; if one
    that ``is_strict`` is asked for, it must not be true of NULL in all columns either.
    """

    scope: Scope
    conditions: list[exp.Expr]
    is_strict: bool = False


def filters_of(tree: exp.Expr, reads: Reads) -> Iterator[Filter]:
    """Yield the filters of all SELECTs of ``tree``."""
    for select in tree.find_all(exp.Select):
        joins: list[exp.Join] = select.args.get("joins") or []
        within = list(select.find_all(exp.Join))
        if any(map(_depends_on_other_rows, within)):
            continue
        scope = scope_of(relations_of(select), reads)
        conditions = conditions_of(select.args.get("where"))
        if not any(join.side.upper() in ("RIGHT", "FULL") for join in joins):
            for join in joins:
                if not join.side and join.kind.upper() in ("", "INNER"):
                    conditions.extend(conjuncts(join.args.get("on")))
        yield Filter(scope, conditions, any(join.side for join in within))


def _depends_on_other_rows(join: exp.Join) -> bool:
    """Whether leaving out a row changes the partners of other rows in a join."""
    return join.method.upper() in ("POSITIONAL", "ASOF")


def equalities(
    source: Source, scope: Scope, conditions: list[exp.Expr], read: Read
) -> dict[int, Operand] | None:
    """Return a read's binding, if that is all that the conditions say.

    Every condition of its own gives one column its value: so many columns, so many
    conditions, and there is no other among them.
    """
    bound = bindings_of(source, scope, conditions).get(read.span.index, {})
    return bound if len(conditions) == len(bound) else None
