"""P11: code that a table's owner attaches after tique has looked at the table, or before.

The look (``guest_expect_own``) and the statement behind it are two moments. What comes in
between is kept out by the table's lock, or by the refusal of old snapshots.
"""

from __future__ import annotations

import re
from contextlib import closing, suppress

import psycopg
import pytest

from tests.postgresql.privileges import Hand, tables_of
from tests.postgresql.test_users_code import CODE, PARTIAL, Lair
from tique_backends.errors import EngineError

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

MORE = {
    "index made concurrently": "CREATE INDEX CONCURRENTLY ON lair.theirs (lair.same(v))",
    "constant of an index made concurrently": "CREATE INDEX CONCURRENTLY ON lair.theirs "
    "((v + lair.same(1)))",
    "unique constraint": "ALTER TABLE lair.theirs ADD UNIQUE (v)",
    "partition": "ALTER TABLE lair.theirs RENAME TO part; CREATE TABLE lair.theirs "
    "(LIKE lair.part INCLUDING ALL) PARTITION BY RANGE (id)",
}

SINGLE = re.compile(
    r"; (?=[A-Z]{5,} (?:OPERATOR |TABLE |DOMAIN |VIEW |INTO |CONSTRAINT |TRIGGER ))"
)
"""Between statements, of which some run in no transaction with others."""


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
            f"SELECT tique.guest_append_staged({hand.client}, {n}, tique.sts() + 1, "
            "'{\"(4,1,,0,f)\"}')",
            f"SELECT tique.guest_log_bulk({hand.client}, tique.sts() + 1, "
            f"{hand.txid + 1}, '[{{\"{n}\":[[0,1,{{}},null]]}}]')",
            f"SELECT tique.guest_append({hand.client}, tique.sts(), '0123456789abcdef', '{{1}}', "
            f"ARRAY[{hand.txid + 2}::BIGINT], '[{{\"{n}\":[[0,1,{{}},null]]}}]')",
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


@pytest.mark.parametrize("kind", LATER)
def test_code_that_an_uncommitted_folds_snapshot_does_not_see(partial, kind):
    """The owner's process keeps that transaction, for the next reader."""
    lair = partial
    engine = lair.owner.database.engine
    table = lair.owner.database.catalog.by_id()[lair.number]
    with closing(engine.session()) as session:
        session.begin_uncommitted_fold()
        session.execute("SELECT count(*) FROM open").fetch_all()
        lair.by_stranger(CODE[kind])
        with pytest.raises(EngineError, match="would run with the rights"):
            engine.overwrite(session, table, {(1,): (1, 11, None)})
        session.rollback()
    lair.expect_unharmed()


STATEMENTS = (
    "INSERT INTO lair.theirs VALUES (9, 90)",
    "UPDATE ONLY lair.theirs SET v = v + 1",
    "DELETE FROM ONLY lair.theirs WHERE id = 9",
    "SELECT _s.v FROM unnest(ARRAY[1, 2]) AS _e(id) "
    "LEFT JOIN ONLY lair.theirs AS _s USING (id)",
)
"""Of the kinds that a fold and a drain are made of."""

NOT_KEPT_OUT = {"statistics", "constant of an index made concurrently"}
"""The lock does not stop them: docs/operations.md says so."""


@pytest.mark.parametrize("kind", sorted((CODE | MORE).keys() - NOT_KEPT_OUT))
def test_code_that_comes_between_look_and_statement(partial, kind):
    """The lock that the look has taken keeps it waiting, or it is not met."""
    lair = partial
    with lair.shop.by_hand(lair.shop.keeper) as keeper:
        keeper.execute("BEGIN")
        keeper.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        keeper.execute("SELECT tique.guest_expect_own('lair.theirs')")
        with lair.shop.by_hand("stranger") as stranger, suppress(psycopg.Error):
            stranger.execute("SET lock_timeout = '200ms'")
            for sql in SINGLE.split((CODE | MORE)[kind]):
                stranger.execute(sql)
        with suppress(psycopg.Error):
            for sql in STATEMENTS:
                keeper.execute(sql)
    lair.expect_unharmed()


HEIR = """
CREATE TABLE lair.heir () INHERITS (lair.theirs);
INSERT INTO lair.heir VALUES (1, 10), (2, 20);
CREATE TRIGGER t AFTER DELETE OR UPDATE ON lair.heir
FOR EACH ROW EXECUTE FUNCTION lair.fires()
"""


@pytest.mark.parametrize("is_guest", [False, True], ids=["owner", "guest"])
@pytest.mark.parametrize("has_key", [True, False], ids=["keyed", "keyless"])
def test_a_fold_leaves_heirs_alone(shop, has_key, is_guest):
    """They may come after the look, and their triggers are another role's."""
    key = " PRIMARY KEY" if has_key else ""
    lair = Lair(shop, PARTIAL.replace(" PRIMARY KEY", key))
    try:
        lair.owner.commit("UPDATE lair.theirs SET v = 11 WHERE id = 1")
        lair.owner.commit("DELETE FROM lair.theirs WHERE id = 2")
        lair.by_stranger(HEIR)
        # As if it had looked before.
        shop.natively(
            "CREATE OR REPLACE FUNCTION tique.guest_strange(place regclass) RETURNS text "
            "LANGUAGE sql AS 'SELECT NULL::text'"
        )
        lair.owner.database.timeline.advance()
        if is_guest:
            n = lair.number
            with shop.by_hand("stranger") as stranger:
                stranger.execute(f"SELECT tique.guest_fold({n}, tique.sts(), NULL)")
        else:
            lair.owner.connection.checkpoint()
        with shop.by_hand("stranger") as stranger:
            rows = stranger.execute("SELECT id, v FROM ONLY lair.theirs").fetchall()
        assert rows == [(1, 11)]
        lair.expect_unharmed()
    finally:
        shop.natively("DROP SCHEMA IF EXISTS lair CASCADE")
