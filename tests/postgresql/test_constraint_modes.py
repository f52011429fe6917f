"""SET CONSTRAINTS, AND CHAIN and set_config(): as natively (P8, P9)."""

from __future__ import annotations

import pytest

import tique

TABLES = (
    "CREATE TABLE place (id INTEGER PRIMARY KEY)",
    "CREATE TABLE visit (id INTEGER PRIMARY KEY, place INTEGER CONSTRAINT later "
    "REFERENCES place DEFERRABLE INITIALLY DEFERRED, again INTEGER CONSTRAINT now "
    "REFERENCES place)",
    "INSERT INTO place VALUES (1)",
)


@pytest.fixture
def tables(pair):
    for connection in (pair.native, pair.ours):
        for statement in TABLES:
            connection.execute(statement)
        connection.commit()
    yield
    for connection in (pair.native, pair.ours):
        connection.rollback()
        connection.execute("DROP TABLE visit, place")
        connection.commit()


SCRIPTS = {
    "nothing to check": [
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET CONSTRAINTS ALL DEFERRED",
    ],
    "checked at once": [
        "SET CONSTRAINTS ALL IMMEDIATE",
        "INSERT INTO visit VALUES (1, 9)",
    ],
    "checked when said": [
        "INSERT INTO visit VALUES (1, 9)",
        "SET CONSTRAINTS later IMMEDIATE",
    ],
    "in time": [
        "INSERT INTO visit VALUES (1, 9)",
        "INSERT INTO place VALUES (9)",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "COMMIT",
    ],
    "as Django does": [
        "INSERT INTO visit VALUES (1, 1)",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET CONSTRAINTS ALL DEFERRED",
        "INSERT INTO visit VALUES (2, 9)",
        "DELETE FROM visit WHERE id = 2",
        "COMMIT",
    ],
    "later ones wait": [
        "SET CONSTRAINTS ALL IMMEDIATE",
        "SET CONSTRAINTS public.later DEFERRED",
        "INSERT INTO visit VALUES (1, 9)",
        "COMMIT",
    ],
    "undone with its savepoint": [
        "SAVEPOINT s",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "ROLLBACK TO s",
        "INSERT INTO visit VALUES (1, 9)",
        "INSERT INTO place VALUES (9)",
        "COMMIT",
    ],
    "what made it pass is undone": [
        "INSERT INTO visit VALUES (1, 9)",
        "SAVEPOINT s",
        "INSERT INTO place VALUES (9)",
        "SET CONSTRAINTS ALL IMMEDIATE",
        "ROLLBACK TO s",
        "COMMIT",
    ],
    "ends with its transaction": [
        "SET CONSTRAINTS ALL IMMEDIATE",
        "COMMIT",
        "INSERT INTO visit VALUES (1, 9)",
        "INSERT INTO place VALUES (9)",
        "COMMIT",
    ],
    "not deferrable": ["SET CONSTRAINTS now DEFERRED"],
    "a key": ["SET CONSTRAINTS visit_pkey DEFERRED"],
    "unknown": ["SET CONSTRAINTS later, nope DEFERRED"],
    "in another schema": ["SET CONSTRAINTS pg_catalog.later DEFERRED"],
    "chained": [
        "INSERT INTO place VALUES (3)",
        "COMMIT AND CHAIN",
        "INSERT INTO place VALUES (4)",
        "ROLLBACK AND CHAIN",
        "INSERT INTO place VALUES (5)",
        "COMMIT AND NO CHAIN",
    ],
    "chained as it was": [
        "SET TRANSACTION READ ONLY",
        "SELECT 1",
        "COMMIT AND CHAIN",
        "INSERT INTO place VALUES (4)",
    ],
}


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_scripts(pair, script):
    def body(connection):
        failed = None
        for number, statement in enumerate(script):
            try:
                connection.execute(statement)
            except Exception as error:
                failed = number, error.sqlstate
                break
        connection.rollback()
        found = connection.execute("SELECT id, place FROM visit").fetchall()
        places = connection.execute("SELECT id FROM place ORDER BY id").fetchall()
        return failed, found, places

    pair.same(body)


def test_a_chain_needs_a_transaction(pair):
    for connection in (pair.native, pair.ours):
        connection.autocommit = True
    try:
        for failure in pair.both(lambda c: c.execute("COMMIT AND CHAIN")):
            assert failure.sqlstate == "25P01"
        pair.same(lambda c: c.execute("SET CONSTRAINTS ALL IMMEDIATE").rowcount)
    finally:
        for connection in (pair.native, pair.ours):
            connection.autocommit = False


def test_a_chain_goes_on_in_autocommit(pair):
    """A transaction follows, until the next COMMIT."""
    pair.ours.autocommit = True
    try:
        for statement in ("BEGIN READ ONLY", "SELECT 1", "COMMIT AND CHAIN"):
            pair.ours.execute(statement)
        assert pair.ours.in_transaction
        with pytest.raises(tique.OperationalError):
            pair.ours.execute("DELETE FROM t")
        pair.ours.execute("COMMIT")
        assert not pair.ours.in_transaction
    finally:
        pair.ours.rollback()
        pair.ours.autocommit = False


SETTINGS = {
    "for the session": [
        ("SELECT set_config('app.tenant', %s, false)", ["5"]),
        ("SELECT current_setting('app.tenant')", None),
    ],
    "for the transaction": [
        ("SELECT set_config('app.tenant', '5', true) AS x", None),
        ("SHOW app.tenant", None),
        ("COMMIT", None),
        ("SELECT current_setting('app.tenant', true)", None),
    ],
    "several": [
        ("SELECT set_config('app.a', %s, %s), set_config(%s, '2', true)",
         ["1", False, "app.b"]),
        ("SELECT current_setting('app.a'), current_setting('app.b')", None),
    ],
    "of the engine": [
        ("SELECT pg_catalog.set_config('work_mem', '8192', true)", None),
        ("SHOW work_mem", None),
    ],
    "a wrong value": [("SELECT set_config('work_mem', 'x', true)", None)],
    "of a name that is given": [
        ("SELECT set_config('app.tenant', '5', true)", None),
        ("SELECT current_setting(%s)", ["App.Tenant"]),
        ("SELECT pg_catalog.current_setting(%s, true) AS x", ["app.nothing"]),
        ("SELECT current_setting(%s, %s)", ["work_mem", False]),
        ("SELECT current_setting(%(name)s::text)", {"name": "TimeZone"}),
        ("SELECT current_setting(%s)", [None]),
        ("SELECT current_setting(%s)", ["transaction_read_only"]),
        ("SELECT current_setting(%s)", ["app.nothing"]),
    ],
    "with quotes": [
        ("SELECT set_config('app.a', %s, false)", ["a'b\\\", c"]),
        ("SELECT current_setting('app.a')", None),
    ],
}  # fmt: skip


@pytest.mark.parametrize("script", SETTINGS.values(), ids=SETTINGS)
def test_settings(pair, script):
    def body(connection):
        found = []
        for statement, parameters in script:
            cursor = connection.execute(statement, parameters)
            if cursor.description:
                found.append(([c[0] for c in cursor.description], cursor.fetchall()))
        return found

    pair.same(body)


def test_the_drivers_own_settings_are_told_by_name(pair):
    """P12: the engine's sessions have other ones."""
    pair.ours.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
    for name in ("transaction_isolation", "Transaction_Isolation"):
        found = pair.ours.execute("SELECT current_setting(%s)", [name]).fetchall()
        assert found == [("read committed",)]
    for sql in (
        "SELECT current_setting(%s), 1",
        "SELECT 1 WHERE current_setting(%s) = 'on'",
    ):
        with pytest.raises(tique.NotSupportedError, match="write the setting's name"):
            pair.ours.execute(sql, ["transaction_isolation"])
    pair.ours.rollback()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("search_path", "tique"),
        ("role", "x"),
        ("transaction_isolation", "serializable"),
    ],
)
def test_settings_that_matter_are_refused(pair, name, value):
    """P10, P11: as by SET, in a parameter too."""
    with pytest.raises(tique.NotSupportedError):
        pair.ours.execute("SELECT set_config(%s, %s, false)", [name, value])
    pair.ours.rollback()
