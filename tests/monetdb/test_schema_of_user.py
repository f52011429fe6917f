"""A user whose own schema is not ``sys``."""

from __future__ import annotations

from contextlib import closing

import tique
from tests.plugins.monetdb import connect_natively, empty


def test_names_without_a_schema_are_those_of_the_users_own(monetdb_server):
    """P10: tique looks for them where MonetDB does."""
    url = monetdb_server.url
    empty(url)
    with closing(connect_natively(url)) as native:
        native.execute("CREATE SCHEMA app")
        native.execute('ALTER USER "monetdb" SET SCHEMA app')
    try:
        with tique.connect(url, autocommit=True) as connection:
            # MonetDB's own relation of that name is in sys.
            connection.execute("CREATE TABLE users (id INTEGER PRIMARY KEY)")
            connection.execute("INSERT INTO users VALUES (1)")
            query = "SELECT id FROM users JOIN app.users AS u USING (id)"
            assert connection.execute(query).fetchall() == [(1,)]
            connection.execute("CREATE TABLE sys.other (id INTEGER)")
            assert connection.execute("SELECT * FROM other").fetchall() == []
    finally:
        with closing(connect_natively(url)) as native:
            native.execute('ALTER USER "monetdb" SET SCHEMA sys')
        empty(url)
