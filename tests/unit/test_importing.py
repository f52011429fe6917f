"""`import tique` costs little: heavy modules are loaded when they are first used."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "duckdb numpy psycopg pyarrow pymonetdb sqlglot "
    "tique_backends tique_rewriter tique_udfs subprocess email ctypes asyncio"
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
