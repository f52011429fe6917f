"""A database whose owner lets other roles use it."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager

import psycopg
import pytest

import tique
from tests.sharing.playing import Process
from tique_backends.engine import FORMAT_VERSION

ROLES = "reader", "writer", "stranger", "keeper", "careless"
DENIED = "42501"


class Shop:
    """The database, and its processes by role.

    The extension is a superuser's; the plain form belongs to an ordinary role.
    """

    def __init__(self, engine):
        self.engine = engine
        self._cluster = engine._cluster
        self.processes = []
        self.drop_roles()
        for role in ROLES:
            self.natively(
                f"CREATE ROLE {role} LOGIN PASSWORD '{self._cluster.password}'"
            )
        self.keeper = "tique"
        if engine.sequencer == "plain":
            self.keeper = "keeper"
            self.natively(
                "GRANT CREATE ON DATABASE tique TO keeper",
                "GRANT USAGE, CREATE ON SCHEMA public TO keeper",
            )
        # An owner may do this to avoid single grants.
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            self.natively(
                f"ALTER DEFAULT PRIVILEGES FOR ROLE {self.keeper} "
                f"GRANT ALL ON {kind} TO careless WITH GRANT OPTION"
            )
        self.owner = self.process()
        for table in ("open", "closed"):
            self.owner.commit(
                f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, v INTEGER CHECK (v < 1000000), "
                "note TEXT)"
            )
            self.owner.commit(f"INSERT INTO {table} VALUES (1, 10, 'a'), (2, 20, 'b')")
        self.natively(
            "GRANT USAGE ON SCHEMA tique TO reader, writer",
            "GRANT USAGE ON SCHEMA public TO PUBLIC",
            "GRANT SELECT ON open TO reader",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON open TO writer",
        )

    def url(self, role):
        return self.engine.url.replace("//tique:", f"//{role}:")

    def process(self, login=None, role=None):
        """A process of a role, by default the owner, which may set another one."""
        url = self.url(login or self.keeper) + (
            f"&options=-crole%3D{role}" if role else ""
        )
        self.processes.append(Process(url))
        return self.processes[-1]

    def restart(self):
        """Close everything; the server is found as after a crash."""
        for process in self.processes:
            process.close()
        self.engine.restart()

    @contextmanager
    def by_hand(self, role="tique"):
        """A connection of the role without tique."""
        url = self.url(role).partition("&sequencer")[0]
        with closing(psycopg.connect(url, autocommit=True)) as connection:
            yield connection

    def natively(self, *statements):
        with self.by_hand() as connection:
            for sql in statements:
                connection.execute(sql)

    def drop_roles(self):
        self.natively(
            *(
                f"DO $$ BEGIN IF to_regrole('{role}') IS NOT NULL THEN "
                f"DROP OWNED BY {role}; DROP ROLE {role}; END IF; END $$"
                for role in ROLES
            )
        )

    def close(self):
        for process in self.processes:
            process.close()
        self.engine.begin_again()
        self.drop_roles()


@contextmanager
def denied(match="permission denied", error=tique.ProgrammingError):
    with pytest.raises(error, match=match) as caught:
        yield
    assert caught.value.sqlstate == DENIED


def refused():
    return denied("", psycopg.errors.InsufficientPrivilege)


def tables_of(shop):
    """The managed tables' numbers in the log, by name."""
    with shop.by_hand() as connection:
        return dict(
            connection.execute(
                'SELECT table_name, id::TEXT FROM tique."tables"'
            ).fetchall()
        )


class Hand:
    """A role that calls tique's functions by hand, for a client of its own."""

    def __init__(self, connection, tables):
        self.tables = tables
        self._connection = connection
        ((self.client,),) = self.run("SELECT tique.guest_join(60000)")
        sql = f"SELECT tique.guest_introduce(%s, 77, {FORMAT_VERSION})"
        ((epoch,),) = self.run(sql, self.client)
        self.txid = (epoch << 20) + 1

    def run(self, sql, *parameters):
        cursor = self._connection.execute(sql, parameters or None)
        return cursor.fetchall() if cursor.description else []

    def cache(self, name):
        """The cache table of the table of that name."""
        return f"tique.tique_cache_{self.tables[name]}"

    def append(self, versions, txid=None):
        """Commit these versions, by table; returns the timestamp."""
        entry = [{self.tables[name]: rows for name, rows in versions.items()}]
        return self.append_text(json.dumps(entry, separators=(",", ":")), txid)

    def append_text(self, entry, txid=None):
        ((stamps,),) = self.run(
            "SELECT stamps FROM tique.guest_append(%s, tique.sts(), %s, '{1}', "
            "ARRAY[%s::BIGINT], %s)",
            self.client,
            b"0123456789abcdef",
            txid or self.txid,
            entry,
        )
        return stamps[0]
