"""``tique changes``, ``tique diff`` and ``tique restore``."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

import tique
from tests.cli.conftest import PROGRAM


@pytest.fixture
def changed(url):
    """A table with a history, and what was changed: its versions."""
    with tique.connect(url, history="2 hours") as conn:
        conn.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(8,2), data BLOB)"
        )
        conn.commit()
        for statement in (
            "INSERT INTO t VALUES (1, 2.50, 'ab'), (2, NULL, NULL)",
            "UPDATE t SET price = 3 WHERE id = 1",
            "DELETE FROM t WHERE id = 2",
        ):
            conn.execute(statement)
            conn.commit()
        version = conn._database.timeline.position().sts
    return version - 3


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_changes_for_machines(run, url, changed):
    found = lines(run("changes", url, "t", "--since", changed, "--format", "json"))
    assert [(c["version"] - changed, c["operation"]) for c in found] == [
        (1, "insert"),
        (1, "insert"),
        (2, "update"),
        (3, "delete"),
    ]
    assert found[0]["old"] is None
    assert found[0]["new"] == {"id": 1, "price": "2.50", "data": b"ab".hex()}
    assert found[2]["new"]["price"] == "3.00"
    assert found[3]["old"] == {"id": 2, "price": None, "data": None}
    assert found[3]["new"] is None
    assert found[0]["txid"] == found[1]["txid"] != found[2]["txid"]
    age = datetime.now(UTC) - datetime.fromisoformat(found[0]["time"])
    assert 0 <= age.total_seconds() < 60


def test_an_interval_in_csv(run, url, changed):
    text = run(
        *("changes", url, "main.t", "--since", changed + 1, "--until", changed + 2),
        *("--format", "csv"),
    )
    head, row = csv.reader(io.StringIO(text))
    assert head[:4] == ["version", "txid", "time", "operation"]
    assert head[4:] == [
        "old_id",
        "old_price",
        "old_data",
        "new_id",
        "new_price",
        "new_data",
    ]
    assert row[0] == str(changed + 2)
    assert row[3:] == ["update", "1", "2.50", "6162", "1", "3.00", "6162"]


def test_changes_for_people(run, url, changed):
    *_, update, delete = run("changes", url, "t", "--since", changed).splitlines()
    assert "update  id=1  price=2.50 → 3.00" in update
    assert "delete  id=2  price=None" in delete


def test_changes_since_a_time(run, url, changed):
    known = lines(run("changes", url, "t", "--since", changed, "--format", "json"))
    since = known[1]["time"]
    found = lines(run("changes", url, "t", "--since", since, "--format", "json"))
    assert found == known[2:]


def test_a_difference(run, url, changed):
    found = lines(
        run(
            *("diff", url, "t", "--from", changed, "--to", changed + 3),
            *("--format", "json"),
        )
    )
    new = {"id": 1, "price": "3.00", "data": b"ab".hex()}
    assert found == [{"operation": "insert", "old": None, "new": new}]
    back = run("diff", url, "t", "--from", changed + 1, "--to", changed + 2)
    assert back == "update  id=1  price=2.50 → 3.00  data=6162\n"


@pytest.mark.slow
def test_restoring(run, url, changed):
    as_of = ("restore", url, "t", "--as-of", changed + 1)
    assert run(*as_of, "--dry-run") == "Would change 2 rows of t\n"
    assert run(*as_of, "--json") == {
        "restore": {"table": "t", "rows": 2, "dry_run": False}
    }
    assert run(*as_of) == "Changed 0 rows of t\n"
    with tique.connect(url) as conn:
        rows = conn.execute("SELECT id, price FROM t ORDER BY id").fetchall()
        assert [(i, price and float(price)) for i, price in rows] == [
            (1, 2.5),
            (2, None),
        ]


@pytest.mark.parametrize(
    ("since", "message"),
    [
        ("yesterday", "the text is no time"),
        ("2026-01-01 00:00:00", "says no time zone"),
    ],
)
def test_points_that_are_none(run, url, changed, since, message):
    assert message in run("changes", url, "t", "--since", since, code=2)


def test_errors_are_one_line(run, url, changed):
    for arguments, message in (
        (("changes", url, "t", "--since", 10**6), "there is no version 1000000"),
        (("changes", url, "none", "--since", 0), 'unknown table "none"'),
        (("changes", url, "account", "--since", 0), "unknown table"),
        (("restore", url, "t", "--as-of", "2020-01-01T00:00Z"), "2020-01-01"),
    ):
        text = run(*arguments, code=1)
        assert message in text
        assert text.count("\n") == 1


@pytest.mark.slow
@pytest.mark.written_for(
    ["postgresql", "monetdb"], reason="a DuckDB file belongs to one process"
)
def test_it_follows_another_process(engine):
    url = engine.url
    connection = engine.connect(history="2 hours")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.commit()
    since = connection._database.timeline.position().sts
    with subprocess.Popen(
        [
            *(sys.executable, "-c", PROGRAM, "changes", url, "t"),
            *("--since", str(since), "--follow", "--format", "json"),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for number in range(3):
            connection.execute("INSERT INTO t VALUES (%s)", (number,))
            connection.commit()
            assert json.loads(process.stdout.readline())["new"] == {"id": number}
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        rest, problems = process.communicate(timeout=60)
    assert (rest, problems, process.returncode) == ("", "", 0)
