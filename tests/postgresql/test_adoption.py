"""Tables that were made natively: taken in and let go again."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import tique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.targets.cluster import Cluster

from tests.plugins.postgresql import empty

FORMS = ("plain", "extension")


@pytest.fixture
def url(postgresql_cluster: Cluster) -> Iterator[str]:
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


def natively(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements without tique; the last one's rows."""
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def traces(url: str) -> list[tuple[Any, ...]]:
    """tique's objects in a database."""
    return natively(
        url,
        "SELECT nspname FROM pg_namespace WHERE nspname = 'tique' UNION ALL "
        "SELECT extname FROM pg_extension WHERE extname = 'tique' UNION ALL "
        "SELECT relname FROM pg_class WHERE relname LIKE '%tique%'",
    )


REFUSED = {
    "foreign_key": (
        "has a FOREIGN KEY constraint (t_a_fkey)",
        "CREATE TABLE p (a INTEGER PRIMARY KEY)",
        "CREATE TABLE t (a INTEGER REFERENCES p)",
    ),
    "referenced": (
        "is referenced by another table's FOREIGN KEY constraint (public.c)",
        "CREATE TABLE t (a INTEGER PRIMARY KEY)",
        "CREATE TABLE c (a INTEGER REFERENCES t)",
    ),
    "generated": (
        "has a unique index with a generated column, i",
        "CREATE TABLE t (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1) STORED)",
        "CREATE UNIQUE INDEX i ON t (b)",
    ),
    "partitioned": (
        "is partitioned",
        "CREATE TABLE t (a INTEGER) PARTITION BY LIST (a)",
    ),
    "partition": (
        "is a partition of another table",
        "CREATE TABLE p (a INTEGER) PARTITION BY LIST (a)",
        "CREATE TABLE t PARTITION OF p FOR VALUES IN (1)",
    ),
    "parent": (
        "inherits from another table, or another one from it",
        "CREATE TABLE t (a INTEGER)",
        "CREATE TABLE c () INHERITS (t)",
    ),
    "heir": (
        "inherits from another table, or another one from it",
        "CREATE TABLE p (a INTEGER)",
        "CREATE TABLE t () INHERITS (p)",
    ),
    "unlogged": ("temporary or unlogged", "CREATE UNLOGGED TABLE t (a INTEGER)"),
    "policies": (
        "has row-level security",
        "CREATE TABLE t (a INTEGER)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    ),
    "trigger": (
        "has a trigger or a rule, watch",
        "CREATE TABLE t (a INTEGER)",
        "CREATE TRIGGER watch BEFORE UPDATE ON t FOR EACH ROW "
        "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    ),
    "rule": (
        "has a trigger or a rule, nothing",
        "CREATE TABLE t (a INTEGER)",
        "CREATE RULE nothing AS ON DELETE TO t DO INSTEAD NOTHING",
    ),
    **{
        f"unique_index_{name}": (
            f"has a unique index {why}, sole",
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b VARCHAR(9))",
            f"CREATE UNIQUE INDEX sole ON t {shape}",
        )
        for name, why, shape in (
            ("of_all", "on whole rows", "(a, (t IS NULL))"),
            (
                "without_hash",
                "of values without a hash",
                "(CAST(id AS BIT(4)))",
            ),
            (
                "by_pattern_of",
                "with an operator class other than the type's own",
                "(lower(a) text_pattern_ops)",
            ),
            (
                "by_pattern",
                "with an operator class other than the type's own",
                "(a text_pattern_ops)",
            ),
            # Both are the default of a type that TEXT and VARCHAR pass for.
            (
                "padded",
                "with an operator class other than the type's own",
                "(id, a bpchar_ops)",
            ),
            (
                "padded_varchar",
                "with an operator class other than the type's own",
                "(b bpchar_ops)",
            ),
        )
    },
    "unique_index_of_loose_texts": (
        "has a unique index with a collation by which different texts are equal, sole",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)",
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', "
        "deterministic = false)",
        "CREATE UNIQUE INDEX sole ON t (lower(a) COLLATE loose)",
    ),
    "unique_index_invalid": (
        "has a unique index that is not valid, sole",
        "CREATE TABLE t (a INTEGER)",
        "CREATE UNIQUE INDEX sole ON t (a)",
        "UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'sole'::regclass",
    ),
    "unique_index_nulls_equal": (
        "has a unique index of arrays in which NULL is equal to NULL, sole",
        "CREATE TABLE t (a INTEGER[])",
        "CREATE UNIQUE INDEX sole ON t (a) NULLS NOT DISTINCT",
    ),
    "deferrable": (
        "has a deferrable constraint, t_pkey",
        "CREATE TABLE t (a INTEGER PRIMARY KEY DEFERRABLE)",
    ),
    "exclusion": (
        "has a constraint of a kind tique cannot keep (t_r_excl)",
        "CREATE TABLE t (r INT4RANGE, EXCLUDE USING gist (r WITH &&))",
    ),
    "nulls_equal": (
        "has a unique index of arrays in which NULL is equal to NULL, t_a_key",
        "CREATE TABLE t (a INTEGER[], UNIQUE NULLS NOT DISTINCT (a))",
    ),
    "collation": (
        "has a column with a collation by which different texts are equal, 'a'",
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', "
        "deterministic = false)",
        "CREATE TABLE t (a TEXT COLLATE loose)",
    ),
    "reserved": ("column name '_cts' is reserved", "CREATE TABLE t (_cts INTEGER)"),
    "view": ("is a view", "CREATE VIEW t AS SELECT 1 AS a"),
    "sequence": ("is a sequence", "CREATE SEQUENCE t"),
    "no_columns": ("has no columns", "CREATE TABLE t ()"),
    **{
        f"bag_of_{kind}": (
            "has no PRIMARY KEY, and nothing else tells its rows apart",
            f"CREATE TABLE t (a INTEGER, b {kind})",
        )
        for kind in ("json", "xml", "point", "json[]", "polygon")
    },
}


REFUSED_FROM_18 = {
    "overlapping_key": (
        "has a constraint of a kind tique cannot keep (t_pkey)",
        "CREATE EXTENSION btree_gist",
        "CREATE TABLE t (a INTEGER, r INT4RANGE, PRIMARY KEY (a, r WITHOUT OVERLAPS))",
    ),
    "overlapping_unique": (
        "has a constraint of a kind tique cannot keep (t_a_r_key)",
        "CREATE EXTENSION btree_gist",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, r INT4RANGE, "
        "UNIQUE (a, r WITHOUT OVERLAPS))",
    ),
    "perhaps_null": (
        "has a constraint of a kind tique cannot keep (t_v)",
        "CREATE TABLE t (a INTEGER PRIMARY KEY, v INTEGER)",
        "ALTER TABLE t ADD CONSTRAINT t_v NOT NULL v NOT VALID",
    ),
    "not_enforced": (
        "has a constraint of a kind tique cannot keep (t_v)",
        "CREATE TABLE t (v INTEGER CONSTRAINT t_v CHECK (v > 0) NOT ENFORCED)",
    ),
    "virtual": (
        "has a virtual column, 'b'",
        "CREATE TABLE t (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1) VIRTUAL)",
    ),
}


@pytest.mark.parametrize("case", [*REFUSED, *REFUSED_FROM_18])
def test_refused(url, case):
    """P10: a table that tique could not keep is named; the attempt leaves nothing."""
    if case in REFUSED_FROM_18 and int(*natively(url, "SHOW server_version_num")[0]) < (
        180_000
    ):
        pytest.skip("before release 18 PostgreSQL has nothing of the kind")
    message, *statements = (REFUSED | REFUSED_FROM_18)[case]
    natively(url, *statements)
    with pytest.raises(tique.NotSupportedError) as caught:
        tique.adopt(url, ["t"])
    assert message in str(caught.value)
    assert traces(url) == []


def test_unique_indexes_of_all_types(url):
    """P9: with the operator class that a UNIQUE constraint has, a key as that is."""
    kinds = (
        *("INTEGER", "TEXT", "VARCHAR(5)", "CHAR(5)", "INET", "CIDR", "UUID", "JSONB"),
        *(
            "INTEGER[]",
            "INT4RANGE",
            "small",
            "mood",
            "pair",
            "NUMERIC",
            "BYTEA",
            "name",
        ),
    )
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    natively(
        url,
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TYPE pair AS (a INTEGER, b TEXT)",
        "CREATE DOMAIN tiny AS VARCHAR",
        "CREATE DOMAIN small AS tiny CHECK (VALUE <> '')",
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})",
        *[f"CREATE UNIQUE INDEX i{i} ON t (c{i})" for i in range(len(kinds))],
        'CREATE UNIQUE INDEX more ON t (id DESC, c1 COLLATE "C" text_ops NULLS FIRST) '
        "INCLUDE (c2, c3)",
        "INSERT INTO t (id, c2, c3, c10) VALUES (1, 'a', 'a', 'a')",
    )
    assert tique.adopt(url) == ["public.t"]
    with closing(tique.connect(url, autocommit=True)) as connection:
        keys = connection._database.catalog.find(None, "t").unique
        assert keys == ((0, 2), *((i,) for i in range(1, len(kinds) + 1)))
        for column, value in (("c2", "a"), ("c3", "a   "), ("c10", "a")):
            with pytest.raises(
                tique.IntegrityError, match=f'constraint "i{column[1:]}"'
            ):
                connection.execute(
                    f"INSERT INTO t (id, {column}) VALUES (2, %s)", (value,)
                )
    tique.detach(url)
    count = (
        "SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass AND indisunique"
    )
    assert natively(url, count) == [(len(kinds) + 2,)]


def test_a_unique_index_that_comes_without_tique(url):
    """P3: it is a key when the catalog is read again; versions before do not know it."""
    with (
        closing(tique.connect(url, checkpoint="manual")) as one,
        closing(tique.connect(url)) as two,
    ):
        one.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER UNIQUE)"
        )
        natively(url, "CREATE UNIQUE INDEX sole ON t (a)")
        one.execute("INSERT INTO t VALUES (1, 1, 1)")
        one.commit()
        one.execute("CREATE TABLE u (id INTEGER)")
        with pytest.raises(tique.IntegrityError, match='constraint "sole"'):
            one.execute("INSERT INTO t VALUES (2, 1, 2)")
        one.rollback()
        one.execute("INSERT INTO t VALUES (2, 2, 2)")
        two.execute("INSERT INTO t VALUES (3, 2, 3)")
        one.commit()
        with pytest.raises(tique.SerializationError):
            two.commit()
        two.rollback()
        one.checkpoint()
        assert one.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


def test_names_as_long_as_they_can_be(url):
    """P10: the cache and staging tables' names do not depend on them."""
    schema, first, second = "s" * 63, "t" * 62 + "1", "t" * 62 + "2"
    natively(url, f"CREATE SCHEMA {schema}")
    for name in (first, second):
        natively(
            url, f"CREATE TABLE {schema}.{name} (a INTEGER PRIMARY KEY, b INTEGER)"
        )
    tique.adopt(url, [f"{schema}.{first}", f"{schema}.{second}"])
    with tique.connect(url, checkpoint="manual") as connection:
        connection.execute(f"INSERT INTO {schema}.{first} VALUES (1, 1), (2, 2)")
        connection.execute(f"UPDATE {schema}.{first} SET b = b + 1 WHERE b < 9")
        connection.execute(
            f"INSERT INTO {schema}.{second} SELECT * FROM {schema}.{first}"
        )
        connection.commit()
        for _ in range(2):
            query = (
                f"SELECT * FROM {schema}.{first} JOIN {schema}.{second} USING (a, b)"
            )
            assert sorted(connection.execute(query).fetchall()) == [(1, 2), (2, 3)]
            connection.commit()
            connection.checkpoint()
    tique.detach(url)
    assert traces(url) == []


def test_temporary_tables_are_nobody_elses(url):
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        connection.execute("CREATE TEMPORARY TABLE t (a INTEGER)")
        with pytest.raises(tique.ProgrammingError, match="no table") as caught:
            tique.adopt(url, ["t"])
    assert caught.value.sqlstate == "42P01"
    assert traces(url) == []


def test_bags_of_types_with_equality(url):
    """Rows of jsonb, arrays, domains, enums and composites are told apart."""
    natively(
        url,
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TYPE pair AS (a INTEGER, b TEXT)",
        "CREATE DOMAIN small AS INTEGER CHECK (value < 10)",
        "CREATE TABLE t (a JSONB, b INTEGER[], c mood, d pair, e small, f VARCHAR(3), "
        "g INT4RANGE, h INET, i BIT(3), j INTERVAL, k MONEY, l BYTEA)",
        "INSERT INTO t (a, c, d) VALUES ('{}', 'ok', '(1,x)'), ('{}', 'ok', '(1,x)'), "
        "(NULL, 'sad', NULL)",
    )
    assert tique.adopt(url) == ["public.t"]
    with closing(tique.connect(url, autocommit=True)) as connection:
        assert connection.execute("DELETE FROM t WHERE c = 'sad'").rowcount == 1
        assert connection.execute("UPDATE t SET e = 3").rowcount == 2
        connection.execute("INSERT INTO t (c) VALUES ('sad')")
        query = "SELECT c, e, count(*) FROM t GROUP BY c, e ORDER BY c"
        assert connection.execute(query).fetchall() == [("sad", None, 1), ("ok", 3, 2)]
    tique.detach(url)
    assert natively(url, query) == [("sad", None, 1), ("ok", 3, 2)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "column",
    [
        "SERIAL",
        "INTEGER GENERATED BY DEFAULT AS IDENTITY",
        "INTEGER GENERATED ALWAYS AS IDENTITY",
        "BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 1 INCREMENT BY 1)",
    ],
)
def test_numbers_from_a_sequence(url, form, column):
    """P9: an INSERT without the column takes the next number, before and after."""
    url += f"&sequencer={form}"
    natively(
        url.partition("&sequencer")[0],
        f"CREATE TABLE t (id {column} PRIMARY KEY, v TEXT)",
        "INSERT INTO t (v) VALUES ('a'), ('b')",
    )
    assert tique.adopt(url) == ["public.t"]
    with closing(tique.connect(url)) as connection:
        assert connection.execute("INSERT INTO t (v) VALUES ('c'), ('d')").rowcount == 2
        returned = connection.execute(
            "INSERT INTO t (v) VALUES (%s) RETURNING id", ["e"]
        )
        assert returned.fetchall() == [(5,)]
        connection.execute("INSERT INTO t (v) SELECT 'f'")
        connection.execute("INSERT INTO t VALUES (DEFAULT, 'g')")
        connection.cursor().executemany(
            "INSERT INTO t (v) VALUES (%s)", [("h",), ("i",)]
        )
        connection.execute("INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (100, 'z')")
        connection.commit()
    tique.detach(url)
    rest = natively(
        url.partition("&sequencer")[0],
        "INSERT INTO t (v) VALUES ('j')",
        "SELECT * FROM t ORDER BY id",
    )
    assert rest == [*enumerate("abcdefghij", 1), (100, "z")]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_detaching_leaves_nothing_and_it_can_be_adopted_again(url, form):
    """P4, P5: every committed row is in the table itself, and nothing else is left."""
    natively(url, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT UNIQUE)")
    before = natively(url, "SELECT oid FROM pg_class WHERE relname = 't'")
    for number in range(1, 4):
        chosen = f"{url}&sequencer={form}"
        assert tique.adopt(chosen) == ["public.t"]
        with closing(tique.connect(chosen)) as connection:
            assert connection.status().sequencer == f"server ({form})"
            connection.execute("INSERT INTO t VALUES (%s,%s)", [number, "x" * number])
            connection.commit()
        assert traces(url)
        assert tique.detach(chosen) == ["public.t"]
        assert traces(url) == []
        assert natively(url, "SELECT max(id), count(*) FROM t") == [(number, number)]
    assert natively(url, "SELECT oid FROM pg_class WHERE relname = 't'") == before


@pytest.mark.parametrize("form", FORMS)
def test_the_other_form_is_refused(url, form):
    """P3: all processes of a database use one sequencer."""
    natively(url, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    tique.adopt(f"{url}&sequencer={form}")
    (other,) = {*FORMS} - {form}
    with pytest.raises(tique.ProgrammingError, match=f"in the form '{form}'") as caught:
        tique.connect(f"{url}&sequencer={other}")
    assert f"leave ?sequencer={other} out" in str(caught.value)
    with closing(tique.connect(url)) as connection:
        assert connection.status().sequencer == f"server ({form})"


def test_there_is_no_other_form(url):
    with pytest.raises(tique.ProgrammingError, match="extension, plain"):
        tique.connect(f"{url}&sequencer=quantum")


def test_views_of_adopted_tables(url):
    """P1: versions that are not yet folded too."""
    natively(
        url,
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "CREATE VIEW v AS SELECT id FROM t",
    )
    tique.adopt(url)
    with closing(tique.connect(url)) as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        assert connection.execute("SELECT * FROM v").fetchall() == [(1,)]
        connection.commit()
    tique.detach(url)
    assert natively(url, "SELECT * FROM v") == [(1,)]
