"""SQL text and a catalog in, a plan out. Pure: no I/O, no engine, no driver."""

from __future__ import annotations

from tique_rewriter.errors import (
    ParameterError,
    RewriteError,
    SyntaxProblem,
    UnknownColumn,
    UnknownKey,
    UnknownTable,
    UnsupportedSQL,
)
from tique_rewriter.local.kernel import NotLocal, coercer, compile_kernel
from tique_rewriter.rewriter import PARAMSTYLES, Prepared, Rewriter

__all__ = [
    "PARAMSTYLES",
    "NotLocal",
    "ParameterError",
    "Prepared",
    "RewriteError",
    "Rewriter",
    "SyntaxProblem",
    "UnknownColumn",
    "UnknownKey",
    "UnknownTable",
    "UnsupportedSQL",
    "coercer",
    "compile_kernel",
]
