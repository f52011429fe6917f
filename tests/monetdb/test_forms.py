"""MonetDB's forms against a model of the snapshot in Python."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal

import pytest

from tests.monetdb.model import Model, bag_model, keyed_model
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.forms import together
from tique_backends.records import MISSING, Versions
from tique_rewriter.plans.plan import SiblingConstruct

KEYED = "a INTEGER, b VARCHAR(9), v INTEGER, w CLOB, PRIMARY KEY (b, a)"
BAG = "a INTEGER, b VARCHAR(9)"
SEEDS = range(4)


@pytest.fixture(params=SEEDS)
def number(request):
    return random.Random(request.param)


@pytest.fixture(params=[frozenset(), frozenset({SiblingConstruct.COMPARISON})])
def forms(engine, request):
    return engine.forms_beside(request.param)


@pytest.fixture
def keyed(managed, session, number):
    model = keyed_model(managed('K"ed', KEYED), number)
    model.fill(session, stage=True)
    return model


@pytest.fixture
def bag(managed, session, number):
    model = bag_model(managed("bag", BAG), number)
    model.fill(session, stage=True)
    return model


@pytest.fixture
def rows(session):
    def ask(sql, parameters=()):
        return session.execute(sql, parameters).fetch_all()

    return ask


STAMPS = [(sts, staged) for sts in (0, 1, 7, 20) for staged in (None, 0, 4, 9)]


def test_scan_of_keys(keyed, forms, rows):
    for sts, staged in STAMPS:
        form = together(forms.scan(keyed.table, sts, staged=staged))
        found = rows(f"SELECT a, b, v, w FROM {form} AS t")
        assert Counter(found) == keyed.snapshot(sts, staged), (sts, staged)


def test_scan_of_a_bag(bag, forms, rows):
    """Also with the hint that there are no tombstones, where that is true."""
    for sts, staged in STAMPS:
        seen = [e for e in bag.cache if e[0] <= sts]
        seen += [e for e in bag.stage if e[0] <= (staged or 0)]
        for tombstones in {True, any(deleted for *_, deleted in seen)}:
            queries = forms.scan(bag.table, sts, staged=staged, appended=not tombstones)
            found = rows(f"SELECT a, b FROM {together(queries)} AS t")
            assert Counter(found) == bag.snapshot(sts, staged), (sts, staged)


def test_flat_scan(managed, session, forms, rows):
    model = Model(managed("k", KEYED), [(n, "b", n, None) for n in range(9)])
    model.cache = [(n, (n, "b", -n, "new"), n % 3 == 0) for n in range(1, 13)]
    model.fill(session)
    for sts in (0, 5, 12):
        form = together(forms.scan(model.table, sts, staged=None, flat=True))
        found = rows(f"SELECT a, b, v, w FROM {form} AS t")
        assert Counter(found) == model.snapshot(sts)


def test_point(keyed, engine, rows):
    for sts, staged in STAMPS:
        form = engine.forms.point(keyed.table, sts, ["$1", "$2"], staged=staged)
        expected = {keyed.key(row): row for row in keyed.snapshot(sts, staged)}
        for key in [(b, a) for b in ("x", "x ", "it's") for a in range(7)]:
            found = rows(f"SELECT a, b, v, w FROM {form} AS t", key)
            assert found == ([expected[key]] if key in expected else []), key


def test_constant(keyed, engine, rows, session):
    row = (4, "it's\\", None, MISSING)
    form = engine.forms.constant(keyed.table, [0, 1, 2], row)
    result = session.execute(f"SELECT * FROM {form} AS t")
    assert result.fetch_all() == [row[:3]]
    assert [c.name for c in result.columns] == ["a", "b", "v"]
    empty = engine.forms.constant(keyed.table, [3, 0], None)
    assert rows(f"SELECT w, a FROM {empty} AS t") == []


@pytest.mark.parametrize("bound", [{}, {1: "x"}, {0: 3}, {1: "x", 0: 3}], ids=str)
@pytest.mark.parametrize("size", [0, 1, 90])
def test_overlay(keyed, forms, rows, bound, size, number):
    keys = {keyed.key(row) for row in keyed.storage[::2]} if size else set()
    keys |= {("x", 100 + n) for n in range(size - 1)}
    keys = sorted(
        key for key in keys if all(key[(1, 0).index(i)] == v for i, v in bound.items())
    )
    added = [(a, b, number.choice([None, a]), MISSING) for b, a in keys[::3]]
    form = together(forms.overlay(keyed.table, [0, 1, 2], bound, keys, added))
    found = rows(f"SELECT a, b, v FROM {form} AS t")
    expected = Counter(
        row[:3]
        for row in keyed.storage
        if keyed.key(row) not in keys and all(row[i] == v for i, v in bound.items())
    )
    expected.update(row[:3] for row in added)
    assert Counter(found) == expected


@pytest.mark.parametrize("size", [1, 24, 25, 26, 120])
def test_overlay_of_an_integer_key(managed, session, forms, rows, size):
    table = managed("n", "n INTEGER PRIMARY KEY, v DECIMAL(12,2)")
    session.execute("INSERT INTO app.n VALUES (-1, 1), (0, 2), (1, 3), (500, 4)")
    keys = [(n,) for n in range(-1, size - 1)]
    added = [(n, Decimal(n)) for (n,) in keys]
    form = together(forms.overlay(table, [0, 1], {}, keys, added))
    expected = {-1: 1, 0: 2, 1: 3, 500: 4} | {n: n for (n,) in keys}
    assert dict(rows(f"SELECT n, v FROM {form} AS t")) == expected


@pytest.mark.parametrize("size", [0, 1, 25, 26, 200])
def test_constants(keyed, forms, rows, size):
    values = [["b'" * (n % 3) for n in range(size)], [None, *range(1, size)][:size]]
    form = forms.constants(keyed.table, [0, 1, 2], {0: 7}, values)
    found = rows(f"SELECT a, b, v FROM {form} AS t")
    assert Counter(found) == Counter((7, b, v) for b, v in zip(*values, strict=True))


@pytest.mark.parametrize(
    "values", [[(1, 2), (2, 1)], [(1, None), (None, 1)], [(1, 1, 2), (1, 2, 2)]]
)
def test_columns_with_the_same_values_are_not_taken_for_one_another(
    managed, forms, rows, values
):
    """MonetDB does that within one VALUES."""
    table = managed("twins", "a INTEGER, b INTEGER")
    form = forms.constants(table, [0, 1], {}, values)
    found = rows(f"SELECT a, b FROM {form} AS t")
    assert Counter(found) == Counter(zip(*values, strict=True))


def test_constants_have_the_columns_types(managed, forms, session):
    columns = (
        "a SMALLINT, b DECIMAL(9,3), c TIMESTAMP, d BLOB, e UUID, f BOOLEAN, "
        "g DATE, h BIGINT, i DOUBLE"
    )
    table = managed("typed", columns)
    for text in (
        forms.constant(table, range(9), (None,) * 9),
        forms.constants(table, range(9), {}, [[None]] * 9),
    ):
        result = session.execute(f"SELECT * FROM {text} AS t")
        assert [c.type for c in result.columns] == [c.type for c in table.columns]
        assert result.fetch_all() == [(None,) * 9]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'1.5'", "DECIMAL(5,1)", Decimal("1.5")),
        ("NULL", "VARCHAR(3)", None),
        ("'abc'", "VARCHAR(3)", "abc"),
        ("'äöü'", "VARCHAR(3)", "äöü"),
        ("123", "VARCHAR(3)", "123"),
        ("''", "CHAR(2)", ""),
        ("'a' || 'b'", "CLOB", "ab"),
        ("2.5", "INTEGER", 3),
    ],
)
def test_cast(engine, rows, text, kind, value):
    sql = engine.forms.cast(f"({text})", kind)
    assert (
        rows(f"SELECT {sql}, {sql} FROM (VALUES (1), (2)) AS t(n)")
        == [(value, value)] * 2
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("'abcd'", "VARCHAR(3)"),
        ("'abc '", "VARCHAR(3)"),
        ("12345", "CHAR(2)"),
        ("300", "TINYINT"),
        ("'x'", "INTEGER"),
        ("12345.6", "DECIMAL(5,2)"),
    ],
)
def test_cast_refuses_as_an_assignment_does(engine, rows, managed, session, text, kind):
    """MonetDB's own CAST cuts text that is too long (P10)."""
    managed("c", f"v {kind}")
    for sql in (
        f"SELECT {engine.forms.cast(f'({text})', kind)}",
        f"INSERT INTO app.c VALUES ({text})",
    ):
        with pytest.raises(EngineError) as refusal:
            rows(sql)
        assert refusal.value.kind is ErrorKind.DATA


def test_cast_of_many_rows_refuses_for_one(engine, rows):
    sql = engine.forms.cast("v", "VARCHAR(3)")
    source = "FROM (VALUES ('a'), ('abcd'), ('b')) AS t(v)"
    with pytest.raises(EngineError) as refusal:
        rows(f"SELECT {sql} {source}")
    assert refusal.value.kind is ErrorKind.DATA
    kept = rows(f"SELECT {sql} {source} WHERE v <> 'abcd'")
    assert sorted(kept) == [("a",), ("b",)]


def test_staged_duplicate(managed, session, engine, rows):
    table = managed("k", KEYED)
    session.execute("INSERT INTO app.k VALUES (1, 'b', 0, ''), (2, 'b', 0, '')")

    def stage(*entries):
        session.create_stage(table)
        session.stage(
            Versions(
                table,
                [(a, "b", v, "") for _, a, v, _ in entries],
                [sequence for sequence, *_ in entries],
                [deleted for *_, deleted in entries],
            )
        )
        return rows(engine.forms.staged_duplicate(table, 0, 4))

    assert stage((4, 3, 0, False), (4, 4, 0, False)) == []
    assert stage((4, 3, 0, False), (4, 3, 1, False)) == [("b", 3)]
    assert stage((4, 1, 0, False)) == [("b", 1)]
    assert stage((3, 1, 0, True), (4, 1, 0, False)) == []
    assert stage((1, 1, 0, True), (4, 1, 0, False)) == []
    assert stage((2, 7, 0, False), (4, 7, 0, False)) == [("b", 7)]
    gone_and_back = ((1, 1, 0, True), (2, 1, 0, False))
    assert stage(*gone_and_back, (4, 1, 0, False)) == [("b", 1)]
    assert stage(*gone_and_back, (3, 1, 0, True), (4, 1, 0, False)) == []


def test_unique_duplicate(managed, session, engine, rows):
    table = managed("u", "a INTEGER PRIMARY KEY, u INTEGER, UNIQUE (u)")
    assert table.unique == ((1,),)
    session.execute("INSERT INTO app.u VALUES (1, 10), (2, NULL)")

    def duplicate(*entries):
        session.create_stage(table)
        session.stage(
            Versions(
                table,
                [(a, u) for _, a, u, _ in entries],
                [sequence for sequence, *_ in entries],
                [deleted for *_, deleted in entries],
            )
        )
        return rows(engine.forms.unique_duplicate(table, (1,), 0, 3, 4))

    assert duplicate((4, 3, 11, False), (4, 4, None, False)) == []
    assert duplicate((4, 3, 10, False)) == [(10,)]
    assert duplicate((3, 3, 10, False)) == [(10,)]
    assert duplicate((3, 1, 10, True), (4, 3, 10, False)) == []
    assert duplicate((4, 3, 11, False), (4, 4, 11, False)) == [(11,)]
    assert duplicate((1, 3, 10, False)) == []


@pytest.mark.parametrize("count", [1, 2, 60])
def test_conflicts(keyed, engine, rows, count):
    """Every key at its own sts, in more rows than one VALUES has."""
    keys = [(b, a) for b in ("x", "it's", "x ", "none") for a in range(15)][:count]
    stamps = [ordinal % 16 for ordinal in range(count)]
    sql = engine.forms.conflicts(keyed.table, keyed.table.primary_key, count)
    values = [v for key, sts in zip(keys, stamps, strict=True) for v in (*key, sts)]
    expected = {}
    for ordinal, (key, sts) in enumerate(zip(keys, stamps, strict=True)):
        later = [c for c, row, _ in keyed.cache if keyed.key(row) == key and c > sts]
        if later:
            expected[ordinal] = max(later)
    assert dict(rows(sql, values)) == expected


def test_conflicts_of_a_bag_are_those_of_two_deletes(bag, engine, rows):
    """NULL is the same as NULL here."""
    choices = [(a, b) for a in (None, 1, 2) for b in (None, "", "it's")]
    sql = engine.forms.conflicts(bag.table, (0, 1), len(choices))
    for sts in (0, 5, 11):
        expected = {}
        for ordinal, choice in enumerate(choices):
            later = [
                c for c, row, gone in bag.cache if gone and row == choice and c > sts
            ]
            if later:
                expected[ordinal] = max(later)
        found = rows(sql, [v for choice in choices for v in (*choice, sts)])
        assert dict(found) == expected


def test_staged_conflicts(keyed, bag, engine, rows):
    staged = {keyed.key(row) for _, row, _ in keyed.stage}
    gone = {row for _, row, deleted in bag.stage if deleted}
    for sts in (0, 7, 13, 14):
        later = {keyed.key(r): c for c, r, _ in keyed.cache if c > sts}
        sql = engine.forms.staged_conflicts(keyed.table, (1, 0), sts)
        found = rows(sql)
        assert bool(found) == bool(later.keys() & staged)
        assert all(later[row[:-1]] == row[-1] and row[:-1] in staged for row in found)
        deletes = {r: c for c, r, deleted in bag.cache if deleted and c > sts}
        found = rows(engine.forms.staged_conflicts(bag.table, (0, 1), sts))
        assert bool(found) == bool(deletes.keys() & gone)
        assert all(deletes[row[:-1]] == row[-1] for row in found)
