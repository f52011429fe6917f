"""SET, RESET and SHOW: settings are the connection's, and none changes what tique relies on."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta

import pytest

import tique
from tests.portable import numbers
from tique.commit.batch import BatchCertifier

pytestmark = pytest.mark.fresh_tables

TOKYO = {
    "duckdb": "SET TimeZone = 'Asia/Tokyo'",
    "postgresql": "SET TIME ZONE 'Asia/Tokyo'",
    "monetdb": "SET TIME ZONE INTERVAL '+09:00' HOUR TO MINUTE",
}
DEFAULT = {
    "duckdb": "RESET TimeZone",
    "postgresql": "SET TIME ZONE DEFAULT",
    "monetdb": "SET TIME ZONE LOCAL",
}
MOMENT = datetime(2024, 6, 1, 12, tzinfo=UTC)
LITERAL = "TIMESTAMP WITH TIME ZONE '2024-06-01 12:00:00+00:00'"
POSTGRESQL = pytest.mark.written_for(["postgresql"], reason="its SQL and its settings")
DUCKDB = pytest.mark.written_for(["duckdb"], reason="its SQL and its settings")


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, moment TIMESTAMP WITH TIME ZONE)"
    )
    connection.execute(f"INSERT INTO t VALUES (1, {LITERAL}), (2, {LITERAL})")
    connection.commit()
    return connection


def hours(connection, where="WHERE id = 1"):
    """Hours that each moment in the table is shown ahead of Greenwich."""
    rows = connection.execute(f"SELECT moment FROM t {where}").fetchall()
    assert all(moment == MOMENT for (moment,) in rows)
    return {moment.utcoffset() // timedelta(hours=1) for (moment,) in rows}


@pytest.mark.parametrize("where", ["WHERE id = 1", "", "WHERE id < 2"])
@pytest.mark.parametrize("state", ["recent", "stored"])
def test_a_time_zone_is_the_connections_own(engine, connection, where, state):
    """P1: rows that one connection brought into memory are shown to another as its own."""
    other = engine.connect(checkpoint="manual")
    connection.execute(TOKYO[engine.name])
    if state == "stored":
        connection.commit()
        connection.checkpoint()
    for _ in range(3):
        assert hours(connection, where) == {9}
        assert hours(other, where) == {0}
        connection.commit()
        other.commit()
    connection.execute(DEFAULT[engine.name])
    assert hours(connection, where) == {0}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT moment FROM g WHERE a = 1",
        "SELECT max(moment) FROM g WHERE a = 1",
        "SELECT t.moment FROM g JOIN t ON t.id = g.b WHERE g.a = 1",
        "SELECT g.moment FROM g JOIN t ON t.id = g.b WHERE g.a = 1 ORDER BY g.b",
    ],
)
@pytest.mark.parametrize("state", ["recent", "stored"])
def test_groups_of_rows_are_shown_in_the_connections_zone(
    engine, connection, query, state
):
    """P1: also where the rows come from memory as a group, or by a look-up."""
    connection.execute(
        "CREATE TABLE g (a INTEGER, b INTEGER, moment TIMESTAMP WITH TIME ZONE, "
        "PRIMARY KEY (a, b))"
    )
    connection.execute(f"INSERT INTO g VALUES (1, 1, {LITERAL}), (1, 2, {LITERAL})")
    connection.commit()
    if state == "stored":
        connection.checkpoint()
        # A recent row has groups kept in memory, beside it.
        connection.execute(f"INSERT INTO g VALUES (2, 1, {LITERAL})")
        connection.commit()
    other = engine.connect(checkpoint="manual")
    connection.execute(TOKYO[engine.name])
    for _ in range(6):
        for reader, zone in ((connection, 9), (other, 0)):
            rows = reader.execute(query).fetchall()
            assert rows
            assert {at.utcoffset() // timedelta(hours=1) for (at,) in rows} == {zone}
            reader.commit()


def test_returned_rows_are_in_the_connections_zone(engine, connection):
    connection.execute(TOKYO[engine.name])
    returned = connection.execute(
        "UPDATE t SET id = id + 10 RETURNING moment"
    ).fetchall()
    assert {at.utcoffset() for (at,) in returned} == {timedelta(hours=9)}
    connection.commit()
    other = engine.connect(checkpoint="manual")
    returned = other.execute("DELETE FROM t RETURNING moment").fetchall()
    assert {at.utcoffset() for (at,) in returned} == {timedelta(0)}


def test_moments_are_written_by_the_connections_time_zone(engine, connection):
    connection.execute(TOKYO[engine.name])
    connection.execute(
        "UPDATE t SET moment = CAST('2024-06-01 21:00:00+09:00' AS TIMESTAMP WITH TIME ZONE)"
    )
    connection.commit()
    assert hours(connection, "") == {9}
    connection.checkpoint()
    assert hours(engine.connect(checkpoint="manual"), "") == {0}


def test_a_transaction_that_is_rolled_back_takes_them_along_where_the_engine_does(
    engine, connection
):
    connection.execute(TOKYO[engine.name])
    connection.rollback()
    assert hours(connection) == ({0} if engine.name == "postgresql" else {9})
    connection.execute(TOKYO[engine.name])
    connection.commit()
    assert hours(connection) == {9}


def test_settings_cost_no_statement_afterwards(engine, connection):
    def cost():
        before = connection.info.engine_statements
        connection.execute("SELECT moment FROM t WHERE id = 2").fetchall()
        connection.commit()
        return connection.info.engine_statements - before

    cost()
    before = min(cost() for _ in range(5))
    connection.execute(TOKYO[engine.name])
    connection.commit()
    cost()
    assert min(cost() for _ in range(5)) <= before


REFUSED = {
    "duckdb": {
        "SET search_path = 'main,tique'": "schema",
        "USE temp": "schema",
        "SET schema = 'tique'": "schema",
        "SET default_null_order = 'nulls_first'": "means?",
        "SET default_collation = 'nocase'": "mean",
        "SET integer_division = true": "mean",
        "SET checkpoint_threshold = '1KB'": "checkpoint",
        "PRAGMA wal_autocheckpoint = '1KB'": "checkpoint",
        "SET enable_profiling = 'json'": "values",
        "SET profiling_output = '/tmp/x'": "values",
        "SET lock_configuration = true": "opened",
        "SET enable_external_access = false": "opened",
        "SET calendar = 'japanese'": "Gregorian",
        "SET errors_as_json = true": "texts",
        "RESET checkpoint_threshold": "checkpoint",
        "SET made_up = 1": "not known",
        "SET GLOBAL TimeZone = 'UTC'": "GLOBAL",
        "SET LOCAL TimeZone = 'UTC'": "LOCAL",
        "RESET ALL": "RESET ALL",
        "PRAGMA force_checkpoint": "force_checkpoint",
        "SET VARIABLE x = (SELECT max(cts) FROM tique.log)": "reserved",
    },
    "postgresql": {
        "SET search_path = tique, public": "schema",
        "SET standard_conforming_strings = off": "read as when it is on",
        "SET backslash_quote = on": "read as when it is off",
        "SET DateStyle = 'SQL, DMY'": "ISO",
        "SET IntervalStyle = iso_8601": "postgres",
        "SET bytea_output = escape": "hex",
        "SET extra_float_digits = 0": "last digit",
        "SET client_encoding = 'LATIN1'": "UTF8",
        "SET NAMES 'utf8'": "UTF8",
        "SET ROLE postgres": "privileges",
        'SET ROLE "NONE"': "privileges",
        "SET SESSION AUTHORIZATION postgres": "privileges",
        "SET session_replication_role = replica": "constraints",
        "SET default_with_oids = on": "OIDs",
        "SET synchronous_commit = off": "durable",
        "SET LOCAL xmloption = document": "XML",
        "SET default_tablespace = x": "tique's own",
        "SET transaction_isolation = 'serializable'": "SET TRANSACTION",
        "SET transform_null_equals = on": "read as when it is off",
        "SET plpgsql.variable_conflict = use_column": "not known",
        "SET tique.x = 1": "not known",
        "SET made_up = 1": "not known",
        "SET default_transaction_isolation = 'read uncommitted'": "UNCOMMITTED",
        "SET transaction_deferrable = on": "SET TRANSACTION DEFERRABLE",
        "SELECT set_config('search_path', 'tique', false)": "schema",
        "SELECT set_config('role', 'postgres', true)": "privileges",
    },
    "monetdb": {
        "SET SCHEMA tmp": "schema",
        "SET ROLE sysadmin": "privileges",
        "SET ROLE none": "privileges",
        "SET SESSION AUTHORIZATION other": "privileges",
        "SET current_user = 'other'": "privileges",
        "SET optimizer = 'minimal_pipe'": "every statement",
        "SET optimizer = 'default_pipe,x'": "every statement",
        "SET made_up = 1": "not known",
        "SET TIME ZONE 'UTC'": "interval",
        "CALL sys.setquerytimeout(1)": "CALL",
        'SET ROLE "MONETDB"': "privileges",
        "SET LOCAL TIME ZONE LOCAL": "LOCAL",
    },
}


def test_settings_that_could_matter_are_refused_by_name(engine, connection):
    """P10, P11: with the reason, and whatever the transaction's state."""
    for sql, reason in REFUSED[engine.name].items():
        with pytest.raises(tique.NotSupportedError, match=f"(?i){reason}") as caught:
            connection.execute(sql)
        assert caught.value.sqlstate == "0A000", sql
    assert hours(connection, "") == {0}


@pytest.mark.written_for(["postgresql", "monetdb"], reason="DuckDB has no roles")
def test_the_role_that_is_there_may_be_set(engine, connection):
    """P11: which changes nothing."""
    told = "SELECT current_user, current_role"
    before = connection.execute(told).fetchall()
    texts = {
        "postgresql": ("SET ROLE NONE", "SET LOCAL ROLE 'none'", "RESET ROLE"),
        "monetdb": ("SET ROLE monetdb",),
    }
    for text in texts[engine.name]:
        connection.execute(text)
        assert connection.execute(told).fetchall() == before


KNOWN = {
    "duckdb": "SELECT name, value FROM duckdb_settings() ORDER BY name",
    "postgresql": "SELECT name, setting FROM pg_settings ORDER BY name",
}


@pytest.mark.written_for(["duckdb", "postgresql"], reason="they list their settings")
def test_every_setting_of_the_engine_is_on_a_list_or_refused(engine, connection):
    """P10: a setting that a release adds is refused until it is known."""
    rules = connection._database.engine.settings
    taken = set(rules.limited) | set(rules.kept)
    settings = connection.execute(KNOWN[engine.name]).fetchall()
    connection.rollback()
    accepted = set()
    for name, value in settings:
        text = str(value).replace("'", "''")
        try:
            connection.execute(f"SET \"{name}\" = '{text}'")
        except tique.NotSupportedError:
            continue
        except tique.Error:
            # The engine itself does not take it back.
            connection.rollback()
        accepted.add(rules.name(name.lower()))
        connection.rollback()
    assert len(accepted) > 20
    own = {"default_transaction_isolation", "default_transaction_read_only"}
    others = {name for name in accepted if not rules.free.fullmatch(name)}
    assert others <= taken | own | rules.paths
    assert hours(connection, "") == {0}


@POSTGRESQL
def test_local_settings_end_with_the_transaction(engine, connection):
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("SET LOCAL TimeZone = 'Asia/Kolkata'")
    assert hours(connection) == {5}
    connection.commit()
    assert hours(connection) == {9}
    connection.rollback()
    assert hours(connection) == {9}
    connection.execute("SET LOCAL TimeZone = 'Asia/Kolkata'")
    connection.execute("SET TimeZone = 'Europe/Moscow'")
    connection.commit()
    assert hours(connection) == {3}
    connection.rollback()
    connection.autocommit = True
    connection.execute("SET LOCAL TimeZone = 'Asia/Kolkata'")
    assert hours(connection) == {3}


@POSTGRESQL
def test_savepoints_take_settings_back(engine, connection):
    """P8."""
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("SAVEPOINT a")
    connection.execute("SET TimeZone = 'Asia/Kolkata'")
    connection.execute("SAVEPOINT b")
    connection.execute("SET LOCAL TimeZone = 'Europe/Moscow'")
    connection.execute("RELEASE b")
    assert hours(connection) == {3}
    connection.execute("ROLLBACK TO a")
    assert hours(connection) == {9}
    connection.execute("SET TimeZone = 'Asia/Kolkata'")
    connection.commit()
    assert hours(connection) == {5}
    connection.rollback()
    connection.execute("SELECT 1")
    with suppress(ZeroDivisionError), connection.transaction():
        connection.execute("SET TimeZone = 'Asia/Tokyo'")
        raise ZeroDivisionError
    assert hours(connection) == {5}


@POSTGRESQL
def test_a_conflict_takes_them_back(engine, connection):
    other = engine.connect(checkpoint="manual")
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute(f"UPDATE t SET moment = {LITERAL} WHERE id = 1")
    other.execute(f"UPDATE t SET moment = {LITERAL} WHERE id = 1")
    other.commit()
    with pytest.raises(tique.SerializationError):
        connection.commit()
    assert hours(connection) == {0}


@POSTGRESQL
def test_another_session_of_the_server_gets_them_too(engine, connection):
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("SET app.tenant = 'seven'")
    connection.commit()
    pid = connection.execute("SELECT pg_backend_pid()").fetchone()
    connection.rollback()
    with closing(engine._connect_natively()) as native:
        native.execute("SELECT pg_terminate_backend(%s)", pid)
    with pytest.raises(tique.OperationalError):
        connection.execute("SELECT current_setting('app.tenant')").fetchall()
    connection.rollback()
    assert connection.execute("SELECT pg_backend_pid()").fetchone() != pid
    assert connection.execute(
        "SELECT current_setting('TimeZone'), current_setting('app.tenant')"
    ).fetchall() == [("Asia/Tokyo", "seven")]
    assert hours(connection) == {9}


@POSTGRESQL
def test_a_timeout_leaves_no_trace_of_a_staged_statement(engine, connection):
    """P8: what undoes a statement is not under the application's timeout."""
    connection.execute("SET statement_timeout = '200ms'")
    connection.execute(f"INSERT INTO t SELECT 10 + number, NULL FROM {numbers(2100)}")
    for _ in range(2):
        with pytest.raises(tique.OperationalError) as caught:
            connection.execute(
                "INSERT INTO t SELECT 100000 + number, NULL FROM "
                f"{numbers(3000)} WHERE pg_sleep(0.001) IS NOT NULL"
            )
        assert caught.value.sqlstate == "57014"
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2102,)
    connection.execute("SET statement_timeout = '10ms'")
    connection.commit()
    connection.execute("RESET statement_timeout")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2102,)


@POSTGRESQL
def test_a_timeout_leaves_a_bulk_commit_alone(engine, connection, monkeypatch):
    """P4: certification and all else of a commit are tique's own statements."""
    certify = BatchCertifier.certify

    def certify_slowly(certifier, batch, session):
        session.execute("SELECT pg_sleep(0.5)").close()
        return certify(certifier, batch, session)

    monkeypatch.setattr(BatchCertifier, "certify", certify_slowly)
    connection.execute("SET statement_timeout = '200ms'")
    connection.execute(f"INSERT INTO t SELECT 10 + number, NULL FROM {numbers(2100)}")
    connection.commit()
    assert connection.execute("SHOW statement_timeout").fetchone() == ("200ms",)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2102,)


@POSTGRESQL
def test_transactions_have_tiques_own_isolation(engine, connection):
    def shown(what):
        return connection.execute(f"SHOW {what}").fetchone()[0]

    assert shown("transaction_isolation") == "repeatable read"
    assert shown("TRANSACTION ISOLATION LEVEL") == "repeatable read"
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    connection.execute("SET default_transaction_isolation TO 'read committed'")
    assert shown("default_transaction_isolation") == "read committed"
    connection.rollback()
    assert connection.isolation_level == "SNAPSHOT"
    assert shown("default_transaction_read_only") == "off"
    connection.execute(
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, "
        "READ ONLY"
    )
    connection.commit()
    assert connection.isolation_level == "READ COMMITTED"
    assert shown("transaction_isolation") == "read committed"
    assert shown("transaction_read_only") == "on"
    assert (
        dict(row[:2] for row in connection.execute("SHOW ALL").fetchall())[
            "transaction_isolation"
        ]
        == "read committed"
    )
    # The engine's own transactions have others, which it must not be asked for.
    listed = "SELECT setting FROM pg_settings WHERE name = 'transaction_isolation'"
    assert connection.execute(listed).fetchall() == []
    with pytest.raises(tique.NotSupportedError, match="SHOW transaction_isolation"):
        connection.execute("SELECT current_setting('transaction_isolation')")
    with pytest.raises(tique.OperationalError, match="read-only"):
        connection.execute("DELETE FROM t")
    connection.rollback()
    connection.execute("SET TRANSACTION READ WRITE")
    connection.execute("DELETE FROM t WHERE id = 2")
    connection.commit()
    connection.execute("RESET ALL")
    connection.commit()
    assert connection.isolation_level == "SNAPSHOT"
    connection.isolation_level = "READ COMMITTED"
    connection.execute("SET default_transaction_isolation = 'repeatable read'")
    connection.rollback()
    assert connection.isolation_level == "READ COMMITTED"


@POSTGRESQL
@pytest.mark.parametrize(
    "sql",
    [
        "SET default_transaction_isolation = serializable",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET SESSION CHARACTERISTICS AS TRANSACTION "
        "ISOLATION LEVEL SERIALIZABLE, DEFERRABLE",
        "SELECT set_config('default_transaction_isolation', 'serializable', false)",
    ],
)
def test_the_level_of_a_session(engine, connection, sql):
    """P12: it is shown as PostgreSQL shows it."""
    connection.execute(sql)
    connection.commit()
    assert connection.isolation_level == "SERIALIZABLE"
    for name in ("transaction_isolation", "default_transaction_isolation"):
        assert connection.execute(f"SHOW {name}").fetchone() == ("serializable",)
        shown = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
        assert shown == ("serializable",)
    connection.execute("RESET default_transaction_isolation")
    connection.commit()
    assert connection.isolation_level == "SNAPSHOT"


@POSTGRESQL
def test_deferrable_is_taken_and_changes_nothing(engine, connection):
    """P12: what only reads has nothing to wait for."""
    connection.execute("SET default_transaction_deferrable = on")
    shown = connection.execute("SHOW default_transaction_deferrable").fetchone()
    assert shown == ("on",)
    assert hours(connection) == {0}


@POSTGRESQL
def test_the_schemas_that_are_there_may_be_named(engine, connection):
    connection.execute('SET search_path TO "$user", public')
    assert hours(connection) == {0}
    connection.execute("SET search_path TO DEFAULT")
    assert hours(connection) == {0}


@POSTGRESQL
def test_discard_gives_a_connection_back_as_new(engine, connection):
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
    connection.execute("PREPARE p AS SELECT 1")
    connection.execute("SELECT id FROM t").fetchall()
    with pytest.raises(tique.ProgrammingError) as caught:
        connection.execute("DISCARD ALL")
    assert caught.value.sqlstate == "25001"
    connection.commit()
    connection.execute("DISCARD ALL")
    connection.rollback()
    assert hours(connection) == {0}
    with pytest.raises(tique.ProgrammingError, match='"p" does not exist'):
        connection.execute("EXECUTE p")
    connection.execute("DISCARD PLANS")
    connection.execute("DISCARD SEQUENCES")


@DUCKDB
def test_settings_of_the_instance_are_all_connections(engine, connection):
    other = engine.connect(checkpoint="manual")
    before = connection.execute("SELECT current_setting('threads')").fetchone()
    connection.execute("SET threads = 1")
    connection.rollback()
    for reader in (connection, other):
        found = reader.execute("SELECT current_setting('threads')").fetchone()
        assert found == (1,)
    connection.execute("RESET threads")
    connection.execute(f"PRAGMA threads = {before[0]}")
    connection.execute("SET GLOBAL memory_limit = '2GB'")
    assert other.execute("SELECT current_setting('max_memory')").fetchone() == (
        "1.8 GiB",
    )
    with pytest.raises(tique.ProgrammingError, match="instance"):
        connection.execute("SET SESSION threads = 1")
    with pytest.raises(tique.Error):
        connection.execute("SET threads = 'many'")


@DUCKDB
@pytest.mark.parametrize("number", ["9223372036854775807", "5000", "1e9"])
@pytest.mark.parametrize("name", ["threads", "worker_threads", "external_threads"])
def test_threads_that_would_end_the_process(connection, name, number):
    """P6: DuckDB aborts when it cannot start as many."""
    with pytest.raises(tique.NotSupportedError, match="end the process"):
        connection.execute(f"SET {name} = {number}")


@DUCKDB
def test_variables_have_the_values_of_the_snapshot(engine, connection):
    """P1, P8."""
    other = engine.connect(checkpoint="manual")
    other.execute("SELECT count(*) FROM t").fetchall()
    connection.execute("INSERT INTO t VALUES (7, NULL)")
    connection.execute("SET VARIABLE last = (SELECT max(id) FROM t)")
    connection.commit()
    other.execute("SET VARIABLE last = (SELECT max(id) FROM t)")
    read = "SELECT id FROM t WHERE id = getvariable('last')"
    assert connection.execute(read).fetchall() == [(7,)]
    assert other.execute(read).fetchall() == [(2,)]
    connection.execute("SET VARIABLE name TO %s", ("it's",))
    connection.rollback()
    assert connection.execute("SELECT getvariable('name')").fetchall() == [("it's",)]
    connection.execute("RESET VARIABLE name")
    assert connection.execute("SELECT getvariable('name')").fetchall() == [(None,)]
    with pytest.raises(tique.Error):
        connection.execute("SET VARIABLE x = (SELECT id FROM t)")
    for wrong in ("1, 2", "id FROM t", "(SELECT 1); DROP TABLE t"):
        with pytest.raises(tique.NotSupportedError):
            connection.execute(f"SET VARIABLE x = {wrong}")
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (3,)


def test_parameters_are_no_values_of_settings(engine, connection):
    """P11."""
    with pytest.raises(tique.NotSupportedError, match="placeholder"):
        connection.execute("SET TIME ZONE %s", ("UTC",))
    with pytest.raises(tique.ProgrammingError):
        connection.cursor().executemany(TOKYO[engine.name], [()])
    assert hours(connection) == {0}


@POSTGRESQL
def test_hostile_values_stay_values(engine, connection):
    """P11."""
    hostile = "x'; DROP TABLE t; --"
    quoted = hostile.replace("'", "''")
    connection.execute(f"SET app.tenant = '{quoted}'")
    assert connection.execute("SHOW app.tenant").fetchone() == (hostile,)
    connection.commit()
    connection.execute("SET app.tenant = 'y'")
    connection.rollback()
    assert connection.execute("SHOW app.tenant").fetchone() == (hostile,)
    for name in ('"a""; --".b', '"a b".c', 'a."\'"'):
        with pytest.raises(tique.NotSupportedError):
            connection.execute(f"SET {name} = 1")
    assert hours(connection) == {0}


@pytest.mark.written_for(["monetdb"], reason="it has optimizers by name")
def test_the_server_s_own_optimizer_changes_nothing(connection):
    """P9: tique still chooses one for each statement."""
    connection.execute("SET optimizer = 'default_pipe'")
    connection.execute("UPDATE t SET moment = NULL WHERE id = 2")
    assert connection.execute("SELECT count(moment) FROM t").fetchall() == [(1,)]
    connection.rollback()
    connection.execute("SET optimizer = DEFAULT")
    assert hours(connection, "") == {0}


@POSTGRESQL
def test_settings_that_a_dump_sets_to_what_they_are(connection):
    """P9, P11: that changes nothing, and is no way to change them."""
    dump = (
        "SET idle_in_transaction_session_timeout = 0",
        "SET transaction_timeout = '0'",
        "SET xmloption = content",
        "SET default_tablespace = ''",
        "SET default_table_access_method = heap",
        "SET check_function_bodies = false",
        "SET default_with_oids = false",
    )
    names = ["idle_in_transaction_session_timeout", "xmloption", "default_tablespace"]
    before = [connection.execute(f"SHOW {name}").fetchall() for name in names]
    for sql in dump:
        connection.execute(sql)
    for name in names:
        connection.execute(f"RESET {name}")
    assert [connection.execute(f"SHOW {name}").fetchall() for name in names] == before
    connection.rollback()


@POSTGRESQL
def test_a_dump_s_settings_where_they_are_others(engine):
    """P10: what the server's administrator or the URL has set stays, and is told."""
    sign = "&" if "?" in engine.url else "?"
    url = f"{engine.url}{sign}options=-cxmloption%3Ddocument"
    with tique.connect(url) as connection:
        with pytest.raises(tique.NotSupportedError, match="xmloption"):
            connection.execute("SET xmloption = content")
        connection.rollback()
        connection.execute("SET xmloption = document")
        connection.rollback()
