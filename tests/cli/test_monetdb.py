"""``tique monetdb start``."""

import json
import os
import signal
import subprocess
import sys

import pytest

from tests.cli.conftest import PROGRAM
from tests.plugins.monetdb import connect_natively

pytestmark = pytest.mark.monetdb


@pytest.fixture
def start(tmp_path):
    """Start the command, which runs until it is told to stop."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "monetdb", "start", *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_it_prints_its_url_and_runs_until_it_is_stopped(start):
    process = start("server")
    url = process.stdout.readline().strip()
    connect_natively(url).close()
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_json_and_a_socket(start, tmp_path):
    process = start("server", "--socket", "s.sock", "--json")
    document = json.loads(process.stdout.readline())
    assert document.keys() == {"url"}
    assert document["url"].endswith(f"?sock={tmp_path}/s.sock")
    connect_natively(document["url"]).close()


def test_a_folder_in_use_is_an_error_of_one_line(start):
    first = start("server")
    first.stdout.readline()
    second = start("server")
    answer, message = second.communicate(timeout=60)
    assert second.returncode == 1
    assert answer == ""
    assert message.startswith("Error: a server runs on ")
    assert message.count("\n") == 1


def test_port_and_socket_exclude_each_other(start):
    process = start("server", "--port", "50000", "--socket", "s.sock")
    assert "--port or --socket" in process.communicate(timeout=60)[1]
    assert process.returncode == 2
