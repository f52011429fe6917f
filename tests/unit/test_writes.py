"""A transaction's writes to one table: buffered, spilled, staged, undone (P8)."""

from __future__ import annotations

import pytest

from tique.writes.table import TableWrites, Write
from tique_rewriter.schema import Column, Table

pytestmark = pytest.mark.engine_free

KEYED = Table("main", "t", (Column("k", "INTEGER"), Column("v", "INTEGER")), (0,))
BAG = Table("main", "b", (Column("v", "INTEGER"),))


class Stage:
    """The rows of a staging table, as (row, sequence, deleted)."""

    def __init__(self):
        self.rows = None

    def create_stage(self, table):
        assert self.rows is None
        self.rows = []

    def stage(self, versions):
        self.rows += zip(versions.rows, versions.stamps, versions.deleted, strict=True)

    def unstage(self, table, after):
        self.rows = [row for row in self.rows if row[1] <= after]

    def drop_stage(self, table):
        self.rows = None

    def newest(self):
        """The state that the staged log means, by key."""
        state = {}
        for row, _, deleted in sorted(self.rows, key=lambda version: version[1]):
            state[row[0]] = None if deleted else row
        return state


@pytest.fixture
def stage():
    return Stage()


def put(writes, sequence, key, value, *, deleted=False):
    writes.put((key,), Write((key, value), deleted, sequence, sts=10))


def buffered(writes):
    return {key[0]: None if w.deleted else w.row for key, w in writes.buffered()}


def test_newest_counts(stage):
    writes = TableWrites(KEYED)
    assert not writes
    put(writes, 2, 1, 10)
    put(writes, 4, 1, 11)
    put(writes, 4, 2, 20, deleted=True)
    assert writes
    assert buffered(writes) == {1: (1, 11), 2: None}


@pytest.mark.parametrize("spilled_after", [None, 2, 4, 6])
@pytest.mark.parametrize("switched_after", [None, 2, 4, 6])
@pytest.mark.parametrize("back_to", [0, 2, 4])
def test_going_back(stage, spilled_after, switched_after, back_to):
    """P8: a savepoint means one state, with any spilled or staged writes meanwhile."""
    writes = TableWrites(KEYED)
    steps = {
        2: [(1, 10, False), (2, 20, False)],
        4: [(1, 11, False), (2, 20, True), (3, 30, False)],
        6: [(1, 12, True), (2, 22, False)],
    }
    expected = {}
    for sequence, step in steps.items():
        for key, value, deleted in step:
            if writes.is_staged:
                stage.rows.append(((key, value), sequence, deleted))
            else:
                put(writes, sequence, key, value, deleted=deleted)
            if sequence <= back_to:
                expected[key] = None if deleted else (key, value)
        if sequence == spilled_after:
            writes.spill(stage)
        if sequence == switched_after:
            writes.switch_to_stage(stage)
    writes.rollback_to(back_to, stage)
    if writes.is_staged:
        assert stage.newest() == expected
    else:
        assert buffered(writes) == expected
        if expected:
            writes.spill(stage)
            assert stage.newest() == expected


def test_spilling_twice_copies_what_is_new(stage):
    writes = TableWrites(KEYED)
    put(writes, 2, 1, 10)
    writes.spill(stage)
    writes.spill(stage)
    put(writes, 4, 2, 20)
    writes.spill(stage)
    assert [row for row, _, _ in stage.rows] == [(1, 10), (2, 20)]
    writes.discard(stage)
    assert stage.rows is None
    writes.discard(stage)


def test_a_bag_going_back(stage):
    writes = TableWrites(BAG)
    for sequence in (2, 4, 6):
        writes.add(Write((sequence,), False, sequence, sts=10))
    writes.spill(stage)
    writes.rollback_to(2, stage)
    writes.add(Write((9,), True, 8, sts=10))
    writes.spill(stage)
    assert stage.rows == [((2,), 2, False), ((9,), 8, True)]


def test_the_oldest_snapshot_counts_for_a_row(stage):
    """P3: a version of an own version is certified since the first one's snapshot."""
    writes = TableWrites(KEYED)
    for sequence, sts in ((2, 10), (4, 12), (6, 14)):
        writes.put((1,), Write((1, sequence), False, sequence, sts))
    assert writes.rows[1,].sts == 10
    writes.rollback_to(2, stage)
    assert writes.rows[1,] == Write((1, 2), False, 2, 10)
    writes.rollback_to(0, stage)
    writes.put((1,), Write((1, 8), False, 8, 16))
    assert writes.rows[1,].sts == 16


def test_the_oldest_snapshot_counts_for_what_is_staged(stage):
    """P3: under READ COMMITTED statements of one transaction read different ones."""
    writes = TableWrites(KEYED)
    put(writes, 2, 1, 10)
    writes.switch_to_stage(stage)
    assert (writes.staged_count, writes.staged_sts) == (1, 10)
    writes.note_staged(5, 12)
    writes.note_staged(5, 7)
    assert (writes.staged_count, writes.staged_sts) == (11, 7)
