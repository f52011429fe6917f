"""Compiling PostgreSQL's extension, and installing it where the server looks."""

import os
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

import tique_udfs
from tests.plugins.postgresql import create_extension, in_database, server_pg_config
from tique_udfs import BuildError, pgxs
from tique_udfs.build import build

SOURCES = Path(tique_udfs.__file__).parent


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TIQUE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
def test_build_compiles_once_and_leaves_the_source_alone(cache):
    before = set(SOURCES.rglob("*"))
    library = build("postgresql")
    assert set(SOURCES.rglob("*")) == before
    assert {path.name for path in cache.rglob("*")} == {
        library.parent.name,
        library.name,
        "tique.control",
        "tique--1.0.sql",
    }
    made = library.stat()
    assert build("postgresql") == library
    assert library.stat() == made
    assert build("postgresql", force=True) == library
    assert library.stat().st_ino != made.st_ino


def test_missing_development_files_are_named(cache, monkeypatch):
    monkeypatch.setenv("PG_CONFIG", "/nonexistent/pg_config")
    with pytest.raises(BuildError, match=r"no pg_config: .* postgresql-server-dev"):
        build("postgresql")


def test_what_make_says_is_in_the_error(cache, tmp_path, monkeypatch):
    program = tmp_path / "pg_config"
    program.write_text("#!/bin/sh\necho /nonexistent/pgxs.mk\n")
    program.chmod(0o755)
    monkeypatch.setenv("PG_CONFIG", str(program))
    with pytest.raises(BuildError, match=r"status 2:\n(.|\n)*/nonexistent/pgxs\.mk"):
        build("postgresql")
    assert list(cache.iterdir()) == []


@pytest.mark.slow
def test_install_replaces_files_as_a_whole(cache, tmp_path, pg_config):
    folder = pg_config(tmp_path)
    library = build("postgresql")
    control = folder / "share" / "extension" / "tique.control"
    control.write_text("of an older one")
    with control.open() as opened:
        installed = pgxs.install()
        assert opened.read() == "of an older one"
    assert installed == [
        folder / "lib" / library.name,
        folder / "share" / "extension" / "tique--1.0.sql",
        control,
    ]
    assert sorted(path for path in folder.glob("[ls]*/**/*") if path.is_file()) == (
        sorted(installed)
    )
    assert f"module_pathname = '$libdir/{library.name}'" in control.read_text()
    assert (folder / "lib" / library.name).read_bytes() == library.read_bytes()
    assert {oct(path.stat().st_mode & 0o777) for path in installed} == {
        "0o755",
        "0o644",
    }


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_named(cache, tmp_path, pg_config):
    folder = pg_config(tmp_path)
    (folder / "lib").rmdir()
    (folder / "lib").touch()
    with pytest.raises(
        BuildError, match=r"cannot install .*/lib/tique-\w+\.so: .*root"
    ):
        pgxs.install()
    assert list((folder / "share" / "extension").iterdir()) == []


@pytest.mark.slow
def test_two_builds_do_not_share_a_sequencer(cache, postgresql_cluster):
    """One must not touch the other's shared memory; nor may one's functions call the
    other's, which the server loads with names that are visible to all libraries."""
    postgresql_cluster.run("createdb", "builds")
    url = in_database(postgresql_cluster.url, "builds")
    create_extension(url)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        pgxs._make(folder, "other", server_pg_config())
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            connection.execute("SELECT tique.recover(7)")
            connection.execute(
                "CREATE FUNCTION public.sts() RETURNS bigint LANGUAGE c "
                f"AS '{folder}/tique-other', 'sql_sts'"
            )
            for _ in range(2):
                with pytest.raises(
                    psycopg.errors.ObjectNotInPrerequisiteState,
                    match="in the care of another build",
                ):
                    connection.execute("SELECT public.sts()")
                sts = connection.execute("SELECT tique.sts()").fetchone()
                assert sts == (7,)


def test_installcheck(postgresql_cluster, tmp_path):
    """A build with PostgreSQL's makefiles can check its installation with them."""
    makefile = Path(tique_udfs.__file__).parent / "postgresql" / "Makefile"
    server = urlsplit(postgresql_cluster.socket_url)
    done = subprocess.run(
        [
            *("make", "-f", str(makefile), "installcheck"),
            f"EXTRA_REGRESS_OPTS=--outputdir={tmp_path}",
            f"PG_CONFIG={server_pg_config()}",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "MAKEFLAGS": "",
            "PGHOST": str(postgresql_cluster.folder),
            "PGPORT": str(postgresql_cluster.port),
            "PGUSER": server.username,
            "PGPASSWORD": server.password,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    differences = tmp_path / "regression.diffs"
    assert done.returncode == 0, (
        done.stdout
        + done.stderr
        + (differences.read_text() if differences.exists() else "")
    )
