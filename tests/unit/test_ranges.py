"""Ranges of storage rows: which reads they answer, and how folds are written through."""

from __future__ import annotations

import gc
import threading
from datetime import date, datetime
from decimal import Decimal

import pyarrow
import pytest

from tique.store.cache import Cache
from tique.store.chains import Chains
from tique.store.policy import CachePolicy
from tique.store.versions import TableVersions
from tique_backends.records import MISSING
from tique_backends.rows.arrow_rows import ArrowRows
from tique_rewriter.schema import Column, Table

pytestmark = pytest.mark.engine_free

COLUMNS = ["g INTEGER", "n INTEGER", "a INTEGER", "b VARCHAR", *["c INTEGER"] * 3]
PAGE_KEYS = 8192
TABLE = Table(
    "main",
    "t",
    tuple(Column(*text.split()) for text in COLUMNS),
    primary_key=(0, 1),
    id=7,
)
A, B = 2, 3
LOW, HIGH = -(2**31), 2**31 - 1
POLICY = CachePolicy(rows=100, bytes=1 << 24, page_keys=PAGE_KEYS)
GROUP_ROWS, STRETCH = POLICY.group_rows, POLICY.stretch
ARROW = {"INTEGER": pyarrow.int32(), "VARCHAR": pyarrow.string()}


@pytest.fixture
def versions():
    return TableVersions(TABLE, POLICY)


def row(g, n, **values):
    known = {0: g, 1: n} | {{"a": A, "b": B}[name]: v for name, v in values.items()}
    return tuple(known.get(i, MISSING) for i in range(len(COLUMNS)))


def whole(g, n, a, b):
    return (g, n, a, b, 0, 0, 0)


def read(address, rows):
    """The columns of an address, of rows (g, n, a, b)."""
    return ArrowRows(
        pyarrow.table(
            {
                str(i): pyarrow.array(
                    [r[i] for r in rows], ARROW[TABLE.columns[i].type]
                )
                for i in address.columns
            }
        )
    )


def remember_page(versions, numbers, columns=(A, B), prefix=1, epoch=None):
    address = versions.range_to_read((prefix, 0), columns, misses=9)
    rows = [(prefix, n, 10 * n, f"b{n}") for n in numbers]
    epoch = versions.epoch if epoch is None else epoch
    return versions.remember_range(epoch, address, read(address, rows))


def remember_group(versions, rows, columns=(B,), as_rows=True, epoch=None):
    """The group 1 of rows (n, b)."""
    address = versions.range_to_read((1,), columns, misses=9, as_rows=as_rows)
    epoch = versions.epoch if epoch is None else epoch
    rows = [(1, n, 10 * n, b) for n, b in rows]
    return versions.remember_range(epoch, address, read(address, rows))


def remember_tail(versions, key, rows=(), epoch=None):
    addresses = [versions.tail_to_read(key) for _ in range(2)]
    assert addresses[0] is None
    epoch = versions.epoch if epoch is None else epoch
    table = read(addresses[1], rows)
    return versions.remember_range(epoch, addresses[1], table)


def keys(address):
    return address.prefix, address.first, address.last


def group(versions, columns=(B,), *, as_rows=True, prefix=(1,)):
    return versions.group_range(prefix, columns, as_rows=as_rows)


def fold(versions, cts, *writes):
    versions.publish(cts, writes)
    versions.folded(cts)


# Points


def test_a_page_is_read_at_the_second_miss(versions):
    assert versions.range_to_read((1, 5), (A,)) is None
    assert versions.range_to_read((2, 5), (A,)) is None
    address = versions.range_to_read((1, 6), (B,))
    assert keys(address) == ((1,), 0, PAGE_KEYS - 1)
    assert address.columns == (1, A, B)


def test_a_page_knows_its_rows_and_which_are_not_there(versions):
    remember_page(versions, [9, 3, 5])
    assert versions.storage_row((1, 5), (A,)) == (True, row(1, 5, a=50))
    assert versions.storage_row((1, 3), (A, B)) == (True, row(1, 3, a=30, b="b3"))
    assert versions.storage_row((1, 4), (A,)) == (True, None)
    assert versions.storage_row((1, PAGE_KEYS), (A,)) == (False, None)
    assert versions.storage_row((2, 5), (A,)) == (False, None)
    assert versions.storage_row((1, 9), (A, 4)) == (False, None)


def test_an_empty_page(versions):
    remember_page(versions, [])
    assert versions.storage_row((1, 5), (A,)) == (True, None)


def test_a_row_in_memory_is_completed_from_its_page(versions):
    versions.remember(versions.epoch, [((1, 5), row(1, 5, a=50))])
    remember_page(versions, [5], columns=(B,))
    assert versions.storage_row((1, 5), (B,)) == (True, row(1, 5, b="b5"))
    assert versions.storage_row((1, 5), (A, B)) == (True, row(1, 5, a=50, b="b5"))


@pytest.mark.parametrize("remembered", [True, False])
def test_a_page_has_what_a_fold_changed(remembered):
    """P7: a changed column, a deleted row, and the gap of a new one."""
    versions = TableVersions(TABLE, CachePolicy(rows=100 * remembered))
    remember_page(versions, [5, 6])
    versions.storage_row((1, 5), (A,))
    fold(
        versions,
        3,
        ((1, 5), row(1, 5, a=99), False),
        ((1, 6), row(1, 6), True),
        ((1, 7), whole(1, 7, 70, "x"), False),
    )
    assert versions.storage_row((1, 5), (A,)) == (True, row(1, 5, a=99))
    assert versions.storage_row((1, 6), (A,)) == (True, None)
    assert versions.storage_row((1, 7), (A,)) == (True, whole(1, 7, 70, "x"))
    assert versions.storage_row((1, 5), (A, B)) == (True, row(1, 5, a=99, b="b5"))
    assert versions.storage_row((1, 8), (A,)) == (True, None)
    fold(versions, 4, ((1, 5), row(1, 5, b="new"), False))
    assert versions.storage_row((1, 5), (A, B)) == (True, row(1, 5, a=99, b="new"))


SHAPES = {
    "row": lambda v: v.remember(v.epoch, [((1, 5), row(1, 5, a=50))]),
    "page": lambda v: remember_page(v, [5]),
    "tuples": lambda v: remember_group(v, [(5, "b5")], (A,)),
    "columns": lambda v: remember_group(v, [(5, "b5")], (A,), as_rows=False),
    "tail": lambda v: remember_tail(v, (1, 5)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fold_is_written_through_before_its_versions_are_dropped(
    versions, shape, monkeypatch
):
    """P1: a reader that finds no version any more looks at memory next."""
    SHAPES[shape](versions)
    seen = []
    forget = Chains.forget

    def watched(chains, until, changed):
        seen.append(versions._stored.find((1, 5), (A,), frozenset()))
        forget(chains, until, changed)

    monkeypatch.setattr(Chains, "forget", watched)
    fold(versions, 3, ((1, 5), whole(1, 5, 99, "x"), False))
    ((known, _, found),) = seen
    assert known
    assert found[A] == 99


@pytest.mark.parametrize("shape", SHAPES)
def test_a_fold_learns_from_memory_what_storage_has(versions, shape):
    """P7: it stores changed columns only, and knows which rows are new."""
    SHAPES[shape](versions)
    versions.publish(3, [((1, 5), whole(1, 5, 50, "x"), False)])
    rows, new = versions.changes(3)
    is_new = shape == "tail"
    assert new == ({(1, 5)} if is_new else set())
    same = MISSING if shape in ("row", "tuples") else 50
    assert rows == {(1, 5): (1, 5, same, "x", 0, 0, 0)}


def test_who_reads_while_a_row_is_replaced_never_sees_its_old_page(versions):
    """P1: the page was read before the fold."""
    remember_page(versions, [5])
    versions.storage_row((1, 5), (A,))
    fold(versions, 3, ((1, 5), row(1, 5, a=99), False))
    seen = []

    class Watching(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            seen.append(versions._stored.find((1, 5), (A,), frozenset()))
            return NotImplemented

    versions.remember(versions.epoch, [((1, 5), row(1, 5, a=99, b=Watching("b5")))])
    assert seen
    assert all(known and found[A] == 99 for known, _, found in seen)
    assert versions.storage_row((1, 5), (A, B))[1][A] == 99


def test_an_evicted_row_is_answered_from_its_page():
    """P1: both were changed by the fold."""
    versions = TableVersions(TABLE, CachePolicy(rows=1))
    remember_page(versions, [5, 6])
    for number in (5, 6):
        versions.storage_row((1, number), (A,))
    assert len(versions._stored) == 1
    fold(versions, 3, *[((1, n), row(1, n, a=99), False) for n in (5, 6)])
    for number in (5, 6):
        assert versions.storage_row((1, number), (A,)) == (True, row(1, number, a=99))


def test_what_is_read_during_a_fold_is_not_kept_after_it(versions, monkeypatch):
    """P1: a reader that fills a version's gaps also reads values that folds change."""
    versions.changed_columns = frozenset({A})
    remember_page(versions, [5])
    versions.publish(3, [((1, 5), row(1, 5, a=99), False)])
    read = threading.Event()
    remember, replace = versions.remember, versions._stored.replace

    def remembering(epoch, rows):
        read.set()
        remember(epoch, rows)

    def replacing(rows, **options):
        reader.start()
        assert read.wait(10)
        replace(rows, **options)

    monkeypatch.setattr(versions, "remember", remembering)
    monkeypatch.setattr(versions._stored, "replace", replacing)
    reader = threading.Thread(target=versions.storage_row, args=((1, 5), (B,)))
    versions.folded(3)
    reader.join(10)
    assert versions.storage_row((1, 5), (A,))[1][A] == 99


def test_what_was_read_before_a_fold_is_not_kept_after_it(versions):
    epoch = versions.epoch
    fold(versions, 3, ((1, 5), whole(1, 5, 1, "x"), False))
    assert remember_page(versions, [5], epoch=epoch) is None
    assert remember_group(versions, [(3, "x")], epoch=epoch) is None
    assert remember_tail(versions, (1, 6), epoch=epoch) is None
    assert versions.storage_row((1, 6), (A,)) == (False, None)
    assert group(versions) is None


def test_a_bulk_commit_makes_ranges_worthless(versions):
    remember_page(versions, [5])
    remember_tail(versions, (1, 6))
    address = versions.range_to_read((1,), (B,), misses=9, as_rows=True)
    remember_group(versions, [(1, "x")])
    versions.publish_bulk(3, 1, 0)
    for _ in range(2):
        assert versions.storage_row((1, 5), (A,)) == (False, None)
        assert versions.storage_row((1, 6), (A,)) == (False, None)
        assert group(versions) is None
        if versions.bulk:
            table = read(address, [(1, 1, 10, "x")])
            assert versions.remember_range(versions.epoch, address, table) is None
            versions.folded(3)


# Tails


def test_a_tail_is_read_at_the_second_new_key(versions):
    assert versions.tail_to_read((1, 5)) is None
    address = versions.tail_to_read((1, 6))
    assert keys(address) == ((1,), 6, HIGH)
    assert versions.remember_range(versions.epoch, address, read(address, []))
    assert versions.storage_row((1, 6)) == (True, None)
    assert versions.storage_row((1, 7)) == (True, None)
    assert versions.storage_row((1, 5)) == (False, None)
    assert versions.storage_row((2, 7)) == (False, None)


@pytest.mark.parametrize("remembered", [True, False])
def test_folds_fill_a_tail(remembered):
    """P9: a key that a fold stored is not free, even when nothing else knows of it."""
    versions = TableVersions(TABLE, CachePolicy(rows=100 * remembered))
    remember_tail(versions, (1, 1))
    assert versions.storage_row((1, 1)) == (True, None)
    new = whole(1, 8, 1, "x")
    fold(versions, 3, ((1, 8), new, False))
    assert versions.storage_row((1, 8), (A, B)) == (True, new)
    assert versions.storage_row((1, 9)) == (True, None)


def test_a_tail_begins_anew_when_it_is_long():
    """P9: what lay in it is not free."""
    versions = TableVersions(TABLE, CachePolicy(tail_rows=3))
    remember_tail(versions, (1, 1))
    writes = [((1, n), whole(1, n, n, "x"), False) for n in (2, 7, 4, 5, 9)]
    fold(versions, 3, *writes)
    for key, new, _ in writes:
        assert versions.storage_row(key, (A,)) == (True, new)
    assert versions.storage_row((1, 8)) == (True, None)
    assert versions.storage_row((1, 3)) == (False, None)


def test_a_tail_that_begins_with_many_rows_is_not_kept(versions):
    """Keys are no growing numbers then, and it is not read again and again."""
    rows = [(1, n, 0, "x") for n in range(5, POLICY.few_rows + 6)]
    assert remember_tail(versions, (1, 5), rows) is None
    assert versions.storage_row((1, 5)) == (False, None)
    again = [versions.tail_to_read((1, n)) for n in range(5)]
    assert {each.prefix for each in again if each is not None} <= {()}
    few = remember_tail(TableVersions(TABLE, POLICY), (1, 5), rows[:2])
    assert few.find((1, 5), ()) == (True, row(1, 5))
    assert few.find((1, 5), (A,)) == (False, None)
    assert few.find((1, 7), (A,)) == (True, None)


def test_a_tail_of_groups(versions):
    """The second new key with another number before the last column."""
    assert [versions.tail_to_read((n, 1)) for n in (5, 5)] != [None, None]
    address = versions.tail_to_read((6, 1))
    assert keys(address) == ((), 6, HIGH)
    versions.remember_range(versions.epoch, address, read(address, []))
    assert group(versions, prefix=(5,)) is None
    assert group(versions, prefix=(7,)).rows((7,)) == {}
    new = whole(7, 3, 1, "x")
    fold(versions, 3, ((7, 3), new, False), ((8, 4), whole(8, 4, 1, "y"), False))
    assert group(versions, prefix=(7,)).rows((7,)) == {(7, 3): new}
    assert versions.storage_row((7, 4)) == (True, None)
    assert versions.storage_row((5, 4)) == (False, None)


# Groups


def test_a_group_is_wanted_at_the_second_miss(versions):
    wanted = [versions.range_to_read((1,), (B,)) for _ in range(2)]
    assert wanted[0] is None
    assert keys(wanted[1]) == ((1,), LOW, HIGH)
    assert wanted[1].columns == (0, 1, B)
    assert not versions.range_to_read((200,), (B,))
    assert versions.range_to_read((300,), (B,), misses=2)


def test_small_groups_are_wanted_with_their_neighbours(versions):
    """Once it is known that they are small."""

    def wanted(*numbers):
        found = [versions.range_to_read((n,), (B,)) for n in numbers]
        assert found[:-1] == [None] * (len(numbers) - 1)
        return keys(found[-1])

    assert wanted(33, 65, 34) == ((34,), LOW, HIGH)
    remember_group(versions, [(1, "x"), (2, "y")])
    assert wanted(97, 33, 40) == ((), 32, 63)
    remember_group(versions, [(n, "x") for n in range(GROUP_ROWS // STRETCH + 1)])
    versions = TableVersions(TABLE, POLICY)
    remember_group(versions, [(n, "x") for n in range(GROUP_ROWS // STRETCH + 1)])
    assert wanted(70, 70) == ((70,), LOW, HIGH)


def test_a_stretch_has_all_of_its_groups(versions):
    remember_group(versions, [(1, "x")])
    address = versions.range_to_read((34,), (B,), misses=9)
    assert keys(address) == ((), 32, 63)
    rows = [(34, 1, 0, "x"), (36, 1, 0, "y"), (34, 2, 0, "z")]
    versions.remember_range(versions.epoch, address, read(address, rows))
    assert group(versions, prefix=(34,)).rows((34,)) == {
        (34, 1): row(34, 1, b="x"),
        (34, 2): row(34, 2, b="z"),
    }
    assert group(versions, prefix=(35,)).rows((35,)) == {}
    assert group(versions, prefix=(64,)) is None
    assert versions.storage_row((36, 1), (B,)) == (True, row(36, 1, b="y"))
    assert versions.storage_row((35, 1), (B,)) == (True, None)
    new = whole(35, 9, 0, "w")
    fold(versions, 3, ((34, 1), row(34, 1), True), ((35, 9), new, False))
    found = group(versions, prefix=(34,))
    assert found.rows((34,)) == {(34, 2): row(34, 2, b="z")}
    assert found.rows((35,)) == {(35, 9): new}
    assert set(found.keys((34,), B, "z")) >= {(34, 2)}


def test_rows_by_value(versions):
    found = remember_group(versions, [(1, "x"), (2, "y"), (3, "x"), (4, None)])
    assert sorted(found.keys((1,), B, "x")) == [(1, 1), (1, 3)]
    assert list(found.keys((1,), B, "z")) == []
    assert list(found.keys((1,), B, None)) == [(1, 4)]
    assert len(found.rows((1,))) == 4
    assert group(versions, [0, 1, B]) is found
    assert group(versions, [A]) is None


@pytest.mark.parametrize("indexed", [True, False])
def test_a_group_follows_the_folds(versions, indexed):
    """P1, P7: it has the rows of storage, in its indexes too."""
    found = remember_group(versions, [(1, "x"), (2, "y"), (3, "x"), (4, None)])
    if indexed:
        found.keys((1,), B, "x")
    fold(
        versions,
        5,
        ((1, 1), row(1, 1, b="y"), False),
        ((1, 2), row(1, 2, a=7), False),
        ((1, 3), whole(1, 3, 0, "x"), True),
        ((1, 9), whole(1, 9, 0, "x"), False),
        ((2, 8), whole(2, 8, 0, "x"), False),
    )
    assert group(versions) is found
    assert found.rows((1,)) == {
        (1, 1): row(1, 1, b="y"),
        (1, 2): row(1, 2, a=7, b="y"),
        (1, 4): row(1, 4, b=None),
        (1, 9): whole(1, 9, 0, "x"),
    }
    assert list(found.keys((1,), B, "x")) == [(1, 9)]
    assert sorted(found.keys((1,), B, "y")) == [(1, 1), (1, 2)]


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
"""Of rows by number: their values of B then, and whether they are deleted."""


@pytest.mark.parametrize("indexed", [True, False])
def test_rows_that_are_looked_up_by_value_are_columnar(versions, indexed):
    """P1, P7: a lookup of some of them by value finds the same rows after any fold."""
    rows = [(n, f"x{n % 7}") for n in range(200)]
    found = remember_group(versions, reversed(rows), as_rows=False)
    expected = {(1, n): row(1, n, b=b) for n, b in rows}

    def assert_alike():
        for n in range(-1, 202):
            known, stored = found.find((1, n), (0, 1, B))
            assert known
            wanted = expected.get((1, n))
            assert (stored and stored[:4:3]) == (wanted and wanted[:4:3])
        for value in (*{b for _, b in rows}, "new", None):
            matching = {k for k, r in expected.items() if r[B] == value}
            assert set(found.keys((1,), B, value)) >= matching

    assert group(versions, as_rows=False) is found
    assert group(versions) is None
    if indexed:
        assert_alike()
    for cts, (n, b, deleted) in enumerate(CHANGES, 5):
        fold(versions, cts, ((1, n), (1, n, 0, b, 0, 0, 0), deleted))
        if deleted:
            del expected[1, n]
        elif b is not MISSING:
            expected[1, n] = row(1, n, b=b)
        if indexed:
            assert_alike()
    assert_alike()
    assert group(versions, as_rows=False) is found


@pytest.mark.parametrize("as_rows", [True, False])
def test_too_large_groups_are_of_no_use(versions, as_rows):
    most = POLICY.most_rows(as_rows=as_rows)
    rows = [(n, "x") for n in range(most + 1)]
    assert remember_group(versions, rows, as_rows=as_rows) is None
    assert group(versions, as_rows=as_rows) is None
    again = [versions.range_to_read((1,), (B,), as_rows=as_rows) for _ in range(9)]
    assert again == [None] * 9
    versions = TableVersions(TABLE, POLICY)
    assert remember_group(versions, rows[:most], as_rows=as_rows)


def test_a_group_that_grows_beyond_all_bounds_is_forgotten(versions):
    remember_group(versions, [(n, "x") for n in range(GROUP_ROWS)])
    numbers = range(GROUP_ROWS, 2 * GROUP_ROWS + 2)
    fold(versions, 5, *[((1, n), whole(1, n, 0, "y"), False) for n in numbers])
    assert group(versions) is None


def test_a_row_known_in_part_that_storage_does_not_have(versions):
    """P11: as only a log written by hand says. No reader takes the gap for a value."""
    remember_page(versions, [5])
    remember_group(versions, [(5, "x")])
    fold(versions, 3, ((1, 9), row(1, 9, a=1), False))
    assert versions.storage_row((1, 9), (A, B)) == (False, None)
    assert group(versions) is None


@pytest.mark.parametrize("number", [1, 200])
@pytest.mark.parametrize("as_rows", [True, False])
def test_values_that_python_cannot_hold(number, as_rows):
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

    def remembered(key, columns):
        versions = TableVersions(table, POLICY)
        address = versions.range_to_read(key, columns, misses=9, as_rows=as_rows)
        taken = rows.select([table.columns[i].name for i in address.columns])
        return versions.remember_range(versions.epoch, address, ArrowRows(taken))

    assert remembered((), (1,)) is None
    assert remembered((), (0,)).find((0,), (0,)) == (True, (0, MISSING))
    page = remembered((0,), (1,))
    assert page.find((0,), (0,)) == (True, (0, MISSING))
    assert page.find((0,), (0, 1)) == (False, None)
    assert page.find((number,), (0, 1)) == (True, None)


# The cache


def test_the_cache_keeps_to_its_budget():
    size = remember_page(TableVersions(TABLE, POLICY), [1]).size
    policy = CachePolicy(rows=0, bytes=3 * size)
    versions = TableVersions(TABLE, policy)
    for n in range(5):
        remember_page(versions, [n], prefix=n)
    kept = [versions.storage_row((n, n), (A,))[0] for n in range(5)]
    assert kept == [False, False, True, True, True]
    assert not Cache(CachePolicy(bytes=0)).wants((7, 0), 9)


def test_what_folds_add_counts():
    size = remember_page(TableVersions(TABLE, POLICY), [1]).size
    cache = Cache(CachePolicy(bytes=3 * size))
    versions = TableVersions(TABLE, CachePolicy(rows=0), cache)
    remember_page(versions, [1])
    remember_page(versions, [2], prefix=2)
    before = cache.info().bytes
    for cts in range(5):
        fold(versions, cts + 1, ((1, 1), row(1, 1, a=cts), False))
    after = cache.info()
    assert before < after.bytes <= after.capacity
    writes = [((2, n), whole(2, n, 0, "x"), False) for n in range(200)]
    fold(versions, 9, *writes)
    assert cache.info().bytes <= after.capacity
    assert cache.info().evictions > 0


def test_what_is_used_is_kept():
    """A page that is read again survives the eviction of many that are not."""
    size = remember_page(TableVersions(TABLE, POLICY), [1]).size
    policy = CachePolicy(rows=0, bytes=10 * size)
    cache = Cache(policy)
    versions = TableVersions(TABLE, policy, cache)
    for n in range(60):
        remember_page(versions, [n], prefix=n)
        assert versions.storage_row((0, 0), (A,))[0]
    assert not versions.storage_row((30, 30), (A,))[0]
    assert versions.storage_row((59, 59), (A,))[0]
    info = cache.info()
    assert (info.hits, info.misses) == (61, 1)
    assert info.evictions == 60 - info.entries > 40
    assert 0 < info.bytes <= info.capacity


def test_the_garbage_collector_does_not_follow_rows_of_pages():
    """P6: its pauses would stop every client of the process."""
    versions = TableVersions(TABLE, POLICY)
    remember_page(versions, [1])
    gc.collect()
    before = len(gc.get_objects())
    remember_page(versions, range(5000), prefix=2)
    fold(versions, 3, *[((2, n), row(2, n, a=0), False) for n in range(2000)])
    for _ in range(3):
        gc.collect()
    assert len(gc.get_objects()) - before < 100


@pytest.mark.parametrize(
    "array",
    [
        pyarrow.array([1, 2, 127], pyarrow.int8()),
        pyarrow.array([1, -2, 3], pyarrow.int16()),
        pyarrow.array([2**62, 0, -(2**62)], pyarrow.int64()),
        pyarrow.array([1.5, -0.0, float("inf")], pyarrow.float64()),
        pyarrow.array(["", "ü\x00", "x" * 5000], pyarrow.string()),
        pyarrow.array(["", "", ""], pyarrow.string()),
        pyarrow.array(["a", None, "c"], pyarrow.string()),
        pyarrow.array([1, None, 3], pyarrow.int32()),
        pyarrow.array([True, False, None]),
        pyarrow.array([b"", b"\x00\xff", None]),
        pyarrow.array([Decimal("1.50"), Decimal("-2.00"), None]),
        pyarrow.array([Decimal("1.50"), Decimal("-2.00"), Decimal("0.00")]),
        pyarrow.array([Decimal(10**38 - 1), Decimal(1 - 10**38), Decimal(0)]),
        pyarrow.array([Decimal("1E+2")] * 3, pyarrow.decimal128(3, -2)),
        pyarrow.array([date(2020, 2, 29), date(1, 1, 1), None]),
        pyarrow.array([datetime(2020, 1, 1, 2, 3, 4, 5)] * 3),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("sliced", [False, True])
def test_values_come_out_of_a_page_as_they_went_in(versions, array, sliced):
    values = array.to_pylist()
    if sliced:
        array = pyarrow.concat_arrays([array, array]).slice(3)
    numbers = pyarrow.array([0, 1, 2], pyarrow.int32())
    address = versions.range_to_read((1, 0), (A,), misses=9)
    table = ArrowRows(pyarrow.table({"n": numbers, "a": array}))
    found = versions.remember_range(versions.epoch, address, table)
    rows = [found.find((1, n), (A,))[1] for n in range(3)]
    assert [repr(r[A]) for r in rows] == [repr(value) for value in values]
    assert [type(r[A]) for r in rows] == [type(value) for value in values]


@pytest.mark.parametrize("type_name", ["VARCHAR", "UBIGINT", "DOUBLE", "HUGEINT"])
def test_keys_that_are_no_machine_integers_have_no_ranges(type_name):
    table = Table("main", "t", (Column("k", type_name),), primary_key=(0,))
    versions = TableVersions(table, POLICY)
    assert versions.range_to_read((1,), (), misses=9) is None
    assert versions.range_to_read((), (), misses=9) is None
    assert [versions.tail_to_read((1,)) for _ in range(3)] == [None] * 3
