"""MERGE: one query joins the source with the target and computes what becomes of each row.

Its rows have the number of the clause that applies, the target's old row and the new one.
They come to the driver, which refuses a second change of a row (or leaves one of them,
where the engine does) and writes them like any other changes: they are checked, and
certified against other transactions, as those of INSERT, UPDATE and DELETE. Rows that do
not survive the way through Python stay in the engine, which stages the query's rows; there
RETURNING is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome
from tique.query.write.assigning import Assigned, with_all_parameters
from tique.query.write.changes import (
    EVERY_ROW,
    Staging,
    Written,
    not_held,
    stage_computed,
    write_changes,
)
from tique.query.write.writing import WritingStatement
from tique.store.rows import key_of
from tique_rewriter.plans.change_plans import MergeAction, MergeKind
from tique_rewriter.plans.plan import ROW_NUMBER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Change
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.plans.change_plans import Merge

_PRIVILEGES = {
    MergeAction.UPDATE: "UPDATE",
    MergeAction.DELETE: "DELETE",
    MergeAction.INSERT: "INSERT",
}


class MergeStatement(WritingStatement):
    """MERGE."""

    privileges = ()

    def __init__(self, plan: Merge) -> None:
        super().__init__(plan, None, plan.returning)
        self._merge = plan
        table = plan.table
        self.needs |= {
            (table, _PRIVILEGES[clause.action])
            for clause in plan.clauses
            if clause.action in _PRIVILEGES
        }
        self._kinds = {
            clause.kind
            for clause in plan.clauses
            if clause.action is not MergeAction.NOTHING
        }
        self._assigned = [Assigned(table) for _ in plan.clauses]
        changed = {i for clause in plan.clauses for i, _ in clause.assignments}
        self._changed = tuple(sorted(changed))
        self._updated = {
            i
            for clause in plan.clauses
            if clause.action is MergeAction.UPDATE
            for i, _ in clause.assignments
        }
        self._moves_keys = any(
            not key.isdisjoint(self._updated) for key in map(set, table.referenced)
        )
        """Whether it may update keys that are referenced."""

    @override
    def _write(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        return self._apply(transaction, parameters)[0]

    @override
    def _execute(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        written, outcome = self._apply(transaction, parameters)
        return Outcome(written.rowcount) if outcome is None else outcome

    def _apply(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[Written, Outcome | None]:
        """Write the changes; return them, and the result of RETURNING."""
        table = self._table
        transaction.writes_to(table)
        if not transaction.catalog.buffers(table):
            return self._stage(transaction, parameters), None
        sql, bound = self.query(transaction, parameters)
        result = transaction.session.execute_some(sql, bound, EVERY_ROW, of=table)
        found = result.fetch_all()
        width = len(table.columns)
        changes: list[Change] = []
        returned: list[Row] = []
        for row, change in self._once(transaction, found):
            if not self._are_exact(change):
                return self._stage(transaction, parameters), None
            changes.append(change)
            returned.append(row[2 + 2 * width :])
        written = write_changes(transaction, table, changes, self._changed)
        if self._joined is None:
            return written, None
        columns = result.columns[2 + 2 * width :]
        rows = transaction.session.shown_results(columns, returned)
        return written, Outcome(len(rows), columns, rows)

    def _stage(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        """Let the engine compute the changes and keep them."""
        table, clauses = self._table, self._merge.clauses
        numbers: dict[MergeAction, list[int]] = {action: [] for action in MergeAction}
        for number, clause in enumerate(clauses, 1):
            numbers[clause.action].append(number)
        deletes = numbers[MergeAction.DELETE]
        if self._joined is not None or (self._moves_keys and deletes):
            raise not_held(
                f"MERGE into {table.qualified_name} with RETURNING, or which deletes rows "
                "and changes keys that are referenced,",
                "use several statements",
            )
        transaction.writes_to(table).switch_to_stage(transaction.session)
        query, bound = self.query(transaction, parameters)
        inserts = numbers[MergeAction.INSERT]
        query = self._each_once(transaction, query, bound, inserts)
        staging = Staging(query, numbers[MergeAction.UPDATE], deletes, inserts)
        return stage_computed(
            transaction, table, staging, bound, self._changed, self._updated
        )

    def _each_once(
        self,
        transaction: Transaction,
        query: str,
        bound: Sequence[Any],
        inserts: Sequence[int],
    ) -> str:
        """The query without rows' numbers, and each old row once if the engine picks one.

        Raises
        ------
        CardinalityViolation
            If an old row without a key is there twice, and the engine picks none. Of those
            with one it is seen when they are staged.
        """
        width = range(len(self._table.columns))
        names = [*(f"_o{i}" for i in width), *(f"_n{i}" for i in width)]
        items = ", ".join(["_a", *names])
        found = f"({query}) AS _q({', '.join(['_a', '_r', *names])})"
        key = ", ".join(f"_o{i}" for i in self._table.primary_key) or "_r"
        inserted = ", ".join(map(str, [0, *inserts]))
        if transaction.engine.capabilities.picks_merged_row:
            return (
                f"SELECT {items} FROM (SELECT *, "
                f"row_number() OVER (PARTITION BY {key}) AS _nth FROM {found}) AS _w "
                f"WHERE _nth = 1 OR _a IN ({inserted})"
            )
        if self._table.is_keyless:
            twice = (
                f"SELECT 1 FROM {found} WHERE _a NOT IN ({inserted}) "
                "GROUP BY _r HAVING count(*) > 1"
            )
            if transaction.session.execute(twice, bound).fetch_all():
                raise self._changed_twice()
        return f"SELECT {items} FROM {found}"

    def _once(
        self, transaction: Transaction, found: Sequence[Row]
    ) -> list[tuple[Row, Change]]:
        """The rows that were found, each with its change, and each old row once.

        Raises
        ------
        CardinalityViolation
            If an old row is there twice, and the engine does not choose one of them.
        """
        table = self._table
        width = len(table.columns)
        seen: set[Key | int] = set()
        once: list[tuple[Row, Change]] = []
        for row in found:
            action = self._merge.clauses[row[0] - 1].action
            old, new = row[2 : 2 + width], row[2 + width : 2 + 2 * width]
            if action is MergeAction.INSERT:
                once.append((row, (None, new)))
                continue
            key = row[1] if table.is_keyless else key_of(table.primary_key, old)
            if key in seen:
                if transaction.engine.capabilities.picks_merged_row:
                    continue
                raise self._changed_twice()
            seen.add(key)
            once.append((row, (old, None if action is MergeAction.DELETE else new)))
        return once

    def _changed_twice(self) -> errors.CardinalityViolation:
        return errors.CardinalityViolation(
            f"MERGE cannot change a row of {self._table.qualified_name} a second time; "
            "let each row of the target match one row of the source"
        )

    # The query

    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        """The query for clauses' and rows' numbers, old rows, new rows, and RETURNING."""
        plan = self._merge
        conditions = [clause.condition for clause in plan.clauses]
        values = [e.text for c in plan.clauses for _, e in c.assignments]
        (before, target, source, joined, *texts), bound = self.text.fill(
            transaction,
            parameters,
            plan.before,
            plan.target,
            plan.source,
            plan.joined,
            *conditions,
            *values,
        )
        tests, rest = texts[: len(conditions)], texts[len(conditions) :]
        assigned = []
        for clause in plan.clauses:
            width = len(clause.assignments)
            positions = [i for i, _ in clause.assignments]
            assigned.append(dict(zip(positions, rest[:width], strict=True)))
            rest = rest[width:]
        relation = self._join(target, source, joined)
        self._check_assigned(transaction, parameters, before + relation, assigned)
        number = self._number(transaction, tests)
        if any(tests):
            relation += f", LATERAL (SELECT {number} AS _a) AS _w"
            number = "_w._a"
        quote = transaction.engine.forms.quote
        cast = transaction.engine.forms.cast
        row = f"{plan.qualifier}.{ROW_NUMBER}" if self._table.is_keyless else "0"
        items = [f"{number} AS _a", f"{row} AS _r"]
        new = []
        for i, column in enumerate(self._table.columns):
            old = f"{plan.qualifier}.{quote(column.name)}"
            items.append(f"{old} AS _o{i}")
            cases = [
                f"WHEN {k} THEN {cast(f'({value[i]})', column.type)}"
                for k, value in enumerate(assigned, 1)
                if i in value
            ]
            value = f"CASE {number} {' '.join(cases)} ELSE {old} END" if cases else old
            new.append(f"{value} AS _n{i}")
        items += new
        outer = ["_u._a", "_u._r"]
        outer += [f"_u._o{i}" for i in range(len(new))]
        outer += [f"_u._n{i}" for i in range(len(new))]
        relations = ""
        if self._joined is not None:
            items += self._joined.carried
            outer.append(self._joined.items(transaction, parameters))
            relations = self._joined.relations(transaction, range(len(new)))
            relations += (
                f", LATERAL (SELECT {self._action()} AS merge_action) AS _action"
            )
            bound = self._joined.bound(parameters)
        return (
            f"{before}SELECT {', '.join(outer)} FROM (SELECT {', '.join(items)} "
            f"FROM {relation}) AS _u{relations} WHERE _u._a > 0"
        ), bound

    def _join(self, target: str, source: str, joined: str) -> str:
        """The joined rows that some clause may be for."""
        plan = self._merge
        if MergeKind.BY_SOURCE in self._kinds:
            # A column that is NULL where there is no row of the source.
            source = f"(SELECT *, TRUE AS _source FROM {source}) AS {plan.source_name}"
            side = "FULL" if MergeKind.BY_TARGET in self._kinds else "RIGHT"
        else:
            side = "LEFT" if MergeKind.BY_TARGET in self._kinds else "INNER"
        return f"{source} {side} JOIN {target} {joined}"

    def _number(self, transaction: Transaction, tests: Sequence[str]) -> str:
        """An expression for the number of the clause that applies; 0 for none."""
        plan = self._merge
        quote = transaction.engine.forms.quote
        key = ROW_NUMBER
        if self._table.primary_key:
            key = quote(self._table.columns[self._table.primary_key[0]].name)
        in_target = transaction.engine.forms.has_value(f"{plan.qualifier}.{key}")
        cases = dict.fromkeys(MergeKind, "")
        for k, (clause, test) in enumerate(zip(plan.clauses, tests, strict=True), 1):
            found = 0 if clause.action is MergeAction.NOTHING else k
            cases[clause.kind] += (
                f" WHEN {f'({test})' if test else 'TRUE'} THEN {found}"
            )
        chosen = {
            kind: f"CASE{found} ELSE 0 END" if found else "0"
            for kind, found in cases.items()
        }
        number = (
            f"CASE WHEN {in_target} THEN {chosen[MergeKind.MATCHED]} "
            f"ELSE {chosen[MergeKind.BY_TARGET]} END"
        )
        if MergeKind.BY_SOURCE in self._kinds:
            in_source = f"{plan.source_name}._source IS NOT NULL"
            by_source = chosen[MergeKind.BY_SOURCE]
            number = f"CASE WHEN {in_source} THEN {number} ELSE {by_source} END"
        return number

    def _action(self) -> str:
        """An expression for the name of the action that was taken."""
        cases = [
            f"WHEN {k} THEN '{clause.action.value}'"
            for k, clause in enumerate(self._merge.clauses, 1)
            if clause.action is not MergeAction.NOTHING
        ]
        return f"CASE _u._a {' '.join(cases)} END" if cases else "NULL"

    def _check_assigned(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        relation: str,
        assigned: Sequence[dict[int, str]],
    ) -> None:
        """Refuse assigned values if the engine would."""
        for checked, values in zip(self._assigned, assigned, strict=True):
            if values and not checked.is_known(transaction, parameters):
                query = f"SELECT {', '.join(values.values())} FROM {relation}"
                checked.check(
                    transaction,
                    parameters,
                    list(values),
                    with_all_parameters(query, self._merge.parameters),
                    parameters[: self._merge.parameters],
                )
