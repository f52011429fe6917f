"""What the URL, the role, the database and the server's files set is obeyed or refused (P12)."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.plugins.engine import PostgreSQL
from tests.plugins.postgresql import private_cluster
from tique_backends.errors import EngineError
from tique_backends.postgresql.sessions.starting import OBEYED, obeyed

PAGE = Path(__file__).parents[2] / "docs" / "engines" / "postgresql.md"


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    yield opened
    opened.close()


def with_options(database, *settings):
    options = " ".join("-c" + setting.replace(" ", "\\ ") for setting in settings)
    return f"{database.url}&options={quote(options)}"


class Login:
    """A role that owns tique's schema, with settings of its own."""

    def __init__(self, database):
        self.database = database
        self.native = psycopg.connect(database.place, autocommit=True)
        self.name = self.native.info.dbname
        self.native.execute(
            "DROP ROLE IF EXISTS starter; CREATE ROLE starter LOGIN SUPERUSER PASSWORD 'x'"
        )
        self.url = f"{database.url}&user=starter&password=x"

    def close(self):
        self.native.execute(f'ALTER DATABASE "{self.name}" RESET ALL')
        self.native.execute("DROP OWNED BY starter CASCADE; DROP ROLE starter")
        self.native.close()


@pytest.fixture
def login(database):
    opened = Login(database)
    yield opened
    database.close()
    opened.close()


def give(how, login, monkeypatch, name, value):
    """Give new sessions a setting; the URL that has it."""
    if how == "url":
        return with_options(login.database, f"{name}={value}")
    if how == "environment":
        monkeypatch.setenv("PGOPTIONS", "-c" + f"{name}={value}".replace(" ", "\\ "))
    elif how == "service":
        file = Path(monkeypatch.folder) / "services"
        written = value.replace(" ", "\\ ")
        file.write_text(f"[s]\noptions=-c{name}={written}\n")
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        return f"{login.url}&service=s"
    else:
        where = {
            "role": "ROLE starter",
            "database": f'DATABASE "{login.name}"',
            "role in database": f'ROLE starter IN DATABASE "{login.name}"',
        }[how]
        login.native.execute(f"ALTER {where} SET {name} = '{value}'")
    return login.url


WAYS = ("url", "environment", "service", "role", "database", "role in database")


@pytest.fixture
def monkey(monkeypatch, tmp_path):
    monkeypatch.folder = tmp_path
    return monkeypatch


@pytest.mark.parametrize("how", WAYS)
class TestWays:
    """Each way in which a session is given a setting."""

    def test_read_uncommitted_is_refused(self, login, monkey, how):
        """P10, P12: PostgreSQL reads as under READ COMMITTED there, which it calls other."""
        level = "read uncommitted"
        url = give(how, login, monkey, "default_transaction_isolation", level)
        with pytest.raises(
            tique.NotSupportedError, match="default_transaction_isolation"
        ):
            tique.connect(url)
        with tique.connect(url, isolation_level="SNAPSHOT") as connection:
            assert connection.isolation_level == "SNAPSHOT"

    def test_levels(self, login, monkey, how):
        for level, name in (
            ("read committed", "READ COMMITTED"),
            ("repeatable read", "SNAPSHOT"),
            ("serializable", "SERIALIZABLE"),
        ):
            url = give(how, login, monkey, "default_transaction_isolation", level)
            with tique.connect(url) as connection:
                assert connection.isolation_level == name
                connection.isolation_level = "SNAPSHOT"
                connection.execute("RESET default_transaction_isolation")
                connection.commit()
                assert connection.isolation_level == name
                shown = connection.execute("SHOW default_transaction_isolation")
                assert shown.fetchone() == (level,)

    def test_read_only(self, login, monkey, how):
        with tique.connect(login.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        url = give(how, login, monkey, "default_transaction_read_only", "on")
        with tique.connect(url, autocommit=True) as connection:
            assert connection.read_only
            for statement in (
                "INSERT INTO t VALUES (1)",
                "CREATE TABLE u (id INTEGER)",
            ):
                with pytest.raises(tique.Error) as caught:
                    connection.execute(statement)
                assert caught.value.sqlstate == "25006"
            connection.execute("BEGIN READ WRITE")
            connection.execute("INSERT INTO t VALUES (2)")
            connection.execute("COMMIT")
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("INSERT INTO t VALUES (3)")
            connection.execute("RESET default_transaction_read_only")
            with pytest.raises(tique.Error):
                connection.execute("INSERT INTO t VALUES (4)")
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)

    def test_timeouts(self, login, monkey, how):
        url = give(how, login, monkey, "statement_timeout", "150ms")
        with tique.connect(url, autocommit=True) as connection:
            for _ in range(2):
                with pytest.raises(tique.OperationalError) as caught:
                    connection.execute("SELECT pg_sleep(20)").fetchall()
                assert caught.value.sqlstate == "57014"
                connection.execute("SET statement_timeout = 0")
                connection.execute("SELECT pg_sleep(0.3)").fetchall()
                connection.execute("RESET statement_timeout")
            shown = connection.execute("SHOW statement_timeout").fetchone()
            assert shown == ("150ms",)

    def test_lock_timeout(self, login, monkey, how):
        with tique.connect(login.url, autocommit=True) as first:
            first.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            first.execute("INSERT INTO t VALUES (1)")
        url = give(how, login, monkey, "lock_timeout", "70ms")
        with tique.connect(url) as one, tique.connect(url) as two:
            assert one.lock_timeout == 0.07
            with tique.connect(url, lock_timeout=30) as asked:
                assert asked.lock_timeout == 30
            one.execute("SELECT * FROM t FOR UPDATE").fetchall()
            with pytest.raises(tique.OperationalError) as caught:
                two.execute("SELECT * FROM t FOR UPDATE").fetchall()
            assert caught.value.sqlstate == "55P03"
            two.rollback()

    def test_idle(self, login, monkey, how):
        name = "idle_in_transaction_session_timeout"
        url = give(how, login, monkey, name, "150ms")
        connection = tique.connect(url)
        assert connection.execute(f"SHOW {name}").fetchone() == ("150ms",)
        connection.execute("SELECT 1")
        until = time.monotonic() + patience(10)
        while not connection.closed:
            assert time.monotonic() < until
            time.sleep(0.01)
        with pytest.raises(tique.InternalError) as caught:
            connection.commit()
        assert caught.value.sqlstate == "25P03"

    def test_what_would_change_values_is_refused(self, login, monkey, how):
        url = give(how, login, monkey, "bytea_output", "escape")
        with pytest.raises(tique.NotSupportedError, match="bytea_output"):
            tique.connect(url)


@pytest.mark.slow
def test_the_servers_file_counts_too():
    def alter(name, value):
        with psycopg.connect(cluster.socket_url, autocommit=True) as native:
            native.execute(f"ALTER SYSTEM SET {name} = {value}")
            native.execute("SELECT pg_reload_conf()")
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with psycopg.connect(cluster.socket_url, autocommit=True) as native:
                if native.execute(f"SHOW {name}").fetchone() == (value.strip("'"),):
                    return
        raise TimeoutError

    with private_cluster() as cluster:
        tique.connect(cluster.socket_url).close()
        alter("default_transaction_isolation", "'read committed'")
        alter("default_transaction_read_only", "on")
        with tique.connect(cluster.socket_url) as connection:
            assert connection.isolation_level == "READ COMMITTED"
            assert connection.read_only
        alter("array_nulls", "off")
        with pytest.raises(tique.NotSupportedError, match="array_nulls"):
            tique.connect(cluster.socket_url)


def other_value(name, setting, kind, choices, least, most):
    """A value of a setting that is not its own."""
    special = {
        "DateStyle": "SQL, DMY",
        "TimeZone": "Asia/Tokyo",
        "client_encoding": "LATIN1",
        "default_text_search_config": "pg_catalog.german",
        "default_table_access_method": "other",
        "extra_float_digits": "0",
        "lc_messages": "POSIX",
        "lc_monetary": "C",
        "lc_numeric": "C",
        "lc_time": "C",
        "search_path": "public",
        "wal_consistency_checking": "heap",
        "restrict_nonsystem_relation_kind": "view",
        "temp_tablespaces": "pg_default",
        "default_tablespace": "pg_default",
        "max_stack_depth": "1024",
        "timezone_abbreviations": "India",
        "idle_session_timeout": "600000",
        "default_transaction_isolation": "repeatable read",
        "dynamic_library_path": "$libdir:/tmp",
        "output_plugin_libraries": "test_decoding",
        "statement_timeout": "600000",
        "session_preload_libraries": "auto_explain",
    }
    if name in special:
        return special[name]
    if kind == "bool":
        return "off" if setting == "on" else "on"
    if kind == "enum":
        return next(choice for choice in choices if choice != setting)
    if kind in ("integer", "real"):
        number = float(setting) + 1
        number = number if number <= float(most) else float(least)
        return str(int(number)) if kind == "integer" else f"{number:g}"
    return "x"


APART = {
    "local_preload_libraries": "the server has no such library",
    "debug_discard_caches": "everything would take minutes",
    "log_statement_stats": "not beside others of the log's",
}


def test_the_server_of_a_process_is_one(database, monkeypatch):
    """P12: PG* variables count when the URL is read; later ones are another database's."""
    with tique.connect(database.url) as first:
        monkeypatch.setenv("PGCONNECT_TIMEOUT", "7")
        monkeypatch.setenv("PGOPTIONS", "-cdefault_transaction_read_only=on")
        with tique.connect(database.url) as second:
            assert (first.read_only, second.read_only) == (False, True)
            assert first._database is not second._database


def test_refused_parameters(database):
    for parameter in ("replication=database", "replication=true"):
        with pytest.raises(tique.ProgrammingError, match="replication"):
            tique.connect(f"{database.url}&{parameter}")


def test_the_page_has_all_of_libpqs_parameters():
    """P12: each of them, and each variable, is in one of the tables or its text."""
    page = PAGE.read_text()
    known = set(re.findall(r"`([\w.]+)`", page))
    for option in psycopg.pq.Conninfo.get_defaults():
        assert option.keyword.decode() in known
        assert option.envvar is None or option.envvar.decode() in known


def test_roles(login):
    """P11: a role is had from the beginning; PostgreSQL obeys no session_authorization."""
    who = "SELECT current_user, session_user"
    for setting in ("role", "session_authorization"):
        url = with_options(login.database, f"{setting}=starter")
        with psycopg.connect(login.database.place, options=f"-c{setting}=starter") as n:
            natively = n.execute(who).fetchall()
        with tique.connect(url) as connection:
            assert connection.execute(who).fetchall() == natively


@pytest.mark.slow
def test_every_setting_of_the_server(database):
    """P10, P12: each is obeyed, or named in a refusal; the page says which."""
    with psycopg.connect(database.place, autocommit=True) as native:
        native.execute("DROP ACCESS METHOD IF EXISTS other")
        native.execute(
            "CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler"
        )
        settings = native.execute(
            "SELECT name, boot_val, setting, vartype, enumvals, min_val, max_val "
            "FROM pg_settings "
            "WHERE context IN ('user', 'superuser') AND source <> 'override'"
        ).fetchall()
        usual = dict(native.execute("SELECT name, setting FROM pg_settings").fetchall())
    given, refused = {}, {}
    for name, first, *rest in settings:
        value = other_value(name, *rest)
        try:
            obeyed([[name, value, first, "client"]])
        except EngineError:
            refused[name] = value
        else:
            if name not in APART and not name.startswith("tcp_"):
                given[name] = value
    keeper = database.connect()
    for name, value in refused.items():
        with pytest.raises(tique.NotSupportedError, match=f'"{name}"'):
            tique.connect(with_options(database, f"{name}={value}"))
    url = with_options(database, *(f"{name}={value}" for name, value in given.items()))
    with tique.connect(url, autocommit=True) as connection:
        shown = {row[0]: row[1] for row in connection.execute("SHOW ALL").fetchall()}
        raw = connection.execute("SELECT name, setting FROM pg_settings").fetchall()
        shown |= {name: value for name, value in raw if name not in OBEYED}
    keeper.close()
    told = dict(re.findall(r"^\| `([\w.]+)` \| (\w+)", PAGE.read_text(), re.MULTILINE))
    assert {name for name, how in told.items() if how == "refused"} >= {*refused}
    assert not refused.keys() & {*given}
    for name in given:
        if shown[name] == usual[name]:
            assert told.get(name) == "overridden", name
        elif name in OBEYED:
            assert told.get(name) == "obeyed", name
    assert len(given) > 100
