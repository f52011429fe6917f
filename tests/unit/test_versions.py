"""The index of recent versions (P1, P3, P7)."""

from __future__ import annotations

import gc
import itertools
import threading

import pyarrow
import pytest

from tique.store.policy import CachePolicy
from tique.store.versions import TableVersions
from tique_backends.records import MISSING
from tique_backends.rows.arrow_rows import ArrowRows
from tique_rewriter.schema import Column, Table

pytestmark = pytest.mark.engine_free

KEYED = Table(
    "main",
    "t",
    (Column("a", "INTEGER"), Column("b", "INTEGER"), Column("u", "INTEGER")),
    primary_key=(0, 1),
    unique=((2,),),
)
BAG = Table("main", "b", (Column("x", "INTEGER"),))


@pytest.fixture
def versions():
    return TableVersions(KEYED, CachePolicy(rows=3))


def write(*row, deleted=False):
    return (row[:2], row, deleted)


def test_newest_visible(versions):
    """P1: the newest version with cts ≤ sts; a tombstone is a version too."""
    versions.publish(5, [write(1, 1, 10)])
    versions.publish(7, [write(1, 1, 11)])
    versions.publish(9, [write(1, 1, 11, deleted=True)])
    assert versions.newest_visible((1, 1), 4) is None
    assert versions.newest_visible((1, 1), 5)[:2] == (5, (1, 1, 10))
    assert versions.newest_visible((1, 1), 8)[:2] == (7, (1, 1, 11))
    assert versions.newest_visible((1, 1), 9)[:2] == (9, None)
    assert versions.newest_visible((2, 1), 9) is None


def test_last_commits(versions):
    """P3: the last writer of a key or a UNIQUE value; a deleted one does not count."""
    assert versions.last_commit((1, 1)) == 0
    versions.publish(5, [write(1, 1, 10)])
    versions.publish(6, [write(1, 1, 10, deleted=True)])
    assert versions.last_commit((1, 1)) == 6
    assert versions.last_unique_commit(0, (10,)) == 5
    assert versions.last_unique_commit(0, (11,)) == 0


def test_fold(versions):
    """P7: folded versions leave memory, and the resulting storage rows are known."""
    versions.publish(5, [write(1, 1, 10), write(2, 2, 20)])
    versions.publish(6, [write(2, 2, 20, deleted=True)])
    versions.publish(8, [write(1, 1, 11)])
    assert (versions.oldest, versions.rows, versions.tombstones) == (5, 4, 1)
    versions.folded(6)
    assert (versions.oldest, versions.rows, versions.tombstones) == (8, 1, 0)
    assert versions.newest_visible((1, 1), 7) is None
    assert versions.storage_row((1, 1)) == (True, (1, 1, 10))
    assert versions.storage_row((2, 2)) == (True, None)
    assert versions.last_unique_commit(0, (20,)) == 0
    versions.folded(8)
    assert versions.is_empty
    assert versions.oldest is None


def test_a_fold_of_what_other_processes_wrote():
    """P7: known rows stay true; rows that are not known here need not become known."""
    versions = TableVersions(KEYED, CachePolicy(rows=30), shared=object())
    versions.remember(versions.epoch, [((1, 1), (1, 1, 9)), ((5, 5), None)])
    address = [versions.tail_to_read((3, 8)) for _ in range(2)][1]
    versions.remember_range(versions.epoch, address, ArrowRows(pyarrow.table({})))
    versions.publish(5, [write(n, n, 10) for n in range(1, 6)] + [write(3, 9, 10)])
    versions.folded(5)
    for n in (1, 5):
        assert versions.storage_row((n, n)) == (True, (n, n, 10))
    assert versions.storage_row((3, 9)) == (True, (3, 9, 10))
    assert versions.storage_row((3, 10)) == (True, None)
    assert versions.storage_row((2, 2)) == versions.storage_row((4, 4)) == (False, None)


def test_a_row_read_before_a_fold_is_not_remembered_after_it(versions):
    """P1: it may be older than the row that the fold brought."""
    epoch = versions.epoch
    versions.publish(5, [write(1, 1, 10)])
    versions.folded(5)
    versions.remember(epoch, [((1, 1), (1, 1, 9))])
    assert versions.storage_row((1, 1)) == (True, (1, 1, 10))
    versions.remember(versions.epoch, [((3, 3), None)])
    assert versions.storage_row((3, 3)) == (True, None)


def test_it_remembers_no_more_than_its_capacity(versions):
    versions.remember(versions.epoch, [((i, i), (i, i, i)) for i in range(10)])
    assert [versions.storage_row((i, i))[0] for i in range(10)] == [False] * 7 + [
        True
    ] * 3


def test_a_bulk_commit_makes_it_incomplete(versions):
    """P1: then only the engine can answer, until the commit is folded."""
    versions.remember(versions.epoch, [((1, 1), (1, 1, 1))])
    versions.publish_bulk(5, 1000, 10)
    assert not versions.is_complete
    assert versions.storage_row((1, 1)) == (False, None)
    assert (versions.rows, versions.tombstones, versions.oldest) == (1000, 10, 5)
    versions.publish(6, [write(1, 1, 10)])
    versions.folded(5)
    assert versions.is_complete
    assert (versions.rows, versions.tombstones, versions.oldest) == (1, 0, 6)


def test_a_fold_with_a_bulk_commit_in_it_leaves_nothing_known(versions):
    """P1: the bulk commit may have changed the same key later."""
    versions.publish(5, [write(1, 1, 10)])
    versions.publish_bulk(6, 1000, 0)
    versions.folded(6)
    assert versions.is_complete
    assert versions.storage_row((1, 1)) == (False, None)


@pytest.mark.parametrize("is_bulk", [False, True])
def test_flat_while_a_commit_is_added(versions, monkeypatch, is_bulk):
    """P1: a key has two versions for older snapshots, whatever is half done."""
    versions.publish(5, [write(1, 1, 10)])
    assert versions.is_flat
    versions.publish(6, [write(1, 1, 11)])
    assert not versions.is_flat
    count, seen = versions._count, []

    def look_and_count():
        seen.append(versions.is_flat)
        count()

    monkeypatch.setattr(versions, "_count", look_and_count)
    if is_bulk:
        versions.publish_bulk(7, 2, 0)
    else:
        versions.publish(7, [write(2, 1, 20)])
    assert seen == [False]
    versions.folded(6)
    assert versions.is_flat


def test_matching(versions):
    """P1: nothing that a snapshot needs may be missing, for any part of the key."""
    assert set(versions.matching((0,), (1,))) == set()
    versions.publish(5, [write(1, 2, 10), write(1, 3, 10)])
    assert set(versions.matching((0,), (1,))) == {(1, 2), (1, 3)}
    assert set(versions.matching((1,), (3,))) == {(1, 3)}
    versions.publish(6, [write(4, 3, 10)])
    assert set(versions.matching((1,), (3,))) == {(1, 3), (4, 3)}
    versions.folded(5)
    assert set(versions.matching((0,), (1,))) == set()
    assert set(versions.matching((1,), (3,))) == {(4, 3)}


def test_a_bag():
    versions = TableVersions(BAG, CachePolicy(rows=3))
    versions.publish(5, [((1,), (1,), False), ((1,), (1,), False)])
    versions.publish(6, [((1,), (1,), True)])
    assert (versions.rows, versions.tombstones, versions.oldest) == (3, 1, 5)
    versions.folded(5)
    assert (versions.rows, versions.tombstones, versions.oldest) == (1, 1, 6)


def test_batch_end(versions):
    """P7: a fold is a batch, never past λ."""
    for cts in range(1, 11):
        versions.publish(cts, [write(cts, cts, cts)])
    assert versions.batch_end(stable=8, size=100) == 8
    assert versions.batch_end(stable=8, size=3) == 3
    assert versions.batch_end(stable=2, size=3) == 2


def test_a_fold_keeps_what_is_newer_of_a_long_chain(versions):
    """P1, P7: other keys' and the same key's versions beyond λ, in their order."""
    for cts in range(1, 10_001):
        versions.publish(cts, [write(1, 1, cts)])
    versions.publish(10_001, [write(2, 2, 0)])
    rows, _ = versions.changes(4_000)
    assert rows == {(1, 1): (1, 1, 4_000)}
    versions.folded(4_000)
    assert versions.rows == 6_001
    assert versions.newest_visible((1, 1), 4_000) is None
    assert versions.storage_row((1, 1)) == (True, (1, 1, 4_000))
    for sts in (4_001, 7_000, 10_000):
        assert versions.newest_visible((1, 1), sts)[1] == (1, 1, sts)
    assert len(list(versions.visible_rows((1, 1), 5_000))) == 1_000
    versions.folded(10_001)
    assert versions.is_empty
    assert versions.matching((), ()) == []


def test_a_gap_is_filled_where_it_was(versions):
    """P1: only the version that was read is completed; a folded one is not brought back."""
    for cts in (5, 6, 7):
        versions.publish(cts, [((1, 1), (1, 1, MISSING), False)])
    seen = versions.newest_visible((1, 1), 6)
    versions.complete((1, 1), seen, (1, 1, 60))
    rows = [versions.newest_visible((1, 1), sts)[1][2] for sts in (5, 6, 7)]
    assert rows == [MISSING, 60, MISSING]
    versions.folded(7)
    versions.complete((1, 1), seen, (1, 1, 60))
    assert versions.newest_visible((1, 1), 7) is None


def test_the_garbage_collector_does_not_follow_versions(versions):
    """Its pauses would stop every client of the process, for seconds in the end."""
    gc.collect()
    before = len(gc.get_objects())
    for cts in range(1, 2_001):
        versions.publish(cts, [((cts, 0), (cts, 0, MISSING), False)])
    for _ in range(3):
        gc.collect()
    assert len(gc.get_objects()) - before < 1_000


def test_a_fold_reads_while_others_commit(versions):
    """P7: wherever Python yields the GIL, in the middle of a list for instance."""
    # More than Python has empty pairs in store for: it makes objects, and collects.
    versions.publish(1, [write(key, 0, key) for key in range(3000)])
    turn, done, over = threading.Event(), threading.Event(), threading.Event()

    def publish():
        for cts in itertools.count(2):
            turn.wait()
            turn.clear()
            if over.is_set():
                return
            versions.publish(cts, [write(cts, 1, cts)])
            done.set()

    def collected(phase, info):
        if phase == "start" and next(times) < 50:
            done.clear()
            turn.set()
            done.wait(0.005)

    times = itertools.count()
    publishing = threading.Thread(target=publish)
    publishing.start()
    threshold = gc.get_threshold()
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        found, _ = versions.changes(1)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)
        over.set()
        turn.set()
        publishing.join()
    assert len(found) == 3000


def test_columns_that_were_set(versions):
    """P7: a fold leaves out what no commit has set, if none did anything else."""
    versions.publish(5, [write(1, 1, 10)])
    versions.publish(6, [write(1, 2, 20)], columns_set=frozenset({2}))
    assert versions.columns_set is None
    assert versions.changes(6) == ({(1, 1): (1, 1, 10), (1, 2): (1, 2, 20)}, set())
    versions.folded(5)
    assert versions.columns_set == {2}
    versions.folded(6)
    assert versions.columns_set == set()
    versions.forget_storage()
    versions.publish(7, [write(1, 1, 10)], columns_set={2})
    assert versions.changes(7) == ({(1, 1): (1, 1, 10)}, set())
    versions.publish_bulk(8, 10, 10)
    assert versions.columns_set is None


def test_rows_that_are_new(versions):
    """P1: they take no row's place, and are no columns that were set."""
    versions.publish(5, [write(1, 1, 10)], columns_set=())
    assert versions.is_appended
    assert versions.columns_set is None
    versions.publish(6, [write(1, 1, 11)], columns_set={2})
    assert not versions.is_appended
