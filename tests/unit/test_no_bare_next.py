"""No ``next()`` without a default: on parsed text it ends in StopIteration (P10)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tique
import tique_backends
import tique_rewriter
import tique_udfs

pytestmark = pytest.mark.engine_free

PACKAGES = (tique, tique_rewriter, tique_backends, tique_udfs)


def bare(source: str) -> list[int]:
    """The lines of the calls ``next(x)``, but where ``x`` is a counter."""
    tree = ast.parse(source)
    counters = {
        ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and "itertools.count(" in ast.unparse(node)
        for target in node.targets
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "next"
        and len(node.args) == 1
        and ast.unparse(node.args[0]) not in counters
    ]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_next_has_a_default(package):
    (folder,) = package.__path__
    found = {
        f"{path.name}:{line}"
        for path in Path(folder).rglob("*.py")
        for line in bare(path.read_text())
    }
    assert not found


def test_a_bare_next_is_found():
    assert bare("a = next(i for i in b if i)\nc = next(d, None)") == [1]
    assert not bare("n = itertools.count()\nnext(n)")
