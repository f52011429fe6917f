"""P1, P3: serializable programs, with each transaction in a process of its own."""

from __future__ import annotations

import pytest

import tique
from tests.isolation.programs import create, fill, play, programs

TRANSACTIONS = 4


@pytest.mark.slow
@pytest.mark.parametrize("certifier", ["memory", "query"])
def test_between_processes_it_is_as_within_one(process, certifier):
    keeper, *others = [
        process(certifier=certifier).connection for _ in range(TRANSACTIONS)
    ]
    create(keeper)
    for connection in others:
        connection.isolation_level = "SERIALIZABLE"
    failed = {}
    for program in programs():
        keeper.autocommit = False
        fill(keeper, program.tables)
        keeper.autocommit = True
        try:
            play(program, lambda number: (keeper, *others)[number])
        except (AssertionError, tique.Error, pytest.fail.Exception) as failure:
            failed[program.name] = failure.__notes__
        for connection in others:
            connection.rollback()
    assert not failed
