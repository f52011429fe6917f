"""Roles that do not own schema tique (P11), on distributed tables."""

from __future__ import annotations

from contextlib import closing, suppress
from urllib.parse import urlsplit

import psycopg
import pytest

import tique
from tests.citus.conftest import ROWS, one, run

_SUM = "SELECT count(*), sum(balance) FROM account"


@pytest.fixture
def guest(bank):
    """The URL of a role that may read and write all tables but one."""
    password = urlsplit(bank.url).password
    bank.ask(f"CREATE ROLE guest LOGIN PASSWORD '{password}'")
    bank.ask("GRANT USAGE ON SCHEMA tique TO guest")
    bank.ask(
        "GRANT SELECT, INSERT, UPDATE, DELETE ON account, currency, setting TO guest"
    )
    yield bank.url.replace("//tique:", "//guest:")
    bank.clear()
    with suppress(psycopg.Error):
        bank.ask("REASSIGN OWNED BY guest TO tique")
    bank.ask("DROP OWNED BY guest")
    bank.ask("DROP ROLE guest")


def test_commits_of_a_guest(bank, guest, connect):
    owner = connect()
    with tique.connect(guest) as connection:
        for table, change, query, expected in (
            (
                "account",
                "balance = 5 WHERE id = 3",
                "SELECT balance FROM account WHERE id = 3",
                5,
            ),
            (
                "currency",
                "name = 'x' WHERE code = 'CHF'",
                "SELECT name FROM currency WHERE code = 'CHF'",
                "x",
            ),
            (
                "setting",
                "value = '7' WHERE name = 'a'",
                "SELECT value FROM setting WHERE name = 'a'",
                "7",
            ),
        ):
            run(connection, f"UPDATE {table} SET {change}")
            assert one(connection, query) == one(owner, query) == (expected,)
        assert one(connection, _SUM) == (ROWS, 5)
        # In bulk.
        run(connection, "UPDATE account SET balance = balance + 1")
        assert one(connection, _SUM) == one(owner, _SUM) == (ROWS, ROWS + 5)
        run(connection, "INSERT INTO account VALUES (-1, 1)")
        assert one(connection, _SUM) == one(owner, _SUM) == (ROWS + 1, ROWS + 6)
    owner.checkpoint()
    assert bank.ask(_SUM) == [(ROWS + 1, ROWS + 6)]
    assert bank.ask("SELECT count(*) FROM tique.moves") == [(0,)]


def test_what_a_guest_may_not(guest, connect):
    connect()
    with tique.connect(guest) as connection:
        with pytest.raises(tique.ProgrammingError, match="permission denied"):
            one(connection, "SELECT count(*) FROM entry")
        with pytest.raises(tique.ProgrammingError, match="permission denied"):
            run(connection, "INSERT INTO entry VALUES (1, 9, 9)")


def test_steps_that_a_guest_leaves_out(bank, guest, connect):
    """A drain counts as done when all shards have its rows, and is taken back otherwise."""
    owner = connect()
    run(owner, "UPDATE account SET balance = 1 WHERE id <= 100")
    ((number,),) = bank.ask("SELECT id FROM tique.tables WHERE table_name = 'account'")
    ((until,),) = bank.ask("SELECT tique.sts()")
    with (
        tique.connect(guest) as connection,
        closing(psycopg.connect(guest, autocommit=True)) as native,
    ):
        one(connection, "SELECT 1 FROM account WHERE id = 1")
        ((client,),) = bank.ask("SELECT client FROM tique.clients WHERE role = 'guest'")
        ask = native.execute
        (token,) = ask(
            "SELECT tique.guest_move(%s, %s, %s)", [client, number, until]
        ).fetchone()
        assert token > 0
        assert ask("SELECT tique.guest_moved(%s, %s)", [number, token]).fetchone() == (
            False,
        )
        ask("SELECT tique.guest_move_rows(%s, %s)", [number, token])
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="are there"):
            ask("SELECT tique.guest_move_rows(%s, %s)", [number, token])
        # The owner does not wait for the rest.
        assert one(
            owner,
            "SELECT sum(a.balance) FROM account AS a JOIN account AS b USING (id)",
        ) == (100,)
        assert ask("SELECT tique.guest_moved(%s, %s)", [number, token]).fetchone() == (
            False,
        )
        for forbidden in (
            f"SELECT tique.guest_fold({number}, {until}, NULL)",
            f"SELECT tique.guest_drain({number}, {until})",
            "SELECT tique.guest_disown()",
            "SELECT tique.guest_sweep('{1}')",
            "SELECT tique.guest_clear_shards('{1}')",
            f"INSERT INTO tique.tique_cache_{number} VALUES (1, 2, 3, FALSE)",
            f"INSERT INTO tique.tique_shape_{number} VALUES (1, 2, 3, FALSE)",
            "DELETE FROM tique.moves",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ask(forbidden)
    assert one(owner, _SUM) == (ROWS, 100)
