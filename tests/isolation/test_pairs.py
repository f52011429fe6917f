"""READ COMMITTED as PostgreSQL has it: what waits, what it then finds, and what it reports.

Two transactions of one process; those of two are in ``sharing/test_pairs.py``.
"""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from tests.isolation.pairs import cases, parameters, play, recorded
from tests.plugins.postgresql import empty

LEVEL = "READ COMMITTED"


@pytest.mark.parametrize("case", parameters())
def test_as_in_postgresql(engine, case):
    """P3, P8, P9, P12."""
    with (
        engine.connect(isolation_level=LEVEL) as first,
        engine.connect(isolation_level=LEVEL) as second,
    ):
        waits = second._database.locks._waits
        assert play(case, first, second, lambda: bool(waits)) == recorded()[case.label]


@pytest.mark.written_for(["postgresql"], reason="it is the one that is asked")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.label)
def test_what_is_written_down(postgresql_cluster, case):
    """The answers that count are those of PostgreSQL itself."""
    assert native(postgresql_cluster.socket_url, case) == recorded()[case.label]


def native(url, case):
    empty(url)
    with (
        closing(psycopg.connect(url)) as first,
        closing(psycopg.connect(url)) as second,
        closing(psycopg.connect(url, autocommit=True)) as watching,
    ):

        def waits():
            blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
            return watching.execute(blocked, [second.info.backend_pid]).fetchone()[0]

        outcome = play(case, first, second, waits)
    empty(url)
    return outcome
