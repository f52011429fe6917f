"""SERIALIZABLE: programs that must be serializable, and what they must not be refused for.

The guarantee is strict serializability in the order of commits: what a transaction saw is so
still when it commits. The programs are in ``programs.txt``. Some are refused without need,
as LIMIT and aggregates have seen all rows of their predicates (``NEEDLESS``): a queue's first
row would be the same, whatever comes behind it.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

import tique
from tests.effort import effort
from tests.isolation.programs import create, fill, play, programs
from tests.plugins.engine import ENGINES, label

pytestmark = [pytest.mark.fresh_tables, pytest.mark.every_engine]

NEEDLESS = {"a queue's last row", "a smallest key, and a larger one"}


def cases():
    for program in programs():
        marks = ()
        if program.name in NEEDLESS:
            reason = "all rows of a predicate are seen"
            marks = pytest.mark.xfail(
                raises=tique.SerializationError, reason=reason, strict=True
            )
        yield pytest.param(program, id=program.name, marks=marks)


@pytest.fixture(scope="module", params=ENGINES, ids=label)
def lasting(request, tmp_path_factory):
    with request.param.lasting(tmp_path_factory) as opened:
        yield opened


@pytest.fixture(scope="module", params=effort(["memory"], ["memory", "query"]))
def connect(request, lasting):
    """A function that connects to a database with the tables."""
    lasting.begin_again()

    def start(**options):
        return lasting.connect(certifier=request.param, checkpoint="manual", **options)

    create(start())
    return start


@pytest.mark.parametrize("program", [*cases()])
def test_programs(connect, program):
    """P1, P3."""
    with ExitStack() as stack:
        fill(stack.enter_context(connect()), program.tables)

        def begin(number):
            options = {"isolation_level": "SERIALIZABLE"} if number else {}
            one = connect(autocommit=not number, **options)
            return stack.enter_context(one)

        play(program, begin)


def test_each_program_has_a_name_of_its_own():
    names = [program.name for program in programs()]
    assert sorted({*names}) == sorted(names)
    assert {*names} > NEEDLESS
