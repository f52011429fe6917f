"""The base of executable statements, and their outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tique import errors
from tique.query.read.snapshot import SnapshotText

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_backends.records import ResultColumn, Row
    from tique_backends.session import Result
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.schema import Table


@dataclass(slots=True)
class Outcome:
    """The outcome of a statement.

    ``columns`` is None for a statement without a result. The rows are in
    ``rows`` if the driver had them, else in ``result``. ``error`` is the reason why no
    more of them can be fetched.
    """

    rowcount: int = -1
    columns: Sequence[ResultColumn] | None = None
    rows: list[Row] | None = None
    result: Result | None = None
    error: errors.Error | None = None
    more: Sequence[Outcome] = ()
    """The outcomes for further rows of parameters, in their order."""

    def close(self) -> None:
        """Drop the rows that were not fetched."""
        result, self.result = self.result, None
        self.rows = None
        if result is not None:
            result.close()


class Statement(ABC):
    """An executable plan. Holds no state of an execution: threads share it."""

    writes: ClassVar[bool] = True
    """Whether it can change something."""
    may_begin_blindly: bool = False
    """Whether its transaction may do without a snapshot of now (:mod:`tique.query.write.blind`)."""
    defines: bool = False
    """Whether it is DDL about what outlives the session."""
    is_held: bool = False
    """Whether it is DDL that only a transaction with DDL can run, until its COMMIT."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.text = SnapshotText(plan)
        self.needs: frozenset[tuple[Table, str]] = frozenset(
            (table, "SELECT") for table in self.text.tables
        )
        """Tables, and the privileges on them that the statement needs."""

    @property
    def kind(self) -> str:
        """Its kind, as observers are told it."""
        return type(self).__name__.removesuffix("Statement")

    @abstractmethod
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Execute once; all of it or, if it raises, nothing."""

    def run_many(
        self,
        transaction: DDLTransaction,
        parameter_rows: Iterable[Sequence[Any]],
        *,
        returning: bool = False,
    ) -> Outcome:
        """Execute once for every row of parameters, as one statement.

        Parameters
        ----------
        transaction, parameter_rows
            The transaction, and a sequence of parameters for each execution.
        returning
            Whether the rows of RETURNING are kept: an outcome for each row of
            parameters, the first with the others in ``more``.

        Raises
        ------
        ProgrammingError
            If the statement produces rows or is DDL.
        """
        raise errors.ProgrammingError(
            "executemany() takes INSERT, UPDATE or DELETE; use execute() for this "
            "statement"
        )
