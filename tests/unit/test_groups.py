"""Groups of storage rows: what they answer, and how folds keep them up to date."""

from __future__ import annotations

import pyarrow
import pytest

from tique._groups import GROUP_ROWS, Group
from tique._stored import StorageCache
from tique._versions import TableVersions
from tique_backends.base import MISSING
from tique_rewriter.schema import Column, Table

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


def group(rows, columns=(1, A)):
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    types = {1: pyarrow.int32(), A: pyarrow.string(), B: pyarrow.int32()}
    return Group(
        TABLE,
        columns,
        pyarrow.table(
            {
                str(i): pyarrow.array(v, types[i])
                for i, v in zip(columns, values, strict=True)
            }
        ),
    )


@pytest.fixture
def versions():
    return TableVersions(
        TABLE, capacity=100, cache=StorageCache(1 << 20, page_keys=8192)
    )


def remember(versions, rows, columns=(1, A)):
    assert versions.remember_group(versions.epoch, PREFIX, group(rows, columns))
    return versions.group(PREFIX)


def fold(versions, cts, *writes):
    versions.publish(cts, writes)
    versions.folded(cts)


def test_a_group_is_wanted_at_the_third_miss(versions):
    wanted = [versions.wants_group(PREFIX) for _ in range(3)]
    assert wanted == [False, False, True]
    assert not versions.wants_group((2,))


def test_rows_by_value():
    found = group([(1, "x"), (2, "y"), (3, "x"), (4, None)])
    assert found.matching({A: "x"}) == {1: (1, "x"), 3: (3, "x")}
    assert found.matching({A: "z"}) == {}
    assert found.matching({A: "y", 1: 2}) == {2: (2, "y")}
    assert found.matching({A: "y", 1: 3}) == {}
    assert len(found.matching({})) == 4
    assert found.knows([1, A])
    assert not found.knows([B])


@pytest.mark.parametrize("indexed", [True, False])
def test_a_group_follows_the_folds(versions, indexed):
    """P1, P7: it has what storage has, in its indexes too."""
    found = remember(versions, [(1, "x"), (2, "y"), (3, "x"), (4, None)])
    if indexed:
        found.matching({A: "x"})
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
    assert found.matching({}) == {1: (1, "y"), 2: (2, "y"), 4: (4, None), 9: (9, "x")}
    assert found.matching({A: "x"}) == {9: (9, "x")}
    assert sorted(found.matching({A: "y"})) == [1, 2]


def test_a_group_that_was_read_before_a_fold_is_not_kept(versions):
    epoch = versions.epoch
    fold(versions, 5, ((1, 3), (1, 3, "x", 0), True))
    assert not versions.remember_group(epoch, PREFIX, group([(3, "x")]))
    assert versions.group(PREFIX) is None


def test_a_bulk_commit_makes_groups_worthless(versions):
    remember(versions, [(1, "x")])
    versions.publish_bulk(3, 1, 0)
    assert versions.group(PREFIX) is None
    assert not versions.remember_group(versions.epoch, PREFIX, group([(1, "x")]))
    versions.folded(3)
    assert versions.group(PREFIX) is None


def test_too_large_groups_are_of_no_use(versions):
    found = remember(versions, [(n, "x") for n in range(GROUP_ROWS + 1)])
    assert not found.is_whole
    assert not found.knows([1])
    fold(versions, 5, ((1, 1), (1, 1, "y", 0), False))
    assert versions.group(PREFIX) is found


def test_a_group_that_grows_beyond_all_bounds_is_forgotten(versions):
    remember(versions, [(n, "x") for n in range(GROUP_ROWS)])
    numbers = range(GROUP_ROWS, 2 * GROUP_ROWS + 2)
    fold(versions, 5, *[((1, n), (1, n, "y", 0), False) for n in numbers])
    assert versions.group(PREFIX) is None


def test_values_that_python_cannot_hold():
    column = pyarrow.array([2**31 - 2], pyarrow.int32()).cast(pyarrow.date32())
    table = Table(
        "main",
        "d",
        (Column("n", "INTEGER"), Column("d", "DATE")),
        primary_key=(0,),
        id=8,
    )
    rows = pyarrow.table({"n": pyarrow.array([1], pyarrow.int32()), "d": column})
    assert not Group(table, (0, 1), rows).is_whole
    assert Group(table, (0,), rows.select(["n"])).matching({}) == {1: (1,)}
