"""The command tells its verdict to a reader, and to a script by its exit status."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from jepsen import history
from jepsen.cli import main
from tests.jepsen.test_list_append import HISTORIES

pytestmark = pytest.mark.engine_free


def check(name, *options):
    return CliRunner().invoke(main, ["check", *options, str(HISTORIES / name)])


@pytest.mark.parametrize(
    ("name", "model", "status"),
    [
        ("valid-serial.edn", "strict-serializable", 0),
        ("G2-item.edn", "strong-snapshot-isolation", 0),
        ("G2-item.edn", "serializable", 1),
        ("stale-read-session.edn", "snapshot-isolation", 0),
        ("stale-read-session.edn", "strong-session-snapshot-isolation", 1),
        ("malformed/empty.edn", "snapshot-isolation", 2),
        ("malformed/unwritten-element.edn", "snapshot-isolation", 2),
    ],
)
def test_exit_status_is_the_verdict(name, model, status):
    assert check(name, "--model", model).exit_code == status


def test_model_is_strong_snapshot_isolation_if_none_is_said():
    assert check("stale-read-realtime.edn").exit_code == 1


def test_verdict_and_cycle_are_shown():
    result = check("stale-read-realtime.edn")
    assert "snapshot-isolation                 valid" in result.output
    assert "strong-snapshot-isolation ←        invalid" in result.output
    assert "but T2 came before T1: T2 was acknowledged at index 1" in result.output


def test_unknown_says_why(tmp_path):
    operations = history.read(HISTORIES / "valid-serial.edn")[:2]
    history.write(tmp_path / "short.json", operations)
    result = CliRunner().invoke(main, ["check", str(tmp_path / "short.json")])
    assert result.exit_code == 2
    assert "no acknowledged transaction read a key" in result.output


def test_malformed_says_what():
    result = check("malformed/double-invoke.edn")
    assert "process 0 invokes while its operation 0 is open" in result.output


def test_workload_can_be_said():
    result = check("valid-serial.edn", "--workload", "bank")
    assert result.exit_code == 2


def test_it_runs_as_a_process():
    command = [sys.executable, "-m", "jepsen", "check", str(HISTORIES / "G0.edn")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "G0" in result.stdout
