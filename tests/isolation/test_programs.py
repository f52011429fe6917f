"""SERIALIZABLE: programs that must be serializable, and what they must not be refused for.

The guarantee is strict serializability in the order of commits: what a transaction saw is so
still when it commits. The programs are in ``programs.txt``.
"""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.effort import effort
from tests.isolation.programs import create, fill, play, programs
from tests.plugins.engine import ENGINES, label

pytestmark = [pytest.mark.fresh_tables, pytest.mark.every_engine]

PROGRAMS = programs()


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


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
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
    names = [program.name for program in PROGRAMS]
    assert sorted({*names}) == sorted(names)
