"""No text is one list of tokens to the rewriter and another to the engine (P10, P11)."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.effort import effort
from tests.fuzz.tokens import run, scanner_of

COUNT = effort(4_000, 1_000_000)
SEED = 20260801

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 + COUNT // 100)]


def check(dialect, count, url=""):
    with closing(scanner_of(dialect, url)) as scanner:
        counts, findings = run(dialect, scanner, SEED, 0, count)
    assert findings == []
    # Otherwise nothing is compared.
    assert counts["accepted"] > count / 10


@pytest.mark.rewriter
def test_duckdb_cuts_a_text_as_the_rewriter_does():
    check("duckdb", COUNT)


@pytest.mark.postgresql
def test_postgresql_cuts_a_text_as_the_rewriter_does():
    check("postgresql", COUNT)


def test_monetdb_cuts_a_text_as_the_rewriter_does(monetdb_server):
    check("monetdb", COUNT, monetdb_server.url)
