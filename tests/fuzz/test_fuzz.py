"""Changed statements end in an answer or in an error of tique's, soon (P10, P11)."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import pytest

from tests.fuzz.runs import place_of, run
from tests.plugins.monetdb import connect_natively

COUNT = int(os.environ.get("TIQUE_FUZZ_COUNT", "300"))
SEED = int(os.environ.get("TIQUE_FUZZ_SEED", "20230801"))


@pytest.fixture(
    params=[
        pytest.param("duckdb", marks=pytest.mark.duckdb),
        pytest.param("monetdb", marks=pytest.mark.monetdb),
        pytest.param("postgresql", marks=pytest.mark.postgresql),
    ]
)
def place(request, tmp_path):
    match request.param:
        case "duckdb":
            found = str(tmp_path / "fuzz.duckdb")
        case "monetdb":
            found = request.getfixturevalue("monetdb_server").url
        case _:
            found = request.getfixturevalue("postgresql_cluster").socket_url
    return request.param, lambda: found


@pytest.mark.slow
@pytest.mark.timeout(300 + COUNT)
def test_changed_statements(place):
    outcome = run(*place, SEED, 0, COUNT)
    assert outcome.findings == []
    assert outcome.done == COUNT
    # Otherwise it would be the parser that is tested.
    assert outcome.read > 0.5
    assert outcome.counts["done"] > COUNT / 10


@pytest.mark.slow
@pytest.mark.monetdb
def test_a_server_that_a_statement_ended_runs_again():
    with place_of("monetdb") as place:
        with closing(connect_natively(place())) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT value FROM sys.env() WHERE name = 'monet_pid'")
            ((pid,),) = cursor.fetchall()
            os.kill(int(pid), signal.SIGKILL)
        outcome = run("monetdb", place, SEED, 0, 4)
    assert outcome.done == 4
    assert outcome.findings == []
