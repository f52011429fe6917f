"""P11: the feed, and restoring, of roles that do not own tique's schema."""

from __future__ import annotations

import pytest

import tique
from tests.postgresql.test_history_of_others import keep, tables


def test_who_may_read_a_table_may_read_its_changes(shop):
    keep(shop.owner)
    since = tables(shop)["open"].history.since
    for table in ("open", "closed"):
        shop.owner.commit(f"UPDATE {table} SET v = v + 1 WHERE id = 1")
    shop.owner.connection.checkpoint()
    shop.owner.commit("DELETE FROM open WHERE id = 2")
    expected = list(shop.owner.connection.changes("open", since=since))
    assert [change.operation for change in expected] == ["update", "delete"]
    reader = shop.process("reader").connection
    assert list(reader.changes("open", since=since)) == expected
    assert len(list(reader.differences("open", since, expected[-1].version))) == 2
    for ask in (
        lambda: list(reader.changes("closed", since=since)),
        lambda: list(reader.differences("closed", since, since + 1)),
        lambda: reader.restore("closed", since),
        lambda: reader.restore("open", since),
    ):
        with pytest.raises(tique.ProgrammingError) as caught:
            ask()
        assert caught.value.sqlstate == "42501"
        reader.rollback()


def test_who_may_write_a_table_may_restore_it(shop):
    keep(shop.owner)
    since = tables(shop)["open"].history.since
    before = shop.owner.rows("SELECT * FROM open ORDER BY id")
    shop.owner.commit("DELETE FROM open")
    writer = shop.process("writer").connection
    assert writer.restore("open", since) == len(before)
    writer.commit()
    assert shop.owner.rows("SELECT * FROM open ORDER BY id") == before
