"""P1, P3: the named anomalies, and the levels at which they must and must not occur."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import tique
from tests.isolation.anomalies import LEVELS, OCCURRING, PREVENTED, PREVENTED_BY_ROW
from tests.isolation.histories import fill, play
from tests.plugins.engine import ENGINES, label

pytestmark = [pytest.mark.fresh_tables, pytest.mark.every_engine]

NAMES = {"G0", "G1a", "G1b", "G1c", "OTV", "PMP", "P4", "G-single", "G2-item", "G2"}


@pytest.fixture(scope="module", params=ENGINES, ids=label)
def lasting(request, tmp_path_factory):
    with request.param.lasting(tmp_path_factory) as opened:
        yield opened


@pytest.fixture(scope="module", params=["memory", "query"])
def connect(request, lasting):
    """A function that connects to a database with one table, which stays open."""
    lasting.begin_again()

    def start(level="SNAPSHOT", conflicts="column"):
        return lasting.connect(
            certifier=request.param,
            checkpoint="manual",
            isolation_level=level,
            conflicts=conflicts,
        )

    start().execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    return start


@pytest.fixture
def run(connect):
    """Play a history at a level."""

    def played(*options, history):
        with ExitStack() as stack:
            fill(stack.enter_context(connect()))
            play(history, lambda _: stack.enter_context(connect(*options)))

    return played


def cases(anomalies):
    return pytest.mark.parametrize(
        ("level", "history"),
        [
            pytest.param(one.level, one.history, id=f"{one.name}-{one.level}")
            for one in anomalies
        ],
    )


@cases(PREVENTED)
def test_must_not_occur(run, level, history):
    run(level, history=history)


@cases(PREVENTED_BY_ROW)
def test_must_not_occur_by_row(run, level, history):
    run(level, "row", history=history)


@cases(OCCURRING)
def test_occurs(run, level, history):
    run(level, history=history)


def test_every_anomaly_has_its_levels():
    """None is both prevented and shown to happen at a level, and all are there."""
    prevented, occurring = (
        {(one.name, one.level) for one in anomalies}
        for anomalies in (PREVENTED, OCCURRING)
    )
    assert not prevented & occurring
    for level in LEVELS:
        told = {
            name.partition(" ")[0] for name, at in prevented | occurring if at == level
        }
        assert told == NAMES
    assert not {name for name, at in occurring if at == "SERIALIZABLE"}


def test_another_level_is_refused_not_made_stronger_or_weaker(connect):
    """P10."""
    with pytest.raises(tique.NotSupportedError, match="READ UNCOMMITTED"):
        connect("READ UNCOMMITTED")
