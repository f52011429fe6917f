"""No text with a second statement in it reaches an engine (P10, P11).

``tests/fuzz/smuggled`` has texts that a parser could cut elsewhere than the engine does,
most of them with a DROP TABLE where only one of the two sees a string or a comment.
"""

from __future__ import annotations

import json
from contextlib import closing, suppress
from pathlib import Path

import pytest

import tique

TEXTS = Path(__file__).parents[1] / "fuzz" / "smuggled"

ATTACKS = [
    pytest.param(text, marks=pytest.mark.written_for([name], reason="its lexer's"))
    for name in ("duckdb", "postgresql", "monetdb")
    for text in json.loads((TEXTS / f"{name}.json").read_text())
]


@pytest.mark.every_engine
@pytest.mark.parametrize("text", ATTACKS, ids=ascii)
def test_a_table_survives_it(engine, text):
    with closing(engine.connect(autocommit=True)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
        with suppress(tique.Error):
            connection.execute(text)
    with closing(engine.connect()) as connection:
        assert connection.execute("SELECT id FROM t").fetchall() == [(1,)]
