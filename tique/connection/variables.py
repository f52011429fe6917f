"""Python variables in the place of tables, as DuckDB's module has them.

A name that nothing else has may be that of a variable in the code that calls the driver: a
data frame of pandas or polars, or an Arrow table. It is read once, when the statement
begins, so that the statement sees it as it was then; a stream can be read only once, and a
statement may have to run again, so it is refused.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tique import errors
from tique.connection.transfer.append import arrow_of
from tique_rewriter.errors import UnknownTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow

    from tique.query.base import Outcome, Statement
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.rewriter import Prepared

_OWN = ("tique", "contextlib")


def plan_with_variables(
    plan: Callable[[frozenset[str]], Prepared], error: UnknownTable
) -> tuple[Prepared, dict[str, pyarrow.Table]]:
    """Plan a statement whose unknown tables are variables of the calling code.

    Parameters
    ----------
    plan
        Plans the statement, with these names for relations that are given.
    error
        The complaint about the first unknown name, which is raised again if that is
        no variable's.

    Returns
    -------
    tuple
        The plan, and the data by name in small letters.
    """
    found: dict[str, pyarrow.Table] = {}
    while True:
        name = error.relation
        data = None if name is None or name.lower() in found else _look_up(name)
        if name is None or data is None:
            raise error
        found[name.lower()] = arrow_of(data)
        try:
            return plan(frozenset(found)), found
        except UnknownTable as another:
            error = another


def run_with_variables(
    statement: Statement,
    data: Mapping[str, pyarrow.Table],
    transaction: DDLTransaction,
    parameters: Sequence[Any],
) -> Outcome:
    """Run a statement whose plan names relations that are given.

    All rows are fetched, as the engine forgets the relations afterwards.
    """
    relations = transaction.relations
    with ExitStack() as stack:
        for number, (name, table) in enumerate(data.items()):
            relation = stack.enter_context(
                transaction.session.arrow_relation(table, f"tique_variable_{number}")
            )
            assert relation is not None
            relations[name] = relation
            stack.callback(relations.pop, name, None)
        outcome = statement.run(transaction, parameters)
        if outcome.result is not None:
            result, outcome.result = outcome.result, None
            outcome.rows = result.fetch_all()
            outcome.rowcount = len(outcome.rows)
        return outcome


def _look_up(name: str) -> Any:
    """The data that a variable of the calling code holds; None if there is none."""
    frame = sys._getframe()
    while frame.f_globals.get("__name__", "").partition(".")[0] in _OWN:
        if frame.f_back is None:
            return None
        frame = frame.f_back
    for variables in (frame.f_locals, frame.f_globals):
        if name in variables:
            return _data(name, variables[name])
    return None


def _data(name: str, value: Any) -> Any:
    """The value if it is data in columns; None if it is anything else."""
    is_frame = hasattr(value, "iloc") and hasattr(value, "columns")
    has_stream = hasattr(value, "__arrow_c_stream__")
    if isinstance(value, type) or not (is_frame or has_stream or _is_batch(value)):
        return None
    if not hasattr(value, "__len__") and not hasattr(value, "num_rows"):
        raise errors.NotSupportedError(
            f'the Python variable "{name}" is a stream, which can be read only once; '
            "read it into a table first"
        )
    return value


def _is_batch(value: Any) -> bool:
    return hasattr(value, "__arrow_c_array__") and hasattr(value, "num_columns")
