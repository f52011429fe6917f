"""The commands on a MonetDB URL, beside a process that uses the database."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

import tique
from tests.plugins.monetdb import connect_natively, empty


@pytest.fixture
def url(monetdb_server):
    url = monetdb_server.url
    empty(url)
    with closing(connect_natively(url)) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT)")
        cursor.execute("INSERT INTO account VALUES (1, 100), (2, 100)")
        cursor.execute("CREATE TABLE log (entry CLOB)")
    return url


def rows(url):
    with closing(connect_natively(url)) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT id, balance FROM account ORDER BY id")
        return cursor.fetchall()


def traces(url):
    """The objects that tique has left in the database."""
    with closing(connect_natively(url)) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT name FROM sys.schemas WHERE name LIKE 'tique%'")
        return cursor.fetchall()


def test_from_adoption_to_detaching(run, url):
    adopted = run("adopt", url, "--json")
    assert sorted(adopted["adopted"]) == ["sys.account", "sys.log"]
    with tique.connect(url, checkpoint="manual") as connection:
        connection.execute("UPDATE account SET balance = 70 WHERE id = 1")
        connection.execute("INSERT INTO log VALUES ('moved')")
    found = run("status", url, "--json")
    assert (found["sequencer"], found["processes"]) == ("server", 1)
    plan = run("explain", url, "SELECT * FROM account WHERE id = 1")
    assert "account" in plan
    run("checkpoint", url)
    assert rows(url) == [(1, 70), (2, 100)]
    run("detach", url)
    assert traces(url) == []
    assert rows(url) == [(1, 70), (2, 100)]


def test_beside_another_process(run, tique_process, url):
    run("adopt", url, "account")
    with tique.connect(url, checkpoint="manual") as connection:
        connection.execute("UPDATE account SET balance = 1 WHERE id = 2")
        connection.commit()
        connection.execute("SELECT * FROM account").fetchall()
        status = tique_process("status", url, "--json")
        assert json.loads(status.stdout)["processes"] == 2
        adopted = tique_process("adopt", url, "log", "--json")
        assert json.loads(adopted.stdout)["adopted"] == ["sys.log"]
        connection.rollback()
        connection.execute("INSERT INTO log VALUES ('beside')")
        connection.commit()
        refused = tique_process("detach", url)
        assert refused.returncode != 0
        assert "other processes" in refused.stderr
    run("detach", url)
    assert traces(url) == []
