"""Queries: FROM, groups, order and set operations, with names of our own.

Relations are called ``t1`` and so on, and columns of queries ``c1`` and so on: to DuckDB
small and capital letters are the same, and it finds names where PostgreSQL does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import expressions as exp

from tique_rewriter.replica import functions, types
from tique_rewriter.replica.expressions import Expressions, check_parts
from tique_rewriter.replica.types import Refusal, Value, quoted
from tique_rewriter.schema import Table

Columns = list[tuple[str | None, Value]]
"""Columns by name; None for one that nothing can name."""
Find = Callable[[str | None, str], Table | None]

_SHARED = "order limit offset with_ distinct"
_NAMES = re.compile(
    "count|sum|avg|min|max|extract|coalesce|round|case|exists|(upp|low)er"
)
"""Calls after which PostgreSQL names results that have no name."""


@dataclass
class Query:
    """One SELECT: its FROM, the query around it and the WITH lists that it sees.

    All queries of a statement share ``tables``, those that are read, and ``names``.
    """

    find: Find
    parameters: Sequence[Value | None]
    default: str
    schemas: Mapping[str, str]
    tables: list[Table] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    outer: Query | None = None
    members: dict[str, tuple[str, Columns]] = field(default_factory=dict)
    relations: list[tuple[str, Columns]] = field(default_factory=list)

    def _inside(self, node: exp.Expr, outer: Query | None) -> tuple[str, Columns]:
        """Translate a query that sees the same WITH lists."""
        inner = replace(self, outer=outer, members={**self.members}, relations=[])
        return inner.whole(node)

    def _named(self) -> str:
        self.names.append(f"t{len(self.names) + 1}")
        return self.names[-1]

    def _expressions(self) -> Expressions:
        def subquery(node: exp.Expr) -> tuple[str, list[Value]]:
            sql, columns = self._inside(node, self)
            return sql, [value for _, value in columns]

        return Expressions(self.parameters, self._column, subquery)

    def _column(self, node: exp.Expr) -> Value:
        check_parts(node, "this table")
        query: Query | None = self
        while query is not None:
            columns = query._all(node.text("table"))
            found = [value for name, value in columns if name == node.name]
            if len(found) == 1:
                return found[0]
            query = None if found else query.outer
        raise Refusal(f"{node.sql()}, which is not the name of one column in FROM")

    def _all(self, table: str = "") -> Columns:
        found = [columns for name, columns in self.relations if table in ("", name)]
        return [column for columns in found for column in columns]

    def whole(self, node: exp.Expr, *, is_result: bool = False) -> tuple[str, Columns]:
        """Translate a query; ``is_result`` of the statement's, as a client gets it."""
        if isinstance(node, exp.Subquery):
            check_parts(node, "this")
            return self.whole(node.this, is_result=is_result)
        text = self._with(node.args.get("with_"))
        if isinstance(node, exp.Select):
            check_parts(node, f"{_SHARED} expressions from_ joins where group having")
            body, columns = self._select(node, is_result=is_result)
        elif isinstance(node, exp.SetOperation):
            check_parts(node, f"{_SHARED} this expression")
            body, columns = self._set_operation(node, is_result=is_result)
        else:
            raise Refusal("a query of another form than SELECT")
        text += body + self._order(node, columns)
        for key in ("limit", "offset"):
            if (part := node.args.get(key)) is not None:
                if not isinstance(part.expression, exp.Literal | exp.Parameter):
                    raise Refusal(f"{key.upper()} of another form than a number")
                value = self._expressions().value(part.expression)
                if value.type.name not in types.INTEGERS:
                    raise Refusal(f"{key.upper()} of a {value.type.name}")
                text += f" {key.upper()} {value.sql}"
        return text, columns

    def _with(self, node: exp.Expr | None) -> str:
        if node is None:
            return ""
        check_parts(node, "expressions")
        made = []
        for member in node.expressions:
            check_parts(member, "this alias materialized")
            name, (sql, columns) = self._named(), self._inside(member.this, None)
            made.append(f"{name}({_places(columns)}) AS ({sql})")
            self.members[member.alias] = name, _seen(columns, member, name)
        return f"WITH {', '.join(made)} "

    def _relation(self, node: exp.Expr) -> str:
        """Translate an item of FROM, whose columns are seen from now on."""
        alias = self._named()
        if isinstance(node, exp.Subquery):
            check_parts(node, "this alias")
            sql, columns = self._inside(node.this, None)
            text, columns = f"({sql})", _seen(columns, node, alias)
            alias = f"{alias}({_places(columns)})"
        elif isinstance(node, exp.Table):
            check_parts(node, "this db alias")
            text, columns = self._table(node, alias)
        else:
            raise Refusal("an item of FROM that is no table or query")
        if any(name == node.alias_or_name for name, _ in self.relations):
            raise Refusal(f"two relations with the name {node.alias_or_name}")
        self.relations.append((node.alias_or_name, columns))
        return f"{text} AS {alias}"

    def _table(self, node: exp.Table, alias: str) -> tuple[str, Columns]:
        if not node.db and node.name in self.members:
            text, columns = self.members[node.name]
            return text, _seen(columns, node, alias)
        table = self.find(node.db or None, node.name)
        if table is None or table.fault or table.generated:
            raise Refusal(f"{node.name}, which the replica does not have")
        self.tables += [] if table in self.tables else [table]
        names = [f"{alias}.{quoted(column.name, chr(34))}" for column in table.columns]
        pairs = zip(names, table.columns, strict=True)
        values = [types.column_value(name, each, self.default) for name, each in pairs]
        columns = [(c.name, v) for c, v in zip(table.columns, values, strict=True)]
        path = self.schemas.get(table.schema, table.schema), table.name
        text = ".".join(quoted(name, '"') for name in path)
        seen = [name for name, _ in _seen(columns, node, "")]
        return text, list(zip(seen, values, strict=True))

    def _from(self, node: exp.Select) -> str:
        text, first = "", 0
        if start := node.args.get("from_"):
            text = f" FROM {self._relation(start.this)}"
        for join in node.args.get("joins") or []:
            check_parts(join, "this side kind on")
            on = join.args.get("on")
            if on is None and join.kind != "CROSS":
                # What a comma divides does not see each other in ON.
                first = len(self.relations)
            relation = self._relation(join.this)
            parts = on.flatten() if isinstance(on, exp.And) else [on]
            if join.side == "FULL" and not all(isinstance(e, exp.EQ) for e in parts):
                raise Refusal("FULL JOIN with another condition than equality")
            if on is not None:
                joined = replace(self, relations=self.relations[first:])
                condition = joined._expressions().condition(on)
                text += f" {join.side or 'INNER'} JOIN {relation} ON {condition}"
            else:
                text += f"{' CROSS JOIN' if join.kind == 'CROSS' else ','} {relation}"
        return text

    def _select(self, node: exp.Select, *, is_result: bool) -> tuple[str, Columns]:
        text, expressions = self._from(node), self._expressions()
        if where := node.args.get("where"):
            text += f" WHERE {expressions.condition(where.this)}"
        columns = [each for item in node.expressions for each in self._item(item)]
        values = [value for _, value in columns]
        if group := node.args.get("group"):
            check_parts(group, "expressions")
            keys = [self._group(item, columns) for item in group.expressions]
            _check_distinct(keys, may_be_padded=True)
            text += f" GROUP BY {', '.join(key.sql for key in keys)}"
        if having := node.args.get("having"):
            text += f" HAVING {expressions.condition(having.this)}"
        if distinct := node.args.get("distinct"):
            check_parts(distinct, "")
            _check_distinct(values)
        items = ", ".join(
            _result(value) if is_result else value.sql for value in values
        )
        return f"SELECT {'DISTINCT ' if distinct else ''}{items}{text}", columns

    def _item(self, item: exp.Expr) -> Columns:
        if isinstance(item, exp.Star | exp.Column) and item.is_star:
            check_parts(item, "this table")
            check_parts(item.this if isinstance(item, exp.Column) else item, "")
            return self._all(item.text("table"))
        inner = item.this if isinstance(item, exp.Alias) else item
        value = self._expressions().value(inner)
        if isinstance(item, exp.Alias | exp.Column):
            return [(item.alias_or_name, value)]
        is_named = _NAMES.fullmatch(inner.key) and not isinstance(
            inner.args.get("default"), exp.Column
        )
        return [(inner.key if is_named else None, value)]

    def _group(self, item: exp.Expr, columns: Columns) -> Value:
        is_name = isinstance(item, exp.Column) and not item.table
        if is_name and any(name == item.name for name, _ in self._all()):
            return self._expressions().value(item)
        place = _place(item, columns)
        return self._expressions().value(item) if place is None else columns[place][1]

    def _order(self, node: exp.Expr, columns: Columns) -> str:
        only_shown = isinstance(node, exp.SetOperation) or node.args.get("distinct")
        order, keys = node.args.get("order"), []
        for item in order.expressions if order else ():
            place = _place(item.this, columns)
            if place is None and only_shown:
                raise Refusal("ORDER BY of what DISTINCT or sets do not show")
            node = item.this
            value = (
                self._expressions().value(node) if place is None else columns[place][1]
            )
            types.check_order(value)
            value = types.as_text(value) if value.type.name == "bpchar" else value
            # (What is sorted itself loses the sign of a zero.)
            sql = value.sql + " + 0" * (value.type.name == "double precision")
            sql = str(place + 1) if only_shown and place is not None else sql
            direction = "DESC" if item.args.get("desc") else "ASC"
            nulls = "FIRST" if item.args.get("nulls_first") else "LAST"
            keys.append(f"{sql} {direction} NULLS {nulls}")
        return f" ORDER BY {', '.join(keys)}" if keys else ""

    def _set_operation(
        self, node: exp.SetOperation, *, is_result: bool
    ) -> tuple[str, Columns]:
        sides: list[tuple[str, Columns]] = []
        for side in (node.this, node.expression):
            is_first = side is node.this and type(side) is type(node)
            if isinstance(side, exp.SetOperation) and not is_first:
                raise Refusal("several set operations: put brackets")
            inner = replace(self, outer=None, members={**self.members}, relations=[])
            sides.append(inner.whole(side, is_result=is_result))
        (left, columns), (right, others) = sides
        kinds = [[(v.type.name, v.type.scale) for _, v in side] for _, side in sides]
        if kinds[0] != kinds[1]:
            raise Refusal("a set operation of different types")
        _check_distinct([value for _, value in columns + others])
        word = node.key.upper() + ("" if node.args.get("distinct") else " ALL")
        return f"({left}) {word} ({right})", columns


def _place(node: exp.Expr, columns: Columns) -> int | None:
    """The place in the select list that a constant or a name stands for."""
    inner = node = node.unnest()
    while isinstance(inner, exp.Neg | exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Literal | exp.Boolean | exp.Null):
        places = [str(place) for place in range(1, len(columns) + 1)]
        if inner is not node or node.is_string or node.name not in places:
            raise Refusal("a constant in GROUP BY or ORDER BY that is no position")
        return int(node.name) - 1
    named = [n for n, (name, _) in enumerate(columns) if name == node.name]
    if not named or not isinstance(node, exp.Column) or node.table:
        return None
    if any(columns[n][1] != columns[named[0]][1] for n in named):
        raise Refusal(f"{node.name}, a result's name with several meanings")
    return named[0]


def _check_distinct(values: Sequence[Value], *, may_be_padded: bool = False) -> None:
    """Refuse values of which equal ones may look different."""
    for value in values:
        name = value.type.name
        is_padded = name == "bpchar" and not may_be_padded
        if is_padded or name in ("double precision", "unknown") or not value.is_fixed:
            raise Refusal(f"distinct values of {name}, of which equal ones may differ")


def _places(columns: Columns) -> str:
    return ", ".join(f"c{number}" for number in range(1, len(columns) + 1))


def _seen(columns: Columns, node: exp.Expr, alias: str) -> Columns:
    """The columns of a relation as the query around it names and sees them."""
    given = [name.name for name in (node.args.get("alias") or exp.TableAlias()).columns]
    if len(given) > len(columns):
        raise Refusal("more names than columns")
    names = given + [name for name, _ in columns[len(given) :]]
    values = [types.known(value, "text") for _, value in columns]
    seen = [value.seen(f"{alias}.c{n}") for n, value in enumerate(values, 1)]
    return list(zip(names, seen, strict=True))


def _result(value: Value) -> str:
    """A column of the statement's own result, as a client gets it."""
    if value.type.name == "numeric" and value.shown is None:
        raise Refusal("a number that shows digits which are not known")
    if value.is_fixed:
        return functions.in_range(value)
    text = f"CAST({value.sql} AS VARCHAR)"
    cut = f"left({text}, length({text}) - {value.type.scale} + {value.shown})"
    return f"rtrim({cut}, '.')"
