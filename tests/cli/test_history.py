"""``tique history``: for how long the past of tables is kept."""

from datetime import UTC, datetime, timedelta

import pytest

import tique


def test_set_show_drop(run, adopted):
    set_ = ("history", "set", adopted, "2  Hours; daily for 30 days")
    assert run(*set_) == "Changed the history of 2 tables\n  main.account\n  main.log\n"
    assert run(*set_, "--json") == {"changed": []}
    assert run("history", "set", adopted, "1 hour", "log", "--json") == {
        "changed": ["main.log"]
    }
    with tique.connect(adopted, checkpoint="manual") as conn:
        conn.execute("UPDATE account SET balance = 0 WHERE id < 10")
        conn.commit()
        conn.checkpoint()
    account, log = run("history", "show", adopted, "--json")["histories"]
    assert account["table"] == "main.account"
    assert account["retention"] == "2 hours; daily for 30 days"
    assert (account["images"], account["version"]) == (10, 0)
    assert account["bytes"] > 0
    age = datetime.now(UTC) - datetime.fromisoformat(account["time"])
    assert timedelta() <= age < timedelta(minutes=5)
    assert (log["retention"], log["images"]) == ("1 hour", 0)
    shown = run("history", "show", adopted)
    assert "main.account  2 hours; daily for 30 days  0" in shown
    assert run("history", "drop", adopted, "log") == (
        "Dropped the history of 1 table\n  main.log\n"
    )
    assert run("history", "drop", adopted, "--json") == {"dropped": ["main.account"]}
    assert run("history", "show", adopted) == "No table has a history\n"


def test_detaching_leaves_no_trace(run, adopted, query):
    run("history", "set", adopted, "2 hours")
    run("detach", adopted)
    named = "SELECT count(*) FROM duckdb_tables() WHERE contains(table_name, 'tique')"
    assert query(named) == [(0,)]


@pytest.mark.parametrize("retention", ["2", "for ever", "2 hours; sometimes"])
def test_what_is_no_retention(run, adopted, retention):
    message = run("history", "set", adopted, retention, code=1)
    assert "is no retention; write, for instance" in message
    with pytest.raises(tique.InterfaceError, match="is no retention") as refusal:
        tique.connect(adopted, history=retention)
    assert refusal.value.sqlstate == "22023"


def test_a_table_that_is_not_there(run, adopted):
    message = run("history", "set", adopted, "2 hours", "nowhere", code=1)
    assert message == "Error: nowhere is no table under tique's management\n"
