from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

import tique
from tique import errors
from tique.database.database import acquire, release
from tique.database.status import UnmanagedTable, status
from tique_backends.engine import FORMAT_VERSION


@pytest.fixture
def database(adopted):
    database = acquire(adopted, {"checkpoint": "manual"})
    yield database
    release(database)


@pytest.fixture
def conn(database, adopted):
    with tique.connect(adopted) as conn:
        yield conn


def write(conn):
    conn.execute("UPDATE account SET balance = 0")
    conn.execute("DELETE FROM account WHERE id < 2")
    conn.commit()


def test_status_of_an_idle_database(run, adopted, path):
    found = run("status", adopted, "--json")
    assert found.pop("sequencer") in {"c", "python"}
    uses = ("entries", "bytes", "hits", "misses", "evictions")
    for cache in found.pop("caches"):
        assert {cache[use] for use in uses} == {0}
    phases = found["commits"].pop("phases")
    assert [phase["name"] for phase in phases] == ["certify", "append", "publish"]
    assert {phase["count"] for phase in phases} == {0}
    assert found == {
        "database": str(path),
        "format_version": FORMAT_VERSION,
        "processes": 1,
        "certifier": "memory",
        "sts": 0,
        "cts": 0,
        "lambda": 0,
        "transactions": [],
        "tables": [
            {
                "name": "main.account",
                "cached_rows": 0,
                "tombstones": 0,
                "obstacle": None,
            },
            {"name": "main.log", "cached_rows": 0, "tombstones": 0, "obstacle": None},
        ],
        "unmanaged": [],
        "set_aside": [],
        "hot_keys": [],
        "replica": None,
        "checkpoint": {
            "mode": "auto",
            "rounds": 0,
            "folded_rows": 0,
            "last": None,
            "last_error": None,
            "lag": 0,
        },
        "commits": {
            "committed": 0,
            "conflicts": 0,
            "retries": 0,
            "merges": 0,
            "validations": {
                "count": 0,
                "refused": [],
                "whole_tables": [],
                "spared": 0,
                "readers_refused": 0,
            },
        },
    }


def test_status_says_what_can_be_adopted(run, url, query):
    query("CREATE TABLE child (id INTEGER REFERENCES account (id))")
    run("adopt", url, "log")
    unmanaged = run("status", url, "--json")["unmanaged"]
    assert [table["name"] for table in unmanaged] == ["main.account", "main.child"]
    assert "FOREIGN KEY" in unmanaged[1]["obstacle"]
    shown = run("status", url)
    assert "2 tables not under management" in shown
    assert "FOREIGN KEY" in shown


def test_status_of_a_database_at_work(run, adopted, database, conn):
    write(conn)
    conn.execute("SELECT * FROM account WHERE id = 5")
    found = run("status", adopted, "--json")
    assert (found["sts"], found["cts"], found["lambda"]) == (1, 1, 1)
    assert found["tables"][0]["cached_rows"] == 1200
    (transaction,) = found["transactions"]
    assert transaction["txid"] == conn.txid
    assert transaction["sts"] == 1
    assert 0 <= transaction["age"] < 60


def test_lambda_is_the_oldest_snapshot(conn, database, adopted):
    with tique.connect(adopted) as reader:
        reader.execute("SELECT * FROM account")
        write(conn)
        found = status(database)
        assert (found.stable, found.sts, found.cts) == (0, 1, 1)
        assert [entry.sts for entry in found.transactions] == [0]
        database.checkpointer.checkpoint()
        assert status(database).tables[0].cached_rows == 1200
    database.checkpointer.checkpoint()
    assert status(database).tables[0].cached_rows == 0


def test_tombstones_are_counted(conn, database):
    conn.execute("DELETE FROM account WHERE id < 3")
    conn.execute("UPDATE account SET balance = 1 WHERE id = 3")
    conn.execute("INSERT INTO log VALUES ('x')")
    conn.commit()
    account, log = status(database).tables
    assert (account.cached_rows, account.tombstones) == (4, 3)
    assert (log.cached_rows, log.tombstones) == (1, 0)


def test_the_last_checkpoint_is_told_in_utc(run, adopted, database, conn):
    write(conn)
    database.checkpointer.checkpoint()
    told = run("status", adopted, "--json")["checkpoint"]
    last = datetime.fromisoformat(told["last"])
    assert last.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - last) < timedelta(minutes=1)
    assert (told["mode"], told["rounds"], told["folded_rows"]) == ("manual", 1, 1200)
    assert told["last_error"] is None
    assert "UTC, 1 round, 1,200 versions folded" in run("status", adopted)


def test_status_for_people(run, adopted, database, conn):
    write(conn)
    conn.execute("SELECT 1")
    lines = [line.split() for line in run("status", adopted).splitlines()]
    assert ["λ", "1"] in lines
    assert ["main.account", "1,200", "2"] in lines
    assert ["Certifier", "memory"] in lines
    assert ["1", "active", "transaction"] in lines
    assert any(line[:1] == [str(conn.txid)] for line in lines)
    assert "none since the database was opened" in run("status", adopted)


def test_the_use_of_caches_is_told(run, adopted, database, conn):
    for key in (5, 6, 7, 5, 6):
        conn.execute("SELECT balance FROM account WHERE id = %s", (key,)).fetchall()
        conn.rollback()
    expected = conn.info.caches
    assert sum(cache.hits for cache in expected) > 0 < expected[0].entries
    assert sum(cache.misses for cache in expected) > 0
    assert sum(cache.bytes for cache in expected) > 0
    assert status(database).caches == expected
    found = run("status", adopted, "--json")["caches"]
    assert found == [asdict(cache) for cache in expected]
    lines = [line.split() for line in run("status", adopted).splitlines()]
    heading = ["cache", "entries", "bytes", "capacity", "hits", "misses", "evictions"]
    start = lines.index(heading) + 1
    assert lines[start : start + len(expected)] == [
        [c.name, *[f"{number:,}" for number in list(asdict(c).values())[1:]]]
        for c in expected
    ]


def test_the_last_error_is_told(run, adopted, database):
    database.checkpointer.last_error = "OperationalError: disk\x07 full"
    assert "Last error       OperationalError: disk\\x07 full" in run("status", adopted)


def test_status_is_immutable(database):
    found = status(database)
    with pytest.raises(AttributeError):
        found.sts = 5
    assert hash(found) == hash(status(database))


def test_a_table_created_natively_shows_up(database, adopted):
    session = database.engine.session()
    session.execute("CREATE TABLE other (id INTEGER)")
    session.close()
    assert status(database).unmanaged == (UnmanagedTable("main.other", None),)


def test_checkpoint_brings_storage_up_to_date(run, adopted, query):
    with tique.connect(adopted, checkpoint="manual") as conn:
        write(conn)
    stale = "SELECT count(*) FROM account WHERE balance = 100"
    assert query(stale) == [(1200,)]
    run("checkpoint", adopted)
    assert query(stale) == [(0,)]
    assert query("SELECT count(*) FROM account") == [(1198,)]


def test_checkpoint_of_a_running_database(run, adopted, database, conn):
    write(conn)
    assert run("checkpoint", adopted) == "Folded 1,200 versions into 2 tables\n"
    told = run("checkpoint", adopted, "--json")["checkpoint"]
    assert (told["rounds"], told["folded_rows"]) == (2, 1200)


@pytest.mark.parametrize("command", ["status", "checkpoint", "detach"])
def test_a_database_that_is_not_managed_stays_as_it_is(run, url, query, command):
    message = run(command, url, "--json", code=1)
    assert "not under tique's management; 'tique adopt'" in message
    assert query("SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'tique'") == []


def test_another_format_version(run, adopted, query):
    query("UPDATE tique.format SET version = 99")
    message = run("status", adopted, code=1)
    assert "format 99" in message


def test_a_failing_checkpoint_is_one_line(run, adopted, database, conn):
    write(conn)
    session = database.engine.session()
    session.execute("DROP TABLE account")
    session.close()
    message = run("checkpoint", adopted, code=1)
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    with pytest.raises(errors.Error):
        conn.checkpoint()
