"""GRANT, REVOKE, and statements that keep storage tidy: the engine runs them as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.statements.base import Outcome, Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.ddl_plans import Grant, Tidy


class GrantStatement(Statement):
    """GRANT and REVOKE."""

    defines = True

    def __init__(self, plan: Grant) -> None:
        super().__init__(plan)
        self._text = plan.text

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Change the privileges; tables are what they were."""
        transaction.ddl.changes.run_text(transaction, self._text)
        return Outcome()


class TidyStatement(Statement):
    """ANALYZE, VACUUM, REINDEX and the like; no transaction sees them."""

    writes = False

    def __init__(self, plan: Tidy) -> None:
        super().__init__(plan)
        self._text = plan.text
        self._is_alone = plan.is_alone

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Have storage tidied.

        Raises
        ------
        ProgrammingError
            The transaction has done something already, and the engine has this in none.
        """
        if self._is_alone and (transaction.touched or transaction.has_writes):
            verb = self._text.split(maxsplit=1)[0].upper()
            raise errors.ProgrammingError(
                f"{verb} cannot run inside a transaction", sqlstate="25001"
            )
        transaction.session.execute(self._text).close()
        return Outcome()
