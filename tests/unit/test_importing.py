"""`import tique` costs little: heavy modules are loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tique

HEAVY = (
    "duckdb numpy psycopg pyarrow pymonetdb sqlglot "
    "tique_backends tique_rewriter tique_udfs subprocess email ctypes asyncio"
)


# Modules that took most of the time of connect() to a DuckDB file, and those for others.
NOT_TO_CONNECT = (
    "alembic asyncio click django ensurepip multiprocessing numpy opentelemetry pandas "
    "polars psycopg pyarrow pymonetdb rich sqlalchemy tique.aio tique.cli tique.django "
    "tique.observability tique.sqlalchemy tique_backends.monetdb "
    "tique_backends.postgresql unittest"
)


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_nothing_heavy_is_loaded():
    loaded = run(
        "import sys; before = set(sys.modules); import tique; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    assert "tique" in loaded
    assert not set(HEAVY.split()) & set(loaded)


@pytest.mark.slow
@pytest.mark.duckdb
def test_connect_and_a_query_load_what_they_need(tmp_path):
    url = f"duckdb:///{tmp_path}/shop.duckdb"
    with tique.connect(url, autocommit=True) as conn:
        conn.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INT CHECK (n > 0))")
        conn.execute("INSERT INTO t VALUES (1, 2)")
    loaded, found = run(
        "import sys, tique\n"
        f"with tique.connect({url!r}) as conn:\n"
        "    (found,) = conn.execute('SELECT n FROM t WHERE id = 1').fetchone()\n"
        "    print(*sys.modules, sep=',', end=' ')\n"
        "print(found)"
    )
    assert found == "2"
    assert "tique_backends.duckdb" in loaded.split(",")
    assert not set(NOT_TO_CONNECT.split()) & set(loaded.split(","))


def test_every_name_is_there():
    names = run("import tique; print(*(n for n in tique.__all__ if getattr(tique, n)))")
    assert "connect" in names
    assert len(names) == int(run("import tique; print(len(tique.__all__))")[0])
    assert set(names) <= set(run("import tique; print(*dir(tique))"))


def test_unknown_names_are_unknown():
    found = run(
        "import tique\n"
        "try: tique.conect\n"
        "except AttributeError as error: print(hasattr(tique, 'x'), error)"
    )
    assert found[0] == "False"
    assert "'conect'" in found


def test_threads_that_use_it_first_at_once():
    names = "adopt", "connect", "Connection", "IsolationLevel", "run_transaction"
    assert run(
        "import threading, tique\n"
        "found, start = [], threading.Barrier(5)\n"
        "def use(name):\n"
        "    start.wait()\n"
        "    found.append(getattr(tique, name).__name__)\n"
        f"threads = [threading.Thread(target=use, args=(n,)) for n in {names}]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(*sorted(found))"
    ) == sorted(names)
