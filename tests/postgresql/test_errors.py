"""P4, P6, P8: the translation of each of the server's errors."""

from __future__ import annotations

import re
from contextlib import closing

import psycopg
import pytest

from tests.plugins.engine import PostgreSQL
from tests.postgresql.pairs import CLASSES
from tique._translation import translated
from tique_backends.errors import (
    ConflictError,
    ConnectionLostError,
    EngineError,
    ErrorKind,
)
from tique_backends.sharing import FencedError

OF_ALL_ENGINES = {"25": "OperationalError"}
"""Classes that are the same on every engine, and not psycopg's, by SQLSTATE."""

STATES = sorted(
    error.sqlstate
    for error in vars(psycopg.errors).values()
    if isinstance(error, type)
    and re.fullmatch("[0-9A-Z]{5}", str(getattr(error, "sqlstate", "")))
    and not CLASSES.isdisjoint(base.__name__ for base in error.__mro__)
)
"""The server's errors that psycopg has one of PEP 249's classes for."""


def raising(state, hint=""):
    """A statement that fails with a SQLSTATE."""
    return (
        "DO $$ BEGIN RAISE EXCEPTION 'no luck' "
        f"USING ERRCODE = '{state}', HINT = '{hint}'; END $$"
    )


def kind(error):
    return next(c.__name__ for c in type(error).__mro__ if c.__name__ in CLASSES)


@pytest.fixture
def engine(request):
    opened = PostgreSQL.fresh(request)
    yield opened
    opened.close()


@pytest.fixture
def fail(engine):
    """Let the server raise an error; the error of the engine's session."""
    database = engine.connect(checkpoint="manual")._database
    sessions = [database.engine.session()]

    def failing(statement):
        session = sessions[-1]
        with pytest.raises(EngineError) as caught:
            session.execute(statement)
        if session.is_lost:
            sessions.append(database.engine.session())
        else:
            assert session.execute("SELECT 1").fetch_all() == [(1,)]
        return caught.value, session.is_lost

    yield failing
    for session in sessions:
        session.close()


def test_classes_are_psycopgs(engine, fail):
    with closing(engine._connect_natively()) as native:
        assert len(STATES) > 200
        for state in STATES:
            with pytest.raises(psycopg.Error) as caught:
                native.execute(raising(state))
            expected = OF_ALL_ENGINES.get(state[:2], kind(caught.value))
            error, is_lost = fail(raising(state))
            ours = translated(error)
            assert kind(ours) == expected, state
            assert ours.sqlstate == ("08006" if is_lost else state)


@pytest.mark.parametrize(
    ("state", "name"),
    [
        ("23505", "UniqueViolation"),
        ("23502", "NotNullViolation"),
        ("23514", "CheckViolation"),
    ],
)
def test_constraints_have_classes_of_their_own(fail, state, name):
    error, _ = fail(raising(state))
    assert type(translated(error)).__name__ == name


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("25006", ErrorKind.READ_ONLY),
        ("53100", ErrorKind.FULL),
        ("57014", ErrorKind.INTERRUPTED),
    ],
)
def test_kinds_that_are_the_same_on_every_engine(fail, state, kind):
    error, _ = fail(raising(state))
    assert (error.kind, error.sqlstate) == (kind, state)


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_what_another_transaction_was_in_the_way_of(fail, state):
    """P6: it can be run again."""
    error, is_lost = fail(raising(state))
    assert (type(error), error.sqlstate, is_lost) == (ConflictError, state, False)


@pytest.mark.parametrize("state", ["TQ001", "TQ002"])
def test_what_the_sequencer_says_to_a_client_that_is_gone(fail, state):
    """P6."""
    error, is_lost = fail(raising(state))
    assert (type(error), is_lost) == (FencedError, False)
    assert translated(error).sqlstate == "08006"


@pytest.mark.parametrize(
    "state", ["08000", "08P01", "25P03", "57P01", "57P02", "57P03", "57P05"]
)
def test_what_may_have_been_the_sessions_last_word(fail, state):
    """P4: the outcome of the statement is unknown."""
    error, is_lost = fail(raising(state))
    assert (type(error), is_lost) == (ConnectionLostError, True)


def test_an_error_says_the_hint_and_not_the_statement(fail):
    """P11: the statement that failed is tique's, with values in it."""
    error, _ = fail(raising("22023", "try another"))
    assert str(error) == "no luck (try another)"
    error, _ = fail("SELECT 'secret', nothing")
    assert "nothing" in str(error)
    assert "secret" not in str(error)
