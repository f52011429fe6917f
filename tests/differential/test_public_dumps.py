"""Public dumps of PostgreSQL, statement by statement: the same rows as natively (P10).

They are not a part of this repository. Those of these commits are downloaded, or are taken
from the folder that ``TIQUE_PUBLIC_DUMPS`` names. Each statement that tique refuses is on a
list, and so is each that fails because of one that was refused; nothing else fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import urllib.error
import urllib.request
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

import tique
from tests.differential.dumps import Piece, load, pieces
from tests.effort import LONG
from tests.plugins.postgresql import in_database

_FOLDER = "TIQUE_PUBLIC_DUMPS"
_SITE = "https://raw.githubusercontent.com"
_TIMEOUT = 30
_ROLE = "postgres"
"""The owner of all objects, in those dumps that say one."""


@dataclass(frozen=True)
class Dump:
    """Files of a repository, and what tique does not take of them.

    Attributes
    ----------
    place
        Owner, name and commit of the repository.
    files
        The files' paths, and the SHA-256 of each.
    refused
        Patterns of the beginnings of statements that fail, by the kind of what is refused.
    lacks
        Tables that are not there afterwards.
    """

    place: str
    files: dict[str, str]
    refused: dict[str, str]
    lacks: frozenset[str] = frozenset()


DUMPS = {
    "chinook": Dump(
        "lerocha/chinook-database/7f67772503d71ba90f19283c38e93923addb43fa",
        {
            "ChinookDatabase/DataSources/Chinook_PostgreSql.sql": (
                "e3fde5c1a5b51a2a91429a702c9ca6e69ba56e6c7f5e112724d70c3d03db695e"
            )
        },
        {},
    ),
    "northwind": Dump(
        "pthom/northwind_psql/cd0ef28d66369fbe177778e604e4be0f153c9e5c",
        {
            "northwind.sql": (
                "0ee30c01ba282f7194f38bf7f99cd6be0470b7ee5f67d0f7ca41fb058d735e0c"
            )
        },
        {},
    ),
    "pagila": Dump(
        "devrimgunduz/pagila/fef9675714cfba1756df4719b5e36075a7ddf90e",
        {
            "pagila-schema.sql": (
                "8ce358e4c8014087b85296694a0893887bd7a4190e3ce407f2721b86b98e5707"
            ),
            "pagila-data.sql": (
                "fb81bec377687c83e11d2a24916ae28656d85550bf0ada798305bf7e2af9823b"
            ),
        },
        {
            "row security": r"SET row_security = off",
            # That of a new database belongs to pg_database_owner.
            "another owner": r"ALTER SCHEMA public OWNER TO",
            "triggers": r"CREATE TRIGGER",
            "partitions": (
                r"(?:CREATE|ALTER) TABLE (?:ONLY )?public\.payment\b(?!_)"
                r"|(?:CREATE (?:MATERIALIZED )?VIEW|ALTER TABLE) public\."
                r"(?:rental_by_category|sales_by_film_category|sales_by_store)\b"
                r"|CREATE UNIQUE INDEX rental_category\b"
            ),
            "calls of an aggregate of the dump's own": (
                r"(?:CREATE VIEW|ALTER TABLE) public\."
                r"(?:actor_info|film_list|nicer_but_slower_film_list)\b"
            ),
        },
        # With its partitions, which are tables of their own.
        frozenset({"payment"}),
    ),
}

_TABLES = (
    "SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'public' ORDER BY 1"
)
_PSQLS = re.compile(r"(?:DROP|CREATE) DATABASE\b")
"""Statements about the database itself, which is there."""


def texts(dump: Dump, folder: Path) -> list[str]:
    """The texts of its files, or a skipped test."""
    found = []
    for path, digest in dump.files.items():
        name = Path(path).name
        if (given := os.environ.get(_FOLDER)) is not None:
            folder = Path(given)
        else:
            try:
                with urllib.request.urlopen(
                    f"{_SITE}/{dump.place}/{path}", timeout=_TIMEOUT
                ) as answer:
                    (folder / name).write_bytes(answer.read())
            except (OSError, urllib.error.URLError) as error:
                pytest.skip(f"{name} cannot be downloaded ({error}); set {_FOLDER}")
        if not (folder / name).exists():
            pytest.skip(f"{_FOLDER} has no {name}")
        data = (folder / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == digest, f"{name} is another one"
        found.append(data.decode())
    return found


@pytest.fixture
def twins(postgresql_cluster):
    """The URLs of two databases, natively and through tique, of the dumps' role."""
    names = "dumped_natively", "dumped_here"
    cluster = postgresql_cluster
    with closing(psycopg.connect(cluster.url, autocommit=True)) as connection:
        connection.execute(
            f"CREATE ROLE {_ROLE} SUPERUSER LOGIN PASSWORD '{cluster.password}'"
        )
        for name in names:
            cluster.run("createdb", name)
        yield [
            in_database(cluster.url, name).replace("//tique:", f"//{_ROLE}:")
            for name in names
        ]
        for name in names:
            cluster.run("dropdb", name)
        connection.execute(f"DROP ROLE {_ROLE}")


def rows(connection, table):
    """All rows of a table, in an order that both have."""
    return sorted(map(repr, connection.execute(f'SELECT * FROM public."{table}"')))


@pytest.mark.skipif(not LONG, reason="takes minutes: make test-long")
@pytest.mark.parametrize("name", DUMPS)
def test_a_dump_is_loaded(twins, tmp_path, name):
    dump = DUMPS[name]
    script = [
        piece
        for text in texts(dump, tmp_path)
        for piece in pieces(text)
        if not _PSQLS.match(piece.sql)
    ]
    failed = []
    with (
        closing(psycopg.connect(twins[0], autocommit=True)) as native,
        closing(tique.connect(twins[1], autocommit=True)) as ours,
    ):
        for piece in script:
            load(native, piece)
            try:
                load(ours, piece)
            except (tique.NotSupportedError, tique.ProgrammingError) as error:
                failed.append((piece.sql, str(error)))
        known = re.compile("|".join(dump.refused.values()) or "(?!)")
        assert [each for each in failed if not known.match(each[0])] == []
        expected = [piece.sql for piece in script if known.match(piece.sql)]
        assert [sql for sql, _ in failed] == expected
        for pattern in dump.refused.values():
            assert any(re.match(pattern, sql) for sql in expected), pattern
        tables = [table for (table,) in native.execute(_TABLES)]
        there = [table for table in tables if table not in dump.lacks]
        assert [table for (table,) in ours.execute(_TABLES)] == there
        loaded = {table: rows(ours, table) for table in there}
        for table in there:
            assert loaded[table] == rows(native, table), table
        ours.checkpoint()
    with closing(psycopg.connect(twins[1])) as storage:
        # What a fold has written is what was loaded (P4).
        assert {table: rows(storage, table) for table in there} == loaded


@pytest.mark.engine_free
def test_statements_are_cut():
    dump = """
        -- a comment; with 'quotes
        /* and /* another; */ ; */
        SELECT ';', E'\\';', "a;b", $x$ ; $y$ ; $x$, '\\', 'it''s';
        \\c shop;
        CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS $$ SELECT 1; $$;;
        CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2);
        SELECT 5 /* so; */ AS e -- and;
          ;
COPY t (a, b) FROM stdin;
1\tit's
2\t;
\\.

COPY u FROM STDIN;
\\.
SELECT 1
    """.replace("        \\c", "\\c")
    assert list(pieces(dump)) == [
        Piece("SELECT ';', E'\\';', \"a;b\", $x$ ; $y$ ; $x$, '\\', 'it''s'"),
        Piece("CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS $$ SELECT 1; $$"),
        Piece("CREATE RULE r AS ON INSERT TO t DO (SELECT 1; SELECT 2)"),
        Piece("SELECT 5 /* so; */ AS e -- and;"),
        Piece("COPY t (a, b) FROM stdin", "1\tit's\n2\t;\n"),
        Piece("COPY u FROM STDIN", ""),
        Piece("SELECT 1"),
    ]
