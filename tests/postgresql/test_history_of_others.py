"""P1, P11: a role that does not own tique's schema folds tables with a history."""

from __future__ import annotations

import random
import time

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.isolation.test_history import Model, query
from tests.postgresql.privileges import denied
from tests.staging import stage_above
from tique._translation import translating
from tique.history.retention import Retention
from tique.query.define.history import set_history
from tique_backends.names import history_name


def keep(process, names=None):
    process.connection.rollback()
    with translating():
        return set_history(process.database.changes, Retention.parse("1 hour"), names)


def tables(shop):
    return {table.name: table for table in shop.owner.database.catalog}


@pytest.mark.slow
def test_folds_of_an_ordinary_role(shop, monkeypatch):
    """What it folds leaves the same images as what the owner folds."""
    stage_above(4, monkeypatch.setattr)
    owner = shop.owner
    owner.commit(
        "CREATE TABLE t (id INTEGER, part VARCHAR(5), v INTEGER, note VARCHAR(20) NOT NULL, "
        "PRIMARY KEY (id, part))"
    )
    owner.commit("CREATE TABLE u (v INTEGER, note VARCHAR(20))")
    keep(owner, ["t", "u"])
    shop.natively("GRANT SELECT, INSERT, UPDATE, DELETE ON t, u TO writer")
    writer = shop.process("writer")
    model = Model(writer.connection, random.Random(5))
    for _ in range(25):
        model.commit()
        if model.chance.random() < 0.3:
            chosen = model.chance.choice([owner, writer])
            chosen.connection.rollback()
            chosen.connection.checkpoint()
    owner.connection.rollback()
    owner.connection.checkpoint()
    model.connection = owner.connection
    model.check(tables(shop)["t"].history.since)
    assert query(owner.connection, f"SELECT * FROM {history_name(tables(shop)['t'])}")


def test_who_may_read_images(shop):
    """Those who may read the table."""
    keep(shop.owner)
    for table in ("open", "closed"):
        shop.owner.commit(f"UPDATE {table} SET v = v + 1")
    shop.owner.connection.checkpoint()
    found = tables(shop)
    with shop.by_hand("reader") as connection:
        rows = {
            name: connection.execute(
                f"SELECT id, v FROM {history_name(found[name])}"
            ).fetchall()
            for name in ("open", "closed")
        }
        assert {name: len(rows[name]) for name in rows} == {"open": 2, "closed": 0}
        for name in found:
            place = history_name(found[name])
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"DELETE FROM {place}")
        assert len(connection.execute("SELECT * FROM tique.history").fetchall()) == 2
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("UPDATE tique.history SET since = 0")
    shop.owner.commit("ALTER TABLE open RENAME TO opened")
    with shop.by_hand("reader") as connection:
        place = history_name(tables(shop)["opened"])
        assert len(connection.execute(f"SELECT id, v FROM {place}").fetchall()) == 2


def test_only_the_owner_sets_one(shop):
    writer = shop.process("writer")
    with denied("only the owner of schema tique"):
        keep(writer)


def test_commit_records_are_kept_whoever_prunes(shop):
    """P4: not the role that asks decides, but the retention."""
    shop.natively("GRANT SELECT, INSERT, UPDATE, DELETE ON closed TO writer")
    set_history(
        shop.owner.database.changes, Retention.parse("3 hours; daily for 9 days")
    )
    writer = shop.process("writer")
    for n in range(3):
        writer.commit("UPDATE open SET v = %s WHERE id = 1", [n])
    writer.connection.checkpoint()
    count = "SELECT count(*) FROM tique.outcomes"
    before = query(shop.owner.connection, count)
    for hours, is_kept in ((2, True), (2, False)):
        shop.natively(
            f"UPDATE tique.outcomes SET committed_at = committed_at - {hours} * 3600000000"
        )
        with shop.by_hand("writer") as connection:
            connection.execute("SELECT tique.guest_prune(0)")
        assert (query(shop.owner.connection, count) == before) is is_kept
    assert len(query(shop.owner.connection, "SELECT cts FROM tique.moments")) in (1, 2)


def test_a_role_that_prunes_nothing(shop):
    """Images stay until a process of the owner's comes, and no point is read by them."""
    shop.natively("GRANT SELECT, INSERT, UPDATE, DELETE ON open TO writer")
    keep(shop.owner, ["open"])
    writer = shop.process("writer")
    before = writer.database.timeline.position().sts
    left = f"SELECT v FROM {history_name(tables(shop)['open'])} WHERE id = 1"
    deadline = time.monotonic() + patience(20)
    # The owner's process may take a moment until it no longer holds up the folds.
    while not query(shop.owner.connection, left):
        writer.commit("UPDATE open SET v = v + 1 WHERE id = 1")
        writer.connection.checkpoint()
        assert time.monotonic() < deadline
    shop.natively(
        *(
            f"UPDATE tique.{name} SET committed_at = committed_at - 7200000000"
            for name in ("outcomes", "log")
        )
    )
    writer.commit("UPDATE open SET v = 9 WHERE id = 2")
    for process, keeps in ((writer, True), (shop.owner, False)):
        process.connection.rollback()
        process.connection.checkpoint()
        assert bool(query(shop.owner.connection, left)) is keeps
        with pytest.raises(tique.OperationalError, match="has no version"):
            writer.connection.execute(f"SELECT * FROM open AT (VERSION => {before})")
        writer.connection.rollback()
