"""Plans as the lines of a fixture file: see README.md beside the fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter import RewriteError, Rewriter
from tique_rewriter.kinds.change import truncate
from tique_rewriter.kinds.define import (
    alter,
    create_as,
    maintenance,
    objects,
    temporary,
)
from tique_rewriter.kinds.session import calls, cursors, describe, prepare, session
from tique_rewriter.plans import change_plans, ddl_plans, past, plan
from tique_rewriter.plans.text import Default, Hole, Label, Moment, Outer, Text, Variant
from tique_rewriter.safety import attaching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.schema import ForeignKey, Table


def render(rewriter: Rewriter, sql: str) -> list[str]:
    """The rewriter's plan of a statement, as ``key: value`` lines."""
    try:
        prepared = rewriter.plan(sql)
    except RewriteError as error:
        place = f"{error.line}:{error.column}"
        return [f"refused: {type(error).__name__} {place} {error}"]
    lines = list(_plan(prepared.plan))
    numbered = tuple(range(len(prepared.arguments)))
    if prepared.arguments != numbered:
        lines.append(f"arguments: {', '.join(map(str, prepared.arguments))}")
    return [line.replace("\n", "\\n") for line in lines]


def text(pieces: Text, references: tuple[plan.Reference, ...]) -> str:
    """A plan's text with each hole shown as ⟦schema.table alias⟧, a label as ⟦as text⟧."""
    return "".join(p if isinstance(p, str) else _marked(p, references) for p in pieces)


def _marked(
    piece: Hole | Label | Outer | Variant | Moment | Default,
    references: tuple[plan.Reference, ...],
) -> str:
    if isinstance(piece, Label):
        return f"⟦as {piece.expression}⟧"
    if isinstance(piece, Moment):
        return piece.written
    if isinstance(piece, Default):
        return piece.text
    if isinstance(piece, Variant):
        return f"⟦{piece.text}⟧"
    if isinstance(piece, Outer):
        return f"⟦with {piece.name}{piece.alias}⟧"
    return _hole(references[piece.index])


def _hole(reference: plan.Reference) -> str:
    numbered = " numbered" if reference.is_numbered else ""
    then = "" if reference.past is None else f" at {_past(reference.past)}"
    return f"⟦{reference.table.qualified_name}{numbered}{then}{reference.alias}⟧"


def _past(made: past.Past) -> str:
    return f"{made.kind} {_kernel(made.operand, None)}".strip()


def _names(table: Table, positions: tuple[int, ...]) -> str:
    return ", ".join(table.columns[i].name for i in positions)


def _kernel(kernel: plan.Kernel, table: Table | None) -> str:
    match kernel:
        case plan.Parameter(number):
            return f"${number}"
        case plan.Literal(value):
            return repr(value)
        case plan.ColumnValue(position):
            width = len(table.columns)
            proposed = "excluded." if position >= width else ""
            return proposed + table.columns[position % width].name
        case plan.Arithmetic(operator, left, right):
            return f"({_kernel(left, table)} {operator} {_kernel(right, table)})"
        case plan.Choice(branches, otherwise):
            whens = "".join(
                f"WHEN {_condition(condition, table)} THEN {_kernel(value, table)} "
                for condition, value in branches
            )
            return f"CASE {whens}ELSE {_kernel(otherwise, table)} END"
        case plan.Coalesced(values):
            return f"COALESCE({', '.join(_kernel(each, table) for each in values)})"


def _condition(condition: plan.Condition, table: Table) -> str:
    match condition:
        case plan.Comparison(position, operator, operand):
            column = _kernel(plan.ColumnValue(position), table)
            return f"{column} {operator} {_kernel(operand, table)}"
        case plan.IsNull(position):
            return f"{_kernel(plan.ColumnValue(position), table)} IS NULL"
        case plan.Negation(inner):
            return f"NOT ({_condition(inner, table)})"
        case plan.Junction(operator, left, right):
            sides = _condition(left, table), _condition(right, table)
            return f"({f' {operator} '.join(sides)})"


def _operands(table: Table, key: tuple[plan.Operand, ...]) -> str:
    return ", ".join(
        f"{table.columns[i].name} = {_kernel(o, table)}"
        for i, o in zip(table.primary_key, key, strict=True)
    )


def _expression(
    expression: plan.Expression | None, made: Plan, table: Table | None = None
) -> str:
    if expression is None:
        return "DEFAULT"
    shown = text(expression.text, made.references)
    if expression.kernel is not None:
        shown += f" ⇒ {_kernel(expression.kernel, table)}"
    return shown


def _bindings(made: Plan) -> Iterator[str]:
    for number, reference in enumerate(made.references):
        if reference.binding:
            yield f"bound: {number} {reference.table.qualified_name}: " + ", ".join(
                f"{reference.table.columns[i].name} = {_kernel(o, None)}"
                for i, o in sorted(reference.binding.items())
            )
        for condition in reference.conditions:
            name = reference.table.qualified_name
            yield f"only: {number} {name}: {_condition(condition, reference.table)}"


def _assignments(
    made: Plan, assignments: tuple[tuple[int, plan.Expression], ...]
) -> Iterator[str]:
    for position, value in assignments:
        name = made.table.columns[position].name
        yield f"set: {name} = {_expression(value, made, made.table)}"


def _taken(clause: change_plans.Clause) -> str:
    """The statement's placeholders that a clause counts for itself."""
    numbers = ", ".join(f"${number}" for number in clause.parameters)
    return f" taking {numbers}" if numbers else ""


def _clauses(made: Plan) -> Iterator[str]:
    conflict = getattr(made, "conflict", None)
    if conflict is not None:
        keys = ", ".join(f"({_names(made.table, key)})" for key in conflict.keys)
        update = conflict.update
        if update is None:
            yield f"conflict: {keys} do nothing"
        else:
            yield f"conflict: {keys} update {update.qualifier}{_taken(update)}"
            yield from _assignments(made, update.assignments)
            if update.where:
                yield f"where: {text(update.where, made.references)}"
    for check in made.table.conditions:
        yield f"check option: {check.name}: {check.expression}"
    returning = made.returning
    if returning is not None:
        shown = text(returning.items, made.references)
        if returning.plain is not None:
            shown += " ⇒ " + ", ".join(
                f"{made.table.columns[i].name} as {name}" for i, name in returning.plain
            )
        yield f"returning: {shown} of {returning.qualifier}{_taken(returning)}"
    joined = getattr(made, "joined_returning", None)
    if joined is not None:
        relations = "; ".join(f"{name}: {', '.join(c)}" for name, c in joined.relations)
        shown = text(joined.items, made.references)
        yield f"returning: {shown} of {joined.qualifier} joined with {relations}"
    yield from _bindings(made)


def _plan(made: Plan) -> Iterator[str]:
    match made:
        case plan.Select():
            yield f"query: {text(made.text, made.references)}"
            yield from _bindings(made)
            if made.point is not None:
                table = made.point.table
                columns = _names(table, made.point.columns)
                names = ", ".join(made.point.names)
                yield (
                    f"point: {table.qualified_name}"
                    f" where {_operands(table, made.point.key)}"
                    f": {columns}" + (f" as {names}" if names != columns else "")
                )
        case plan.LockingSelect():
            tables = ", ".join(table.qualified_name for table in made.tables)
            yield f"lock{' shared' * made.shared}: {tables}: {made.wait.value}"
            if made.limit is not None:
                yield f"limit: {_kernel(made.limit, None)}"
            yield from _plan(made.query)
        case change_plans.InsertRows():
            columns = _names(made.table, made.columns)
            yield f"insert: {made.table.qualified_name} ({columns})"
            for row in made.rows:
                yield "row: " + " | ".join(_expression(e, made) for e in row)
            yield from _clauses(made)
        case change_plans.InsertQuery():
            columns = "by name" if made.is_by_name else _names(made.table, made.columns)
            yield f"insert: {made.table.qualified_name} ({columns})"
            yield f"query: {text(made.query, made.references)}"
            yield from _clauses(made)
        case change_plans.Update() | change_plans.Delete():
            kind = "update" if isinstance(made, change_plans.Update) else "delete"
            yield f"{kind}: {made.table.qualified_name} as {made.qualifier}"
            if isinstance(made, change_plans.Update):
                yield from _assignments(made, made.assignments)
            yield f"source:{text(made.source, made.references)}"
            yield from _clauses(made)
            if made.key is not None:
                compared = "".join(
                    f"; {made.table.columns[c.position].name} {c.operator} "
                    f"{_kernel(c.operand, made.table)}"
                    for c in made.comparisons
                )
                yield f"key: {_operands(made.table, made.key)}{compared}"
        case change_plans.Merge():
            yield f"merge: {made.table.qualified_name} as {made.qualifier}"
            if made.before:
                yield f"before: {text(made.before, made.references)}"
            yield (
                f"join: {text(made.source, made.references)} as {made.source_name} with "
                f"{text(made.target, made.references)} {text(made.joined, made.references)}"
            )
            for clause in made.clauses:
                condition = text(clause.condition, made.references)
                yield (
                    f"when {clause.kind.value}{condition and f' and {condition}'}: "
                    f"{clause.action.value}"
                )
                yield from _assignments(made, clause.assignments)
            if made.returning is not None:
                joined = made.returning
                relations = "; ".join(
                    f"{n}: {', '.join(c)}" for n, c in joined.relations
                )
                yield (
                    f"returning: {text(joined.items, made.references)} of "
                    f"{joined.qualifier} joined with {relations or 'nothing'}"
                )
            yield from _bindings(made)
        case change_plans.ChangingWith():
            for member in made.members:
                taken = ", ".join(f"${number}" for number in member.parameters)
                yield f"part: {member.name}{member.columns}{taken and f' taking {taken}'}"
                yield from _plan(member.plan)
        case change_plans.CopyIn():
            columns = _names(made.table, made.columns)
            yield f"copy in: {made.table.qualified_name} ({columns}) {made.tail}"
            yield f"from: {'a stream' if made.is_stream else 'a file'}"
        case change_plans.CopyOut():
            yield f"copy out: {text(made.text, made.references)}"
            yield f"to: {'a stream' if made.is_stream else 'a file'}"
            yield from _bindings(made)
        case ddl_plans.CreateTable():
            yield from _create_table(made)
        case create_as.CreateTableAs():
            head = made.head
            flags = (
                " or replace" * head.replaces + " if not exists" * head.if_not_exists
            )
            rows = "" if made.has_rows else " without rows"
            yield f"create: {head.schema}.{head.name}{made.columns}{flags}{rows}"
            yield from _plan(made.select)
        case ddl_plans.RenameSchema():
            yield f"rename schema: {' to '.join(made.names)}"
        case ddl_plans.CreateTemporaryView():
            flags = (
                " if not exists" * made.if_not_exists + " or replace" * made.replaces
            )
            yield f"temporary view: {made.name} {made.layout}{flags}"
        case temporary.CreateTemporary():
            flags = (
                " or replace" * made.replaces + " if not exists" * made.if_not_exists
            )
            yield f"temporary: {made.name}{made.columns}{flags} {made.on_commit.value}"
            if made.layout:
                yield f"layout: {made.layout}"
            if made.select is not None:
                yield f"rows: {'all' if made.has_rows else 'none'}"
                yield from _plan(made.select)
        case truncate.Truncate():
            names = [table.qualified_name for table in made.tables]
            how = " as delete" if made.is_delete else " cascade" if made.cascade else ""
            yield f"truncate: {', '.join(names)}{how}"
        case alter.AlterTable():
            yield from _alter_table(made)
        case alter.AlterNothing():
            yield "alter: nothing"
        case ddl_plans.DropTable():
            names = [table.qualified_name for table in made.tables]
            kind = "" if made.kind == "TABLE" else f"{made.kind.lower()} "
            yield f"drop: {kind}{', '.join(names)}{' cascade' if made.cascade else ''}"
            if made.missing:
                yield f"missing: {', '.join(made.missing)}"
        case ddl_plans.CreateIndex():
            computed = "computed " * made.is_computed
            unique = "unique " * made.is_unique
            yield f"{computed}{unique}index: {made.table.qualified_name}: {made.text}"
            if made.unless is not None:
                yield f"unless: {made.unless}"
        case ddl_plans.DropIndex():
            yield f"drop index: {made.text}"
            names = [".".join(filter(None, name)) for name in made.names]
            yield f"named: {', '.join(names)}"
        case ddl_plans.DefineViews():
            verb = "create views" if made.creates else "drop views"
            yield f"{verb}: {', '.join(map('.'.join, made.names))}: {made.text}"
        case ddl_plans.CreateMaterialized():
            flags = " if not exists" * made.if_not_exists
            rows = "" if made.has_rows else " without rows"
            yield f"materialize: {'.'.join(made.name)}{flags}{rows}: {made.text}"
        case ddl_plans.RefreshMaterialized():
            rows = "" if made.has_rows else " without rows"
            yield f"refresh: {made.view.qualified_name}{rows}: {made.text}"
        case ddl_plans.DefineObjects():
            changed = f" (of {made.changed_type})" if made.changed_type else ""
            yield f"define: {made.text}{changed}"
            if made.dropped_schemas:
                yield f"with all tables in: {', '.join(made.dropped_schemas)}"
        case objects.KeepOwner():
            given = " ".join(each or "-" for each in made.given)
            flags = " if it is there" * made.if_exists
            yield f"owner of {made.kind}: {given}: {made.role or 'mine'}{flags}"
        case ddl_plans.Grant():
            yield f"grant: {made.text}"
        case ddl_plans.Tidy():
            yield f"tidy{' alone' * made.is_alone}: {made.text}"
        case plan.Explain():
            yield " ".join(["explain", *filter(None, [", ".join(made.options)])])
            yield from _plan(made.statement)
        case describe.Described():
            yield made.verb.lower()
            yield from _plan(made.statement)
        case describe.SetVariable():
            yield f"variable: {made.name}"
            yield from _plan(made.statement)
        case session.SessionPlan():
            yield f"session: {_session(made)}"
        case plan.TransactionControl():
            said = (
                made.control.value,
                made.savepoint,
                made.isolation,
                {True: "READ ONLY", False: "READ WRITE", None: None}[made.read_only],
                "AND CHAIN" if made.chains else None,
                "AS OF " + _past(made.as_of) if made.as_of else None,
            )
            yield "control: " + ", ".join(s for s in said if s)


def _session(made: session.SessionPlan) -> str:
    match made:
        case session.SetSetting(values=values, scope=scope):
            value = "default" if values is None else " | ".join(values)
            return f"set {made.name} {scope.value} to {value}".replace("  ", " ")
        case attaching.AttachDatabase():
            enough = ", if there is none" * made.is_enough
            options = "".join(f", {option}" for option in made.options)
            return f"attach {made.path} as {made.name}{options}{enough}"
        case attaching.DetachDatabase():
            return f"detach {made.name}{', if there is one' * made.may_lack}"
        case maintenance.Checkpoint():
            return "checkpoint"
        case maintenance.Maintain():
            return made.text
        case session.SetCharacteristics():
            return f"characteristics {made.isolation}, read only {made.read_only}"
        case prepare.PrepareStatement():
            types = f" ({' | '.join(made.types)})" if made.types else ""
            return f"prepare {made.name}{types}: {made.body.strip()}"
        case prepare.ExecuteStatement():
            values = [
                text if operand is None else f"{text} ⇒ {_kernel(operand, None)}"
                for text, operand in made.arguments
            ]
            return f"execute {made.name}: {' | '.join(values)}".rstrip(": ")
        case session.Discard():
            return f"discard {made.what}"
        case cursors.DeclareCursor():
            query = text(made.select.text, made.select.references)
            holds = " hold" * made.holds
            return f"declare {made.name} scroll {made.scrolls}{holds}: {query}"
        case cursors.FetchCursor():
            verb = "move" if made.moves else "fetch"
            return f"{verb} {made.towards.value} {made.count} of {made.name}"
        case session.SetConstraints(names=names):
            listed = "all" if names is None else ", ".join(map(".".join, names))
            return f"constraints {listed}: {made.is_deferred}"
        case calls.SetConfig():
            return " | ".join(
                f"{_kernel(s.name, None)} = {_kernel(s.value, None)} "
                f"local {_kernel(s.is_local, None)} AS {s.result}"
                for s in made.settings
            )
        case calls.Notify(result=result):
            message = f"{_kernel(made.channel, None)}, {_kernel(made.payload, None)}"
            return f"notify {message}{f' AS {result}' if result else ''}"
        case calls.ShowGiven():
            return f"show the given: {_kernel(made.name, None)} as {made.result}: {made.text}"
    return f"{type(made).__name__} {getattr(made, 'name', '')}".strip()


def _foreign_key(table: Table, key: ForeignKey) -> str:
    deferred = " deferred" if key.is_deferred else ""
    return (
        f"foreign key {key.name}: {_names(table, key.columns)} -> "
        f"{'.'.join(key.parent)} {key.key} on delete {key.on_delete.value} "
        f"on update {key.on_update.value}{deferred}"
    )


def _alter_table(made: alter.AlterTable) -> Iterator[str]:
    before, after = made.before, made.after
    renamed = "" if after.name == before.name else f" to {after.name}"
    cascade = " cascade" if made.cascade else ""
    yield f"alter: {before.qualified_name}{renamed}{cascade}: {made.changes}"
    columns = []
    for position, (column, origin) in enumerate(
        zip(after.columns, made.origins, strict=True)
    ):
        old = None if origin is None else before.columns[origin]
        if old != column or position in made.retyped:
            was = "new" if old is None else f"was {old.name}"
            columns.append(f"{column.name} {column.type} ({was})")
    gone = set(range(len(before.columns))) - set(made.origins)
    if columns:
        yield f"columns: {', '.join(columns)}"
    if gone:
        yield f"gone: {_names(before, tuple(sorted(gone)))}"
    for key in after.foreign_keys:
        new = "new " if key.name in made.new_keys else ""
        yield f"{new}{_foreign_key(after, key)}"


def _create_table(made: ddl_plans.CreateTable) -> Iterator[str]:
    table = made.table
    exists = " if not exists" if made.if_not_exists else ""
    exists += " or replace" if made.replaces else ""
    yield f"create: {table.qualified_name}{exists}"
    for column in table.columns:
        default = f" default {column.default}" if column.default else ""
        not_null = " not null" if column.not_null else ""
        collation = f" collate {column.collation}" if column.collation else ""
        yield f"column: {column.name} {column.type}{collation}{not_null}{default}"
    for computed in table.generated:
        yield f"generated: {computed.name}"
    if table.primary_key:
        yield f"primary key: {_names(table, table.primary_key)}"
    for unique in table.unique:
        yield f"unique: {_names(table, unique)}"
    for check in table.checks:
        name = f" ({check.name})" if check.name else ""
        yield f"check{name}: {check.expression}"
    for key in table.foreign_keys:
        yield _foreign_key(table, key)
    if table.foreign_keys or made.replaces:
        yield f"text: {made.text}"
