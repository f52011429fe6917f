"""TRUNCATE, which deletes the rows that the snapshot has: a rollback brings them back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome, Statement
from tique.query.write.change import DeleteStatement
from tique.query.write.foreign_keys import enforce
from tique_rewriter.kinds.change.truncate import deletion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.kinds.change.truncate import Truncate
    from tique_rewriter.schema import Table


class TruncateStatement(Statement):
    """TRUNCATE."""

    def __init__(self, plan: Truncate) -> None:
        super().__init__(plan)
        self._plan = plan
        self._deletes = {
            table.id: DeleteStatement(deletion(table)) for table in plan.tables
        }
        for delete in self._deletes.values():
            self.needs |= delete.needs
        # Its sequences are the engine's, and so a rollback of it is.
        self.defines = self.is_held = plan.restarts

    @override
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Delete the rows of all tables, then check what references them."""
        deletes = dict(self._deletes)
        for child in self._referencing(transaction):
            deletes[child.id] = DeleteStatement(deletion(child))
            shared = transaction.engine.shared
            if shared is not None:
                shared.expect_privileges(deletes[child.id].needs)
        if self._plan.restarts:
            self._restart(transaction, deletes)
        with transaction.statement():
            for delete in deletes.values():
                delete.write(transaction)
            enforce(transaction)
        return Outcome()

    @staticmethod
    def _restart(transaction: DDLTransaction, tables: Iterable[int]) -> None:
        """Restart the sequences of the tables with these numbers."""
        engine, session = transaction.engine, transaction.session
        changes, known = transaction.ddl.changes, transaction.catalog.by_id()
        changes.expect_possible(transaction)

        def restart() -> None:
            for number in tables:
                for name in engine.owned_sequences(session, known[number]):
                    session.execute(f"ALTER SEQUENCE {name} RESTART").close()

        changes.transact(session, restart)

    def _referencing(self, transaction: DDLTransaction) -> Sequence[Table]:
        """The tables to empty too, because their constraints reference these.

        Raises
        ------
        NotSupportedError
            There is one, and no CASCADE.
        """
        if self._plan.is_delete:
            return ()
        found: list[Table] = []
        known = set(self._deletes)
        tables = list(self._plan.tables)
        while tables:
            table = tables.pop()
            for child, key in transaction.catalog.referencing(table):
                if child.id in known:
                    continue
                if not self._plan.cascade:
                    raise errors.NotSupportedError(
                        f"cannot truncate {table.qualified_name}: the FOREIGN KEY "
                        f"{key.name} of {child.qualified_name} references it; truncate "
                        "that table with it, or use TRUNCATE … CASCADE"
                    )
                # One that was changed without tique is refused here.
                transaction.catalog.find(child.schema, child.name)
                known.add(child.id)
                found.append(child)
                tables.append(child)
        return found
