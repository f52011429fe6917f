"""ON CONFLICT for rows that do not survive the way through Python: they stay in the engine.

One query numbers the proposed rows, joins them with the existing ones under the clause's
key, by the engine's own equality, and computes what becomes of each; its rows are staged.

*Rows of one statement.* The query sees the rows before the statement. Without DO UPDATE the
first proposed row of a key counts. With it, a key that is proposed again after a row that
inserts or updates is an error, which a query of its own finds before. That is all as long
as the statement changes no key of an existing row: an assignment to the clause's key is
refused, and so is a clause with several keys, where a row that is skipped leaves its other
key to those after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique import errors
from tique.query.read.sources import Source
from tique.query.write.assigning import Assigned, with_all_parameters
from tique.query.write.changes import Staging, not_held, stage_computed, stage_query
from tique.query.write.constraints import check_proposed_query
from tique_backends.names import collated, key_list
from tique_rewriter.plans.change_plans import PROPOSED
from tique_rewriter.plans.plan import Reference
from tique_rewriter.schema import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.read.snapshot import SnapshotText
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Written
    from tique_rewriter.plans.change_plans import Conflict
    from tique_rewriter.plans.text import Text

_UPDATE, _INSERT = 1, 2
_FOUND, _NTH, _ORDER = (f"{PROPOSED}{name}" for name in ("found", "nth", "order"))


def met_twice(table: Table) -> errors.CardinalityViolation:
    """Return the error for a row that a statement would write twice."""
    return errors.CardinalityViolation(
        f"ON CONFLICT DO UPDATE meets a row of {table.qualified_name} a second time; "
        "propose each key once"
    )


def pairs_of(table: Table, *numbers: str) -> Table:
    """The table of existing rows, each with a proposed one, and of numbers of these names."""
    proposed = [
        Column(f"{PROPOSED}{i}", column.type, collation=column.collation)
        for i, column in enumerate(table.columns)
    ]
    counted = [Column(name, "BIGINT") for name in numbers]
    columns = (*table.columns, *proposed, *counted)
    return Table("", "", columns, generated=table.generated)


class StagedConflict:
    """ON CONFLICT, ready to be applied to the rows of a query."""

    def __init__(self, plan: Conflict, table: Table, text: SnapshotText) -> None:
        self._table = table
        self._keys = plan.keys
        self._computed = plan.computed
        self._update = plan.update
        self._text = text
        self._stored = Source(Reference(table, " AS _o", {}))
        self._assigned = Assigned(table)
        assignments = () if plan.update is None else plan.update.assignments
        self._changed = [position for position, _ in assignments]
        self._pairs = pairs_of(table, _FOUND, _NTH, _ORDER)

    def write(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        query: str,
        bound: Sequence[Any],
    ) -> Written:
        """Write the outcome of the proposed rows of a query.

        Parameters
        ----------
        transaction
            The transaction.
        parameters
            The statement's.
        query, bound
            A query for whole rows of the columns' types, and its parameters.

        Raises
        ------
        CardinalityViolation
            If a row would be changed twice.
        """
        table = self._table
        if (
            self._computed
            or len(self._keys) > 1
            or any(i in key for key in self._keys for i in self._changed)
        ):
            raise not_held(
                "ON CONFLICT with several keys, or which changes its key, or at an index on "
                f"expressions or with a condition, on {table.qualified_name}",
                "name one key, or write UPDATE, and INSERT … SELECT … WHERE NOT EXISTS",
            )
        if not self._keys:
            return stage_query(transaction, table, query, bound)
        transaction.writes_to(table).switch_to_stage(transaction.session)
        width = range(len(table.columns))
        names = ", ".join(f"_{i}" for i in width)
        proposed = f"({query}) AS _q({names})"
        if transaction.engine.capabilities.checks_proposed_rows:
            quote = transaction.engine.forms.quote
            items = [f"_{i} AS {quote(c.name)}" for i, c in enumerate(table.columns)]
            source = f"(SELECT {', '.join(items)} FROM {proposed})"
            check_proposed_query(transaction, table, source, bound)
        texts: Sequence[Text] = ()
        if self._update is not None:
            texts, bound = self._update.within(parameters, bound)
        action, items, source = self._outcome(
            transaction, parameters, proposed, texts, bound
        )
        if self._update is not None:
            self._check_once(transaction, action, items, source, bound)
        staging = Staging(
            f"SELECT {', '.join([action, *items])} FROM {source}",
            updates=() if self._update is None else [_UPDATE],
            inserts=[_INSERT],
        )
        return stage_computed(transaction, table, staging, bound, width, self._changed)

    def _outcome(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        proposed: str,
        texts: Sequence[Text],
        bound: Sequence[Any],
    ) -> tuple[str, list[str], str]:
        """Expressions for the action and for the old and the new row, and their source."""
        table, update = self._table, self._update
        forms = transaction.engine.forms
        pairs = self._pairs_of(transaction, proposed)
        name = "_p" if update is None else update.qualifier
        source = f"{pairs} AS {name}"
        found = f"{name}.{_FOUND} = 1"
        updates, assigned = "0", {}
        if update is not None:
            (where, *values), _ = self._text.fill(transaction, parameters, *texts)
            if not self._assigned.is_known(transaction, bound):
                query = f"SELECT {', '.join(values)} FROM {source}"
                query = with_all_parameters(query, len(bound))
                self._assigned.check(transaction, bound, self._changed, query, bound)
            updates = f"CASE WHEN ({where or 'TRUE'}) THEN {_UPDATE} ELSE 0 END"
            for position, text in zip(self._changed, values, strict=True):
                kind = table.columns[position].type
                assigned[position] = forms.cast(f"({text})", kind)
        # Of a volatile query's rows a key may be met twice only now: then it is a duplicate.
        counts = f"{name}.{_NTH} = 1" if update is None else "TRUE"
        action = (
            f"CASE WHEN {found} THEN {updates} WHEN {counts} THEN {_INSERT} ELSE 0 END"
        )
        old = [f"{name}.{forms.quote(column.name)}" for column in table.columns]
        new = [
            f"CASE WHEN {found} THEN {assigned.get(i, before)} "
            f"ELSE {name}.{PROPOSED}{i} END"
            for i, before in enumerate(old)
        ]
        return action, [*old, *new], source

    def _check_once(
        self,
        transaction: Transaction,
        action: str,
        items: Sequence[str],
        source: str,
        bound: Sequence[Any],
    ) -> None:
        """Refuse a key that is proposed again when a row of it was written."""
        (key,) = self._keys
        names = [f"{PROPOSED}{i}" for i in key]
        # All items, as an engine may refuse parameters that no text has.
        named = [f"{item} AS _i{n}" for n, item in enumerate(items)]
        inner = ", ".join([f"{action} AS _a", *names, _ORDER, *named])
        has_value = transaction.engine.forms.has_value
        known = " AND ".join(has_value(name) for name in names)
        twice = (
            f"SELECT 1 FROM (SELECT {inner} FROM {source}) AS _w WHERE {known} "
            f"GROUP BY {', '.join(names)} "
            f"HAVING min(CASE WHEN _a > 0 THEN {_ORDER} END) < max({_ORDER}) LIMIT 1"
        )
        if transaction.session.execute(twice, bound).fetch_all():
            raise met_twice(self._table)

    def _pairs_of(self, transaction: Transaction, proposed: str) -> str:
        """A relation of the proposed rows, each with the existing row in its way."""
        table, (key,) = self._table, self._keys
        forms = transaction.engine.forms
        width = range(len(table.columns))
        values = [f"_q._{i}{collated(c)} AS _{i}" for i, c in enumerate(table.columns)]
        # As rows without a key are numbered (:meth:`tique.query.read.sources.Source.relation`).
        numbered = (
            f"(SELECT {', '.join(values)}, row_number() OVER () AS {_ORDER} "
            f"FROM {proposed} OFFSET 0) AS _r"
        )
        parts = ", ".join(f"_r._{i}" for i in key)
        known = " AND ".join(forms.has_value(f"_r._{i}") for i in key)
        counted = (
            f"(SELECT _r.*, CASE WHEN {known} THEN row_number() OVER (PARTITION BY "
            f"{parts} ORDER BY _r.{_ORDER}) ELSE 1 END AS {_NTH} FROM {numbered}) AS _p"
        )
        same = " AND ".join(
            f"_o.{forms.quote(each.name)} {each.equality} _p._{i}"
            for i, each in ((i, table.columns[i]) for i in key)
        )
        first = key_list(table, key[:1], "_o.")
        items = [f"_o.{forms.quote(c.name)}" for c in table.columns]
        items += [f"_p._{i} AS {PROPOSED}{i}" for i in width]
        items += [
            f"CASE WHEN {forms.has_value(first)} THEN 1 ELSE 0 END AS {_FOUND}",
            f"_p.{_NTH}",
            f"_p.{_ORDER}",
        ]
        stored = self._stored.text(transaction, ())
        pairs = (
            f"(SELECT {', '.join(items)} FROM {counted} LEFT JOIN {stored} ON {same})"
        )
        return forms.computed(self._pairs, pairs) if self._pairs.generated else pairs
