"""Pages and high-water marks: which reads are answered without the engine."""

from __future__ import annotations

import threading
from datetime import date, datetime
from decimal import Decimal

import pyarrow
import pytest

from tique.store.cache import Cache
from tique.store.pages import Address, Page, Paging
from tique.store.policy import CachePolicy
from tique.store.stored import StorageCache
from tique.store.versions import TableVersions
from tique_backends.base import MISSING
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
POLICY = CachePolicy(rows=100, bytes=1 << 20)


@pytest.fixture
def cache():
    return StorageCache(POLICY, PAGE_KEYS)


@pytest.fixture
def versions(cache):
    return TableVersions(TABLE, POLICY, cache=cache)


def row(g, n, **values):
    known = {0: g, 1: n} | {{"a": A, "b": B}[name]: v for name, v in values.items()}
    return tuple(known.get(i, MISSING) for i in range(len(COLUMNS)))


def whole(g, n, a, b):
    return (g, n, a, b, 0, 0, 0)


def page(numbers, a=None, columns=(1, A, B), prefix=(1,)):
    data = {
        "n": pyarrow.array(numbers, pyarrow.int32()),
        "a": pyarrow.array(a or [10 * n for n in numbers], pyarrow.int32()),
        "b": pyarrow.array([f"b{n}" for n in numbers], pyarrow.string()),
    }
    names = {1: "n", A: "a", B: "b"}
    table = pyarrow.table({names[i]: data[names[i]] for i in columns})
    return Page(TABLE, Address(prefix, 0, PAGE_KEYS - 1), columns, table)


def test_a_page_is_read_at_the_second_miss(versions):
    assert versions.page_to_read((1, 5)) is None
    assert versions.page_to_read((2, 5)) is None
    address = versions.page_to_read((1, 6))
    assert address == ((1,), 0, PAGE_KEYS - 1)


def test_a_page_knows_its_rows_and_which_are_not_there(versions):
    versions.remember_page(versions.epoch, (1, 0), page([9, 3, 5]))
    assert versions.storage_row((1, 5), (A,)) == (True, row(1, 5, a=50))
    assert versions.storage_row((1, 3), (A, B)) == (True, row(1, 3, a=30, b="b3"))
    assert versions.storage_row((1, 4), (A,)) == (True, None)
    assert versions.storage_row((1, PAGE_KEYS), (A,)) == (False, None)
    assert versions.storage_row((2, 5), (A,)) == (False, None)
    assert versions.storage_row((1, 9), (A, 4)) == (False, None)


def test_an_empty_page(versions):
    versions.remember_page(versions.epoch, (1, 0), page([]))
    assert versions.storage_row((1, 5), (A,)) == (True, None)


def test_a_row_in_memory_is_completed_from_its_page(versions):
    versions.remember(versions.epoch, [((1, 5), row(1, 5, a=51))])
    versions.remember_page(versions.epoch, (1, 0), page([5]))
    assert versions.storage_row((1, 5), (A, B)) == (True, row(1, 5, a=51, b="b5"))


@pytest.mark.parametrize("remembered", [True, False])
def test_what_a_fold_changed_is_not_answered_from_a_page(versions, remembered):
    """P7: neither a changed column, nor a deleted row, nor the gap of a new one."""
    versions = TableVersions(
        TABLE, CachePolicy(rows=100 * remembered), cache=versions._stored._cache
    )
    versions.remember_page(versions.epoch, (1, 0), page([5, 6]))
    versions.storage_row((1, 5), (A,))
    versions.publish(
        3,
        [
            ((1, 5), row(1, 5, a=99), False),
            ((1, 6), row(1, 6), True),
            ((1, 7), whole(1, 7, 70, "x"), False),
        ],
    )
    versions.folded(3)
    if remembered:
        assert versions.storage_row((1, 5), (A,)) == (True, row(1, 5, a=99))
        assert versions.storage_row((1, 6), (A,)) == (True, None)
        assert versions.storage_row((1, 7), (A,)) == (True, whole(1, 7, 70, "x"))
    else:
        for number in (5, 6, 7):
            assert versions.storage_row((1, number), (A,)) == (False, None)
            assert versions.storage_row((1, number), (B,)) == (False, None)
    if remembered:
        assert versions.storage_row((1, 5), (B,))[1][B] == "b5"
    assert versions.storage_row((1, 8), (A,)) == (True, None)


def test_who_reads_while_a_row_is_replaced_never_sees_its_old_page(versions):
    """P1: the page is older than the fold, and only the row in memory says so."""
    versions.remember_page(versions.epoch, (1, 0), page([5]))
    versions.publish(3, [((1, 5), row(1, 5, a=99), False)])
    versions.folded(3)
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


def test_a_page_is_told_before_a_row_is_forgotten(cache, monkeypatch):
    """P1: a reader that misses the row in between would take a value before a fold."""
    versions = TableVersions(TABLE, CachePolicy(rows=1), cache=cache)
    versions.remember_page(versions.epoch, (1, 0), page([5, 6]))
    found = []
    tell = Page.note_forgotten

    def telling(page, number):
        tell(page, number)
        if not found:
            found.append(None)
            found[:] = [versions.storage_row((1, number), (A,))]

    monkeypatch.setattr(Page, "note_forgotten", telling)
    versions.publish(3, [((1, n), row(1, n, a=99), False) for n in (5, 6)])
    versions.folded(3)
    assert found == [(True, row(1, 5, a=99))]
    assert versions.storage_row((1, 5), (A,)) == (False, None)
    assert versions.storage_row((1, 6), (A,)) == (True, row(1, 6, a=99))


def test_what_is_read_during_a_fold_is_not_kept_after_it(versions, monkeypatch):
    """P1: a reader that fills a version's gaps also reads values that folds change."""
    versions.changed_columns = frozenset({A})
    versions.remember_page(versions.epoch, (1, 0), page([5]))
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
    versions.publish(3, [((1, 5), whole(1, 5, 1, "x"), False)])
    versions.folded(3)
    versions.remember_page(epoch, (1, 0), page([5]))
    versions.remember_mark(epoch, (1,), 5)
    assert versions.storage_row((1, 6), (A,)) == (False, None)


def test_a_bulk_commit_makes_pages_worthless(versions):
    versions.remember_page(versions.epoch, (1, 0), page([5]))
    versions.remember_mark(versions.epoch, (1,), 5)
    versions.publish_bulk(3, 1, 0)
    assert versions.storage_row((1, 5), (A,)) == (False, None)
    assert versions.storage_row((1, 6), (A,)) == (False, None)
    versions.folded(3)
    assert versions.storage_row((1, 5), (A,)) == (False, None)
    assert versions.storage_row((1, 6), (A,)) == (False, None)


def test_the_cache_keeps_to_its_budget():
    pages = {(7, n): page([n]) for n in range(5)}
    size = pages[7, 0].size
    cache = Cache("pages", 3 * size, 2, POLICY)
    for place, each in pages.items():
        cache.put(place, each)
    kept = [cache.find(place) is each for place, each in pages.items()]
    assert kept == [False, False, True, True, True]
    assert not Cache("pages", 0, 1, POLICY).wants((7, 0))


def test_what_is_used_is_kept():
    """A page that is read again survives the eviction of many that are not."""
    pages = {(7, n): page([n]) for n in range(60)}
    cache = Cache("pages", 10 * pages[7, 0].size, 2, POLICY)
    for place, each in pages.items():
        cache.put(place, each)
        assert cache.find((7, 0)) is pages[7, 0]
    assert cache.find((7, 30)) is None
    assert cache.find((7, 59)) is pages[7, 59]
    info = cache.info()
    assert (info.hits, info.misses) == (61, 1)
    assert info.evictions == 60 - info.entries > 40
    assert 0 < info.bytes <= info.capacity


def test_a_mark_is_read_at_the_second_new_key(versions):
    assert versions.mark_to_read((1, 5)) is None
    assert versions.mark_to_read((1, 6)) == (1,)
    versions.remember_mark(versions.epoch, (1,), 6)
    assert versions.storage_row((1, 7)) == (True, None)
    assert versions.storage_row((1, 6)) == (False, None)
    assert versions.storage_row((2, 7)) == (False, None)


def test_folds_raise_a_mark(versions):
    """P9: a key that a fold stored is not free, even when nothing else knows of it."""
    versions = TableVersions(TABLE, CachePolicy(rows=0))
    versions.remember_mark(versions.epoch, (1,), None)
    assert versions.storage_row((1, 1)) == (True, None)
    versions.publish(3, [((1, 8), whole(1, 8, 1, "x"), False)])
    versions.folded(3)
    assert versions.storage_row((1, 8)) == (False, None)
    assert versions.storage_row((1, 9)) == (True, None)


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
def test_values_come_out_of_a_page_as_they_went_in(array, sliced):
    values = array.to_pylist()
    if sliced:
        array = pyarrow.concat_arrays([array, array]).slice(3)
    numbers = pyarrow.array([0, 1, 2], pyarrow.int32())
    table = pyarrow.table({"n": numbers, "a": array})
    found = Page(TABLE, Address((1,), 0, PAGE_KEYS - 1), (1, A), table)
    rows = [found.row((1, n), (A,))[1] for n in range(3)]
    assert [repr(r[A]) for r in rows] == [repr(value) for value in values]
    assert [type(r[A]) for r in rows] == [type(value) for value in values]


@pytest.mark.parametrize("type_name", ["VARCHAR", "UBIGINT", "DOUBLE", "HUGEINT"])
def test_keys_that_are_no_machine_integers_have_no_pages(type_name):
    table = Table("main", "t", (Column("k", type_name),), primary_key=(0,))
    assert Paging(table, PAGE_KEYS).place((1,)) is None
