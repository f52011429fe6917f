"""Groups of storage rows: their answers, and how folds keep them up to date."""

from __future__ import annotations

import pyarrow
import pytest

from tique.store.groups import Stretch, groups_of
from tique.store.policy import CachePolicy
from tique.store.stored import StorageCache
from tique.store.versions import TableVersions
from tique_backends.base import MISSING
from tique_rewriter.schema import Column, Table

pytestmark = pytest.mark.engine_free

POLICY = CachePolicy(rows=100, bytes=1 << 20)
GROUP_ROWS, STRETCH = POLICY.group_rows, POLICY.stretch

COLUMNS = ["g INTEGER", "n INTEGER", "a VARCHAR", "b INTEGER"]
TABLE = Table(
    "main",
    "t",
    tuple(Column(*text.split()) for text in COLUMNS),
    primary_key=(0, 1),
    id=7,
)
A, B = 2, 3
PREFIX = (1,)


def read(stretch, rows, columns=(1, A), table=TABLE, as_rows=True):
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    types = {"INTEGER": pyarrow.int32(), "VARCHAR": pyarrow.string()}
    arrays = {
        str(i): pyarrow.array(v, types[table.columns[i].type])
        for i, v in zip(columns, values, strict=True)
    }
    return groups_of(
        table, stretch, columns, pyarrow.table(arrays), POLICY, as_rows=as_rows
    )


def group(rows, columns=(1, A)):
    return read(Stretch(PREFIX, -(2**31), 2**31 - 1), rows, columns)[PREFIX]


@pytest.fixture
def versions():
    return TableVersions(TABLE, POLICY, cache=StorageCache(POLICY, page_keys=8192))


def remember(versions, rows, columns=(1, A)):
    assert versions.remember_groups(versions.epoch, {PREFIX: group(rows, columns)})
    return versions.group(PREFIX)


def fold(versions, cts, *writes):
    versions.publish(cts, writes)
    versions.folded(cts)


def test_a_group_is_wanted_at_the_third_miss(versions):
    wanted = [versions.groups_to_read(PREFIX) for _ in range(3)]
    assert wanted == [None, None, Stretch(PREFIX, -(2**31), 2**31 - 1)]
    assert not versions.groups_to_read((200,))


def test_small_groups_are_wanted_with_their_neighbours(versions):
    """Once it is known that they are small."""
    wanted = [versions.groups_to_read((n,)) for n in (33, 65, 40, 34)]
    assert wanted == [None, None, None, Stretch((34,), -(2**31), 2**31 - 1)]
    remember(versions, [(1, "x"), (2, "y")])
    wanted = [versions.groups_to_read((n,)) for n in (33, 65, 40, 34)]
    assert wanted == [None, None, None, Stretch((), 32, 63)]
    remember(versions, [(n, "x") for n in range(GROUP_ROWS // STRETCH + 1)])
    wanted = [versions.groups_to_read((70,)) for _ in range(3)]
    assert wanted[-1] == Stretch((70,), -(2**31), 2**31 - 1)


def test_a_stretch_has_all_of_its_groups():
    groups = read(Stretch((), 4, 6), [(4, 1, "x"), (6, 1, "y"), (4, 2, "z")], (0, 1, A))
    assert groups.keys() == {(4,), (5,), (6,)}
    assert groups[4,].rows() == {
        1: (4, 1, "x", MISSING),
        2: (4, 2, "z", MISSING),
    }
    assert groups[5,].is_whole
    assert groups[5,].rows() == {}


def test_rows_by_value():
    found = group([(1, "x"), (2, "y"), (3, "x"), (4, None)])
    assert sorted(found.numbers(A, "x")) == [1, 3]
    assert list(found.numbers(A, "z")) == []
    assert list(found.numbers(A, None)) == [4]
    assert len(found.rows()) == 4
    assert found.knows([0, 1, A])
    assert not found.knows([B])


@pytest.mark.parametrize("indexed", [True, False])
def test_a_group_follows_the_folds(versions, indexed):
    """P1, P7: it has the rows of storage, in its indexes too."""
    found = remember(versions, [(1, "x"), (2, "y"), (3, "x"), (4, None)])
    if indexed:
        found.numbers(A, "x")
    fold(
        versions,
        5,
        ((1, 1), (1, 1, "y", MISSING), False),
        ((1, 2), (1, 2, MISSING, 7), False),
        ((1, 3), (1, 3, "x", 0), True),
        ((1, 9), (1, 9, "x", 0), False),
        ((2, 8), (2, 8, "x", 0), False),
    )
    assert versions.group(PREFIX) is found
    assert found.rows() == {
        1: (1, 1, "y", MISSING),
        2: (1, 2, "y", 7),
        4: (1, 4, None, MISSING),
        9: (1, 9, "x", 0),
    }
    assert list(found.numbers(A, "x")) == [9]
    assert sorted(found.numbers(A, "y")) == [1, 2]


CHANGES = [
    (3, "new", False),
    (4, MISSING, False),
    (5, "x", True),
    (5, "x1", False),
    (201, "new", False),
    (3, "x3", False),
    (201, "new", True),
    (3, None, False),
]
"""Of rows by number: their values of A then, and whether they are deleted."""


def test_many_rows_lie_in_a_block(versions):
    """P1, P7: a lookup of some of them by value finds the same rows after any fold."""
    rows = [(n, f"x{n % 7}") for n in range(200)]
    everything = Stretch(PREFIX, -(2**31), 2**31 - 1)
    groups = read(everything, reversed(rows), as_rows=False)
    assert versions.remember_groups(versions.epoch, groups)
    found = versions.group(PREFIX)
    expected = {n: (1, n, a, MISSING) for n, a in rows}

    def assert_alike():
        assert {n: found.get(n) for n in range(-1, 202)} == {
            n: expected.get(n) for n in range(-1, 202)
        }
        for value in (*{a for _, a in rows}, "new", None):
            numbers = found.numbers(A, value)
            assert {
                n for n in numbers if n in expected and found.get(n)[2] == value
            } == {n for n, row in expected.items() if row[2] == value}

    assert found.knows([0, 1, A])
    assert not found.knows([0, 1, A], as_rows=True)
    assert len(found) == 200
    assert_alike()
    for cts, (n, a, deleted) in enumerate(CHANGES, 5):
        fold(versions, cts, ((1, n), (1, n, a, 0), deleted))
        if deleted:
            del expected[n]
        else:
            before = expected.get(n, (1, n, None, MISSING))
            expected[n] = (1, n, before[2] if a is MISSING else a, 0)
        assert_alike()
    assert versions.group(PREFIX) is found


def test_a_group_that_was_read_before_a_fold_is_not_kept(versions):
    epoch = versions.epoch
    fold(versions, 5, ((1, 3), (1, 3, "x", 0), True))
    assert not versions.remember_groups(epoch, {PREFIX: group([(3, "x")])})
    assert versions.group(PREFIX) is None


def test_a_bulk_commit_makes_groups_worthless(versions):
    remember(versions, [(1, "x")])
    versions.publish_bulk(3, 1, 0)
    assert versions.group(PREFIX) is None
    assert not versions.remember_groups(versions.epoch, {PREFIX: group([(1, "x")])})
    versions.folded(3)
    assert versions.group(PREFIX) is None


@pytest.mark.parametrize("as_rows", [True, False])
def test_too_large_groups_are_of_no_use(versions, as_rows):
    most = POLICY.most_rows(as_rows=as_rows)
    everything = Stretch(PREFIX, -(2**31), 2**31 - 1)
    rows = [(n, "x") for n in range(most + 1)]
    assert read(everything, rows[:most], as_rows=as_rows)[PREFIX].is_whole
    groups = read(everything, rows, as_rows=as_rows)
    assert versions.remember_groups(versions.epoch, groups)
    found = versions.group(PREFIX)
    assert not found.is_whole
    assert not found.knows([1])
    fold(versions, 5, ((1, 1), (1, 1, "y", 0), False))
    assert versions.group(PREFIX) is found


def test_a_group_that_grows_beyond_all_bounds_is_forgotten(versions):
    remember(versions, [(n, "x") for n in range(GROUP_ROWS)])
    numbers = range(GROUP_ROWS, 2 * GROUP_ROWS + 2)
    fold(versions, 5, *[((1, n), (1, n, "y", 0), False) for n in numbers])
    assert versions.group(PREFIX) is None


@pytest.mark.parametrize("number", [1, 200])
def test_values_that_python_cannot_hold(number):
    """As rows or as a block."""
    column = pyarrow.array([2**31 - 2] * number, pyarrow.int32()).cast(pyarrow.date32())
    table = Table(
        "main",
        "d",
        (Column("n", "INTEGER"), Column("d", "DATE")),
        primary_key=(0,),
        id=8,
    )
    rows = pyarrow.table(
        {"n": pyarrow.array(range(number), pyarrow.int32()), "d": column}
    )
    everything = Stretch((), -(2**31), 2**31 - 1)
    assert not groups_of(table, everything, (0, 1), rows, POLICY, as_rows=False)[
        ()
    ].is_whole
    known = rows.select(["n"])
    group = groups_of(table, everything, (0,), known, POLICY, as_rows=False)[()]
    assert group.get(0) == (0, MISSING)
