"""ALTER DEFAULT PRIVILEGES, and what is shown of sessions (P10, P11)."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty

_GRANTED = """
SELECT DISTINCT a.privilege_type FROM pg_class AS c
CROSS JOIN LATERAL aclexplode(c.relacl) AS a
WHERE c.relname = %s AND a.grantee = 0 ORDER BY 1"""


_CACHES = r"""
SELECT relname FROM pg_class
WHERE relnamespace = 'tique'::regnamespace AND relkind = 'r'
  AND relname LIKE 'tique\_cache\_%'"""


@pytest.fixture
def url(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


def test_new_tables_get_them_and_those_of_tique_do_not(url):
    """P11: versions can be read by readers of their table, and written by nobody else."""
    with (
        closing(psycopg.connect(url, autocommit=True)) as native,
        tique.connect(url, autocommit=True) as connection,
    ):
        granted = "ALTER DEFAULT PRIVILEGES {} SELECT, INSERT ON TABLES {} PUBLIC"
        connection.execute(granted.format("GRANT", "TO"))
        try:
            connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
            connection.execute("ALTER TABLE t ADD COLUMN n INTEGER")
            found = native.execute(_GRANTED, ["t"]).fetchall()
            assert found == [("INSERT",), ("SELECT",)]
            ((cache,),) = native.execute(_CACHES).fetchall()
            assert native.execute(_GRANTED, [cache]).fetchall() == [("SELECT",)]
        finally:
            connection.execute(granted.format("REVOKE", "FROM"))
        connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert native.execute(_GRANTED, ["u"]).fetchall() == []


def test_sessions_are_shown_without_their_statements(url):
    """P10: their statements and transactions are tique's and none of the application's."""
    with (
        closing(
            psycopg.connect(url, autocommit=True, application_name="aha")
        ) as native,
        tique.connect(url) as connection,
    ):
        (pid,) = native.execute("SELECT pg_backend_pid()").fetchone()
        rows = connection.execute(
            "SELECT application_name, datname = current_database(), query, state, "
            "xact_start, wait_event, backend_xid FROM pg_stat_activity WHERE pid = %s",
            (pid,),
        ).fetchall()
        assert rows == [("aha", True, *[None] * 5)]
        names = [
            [column[0] for column in each.execute(sql).description]
            for each in (native, connection)
            for sql in ("SELECT * FROM pg_catalog.pg_stat_activity",)
        ]
        assert names[0] == names[1]
