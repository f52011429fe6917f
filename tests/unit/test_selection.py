"""Every test runs somewhere: the selections of ``make``, held against all tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import LONG
from tests.plugins.reruns import VERDICTS
from tests.plugins.selection import (
    BOTH_SEQUENCERS,
    DUCKDB,
    ENGINE_FREE,
    EVERY_ENGINE,
    IN_LONG,
    LONG_ONLY,
    MONETDB,
    MOST,
    ONE_DUCKDB,
    PLAIN,
    POSTGRESQL,
    RUNS,
    SLOW,
    SUBJECTS,
)

pytestmark = pytest.mark.engine_free

ROOT = Path(__file__).parent.parent.parent

COLLECT = """
import json, sys
import pytest

class Marks:
    def pytest_collection_finish(self, session):
        marks = {i.nodeid: [m.name for m in i.iter_markers()] for i in session.items}
        with open(sys.argv[1], "w") as file:
            json.dump(marks, file)

sys.exit(pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider"], [Marks()]))
"""


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The marks of every test there is."""
    path = tmp_path_factory.mktemp("collected") / "marks.json"
    environment = os.environ.copy()
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]
    subprocess.run(
        [sys.executable, "-c", COLLECT, str(path)],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return {name: set(marks) for name, marks in json.loads(path.read_text()).items()}


def test_every_test_is_in_a_run_of_its_subject(collected):
    assert len(collected) > 10_000
    for name, marks in collected.items():
        runs = marks & RUNS.keys()
        if IN_LONG in marks:
            assert not LONG
            assert not runs, name
            continue
        assert runs, name
        if PLAIN in marks:
            assert runs in ({"in_plain"}, {"in_plain", "in_duckdb15"}), name
        else:
            assert any(marks & RUNS[run] for run in runs), name


def test_no_subject_and_no_run_is_empty(collected):
    every = set().union(*collected.values())
    assert every >= SUBJECTS.keys()
    assert every >= RUNS.keys()


def test_make_selects_every_run_and_nothing_else():
    makefile = (ROOT / "Makefile").read_text()
    assert " -k " not in makefile
    assert set(re.findall(r" -m (in_\w+)", makefile)) == RUNS.keys()


@pytest.fixture
def marks(pytester, monkeypatch):
    """The marks of a test, by the text of its module."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    def marks(text):
        pytester.makepyfile(test_it="import pytest\n" + text)
        pytester.makeconftest(
            """
            def pytest_collection_finish(session):
                for item in session.items:
                    print("marks:", *(mark.name for mark in item.iter_markers()))
            """
        )
        plugins = ("monetdb", "postgresql", "engine", "support", "selection")
        arguments = [f"-ptests.plugins.{name}" for name in plugins]
        result = pytester.runpytest_subprocess(
            *arguments, "--collect-only", "-s", "-p", "no:cacheprovider"
        )
        return [
            set(line.split()[1:])
            for line in result.outlines
            if line.startswith("marks:")
        ]

    return marks


def test_what_is_not_known_is_in_both_environments(marks):
    (found,) = marks("def test_it(): pass")
    assert found == {DUCKDB, "in_duckdb20", "in_duckdb15"}


def test_an_engine_that_is_taken_is_the_subject(marks):
    found = marks("def test_it(engine): pass")
    wanted = [DUCKDB, MONETDB, POSTGRESQL, PLAIN]
    assert [each & SUBJECTS.keys() for each in found] == [{name} for name in wanted]
    assert found[1] & RUNS.keys() == {"in_duckdb20"}
    assert found[2] & RUNS.keys() == {"in_duckdb15"}
    assert found[3] & RUNS.keys() == {"in_plain"}


def test_a_server_that_is_used_is_the_subject(marks):
    (found,) = marks(
        "@pytest.fixture\ndef mine(monetdb_server): pass\ndef test_it(mine): pass"
    )
    assert MONETDB in found


def test_a_mark_says_it_first(marks):
    (found,) = marks(
        "pytestmark = pytest.mark.engine_free\ndef test_it(monetdb_server): pass"
    )
    assert found & SUBJECTS.keys() == {ENGINE_FREE}
    assert found & RUNS.keys() == {"in_duckdb20"}


def test_a_mark_nearer_to_the_test_says_it_before(marks):
    (found,) = marks(
        "pytestmark = pytest.mark.engine_free\n"
        "@pytest.mark.postgresql\ndef test_it(): pass"
    )
    assert found & SUBJECTS.keys() >= {POSTGRESQL}
    assert found & RUNS.keys() == {"in_duckdb15"}


def test_a_mark_adds_the_plain_sequencer(marks):
    *_, found = marks(f"@pytest.mark.{BOTH_SEQUENCERS}\ndef test_it(engine): pass")
    assert found & RUNS.keys() == {"in_duckdb15", "in_plain"}


@pytest.mark.parametrize("is_long", [False, True])
def test_what_takes_long_is_with_one_duckdb(marks, monkeypatch, is_long):
    monkeypatch.setenv("TIQUE_TEST_LONG", str(int(is_long)))
    found, *_ = marks(f"@pytest.mark.{ONE_DUCKDB}\ndef test_it(engine): pass")
    assert found & RUNS.keys() == {"in_duckdb20"} | (
        {"in_duckdb15"} if is_long else set()
    )


@pytest.mark.skipif(LONG, reason="in a long run all of them are on all")
def test_each_case_is_on_one_engine(collected):
    """All engines have their turn, also DuckDB's releases where there are enough."""
    tests = {}
    for name, marks in collected.items():
        label = "|".join(name.replace("_", "-") for name in marks & SUBJECTS.keys())
        test, _, parameters = name.partition("[")
        folder = test.split("/")[1]
        if folder not in ("dbapi", "differential", "isolation", "poison"):
            continue
        if PLAIN in marks or label not in re.split(r"[]-]", parameters):
            continue
        case = re.sub(rf"(?<![^-]){label}(?=[]-])", "", parameters)
        tests.setdefault(test, {}).setdefault(case, []).append(marks)
    spread = 0
    for test, cases in tests.items():
        engines = max(len(same) for same in cases.values())
        every = [marks for same in cases.values() for marks in same]
        chosen = [marks for marks in every if IN_LONG not in marks]
        if LONG_ONLY in every[0]:
            assert not chosen, test
            continue
        if SLOW in every[0]:
            assert 1 <= len(chosen) <= 2 * engines, test
            continue
        if EVERY_ENGINE in every[0]:
            on_duckdb = [marks for marks in every if DUCKDB in marks]
            assert all(IN_LONG not in marks for marks in on_duckdb), test
            continue
        spread += engines > 1
        assert min(len(cases), MOST) <= len(chosen) <= len(cases), test
        assert all(len(marks & RUNS.keys()) == 1 for marks in chosen), test
        if len(cases) >= engines == min(map(len, cases.values())):
            wanted = {DUCKDB, MONETDB, POSTGRESQL} & set().union(*every)
            assert wanted <= set().union(*chosen), test
    assert spread > 100


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("mark", ["usefixtures()", "every_engine"])
def test_of_many_cases_on_a_server_a_short_run_has_some(
    marks, monkeypatch, is_long, mark
):
    monkeypatch.setenv("TIQUE_TEST_LONG", str(int(is_long)))
    found = marks(
        f"@pytest.mark.{mark}\n"
        "@pytest.mark.parametrize('number', range(100))\n"
        "def test_it(number, monetdb_server): pass"
    )
    there = [number for number, each in enumerate(found) if IN_LONG not in each]
    if is_long:
        assert len(there) == 100
    else:
        assert len(there) == MOST
        assert there[0] < 20
        assert there[-1] > 70


@pytest.mark.parametrize("is_long", [False, True])
def test_of_a_slow_test_an_engine_has_one_case(marks, monkeypatch, is_long):
    monkeypatch.setenv("TIQUE_TEST_LONG", str(int(is_long)))
    found = marks(
        f"@pytest.mark.{SLOW}\n"
        "@pytest.mark.parametrize('number', range(9))\n"
        "def test_it(number): pass"
    )
    assert sum(IN_LONG not in each for each in found) == (9 if is_long else 1)


@pytest.mark.parametrize("is_long", [False, True])
def test_what_is_for_long_runs_is_in_no_short_one(marks, monkeypatch, is_long):
    monkeypatch.setenv("TIQUE_TEST_LONG", str(int(is_long)))
    (found,) = marks(f"@pytest.mark.{LONG_ONLY}\ndef test_it(): pass")
    assert (IN_LONG in found) == (not is_long)


@pytest.mark.skipif(LONG, reason="in a long run all of it is in both")
def test_what_is_about_tique_is_shared_among_the_releases(collected):
    """Of every test with many cases each release of DuckDB gets some."""
    runs = {}
    for name, marks in collected.items():
        if not marks.isdisjoint({ONE_DUCKDB, IN_LONG}):
            continue
        if DUCKDB in marks and "tests/dbapi/" in name:
            (run,) = marks & RUNS.keys()
            runs.setdefault(name.partition("[")[0], []).append(run)
    many = [found for found in runs.values() if len(found) >= 12]
    assert len(many) > 5
    for found in many:
        assert len(set(found)) == 2


def test_a_verdict_has_no_second_chance(collected):
    """What must never happen must not happen once; timing may fail once, and is told."""
    chances = {"flaky" in marks for marks in collected.values()}
    assert chances == {True, False}
    for test, marks in collected.items():
        assert ("flaky" in marks) != (test.split("/")[1] in VERDICTS), test
