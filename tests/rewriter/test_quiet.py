"""No log holds a statement's content (P11)."""

from __future__ import annotations

import logging
from contextlib import suppress

import pytest

from tests.rewriter.tables import Tables
from tique_rewriter import RewriteError, Rewriter
from tique_rewriter.dialects import DIALECTS

ODD = [
    "CREATE INDEX i ON account (id) WITH SECRET 'hunter2'",
    "CREATE INDEX i ON account (id) 'hunter2'",
    "CREATE INDEX ON account USING nothing hunter2 (id) hunter2",
    "CREATE TABLE account2 (id INTEGER) SECRET 'hunter2' (1)",
    "DROP INDEX i hunter2 hunter2",
    "DROP TABLE account hunter2 'hunter2'",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", ODD)
def test_the_parser_writes_nothing(sql, dialect, caplog, capfd):
    with caplog.at_level(logging.DEBUG), suppress(RewriteError):
        Rewriter(Tables(), dialect=dialect).plan(sql)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_others_still_hear_it(caplog):
    logging.getLogger("sqlglot").warning("of somebody else's")
    assert len(caplog.records) == 1
