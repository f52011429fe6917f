"""Statements that the engine accepts: how many of them tique refuses (P10)."""

from __future__ import annotations

import pytest

from tests.differential import corpus

MOST = {
    "duckdb": (0.01, 0.02),
    "postgresql": (0.01, 0.04),
    "monetdb": (0.01, 0.043),
}
"""The share that may be refused: of queries and changes, and of everything."""


@pytest.mark.slow
@pytest.mark.one_duckdb
def test_the_corpus(engine):
    report = corpus.run(engine)
    assert report.unknown == []
    assert report.faults == []
    of_rows, of_all = MOST[engine.name]
    told = "\n".join(report.lines())
    assert report.share_of(corpus.QUERIES + corpus.CHANGES) <= of_rows, told
    assert report.share <= of_all, told
