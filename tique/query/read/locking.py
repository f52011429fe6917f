"""SELECT … FOR UPDATE: the rows are locked, and then are those that the query gives.

The query is run first, for the keys: then they are locked, in ascending order. A row that
was committed meanwhile, since the snapshot, is a conflict under SNAPSHOT, at once; under
READ COMMITTED, and by the protocol that locks (:mod:`tique.commit.protocols.locking`), the query is run
again on a new snapshot, until no row that it gives was committed since. The locks say that none will be (:mod:`tique.commit.locks`): they are
kept while it is run again, so that a row that many wait for is not lined up for twice.

The rows of a query by key come from memory where a query without the clause has them
from there (:mod:`tique.query.read.select`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.commit.server_locks import lock_not_available
from tique.query.base import Outcome, Statement
from tique.query.read.select import selecting
from tique.query.read.sources import operand_value
from tique.query.transaction.lock_checks import expect_lockable, newer_commit
from tique.writes.tickets import serialization_error
from tique_backends.names import quote
from tique_rewriter.local.kernel import NotLocal, coercer
from tique_rewriter.plans.plan import Wait

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tique.commit.lock_keys import LockKey
    from tique.query.transaction.transaction import Transaction
    from tique_backends.records import ResultColumn, Row
    from tique_rewriter.plans.plan import LockingSelect

_MORE = 16
"""So many rows more are asked for than are wanted and locked."""


class LockingSelectStatement(Statement):
    """A query whose rows are locked until the transaction ends."""

    writes = False

    def __init__(self, plan: LockingSelect) -> None:
        super().__init__(plan)
        self._select = selecting(plan.query)
        self._wait = plan.wait
        self._limit = plan.limit
        self._shared = plan.shared
        self._outputs = plan.outputs
        self._tables = plan.tables
        self._hidden = sum(len(table.primary_key) for table in plan.tables)
        self._coercers = [
            [coercer(table.columns[i].type) for i in table.primary_key]
            for table in plan.tables
        ]
        self.needs |= {(table, "UPDATE") for table in plan.tables}

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Lock the rows; all of them or, if it raises, none."""
        with transaction.statement():
            columns, rows = self._locked(transaction, parameters)
        return Outcome(len(rows), columns, rows)

    def relation(self, transaction: Transaction, parameters: Sequence[Any]) -> str:
        """Lock the rows within a statement: a parenthesised query for the result."""
        outputs = self._outputs
        assert outputs is not None
        _, rows = self._locked(transaction, parameters, keeps=True)
        (table,) = self._tables
        positions = sorted({position for position, _ in outputs})
        by_position = {position: i for i, (position, _) in enumerate(outputs)}
        values = [[row[by_position[i]] for row in rows] for i in positions]
        source = transaction.engine.forms.constants(table, positions, {}, values)
        items = ", ".join(
            f"{quote(table.columns[position].name)} AS {quote(name)}"
            for position, name in outputs
        )
        return f"(SELECT {items} FROM {source} AS _l)"

    def _locked(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        keeps: bool = False,
    ) -> tuple[Sequence[ResultColumn], list[Row]]:
        """The result, whose rows are locked; values as they can be written, if kept."""
        expect_lockable(transaction)
        before = frozenset(transaction.locks.of(transaction.txid))
        noted = transaction.seen_before()
        while True:
            columns, rows = self._attempt(transaction, parameters, before, keeps=keeps)
            keys = {key for _, locked in rows for key in locked}
            if keys:
                begun = transaction.locks.begun(transaction.txid)
                transaction.timeline.await_begun(begun)
            seen = dict.fromkeys(keys, transaction.sts)
            conflict = newer_commit(transaction, seen)
            if conflict is None:
                break
            if not transaction.locks_rows:
                raise serialization_error(conflict)
            transaction.advance(noted)
        # A key that an earlier look at the rows gave may be among them no more.
        self._release(transaction, before | keys)
        transaction.has_locked = True
        return columns, [row for row, _ in rows]

    def _attempt(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        before: Collection[LockKey],
        *,
        keeps: bool,
    ) -> tuple[Sequence[ResultColumn], list[tuple[Row, list[LockKey]]]]:
        """Run the query and lock its rows: these, each with its keys.

        Of the locks of an earlier look, those that were not held ``before`` are given back
        if others are wanted: all are taken in their order.
        """
        if self._wait is Wait.SKIP_LOCKED:
            return self._skip(transaction, parameters, keeps=keeps)
        columns, rows = self._ask(transaction, parameters, keeps=keeps)
        wanted = sorted({key for _, keys in rows for key in keys})
        patience = 0 if self._wait is Wait.NOWAIT else transaction.lock_timeout
        locks, txid = transaction.locks, transaction.txid
        if not set(wanted).issubset(locks.of(txid)):
            self._release(transaction, before)
        locks.lock(txid, wanted, transaction.sequence, patience, shared=self._shared)
        if not locks.settle(txid, wanted, patience):
            raise lock_not_available()
        return columns, rows

    def _skip(
        self, transaction: Transaction, parameters: Sequence[Any], *, keeps: bool
    ) -> tuple[Sequence[ResultColumn], list[tuple[Row, list[LockKey]]]]:
        """Run the query, and leave out rows that cannot be locked at once."""
        limit = None
        if self._limit is not None:
            limit = operand_value(self._limit, parameters)
            if type(limit) is not int or limit < 0:
                raise errors.DataError("LIMIT takes a number that is not negative")
        most = None if limit is None else limit + transaction.locks.count + _MORE
        while True:
            # Rows that were left out are none that the application has seen.
            with transaction.unnoted():
                columns, rows = self._ask(transaction, parameters, most, keeps=keeps)
            taken: list[tuple[Row, list[LockKey]]] = []
            for row, keys in rows:
                if limit is not None and len(taken) >= limit:
                    break
                if self._take_all(transaction, keys):
                    taken.append((row, keys))
            if most is None or len(rows) < most or len(taken) == limit:
                for _, keys in taken:
                    self._see(transaction, keys)
                return columns, taken
            most *= 4

    def _see(self, transaction: Transaction, keys: Iterable[LockKey]) -> None:
        """Note rows that were locked: a savepoint may give the lock back."""
        tables = {table.id: table for table in self._tables}
        if transaction.has_one_snapshot:
            for number, key in keys:
                transaction.seen.own_row(tables[number], key)

    def _take_all(self, transaction: Transaction, keys: Sequence[LockKey]) -> bool:
        """Lock all keys of a row at once, or none."""
        locks, txid = transaction.locks, transaction.txid
        new = [key for key in dict.fromkeys(keys) if key not in locks.of(txid)]
        if not locks.take(txid, keys, transaction.sequence, shared=self._shared):
            return False
        if locks.settle(txid, new, 0):
            return True
        locks.release_keys(txid, new)
        return False

    def _ask(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        most: int | None = None,
        *,
        keeps: bool,
    ) -> tuple[Sequence[ResultColumn], list[tuple[Row, list[LockKey]]]]:
        here = None if keeps else self._select.rows_here(transaction, parameters)
        if here is not None:
            columns, rows = here
            width = len(columns) - self._hidden
            keys = [self._keys(row[width:]) for row in rows]
            types = self._select.kept_types[:width]
            shown = transaction.session.shown(types, [row[:width] for row in rows])
            return columns[:width], list(zip(shown, keys, strict=True))[:most]
        if keeps:
            (table,) = self._tables
            sql, bound = self._select.query(transaction, parameters)
            limited = sql if most is None else f"{sql} LIMIT {most}"
            columns, rows = (
                (),
                transaction.session.rows_to_keep(limited, bound, of=table),
            )
            width = len(rows[0]) - self._hidden if rows else 0
        else:
            result = self._select.ask_engine(transaction, parameters, most=most)
            width = len(result.columns) - self._hidden
            columns, rows = result.columns[:width], result.fetch_all()
        return columns, [(row[:width], self._keys(row[width:])) for row in rows]

    def _keys(self, values: Sequence[Any]) -> list[LockKey]:
        keys: list[LockKey] = []
        start = 0
        for table, coercers in zip(self._tables, self._coercers, strict=True):
            part = values[start : start + len(coercers)]
            start += len(coercers)
            try:
                key = tuple(
                    [coerce(v) for coerce, v in zip(coercers, part, strict=True)]
                )
            except NotLocal:
                raise errors.NotSupportedError(
                    f"FOR UPDATE of {table.qualified_name} is not supported: a key of "
                    "this type cannot be compared here"
                ) from None
            keys.append((table.id, key))
        return keys

    def _release(self, transaction: Transaction, kept: Collection[LockKey]) -> None:
        """Release what this statement has locked and does not keep."""
        held = transaction.locks.of(transaction.txid)
        transaction.locks.release_keys(
            transaction.txid, [key for key in list(held) if key not in kept]
        )
