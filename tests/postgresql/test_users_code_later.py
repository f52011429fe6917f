"""P11: code that a table's owner attaches after tique has looked at the table, or before.

The look (``guest_expect_own``) and the statement behind it are two moments. What comes in
between is kept out by the table's lock, or by the refusal of old snapshots.
"""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest

from tests.postgresql.privileges import Hand, tables_of
from tests.postgresql.test_users_code import CODE, PARTIAL, Lair

LATER = {
    kind: CODE[kind]
    for kind in (
        "constant of an index",
        "constant of a condition",
        "check",
        "statistics",
        "trigger",
    )
}


@pytest.fixture
def partial(shop):
    yield Lair(shop, PARTIAL)
    shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")


@pytest.mark.parametrize("kind", LATER)
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_code_that_the_callers_snapshot_does_not_see(partial, kind, level):
    """PostgreSQL plans by the catalog of the moment, a query on it reads the snapshot's."""
    lair, n = partial, partial.number
    with lair.shop.by_hand("stranger") as connection:
        hand = Hand(connection, tables_of(lair.shop))
        hand.append({"theirs": [[0, 3, 30, None]]})
        connection.execute(f"BEGIN ISOLATION LEVEL {level}")
        connection.execute("SELECT")
        lair.by_stranger(CODE[kind])
        each = [
            f"SELECT tique.guest_stage({n})",
            f"INSERT INTO pg_temp.tique_stage_{n} VALUES (4, 1, NULL, 1, FALSE)",
            f"SELECT tique.guest_guard_stage({n})",
            f"SELECT tique.guest_append_staged({hand.client}, {n}, tique.sts() + 1)",
            f"SELECT tique.guest_log_bulk({hand.client}, tique.sts() + 1, "
            f"{hand.txid + 1}, '[{{\"{n}\":[[0,1,{{}},null]]}}]')",
            "SELECT tique.guest_append({}, tique.sts(), '0123456789abcdef', '{{1}}', "
            "ARRAY[{}::BIGINT], '[{{\"{}\":[[0,1,{{}},null]]}}]')".format(
                hand.client, hand.txid + 2, n
            ),
            f"SELECT tique.guest_drain({n}, tique.sts())",
            f"SELECT tique.guest_fold({n}, tique.sts(), NULL)",
        ]
        for sql in each:
            connection.execute("SAVEPOINT a")
            try:
                connection.execute(sql)
            except psycopg.Error:
                connection.execute("ROLLBACK TO a")
        connection.execute("ROLLBACK")
        with suppress(psycopg.Error):
            hand.run("SELECT tique.guest_leave(%s)", hand.client)
    lair.expect_unharmed()
