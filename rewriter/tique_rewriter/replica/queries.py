"""Queries: FROM, groups and order.

Each column has its relation's name before it, since DuckDB finds names where PostgreSQL
does not. Two names that differ in capital letters only are an error there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import expressions as exp
from typing_extensions import override

from tique_rewriter.replica import types
from tique_rewriter.replica.expressions import Expressions, check_parts
from tique_rewriter.replica.functions import in_range
from tique_rewriter.replica.types import Refusal, Value, quoted
from tique_rewriter.schema import Table

Columns = list[tuple[str, Value]]
"""Columns by name, which is empty for one without AS."""
Find = Callable[[str | None, str], Table | None]

_PARTS = "expressions from_ joins where group having order limit offset with_ distinct"


@dataclass
class Query(Expressions):
    """One SELECT: its FROM, the query around it and the WITH lists that it sees.

    All queries of a statement share ``tables``, those that are read.
    """

    find: Find
    default: str
    tables: list[Table] = field(default_factory=list)
    outer: Query | None = None
    members: dict[str, Columns] = field(default_factory=dict)
    relations: list[tuple[str, Columns]] = field(default_factory=list)

    def _inside(self, node: exp.Expr, outer: Query | None) -> tuple[str, Columns]:
        """Translate a query that sees the same WITH lists."""
        inner = replace(self, outer=outer, members={**self.members}, relations=[])
        return inner.whole(node)

    @override
    def subquery(self, node: exp.Expr) -> tuple[str, list[Value]]:
        sql, columns = self._inside(node, self)
        return sql, [value for _, value in columns]

    @override
    def _on_column(self, node: exp.Expr) -> Value:
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
        if not isinstance(node, exp.Select) or not node.expressions:
            raise Refusal("a query of another form than SELECT, or without columns")
        check_parts(node, _PARTS)
        clauses = [self._with(node.args.get("with_")), "SELECT", "", self._from(node)]
        columns = [each for item in node.expressions for each in self._item(item)]
        values = [value for _, value in columns]
        if where := node.args.get("where"):
            clauses.append(f"WHERE {self.condition(where.this)}")
        if group := node.args.get("group"):
            check_parts(group, "expressions")
            keys = [self._group(item, columns) for item in group.expressions]
            for key in keys:
                types.check_distinct(key)
            clauses.append(f"GROUP BY {', '.join(key.sql for key in keys)}")
        if having := node.args.get("having"):
            clauses.append(f"HAVING {self.condition(having.this)}")
        if distinct := node.args.get("distinct"):
            check_parts(distinct, "")
            clauses[1] = "SELECT DISTINCT"
            for value in values:
                types.check_distinct(value)
                if value.type.name == "bpchar":
                    raise Refusal("DISTINCT of char(n)")
        shown = [_result(value) if is_result else value.sql for value in values]
        clauses[2] = ", ".join(shown)
        clauses.append(self._order(node, columns))
        clauses += [self._limit(node, key) for key in ("limit", "offset")]
        return " ".join(clause for clause in clauses if clause), columns

    def _limit(self, node: exp.Expr, key: str) -> str:
        part = node.args.get(key)
        if part is None:
            return ""
        if not isinstance(part.expression, exp.Literal | exp.Parameter):
            raise Refusal(f"{key.upper()} of another form than a number")
        value = self.value(part.expression)
        if value.type.name not in types.INTEGERS:
            raise Refusal(f"{key.upper()} of a {value.type.name}")
        return f"{key.upper()} {value.sql}"

    # FROM

    def _with(self, node: exp.Expr | None) -> str:
        if node is None:
            return ""
        check_parts(node, "expressions")
        made = []
        for member in node.expressions:
            check_parts(member, "this alias materialized")
            sql, columns = self._inside(member.this, None)
            head, self.members[member.alias] = _headed(columns, member)
            made.append(f"{head} AS ({sql})")
        return f"WITH {', '.join(made)}"

    def _from(self, node: exp.Select) -> str:
        start = node.args.get("from_")
        text = f"FROM {self._relation(start.this)}" if start else ""
        has_comma = False
        for join in node.args.get("joins") or []:
            check_parts(join, "this side kind on")
            relation, on = self._relation(join.this), join.args.get("on")
            if on is None and join.kind != "CROSS":
                has_comma = True
                text += f", {relation}"
                continue
            if has_comma or join.side == "FULL":
                raise Refusal("FULL JOIN, or JOIN behind a comma: put CROSS JOIN there")
            text += f" {join.side or join.kind or 'INNER'} JOIN {relation}"
            text += f" ON {self.condition(on)}" if on else ""
        return text

    def _relation(self, node: exp.Expr) -> str:
        """Translate an item of FROM, whose columns are seen from now on."""
        name = node.alias_or_name
        if isinstance(node, exp.Subquery):
            check_parts(node, "this alias")
            sql, columns = self._inside(node.this, None)
            text, (head, columns) = f"({sql})", _headed(columns, node)
        elif isinstance(node, exp.Table):
            check_parts(node, "this db alias")
            check_parts(node.args.get("alias") or exp.TableAlias(), "this")
            head, (text, columns) = _quoted(name), self._table(node)
        else:
            raise Refusal("an item of FROM that is no table or query")
        path = _quoted(name)
        seen = [
            (each, value.seen(f"{path}.{_quoted(each)}")) for each, value in columns
        ]
        self.relations.append((name, seen))
        return f"{text} AS {head}"

    def _table(self, node: exp.Table) -> tuple[str, Columns]:
        if not node.db and node.name in self.members:
            return _quoted(node.name), self.members[node.name]
        table = self.find(node.db or None, node.name)
        if table is None or table.fault or table.generated:
            raise Refusal(f"{node.name}, which the replica does not have")
        self.tables += [] if table in self.tables else [table]
        default, columns = self.default, table.columns
        text = f"{_quoted(table.schema)}.{_quoted(table.name)}"
        return text, [
            (each.name, types.column_value(each, default)) for each in columns
        ]

    # The select list and what names its items

    def _item(self, item: exp.Expr) -> Columns:
        if isinstance(item, exp.Star | exp.Column) and item.is_star:
            check_parts(item, "this table")
            check_parts(item.this if isinstance(item, exp.Column) else item, "")
            return self._all(item.text("table"))
        if isinstance(item, exp.Alias):
            return [(item.alias, self.value(item.this))]
        name = item.name if isinstance(item, exp.Column) else ""
        return [(name, self.value(item))]

    def _group(self, item: exp.Expr, columns: Columns) -> Value:
        is_name = isinstance(item, exp.Column) and not item.table
        if is_name and any(name == item.name for name, _ in self._all()):
            return self.value(item)
        place = _place(item, columns)
        return self.value(item) if place is None else columns[place][1]

    def _order(self, node: exp.Select, columns: Columns) -> str:
        is_distinct, order = bool(node.args.get("distinct")), node.args.get("order")
        keys = []
        for item in order.expressions if order else ():
            place = _place(item.this, columns)
            value = self.value(item.this) if place is None else columns[place][1]
            types.check_order(value)
            value = types.as_text(value) if value.type.name == "bpchar" else value
            # (What is sorted itself loses the sign of a zero.)
            sql = value.sql + " + 0" * (value.type.name == "double precision")
            sql = str(place + 1) if is_distinct and place is not None else sql
            direction = "DESC" if item.args.get("desc") else "ASC"
            nulls = "FIRST" if item.args.get("nulls_first") else "LAST"
            keys.append(f"{sql} {direction} NULLS {nulls}")
        return f"ORDER BY {', '.join(keys)}" if keys else ""


def _place(node: exp.Expr, columns: Columns) -> int | None:
    """The place in the select list that a constant or a name stands for."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        places = [str(place) for place in range(1, len(columns) + 1)]
        if node.is_string or node.name not in places:
            raise Refusal("a constant in GROUP BY or ORDER BY that is no position")
        return places.index(node.name)
    if not isinstance(node, exp.Column) or node.table:
        return None
    values = [value for _, value in columns]
    named = [value for name, value in columns if name == node.name]
    if not named and not all(name for name, _ in columns):
        raise Refusal("ORDER BY or GROUP BY a name beside a result without AS")
    if any(value != named[0] for value in named):
        raise Refusal(f"{node.name}, a result's name with several meanings")
    return values.index(named[0]) if named else None


def _quoted(name: str) -> str:
    return quoted(name, '"')


def _headed(columns: Columns, node: exp.Expr) -> tuple[str, Columns]:
    """The name of a query with those of its columns, and the columns by these names."""
    given = [name.name for name in (node.args.get("alias") or exp.TableAlias()).columns]
    names = given + [name for name, _ in columns[len(given) :] if name]
    if len(names) != len(columns):
        raise Refusal("a column without a name in FROM or WITH: put AS and one")
    values = [
        types.as_text(value) if value.type.name in types.UNTYPED else value
        for _, value in columns
    ]
    listed = ", ".join(_quoted(name) for name in names)
    return f"{_quoted(node.alias)}({listed})", [*zip(names, values, strict=True)]


def _result(value: Value) -> str:
    """A column of the statement's own result, as a client gets it."""
    if value.type.name == "numeric" and value.shown is None:
        raise Refusal("a number that shows digits which are not known")
    if value.is_fixed:
        return in_range(value)
    text = f"CAST({value.sql} AS VARCHAR)"
    cut = f"left({text}, length({text}) - {value.type.scale} + {value.shown})"
    return f"rtrim({cut}, '.')"
