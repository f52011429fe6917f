"""The names of results, where the engine numbers those that have no name.

MonetDB names an expression ``%1`` or ``%60``: it numbers all expressions of the
statement, and a snapshot query has more of them than the application's own, and not
always the same. No SQL can refer to such a name, but it is in the result's description.
So the engine is asked once for the names of the results of the application's text over
the storage tables.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tique_rewriter.plans.text import UNNAMED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique_backends.records import ResultColumn


class ResultNames:
    """The names of one statement's results; threads share it.

    Parameters
    ----------
    plain
        Returns the statement's text over the storage tables.
    """

    def __init__(self, plain: Callable[[Transaction], str]) -> None:
        self._plain = plain
        self._names: list[str] | None = None
        self._is_known = False

    def of(
        self,
        transaction: Transaction,
        columns: Sequence[ResultColumn],
        sql: str,
        bound: Sequence[Any],
    ) -> Sequence[ResultColumn]:
        """The columns of the result of ``sql``, named as the application expects.

        Raises
        ------
        EngineError
            If the engine refuses the statement, the first time.
        """
        prefix = transaction.engine.capabilities.number_prefix
        if not prefix:
            return columns
        if not self._is_known:
            unnamed = (prefix, UNNAMED)
            if any(column.name.startswith(unnamed) for column in columns):
                plain = self._plain(transaction)
                if plain == sql:
                    self._names = [column.name for column in columns]
                else:
                    self._names = transaction.session.result_names(plain, bound)
            self._is_known = True
        # PREPARE may tell other columns of LIMIT with SAMPLE than the query has.
        if self._names is None or len(self._names) != len(columns):
            return columns
        return [
            replace(column, name=name)
            for column, name in zip(columns, self._names, strict=True)
        ]
