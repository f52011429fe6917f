"""P11: the slots of replicas, and roles that do not own schema ``tique``."""

from __future__ import annotations

import psycopg
import pytest

import tique
from tests.postgresql.privileges import DENIED
from tique.replica.source import Source


@pytest.mark.slow
def test_the_owner_replicates(shop):
    """Another role is told so; what it commits waits for replicas all the same."""
    with pytest.raises(tique.ProgrammingError, match="replicate") as caught:
        Source(shop.url("writer"), "replica", keep=60.0)
    assert caught.value.sqlstate == DENIED
    writer = shop.process("writer")
    writer.run("UPDATE open SET v = 11 WHERE id = 1")
    with pytest.raises(tique.OperationalError, match="no replica"):
        writer.connection.commit(wait_for="replica")
    writer.connection.rollback()
    source = Source(shop.url(shop.keeper), "replica", keep=60.0)
    writer.run("UPDATE open SET v = 11 WHERE id = 1")
    with pytest.raises(tique.OperationalError, match="is committed"):
        writer.connection.commit(wait_for="replica", timeout=0.1)
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with shop.by_hand("writer") as connection, refused:
        connection.execute("DELETE FROM tique.slots")
    source.close()


def test_a_role_prunes_no_log_that_a_replica_needs(shop):
    source = Source(shop.url(shop.keeper), "replica", keep=60.0)
    position = source.poll().sts
    source.note_durable(position)
    source.close()
    writer = shop.process("writer")
    writer.commit("UPDATE open SET v = 11 WHERE id = 1")
    for one in (shop.owner, writer):
        one.database.timeline._beat()
    writer.connection.checkpoint()
    with shop.by_hand("writer") as connection:
        connection.execute("SELECT tique.guest_prune(0)")
    source = Source(shop.url(shop.keeper), "replica", keep=0.0)
    source.resume(position)
    assert len(source.poll().commits) == 1
    source.close()
    for one in (shop.owner, writer):
        one.database.timeline._beat()
    writer.connection.checkpoint()
    with shop.by_hand("writer") as connection:
        connection.execute("SELECT tique.guest_prune(0)")
        assert connection.execute("SELECT count(*) FROM tique.slots").fetchall() == [
            (0,)
        ]
