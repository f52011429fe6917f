"""The marks for an engine's limits keep their word."""

import os
import sys

import pytest

pytestmark = pytest.mark.engine_free


@pytest.fixture
def outcome(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))

    def run(mark, body, argument="engine"):
        pytester.makepyfile(
            f"import pytest\n@{mark}\ndef test_it({argument}):\n  {body}"
        )
        plugins = ("monetdb", "postgresql", "engine", "support")
        arguments = [f"-ptests.plugins.{name}" for name in plugins]
        arguments += ["-ra", "-p", "no:cacheprovider", "-k", "duckdb"]
        return pytester.runpytest_subprocess(*arguments)

    return run


NOTIMPL = 'pytest.mark.notimpl(["duckdb"], raises=KeyError, reason="later")'


def test_the_expected_error_is_an_expected_failure(outcome):
    result = outcome(NOTIMPL, "raise KeyError(1)")
    result.assert_outcomes(xfailed=1)
    result.stdout.fnmatch_lines("*notimpl: later*")


def test_another_error_fails(outcome):
    outcome(NOTIMPL, "raise ValueError(1)").assert_outcomes(failed=1)


def test_passing_fails(outcome):
    outcome(NOTIMPL, "pass").assert_outcomes(failed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ('pytest.mark.never(["duckdb"], raises=KeyError)', "raises= and reason="),
        ('pytest.mark.never(["duckdb"], reason="so")', "raises= and reason="),
        ('pytest.mark.never("duckdb", raises=KeyError, reason="so")', "one list"),
        ('pytest.mark.never(["oracle"], raises=KeyError, reason="so")', "unknown"),
    ],
)
def test_a_careless_mark_is_refused(outcome, mark, message):
    result = outcome(mark, "pass")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(f"*test_it*{message}*")


def test_a_mark_without_an_engine_is_refused(outcome):
    result = outcome(NOTIMPL, "pass", argument="tmp_path")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines("*takes no engine fixture*")
