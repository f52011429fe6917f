"""Marks that say where a test runs; ``make`` selects by them and by nothing else.

Every test has one *subject*: the mark that it, its class or its module was given, or
else the engine that it takes as a parameter, or the server whose fixture it uses, or
the subject of its folder, or else DuckDB, which is in every environment. The subject
and the folder tell the *runs* that the test is in, which are marks too.

A test without any of these is in two runs, and none is in no run: ``add_marks`` is
total, and ``tests/unit/test_selection.py`` holds the Makefile against ``RUNS``.

In a short run a test has each of its cases on one engine, in turn, so that every engine
gets its share (``_spread``), and of many cases on a server, or of slow ones, every so many
(``_thinned``); in a long run all of them on all.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from tests.effort import LONG
from tests.plugins.engine import Engine, label

if TYPE_CHECKING:
    import pytest

DUCKDB, MONETDB, POSTGRESQL = "duckdb", "monetdb", "postgresql"
PLAIN, REWRITER, ENGINE_FREE = "postgresql_plain", "rewriter", "engine_free"
CITUS = "citus"

SUBJECTS = {
    DUCKDB: "is about DuckDB, or nothing else is known of it",
    MONETDB: "needs MonetDB",
    POSTGRESQL: "needs PostgreSQL",
    PLAIN: "needs PostgreSQL, with the sequencer in plain SQL",
    CITUS: "needs PostgreSQL with Citus: is skipped where that is not installed",
    REWRITER: "is about sqlglot's parse of a text, which is compiled or not",
    ENGINE_FREE: "asks no engine and parses no SQL: one environment is enough",
}

RUNS = {
    "in_duckdb20": {DUCKDB, MONETDB, REWRITER, ENGINE_FREE},
    "in_duckdb15": {DUCKDB, POSTGRESQL, REWRITER},
    "in_plain": {PLAIN},
    "in_citus": {CITUS},
}
"""The subjects of each run of ``make``."""

BOTH_SEQUENCERS = "both_sequencers"
"""A test with the plain sequencer that is in PostgreSQL's run too."""

ONE_DUCKDB = "one_duckdb"
"""A test that hammers DuckDB 1.5 only in a long run."""

EVERY_ENGINE = "every_engine"
"""A test that no engine leaves to another in a short run, either."""

SLOW = "slow"
"""A test of several seconds: an engine has one case of it in a short run."""

LONG_ONLY = "long_only"
"""A test that takes long, and finds what others find sooner: in a long run only."""

IN_LONG = "in_long"
"""Of the others of these: they are in no short run."""

_FOLDERS = {
    "citus": CITUS,
    "monetdb": MONETDB,
    "postgresql": POSTGRESQL,
    "udfs/postgresql": POSTGRESQL,
    "rewriter": REWRITER,
}
_SERVERS = {"monetdb_server": MONETDB, "postgresql_cluster": POSTGRESQL}
_TESTS = Path(__file__).parent.parent

_ABOUT_TIQUE = {
    "benchmarks",
    "cli",
    "crash",
    "dbapi",
    "isolation",
    "jepsen",
    "poison",
    "signals",
    "tools",
}
"""Folders of tests about tique, and about DuckDB's releases by the way: half of them
run with either release, and in a long run all of them with both."""

_SPREAD = _ABOUT_TIQUE | {"differential", "processes", "sharing"}
"""Folders whose tests have each case on one engine."""

MOST = 4
"""Cases that a test has on one server in a short run."""

# Where the two sequencers differ: with several clients at the same time.
_BOTH_SEQUENCERS = {"processes", "sharing"}


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in SUBJECTS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    for name, subjects in RUNS.items():
        config.addinivalue_line("markers", f"{name}: (derived) {sorted(subjects)}")
    for name, meaning in (
        (BOTH_SEQUENCERS, "with the plain sequencer in PostgreSQL's run, too"),
        (ONE_DUCKDB, "takes long with any engine: with DuckDB 1.5 in a long run only"),
        (EVERY_ENGINE, "on all engines, in a short run too"),
        (SLOW, "takes several seconds: an engine has one case of it in a short run"),
        (LONG_ONLY, "takes long: in a long run only"),
        (IN_LONG, "(derived) in no short run"),
    ):
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    spread, left_out = _spread(items)
    left_out |= _thinned([item for item in items if item not in left_out])
    if not LONG:
        left_out |= {item for item in items if item.get_closest_marker(LONG_ONLY)}
    for item in items:
        add_marks(item, is_spread=item in spread, is_left_out=item in left_out)


def _case(item: pytest.Item) -> str:
    """The test and its parameters but the engine."""
    engine = _engine(item)
    if engine is None:
        return item.nodeid
    return re.sub(rf"(?<=[\[-]){label(engine)}(?=[-\]])", "", item.nodeid)


def _spread(items: list[pytest.Item]) -> tuple[set[pytest.Item], set[pytest.Item]]:
    """The tests that run on one engine per case, and the cases of them that do not."""
    tests: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in items:
        if not LONG and _is_spread(item):
            cases = tests.setdefault(item.nodeid.partition("[")[0], {})
            cases.setdefault(_case(item), []).append(item)
    spread: set[pytest.Item] = set()
    left_out: set[pytest.Item] = set()
    for test, cases in tests.items():
        first = blake2b(test.encode()).digest()[0]
        for number, (_, same) in enumerate(sorted(cases.items()), first):
            spread.update(same)
            left_out.update(same)
            # Fixtures that last decide the order of the items.
            same.sort(key=lambda item: item.nodeid)
            left_out.remove(same[number % len(same)])
    return spread, left_out


def _most(item: pytest.Item) -> float:
    """The number of cases that the test has on the engine in a short run."""
    if item.get_closest_marker(SLOW) or _subject(item) == PLAIN:
        return 1
    return MOST if _subject(item) in (MONETDB, POSTGRESQL) else inf


def _thinned(items: list[pytest.Item]) -> set[pytest.Item]:
    """The cases that a short run leaves out of a test with many."""
    tests: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items if not LONG else ():
        test = item.nodeid.partition("[")[0]
        tests.setdefault((_subject(item), test), []).append(item)
    left_out: set[pytest.Item] = set()
    for cases in tests.values():
        most = _most(cases[0])
        if len(cases) > most:
            cases.sort(key=lambda item: item.nodeid)
            kept = {number * len(cases) // int(most) for number in range(int(most))}
            left_out.update(case for n, case in enumerate(cases) if n not in kept)
    return left_out


def _is_spread(item: pytest.Item) -> bool:
    return (
        _engine(item) is not None
        and _folder(item).partition("/")[0] in _SPREAD
        and not item.get_closest_marker(EVERY_ENGINE)
        and (_subject(item) != PLAIN or _has_both_sequencers(item))
    )


def add_marks(item: pytest.Item, *, is_spread: bool, is_left_out: bool) -> None:
    """Mark a test with its subject and its runs."""
    subject = _subject(item)
    item.add_marker(subject)
    if is_left_out and subject != PLAIN:
        item.add_marker(IN_LONG)
        return
    runs = [run for run, subjects in RUNS.items() if subject in subjects]
    if subject == DUCKDB and not LONG:
        if item.get_closest_marker(ONE_DUCKDB):
            runs.remove("in_duckdb15")
        elif is_spread or _folder(item) in _ABOUT_TIQUE:
            # Neither of them gets all cases of one test.
            runs = [runs[blake2b(item.nodeid.encode()).digest()[0] % len(runs)]]
    for run in runs:
        item.add_marker(run)
    if subject == PLAIN and _has_both_sequencers(item) and not is_left_out:
        item.add_marker("in_duckdb15")


def _has_both_sequencers(item: pytest.Item) -> bool:
    return (
        _folder(item) in _BOTH_SEQUENCERS
        or item.get_closest_marker(BOTH_SEQUENCERS) is not None
    )


def _subject(item: pytest.Item) -> str:
    return _given(item) or _derived(item)


def _given(item: pytest.Item) -> str | None:
    for mark in item.iter_markers():
        if mark.name in SUBJECTS:
            return mark.name
    return None


def _derived(item: pytest.Item) -> str:
    engine = _engine(item)
    if engine is not None:
        return label(engine).replace("-", "_")
    for fixture, subject in _SERVERS.items():
        if fixture in getattr(item, "fixturenames", ()):
            return subject
    return _FOLDERS.get(_folder(item), DUCKDB)


def _engine(item: pytest.Item) -> type[Engine] | None:
    """The engine that the test takes as a parameter."""
    callspec = getattr(item, "callspec", None)
    for value in callspec.params.values() if callspec else ():
        if isinstance(value, type) and issubclass(value, Engine):
            return value
    return None


def _folder(item: pytest.Item) -> str:
    """Below ``tests``; empty for tests elsewhere."""
    if not item.path.is_relative_to(_TESTS):
        return ""
    return item.path.parent.relative_to(_TESTS).as_posix()
