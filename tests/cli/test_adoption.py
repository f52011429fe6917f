import duckdb
import pytest

import tique

SCHEMAS = "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'tique'"


def test_adopts_all_tables(run, url):
    assert run("adopt", url) == "Adopted 2 tables\n  main.account\n  main.log\n"
    with tique.connect(url) as conn:
        conn.execute("UPDATE account SET balance = 0 WHERE id = %s", (1,))


def test_adopts_the_named_tables_for_machines(run, url):
    assert run("adopt", url, "main.log", "--json") == {"adopted": ["main.log"]}
    assert run("adopt", url, "--json") == {"adopted": ["main.account"]}
    assert run("adopt", url, "--json") == {"adopted": []}


def test_adopting_one_table_is_singular(run, url):
    assert run("adopt", url, "log") == "Adopted 1 table\n  main.log\n"


def test_a_table_that_cannot_be_kept_is_named_and_nothing_is_adopted(run, url, query):
    query("CREATE TABLE child (id INTEGER REFERENCES account (id))")
    message = run("adopt", url, code=1)
    assert message.startswith("Error: table main.")
    assert "FOREIGN KEY" in message
    assert "nothing was adopted" in message
    assert message.count("\n") == 1
    assert run("adopt", url, "log", "--json") == {"adopted": ["main.log"]}


def test_detaching_all_leaves_no_trace(run, adopted, query):
    before = query("FROM account ORDER BY id")
    assert run("detach", adopted) == "Detached 2 tables\n  main.account\n  main.log\n"
    assert query(SCHEMAS) == [(0,)]
    assert query("FROM account ORDER BY id") == before


def test_detaching_folds_first(run, adopted, query):
    with tique.connect(adopted, checkpoint="manual") as conn:
        conn.execute("DELETE FROM account WHERE id >= 10")
    assert run("detach", adopted, "account", "--json") == {"detached": ["main.account"]}
    assert query("SELECT count(*) FROM account") == [(10,)]
    assert query(SCHEMAS) == [(1,)]


def test_detaching_what_is_not_managed(run, url, query):
    assert "not under tique's management" in run("detach", url, code=1)
    run("adopt", url, "log")
    message = run("detach", url, "account", code=1)
    assert message == "Error: table account is not under tique's management\n"


@pytest.mark.parametrize("command", ["adopt", "detach"])
def test_unknown_tables(run, adopted, command):
    message = run(command, adopted, "nowhere.nothing", "--json", code=1)
    assert "nowhere.nothing" in message


def test_names_cannot_talk_to_the_terminal(run, url, path):
    with duckdb.connect(path) as native:
        native.execute('CREATE TABLE "[red]\x1b[31m" (id INTEGER PRIMARY KEY)')
    assert "  main.[red]\\x1b[31m\n" in run("adopt", url)
    assert "main.[red]\\x1b[31m" in run("status", url)
    assert run("status", url, "--json")["tables"][0]["name"] == "main.[red]\x1b[31m"
