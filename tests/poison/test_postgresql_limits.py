"""P4, P9: a row that does not fit an index or a page is refused at its statement.

The same statements run on a table of tique's and on a twin that is PostgreSQL's alone:
tique refuses the rows that PostgreSQL refuses, with the same SQLSTATE, and acknowledged
rows are folded and detached.
"""

from __future__ import annotations

import random
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest

import tique

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LENGTHS = (0, 300, 650, 2500, 2690, 2705, 4100, 8300, 12_000)


def junk(length: int) -> str:
    """Text that nothing compresses."""
    chance = random.Random(length)
    return "".join(chr(chance.randrange(40, 123)) for _ in range(length)).replace(
        "\\", "/"
    )


def letters(length: int) -> str:
    chance = random.Random(length)
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=length))


def digits(length: int) -> str:
    chance = random.Random(length)
    return "1" + "".join(str(chance.randrange(10)) for _ in range(length))


def texts() -> Iterator[str]:
    for length in LENGTHS:
        yield junk(length)
    yield "ab" * 50_000
    yield "\N{SNOWMAN}" * 900
    yield "".join(chr(0x4E00 + ord(letter)) for letter in junk(890))


class Case(NamedTuple):
    """A table whose storage cannot hold every value."""

    columns: str
    values: Callable[[], Iterator[Any]] = texts
    index: str | None = None
    is_stricter: bool = False
    """Whether PostgreSQL takes more, or less, depending on its other rows."""
    then: Sequence[str] = ()


def of_json() -> Iterator[str]:
    for length in LENGTHS:
        yield f'{{"{letters(length)}": ["{letters(length + 1)}", {digits(length)}]}}'


def of_arrays() -> Iterator[str]:
    for length in LENGTHS:
        yield f'{{"{letters(length)}",b,NULL}}'
    yield "{}"
    yield "[3:4]={a,b}"


def of_many() -> Iterator[str]:
    for length in (0, 10, 320, 350, 700, 3000):
        yield f"{{{','.join(map(str, random.Random(0).sample(range(10**9), length)))}}}"


def of_lexemes() -> Iterator[str]:
    for length in (1, 600, 2040, 2060, 12_000):
        yield " ".join((letters(length), letters(length)[: length // 2]))


def of_queries() -> Iterator[str]:
    for length in (1, 100, 300, 600, 2000):
        yield " & ".join(letters(12 + n % 9) for n in range(length))


def of_ranges() -> Iterator[str]:
    for length in (1, 1000, 4000, 6000, 9000, 17_000, 40_000):
        yield f"[{digits(length)},{digits(length + 1)})"
    yield "empty"
    yield "(,)"


def of_numbers() -> Iterator[str]:
    for length in (1, 500, 2500, 5000, 6000, 12_000, 100_000):
        yield digits(length)
        yield f"0.{digits(min(length, 16_000))}"
    yield "NaN"
    yield "-Infinity"
    yield "1e5000"


def of_bytes() -> Iterator[bytes]:
    for length in LENGTHS:
        yield random.Random(length).randbytes(length)


def of_integers() -> Iterator[int]:
    yield from (0, 1, -1, 2_000_000_000)


def of_words() -> Iterator[str]:
    yield from ("12", "x", "", "300", junk(600), "00007")


def of_bits() -> Iterator[str]:
    for length in LENGTHS:
        yield bin(random.Random(length).getrandbits(length * 8 + 1))[2:]


def of_money() -> Iterator[str]:
    yield from ("{}", "{1,2}", "{NULL}")


WIDE = 420

CASES = {
    "primary_key": Case("v TEXT PRIMARY KEY, w INTEGER"),
    "unique": Case("id SERIAL PRIMARY KEY, v TEXT UNIQUE"),
    "bag": Case("v TEXT, w INTEGER", index="(v)"),
    "plain_index": Case("id SERIAL PRIMARY KEY, v TEXT", index="(v)"),
    "descending": Case("id SERIAL PRIMARY KEY, v TEXT", index="(v DESC, id)"),
    "pattern": Case("id SERIAL PRIMARY KEY, v TEXT", index="(v text_pattern_ops)"),
    "collated": Case("id SERIAL PRIMARY KEY, v TEXT", index='(v COLLATE "C")'),
    "checked": Case(
        "id SERIAL PRIMARY KEY, v TEXT, CHECK (length(v) < 5000)", index="(v)"
    ),
    "defaulted": Case(
        f"id SERIAL PRIMARY KEY, v TEXT, x TEXT DEFAULT '{junk(1500)}'", index="(v, x)"
    ),
    "varchar": Case("id SERIAL PRIMARY KEY, v VARCHAR(3000)", index="(v)"),
    "short": Case("id SERIAL PRIMARY KEY, v VARCHAR(500)", index="(v)"),
    "padded": Case("id SERIAL PRIMARY KEY, v CHAR(4000)", index="(v)"),
    "bytes": Case("id SERIAL PRIMARY KEY, v BYTEA", of_bytes, "(v)"),
    "bits": Case("id SERIAL PRIMARY KEY, v BIT VARYING", of_bits, "(v)"),
    "numbers": Case("id SERIAL PRIMARY KEY, v NUMERIC", of_numbers, "(v)"),
    "json": Case("id SERIAL PRIMARY KEY, v JSONB", of_json, "(v)"),
    "arrays": Case("id SERIAL PRIMARY KEY, v TEXT[]", of_arrays, "(v)"),
    "arrays_of_integers": Case("id SERIAL PRIMARY KEY, v BIGINT[]", of_many, "(v)"),
    "ranges": Case("id SERIAL PRIMARY KEY, v NUMRANGE", of_ranges, "(v)"),
    "domain": Case("id SERIAL PRIMARY KEY, v long", index="(v)"),
    "composite": Case(
        "id SERIAL PRIMARY KEY, v pair",
        lambda: (f'(1,"{text}")' for text in map(letters, LENGTHS)),
        "(v)",
    ),
    "several": Case(
        f"id SERIAL PRIMARY KEY, v TEXT, x TEXT DEFAULT '{junk(300)}', y INTEGER",
        index="(x, v, y)",
    ),
    "include": Case("id SERIAL PRIMARY KEY, v TEXT", index="(id) INCLUDE (v)"),
    "key_include": Case("id SERIAL, v TEXT, PRIMARY KEY (id) INCLUDE (v)"),
    "hash": Case("id SERIAL PRIMARY KEY, v TEXT", index="USING hash (v)"),
    "hash_of_no_hash": Case(
        "id SERIAL PRIMARY KEY, v MONEY[]", of_money, "USING hash (v)"
    ),
    "gin_array": Case("id SERIAL PRIMARY KEY, v TEXT[]", of_arrays, "USING gin (v)"),
    "gin_integers": Case("id SERIAL PRIMARY KEY, v BIGINT[]", of_many, "USING gin (v)"),
    "gin_json": Case("id SERIAL PRIMARY KEY, v JSONB", of_json, "USING gin (v)"),
    "gin_json_path": Case(
        "id SERIAL PRIMARY KEY, v JSONB", of_json, "USING gin (v jsonb_path_ops)"
    ),
    "gin_words": Case(
        "id SERIAL PRIMARY KEY, v TEXT",
        of_lexemes,
        "USING gin (to_tsvector('simple', v))",
    ),
    "gin_trigrams": Case(
        "id SERIAL PRIMARY KEY, v TEXT", index="USING gin (v gin_trgm_ops)"
    ),
    "gist_trigrams": Case(
        "id SERIAL PRIMARY KEY, v TEXT", index="USING gist (v gist_trgm_ops)"
    ),
    "gist_range": Case(
        "id SERIAL PRIMARY KEY, v NUMRANGE", of_ranges, "USING gist (v)", True
    ),
    "gist_words": Case(
        "id SERIAL PRIMARY KEY, v TEXT",
        of_lexemes,
        "USING gist (to_tsvector('simple', v))",
    ),
    "gist_text": Case(
        "id SERIAL PRIMARY KEY, v TEXT", index="USING gist (v, id)", is_stricter=True
    ),
    "spgist_range": Case(
        "id SERIAL PRIMARY KEY, v NUMRANGE", of_ranges, "USING spgist (v)", True
    ),
    "spgist_text": Case("id SERIAL PRIMARY KEY, v TEXT", index="USING spgist (v)"),
    "spgist_include": Case(
        "id SERIAL PRIMARY KEY, p POINT, v TEXT", index="USING spgist (p) INCLUDE (v)"
    ),
    "brin": Case(
        "id SERIAL PRIMARY KEY, v TEXT", index="USING brin (v)", is_stricter=True
    ),
    "brin_bloom": Case(
        "id SERIAL PRIMARY KEY, v TEXT", index="USING brin (v text_bloom_ops)"
    ),
    "partial": Case("id SERIAL PRIMARY KEY, v TEXT", index="(v) WHERE v > 'a'"),
    "lower": Case("id SERIAL PRIMARY KEY, v TEXT", index="(lower(v))"),
    "digest": Case("id SERIAL PRIMARY KEY, v TEXT", index="(md5(v))"),
    "grown": Case("id SERIAL PRIMARY KEY, v TEXT", index="(repeat(v, 5))"),
    "division": Case("id SERIAL PRIMARY KEY, v INTEGER", of_integers, "((10 / v))"),
    "condition": Case(
        "id SERIAL PRIMARY KEY, v INTEGER", of_integers, "(id) WHERE 10 / v > 1"
    ),
    "overflow": Case("id SERIAL PRIMARY KEY, v INTEGER", of_integers, "((v * 2), id)"),
    "conversion": Case(
        "id SERIAL PRIMARY KEY, v TEXT", of_words, "(CAST(v AS INTEGER))"
    ),
    "hash_of_conversion": Case(
        "id SERIAL PRIMARY KEY, v TEXT", of_words, "USING hash (CAST(v AS INTEGER))"
    ),
    "brin_of_division": Case(
        "id SERIAL PRIMARY KEY, v INTEGER", of_integers, "USING brin ((10 / v))"
    ),
    "whole_row_of_text": Case(
        "id SERIAL PRIMARY KEY, v TEXT, x TEXT", index="((v || coalesce(x, '')))"
    ),
    "external": Case(
        "id SERIAL PRIMARY KEY, v TEXT",
        index="(v)",
        then=("ALTER TABLE {} ALTER v SET STORAGE EXTERNAL",),
    ),
    "lz4": Case(
        "id SERIAL PRIMARY KEY, v TEXT COMPRESSION lz4",
        lambda: (letters(40) * n for n in (1, 60, 200, 3000, 15_000, 50_000)),
        "(v)",
    ),
    "in_the_row": Case(
        "id SERIAL PRIMARY KEY, v TEXT",
        then=("ALTER TABLE {} ALTER v SET STORAGE PLAIN",),
    ),
    "queries": Case("id SERIAL PRIMARY KEY, v TSQUERY", of_queries),
    "wide": Case(
        "id SERIAL PRIMARY KEY, v INTEGER, "
        + ", ".join(f"c{n} TEXT DEFAULT '{letters(22)}'" for n in range(WIDE)),
        of_integers,
    ),
    "nearly_wide": Case(
        "id SERIAL PRIMARY KEY, v TEXT, "
        + ", ".join(f"c{n} TEXT" for n in range(WIDE)),
    ),
}

SETUP = (
    "CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA pg_catalog",
    "CREATE EXTENSION IF NOT EXISTS btree_gist WITH SCHEMA pg_catalog",
    "DROP SCHEMA IF EXISTS twin CASCADE",
    "CREATE SCHEMA twin",
    "CREATE DOMAIN public.long AS TEXT CHECK (length(VALUE) < 9000)",
    "CREATE TYPE public.pair AS (a INTEGER, b TEXT)",
)

INSERT = "INSERT INTO {} (v) VALUES (%s)"


def outcome(connection: Any, sql: str, *values: Any) -> str | None:
    """The SQLSTATE with which a statement is refused."""
    try:
        connection.execute(sql, values)
    except (tique.Error, psycopg.Error) as error:
        return error.sqlstate
    return None


@pytest.fixture
def tables(engine: Any) -> Iterator[tuple[Any, psycopg.Connection[Any]]]:
    """The cases' tables, and twins of them in a schema that tique does not manage."""
    with closing(psycopg.connect(engine.place, autocommit=True)) as native:
        for statement in SETUP:
            native.execute(statement)
        native.execute("SET search_path = public")
        for name, case in CASES.items():
            for place in (f"public.{name}", f"twin.{name}"):
                native.execute(f"CREATE TABLE {place} ({case.columns})")
                for statement in case.then:
                    native.execute(statement.format(place))
                if case.index is not None:
                    native.execute(f"CREATE INDEX ON {place} {case.index}")
        tique.adopt(engine.url, [f"public.{name}" for name in CASES])
        yield engine, native
        native.execute("DROP SCHEMA twin CASCADE")


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="its indexes and its pages")
def test_a_row_without_room_is_refused_at_its_statement(tables):
    """By every way in which a row is written; all that was taken is there in the end."""
    engine, native = tables
    refusals = dict.fromkeys(CASES, 0)
    with closing(engine.connect(autocommit=True, checkpoint="manual")) as connection:
        for name, case in CASES.items():
            for number, value in enumerate(case.values()):
                ours = outcome(connection, INSERT.format(name), value)
                if not (case.is_stricter and ours == "54000"):
                    theirs = outcome(native, INSERT.format(f"twin.{name}"), value)
                    assert ours == theirs, f"{name}: value {number}, {value!r:.40}"
                refusals[name] += ours is not None
        assert connection.checkpoint() > 0
        for name in CASES:
            query = f"SELECT count(*), count(CAST(v AS TEXT)) FROM {name}"
            theirs = native.execute(query.replace(name, f"twin.{name}")).fetchall()
            assert connection.execute(query).fetchall() == theirs, name
    never = {"short", "hash", "gin_json", "gin_json_path", "gin_integers", "brin_bloom"}
    never |= {"gin_trigrams", "spgist_text", "digest", "gin_words", "gist_words"}
    assert {n for n, count in refusals.items() if not count} - never <= {"nearly_wide"}
    tique.detach(engine.url)
    # Everything of it storage holds, and would hold again.
    for name in CASES:
        native.execute(f"REINDEX TABLE public.{name}")
        query = "SELECT md5(string_agg(CAST(v AS TEXT), ',' ORDER BY v::TEXT)) FROM {}"
        ours = native.execute(query.format(f"public.{name}")).fetchall()
        assert ours == native.execute(query.format(f"twin.{name}")).fetchall(), name


WAYS = {
    "primary key": "CREATE TABLE {} (k TEXT PRIMARY KEY, v TEXT, n INTEGER)",
    "other key": "CREATE TABLE {} (n SERIAL PRIMARY KEY, k TEXT UNIQUE, v TEXT)",
    "bag": "CREATE TABLE {} (k TEXT, v TEXT, n INTEGER)",
}


def statements(kind: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """Statements that write long keys in every way, and ones that may follow them."""
    conflict = "" if kind == "bag" else "ON CONFLICT (k) DO UPDATE SET k = excluded.v"
    yield "INSERT INTO {} (k, v) VALUES ('b', 'b')", []
    for long in (letters(2600), letters(9000)):
        yield "INSERT INTO {} (k, v) VALUES (%s, 'a')", [long]
        yield "INSERT INTO {} (k, v) SELECT %s || 'x', 'c'", [long]
        yield (
            "INSERT INTO {} (k, v) SELECT i || %s, 'd' FROM generate_series(1, 2100) i",
            [long[:30]],
        )
        yield "UPDATE {} SET k = k || %s WHERE v = 'a'", [long]
        yield "UPDATE {} SET k = %s WHERE k = '1'", [long + "y"]
        yield "UPDATE {} SET v = %s WHERE v = 'a'", [long]
        yield "UPDATE {} SET k = %s || k, v = 'e' WHERE v = 'd'", [long[:-2500]]
        yield "INSERT INTO {} (k, v) VALUES ('b', %s) " + conflict, [long + "z"]
        yield "DELETE FROM {} WHERE v = 'd' OR v = 'e'", []
        yield "UPDATE {} SET v = v || 'f' WHERE v <> ''", []


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="its indexes")
@pytest.mark.parametrize("kind", WAYS)
def test_by_every_way_in_which_rows_are_written(engine, kind):
    """Buffered, staged, many at a time, conditionally; a refusal undoes the statement."""
    with closing(psycopg.connect(engine.place, autocommit=True)) as native:
        native.execute("CREATE SCHEMA twin")
        for place in ("public.t", "twin.t"):
            native.execute(WAYS[kind].format(place))
            native.execute(f"CREATE INDEX ON {place} (k)")
        tique.adopt(engine.url, ["t"])
        refused = 0
        with closing(engine.connect(autocommit=True)) as connection:
            for number, (sql, values) in enumerate(statements(kind)):
                in_transaction = number % 2
                if in_transaction:
                    connection.execute("BEGIN")
                    connection.execute("INSERT INTO t (k, v) VALUES ('g', 'g')")
                ours = outcome(connection, sql.format("t"), *values)
                if in_transaction:
                    connection.execute("DELETE FROM t WHERE k = 'g'")
                    connection.execute("COMMIT")
                theirs = outcome(native, sql.format("twin.t"), *values)
                assert ours == theirs, sql
                refused += ours == "54000"
                query = "SELECT k, v FROM {} ORDER BY k, v"
                rows = native.execute(query.format("twin.t")).fetchall()
                assert connection.execute(query.format("t")).fetchall() == rows, sql
            assert refused > 3
            connection.execute("INSERT INTO t (k, v) VALUES ('m', 'm')")
            many = [(letters(3000), "m"), ("h", "m")]
            with pytest.raises(tique.OperationalError) as caught:
                connection.cursor().executemany(
                    "UPDATE t SET k = %s WHERE k = %s", many
                )
            assert caught.value.sqlstate == "54000"
            assert 'for index "t_' in str(caught.value)
            with pytest.raises(tique.OperationalError, match="exceeds btree"):
                connection.cursor().executemany(
                    "INSERT INTO t (k, v) VALUES (%s, %s)", many
                )
            connection.execute("DELETE FROM t WHERE k = 'm'")
        tique.detach(engine.url)
        assert native.execute(query.format("public.t")).fetchall() == rows
        native.execute("DROP SCHEMA twin CASCADE")


@pytest.mark.written_for(["postgresql"], reason="its indexes")
def test_a_new_index_takes_recent_versions_too_or_is_refused(engine):
    """P4: rows acknowledged before the index was made are in storage only later."""
    with closing(engine.connect(autocommit=True, checkpoint="manual")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        connection.execute("INSERT INTO t VALUES (1, %s)", [letters(5000)])
        for shape in ("(v)", "USING brin (v)"):
            with pytest.raises(tique.OperationalError) as caught:
                connection.execute(f"CREATE INDEX odd ON t {shape}")
            assert caught.value.sqlstate == "54000"
            assert 'for index "odd"' in str(caught.value)
        connection.execute("UPDATE t SET v = 'a'")
        connection.checkpoint()
        connection.execute("CREATE INDEX odd ON t (v)")
        assert outcome(connection, "UPDATE t SET v = %s", letters(5000)) == "54000"
        connection.execute("UPDATE t SET v = 'b'")
        connection.execute("DROP INDEX odd")
        connection.execute("UPDATE t SET v = %s", [letters(5000)])
        assert connection.checkpoint() > 0
    tique.detach(engine.url)
    native = engine.native()
    assert native.execute("SELECT v FROM t").fetchall() == [(letters(5000),)]


@pytest.mark.written_for(["postgresql"], reason="its indexes")
def test_an_index_on_an_expression_that_fails_for_a_row(engine):
    """P4: a row for which it fails is refused at its statement, or the index is."""
    with closing(engine.connect(autocommit=True, checkpoint="manual")) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, v TEXT)")
        connection.execute("INSERT INTO t VALUES (1, 0, 'A')")
        with pytest.raises(tique.DataError):
            connection.execute("CREATE INDEX odd ON t ((1 / n))")
        assert connection.execute("SELECT n FROM t").fetchall() == [(0,)]
        connection.execute("UPDATE t SET n = 1")
        other = engine.connect(checkpoint="manual")
        other.execute("INSERT INTO t VALUES (2, 0, 'B')")
        with pytest.raises(tique.OperationalError, match="open transaction uses it"):
            connection.execute("CREATE INDEX odd ON t ((1 / n))")
        other.rollback()
        connection.execute("CREATE INDEX odd ON t ((1 / n), lower(v)) INCLUDE (v)")
        connection.execute(
            "CREATE INDEX CONCURRENTLY few ON t (id DESC) WHERE 10 / n > 1"
        )
        for statement in ("UPDATE t SET n = 0", "INSERT INTO t VALUES (3, 0, '')"):
            with pytest.raises(tique.DataError):
                connection.execute(statement)
        connection.execute("INSERT INTO t VALUES (3, 2, 'C')")
        assert connection.checkpoint() > 0
        assert connection.execute("SELECT id, n FROM t ORDER BY 1").fetchall() == [
            (1, 1),
            (3, 2),
        ]
    tique.detach(engine.url)
    found = engine.native().execute(
        "SELECT indexdef FROM pg_indexes WHERE tablename = 't' ORDER BY indexname"
    )
    assert "WHERE ((10 / n) > 1)" in found.fetchall()[0][0]
