"""The functions that an application vouches for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import errors
from tique_rewriter.safety.functions import why_unsafe, why_untrusted

if TYPE_CHECKING:
    from tique.store.catalog import ManagedCatalog
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Function


def trust_function(
    engine: Engine, catalog: ManagedCatalog, session: Session, name: str
) -> None:
    """Let the statements of this process call a function.

    Raises
    ------
    ProgrammingError
        There is none of that name (SQLSTATE 42883).
    NotSupportedError
        It cannot be trusted: the message says why.
    """
    functions = engine.functions(session)
    found = [function for function in functions if _is_named(function, name)]
    if not found:
        raise errors.ProgrammingError(
            f"there is no function {name} of your own; give schema.name, or "
            "schema.name(type, …) as PostgreSQL writes it",
            sqlstate="42883",
        )
    relations = catalog.relations()
    for function in found:
        reason = why_unsafe(function) or why_untrusted(function, relations)
        if reason is not None:
            raise errors.NotSupportedError(
                f"function {function.signature} cannot be trusted: {reason}"
            )
    catalog.trust(found, functions)


def _is_named(function: Function, name: str) -> bool:
    return name in (function.signature, function.signature.partition("(")[0])
