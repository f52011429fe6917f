"""CREATE, ALTER and DROP of objects that are no tables, and COMMENT ON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.statements.base import Outcome, Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.ddl_plans import DefineMacro, DefineObjects
    from tique_rewriter.schema import Table


class DefineObjectsStatement(Statement):
    """A definition that the engine runs as it stands.

    The tables in schemas that it drops are released first. All others must be what they
    were: what else an engine drops or changes with an object is refused.
    """

    defines = True

    def __init__(self, plan: DefineObjects) -> None:
        super().__init__(plan)
        self._define = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Define it."""
        ddl, session = transaction.ddl, transaction.session
        engine, catalog = transaction.engine, transaction.catalog
        schemas = {name.lower() for name in self._define.dropped_schemas}

        def dropped() -> list[Table]:
            return [table for table in catalog if table.schema.lower() in schemas]

        def define() -> None:
            gone = dropped()
            ddl.release(session, gone)
            kept = [t for t in catalog if t not in gone and not t.fault] if gone else []
            session.execute(self._define.text)
            for table in kept:
                now = engine.describe(session, table.schema, table.name)
                if _shape(now) != _shape(table):
                    raise errors.NotSupportedError(
                        f"this would change {table.qualified_name} too; change that "
                        "first, by itself",
                        sqlstate="2BP01",
                    )

        ddl.changes.change(transaction, define, dropped)
        return Outcome()


class DefineMacroStatement(DefineObjectsStatement):
    """A macro, once the engine has said that it may be there."""

    def __init__(self, plan: DefineMacro) -> None:
        super().__init__(plan)
        self._macro = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Create it."""
        macro = self._macro
        transaction.engine.check_macro(
            transaction.session, macro.name, macro.expression
        )
        return super().run(transaction, parameters)


def _shape(table: Table) -> tuple[object, ...]:
    """The parts of a table that do not go with the tables that it references."""
    return table.columns, table.primary_key, table.unique, table.checks, table.generated
