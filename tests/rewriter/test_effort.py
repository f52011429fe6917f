"""A plan's effort grows as the text does: counted, so that no load disturbs it."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import pytest
from sqlglot.dialects.dialect import Dialect

from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter, UnsupportedSQL

_READ = "SELECT balance FROM account WHERE id = 1"
TEXTS = {
    "members of WITH": lambda n: (
        "WITH "
        + ", ".join(f"c{i} AS (SELECT * FROM account)" for i in range(n))
        + " SELECT * FROM c0"
    ),
    "members that read each other": lambda n: (
        "WITH c0 AS (SELECT * FROM account), "
        + ", ".join(f"c{i} AS (SELECT * FROM c{i - 1})" for i in range(1, n))
        + " SELECT * FROM c1"
    ),
    "scalar subqueries": lambda n: "SELECT " + ", ".join([f"({_READ})"] * n),
    "subqueries in rows": lambda n: (
        "INSERT INTO account (id) VALUES " + ", ".join([f"(({_READ}))"] * n)
    ),
    "subqueries in WHERE": lambda n: (
        "SELECT id FROM account WHERE " + " OR ".join([f"id IN ({_READ})"] * n)
    ),
    "unions": lambda n: " UNION ALL ".join([_READ] * n),
    "unions in WITH": lambda n: (
        "WITH c AS (SELECT 1 AS id) " + " UNION ALL ".join([_READ] * n)
    ),
}


def steps(sql, refusal=None):
    """How many lines of this project's code and calls of anything a plan takes."""
    outcome = pytest.raises(refusal) if refusal else nullcontext()
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += 1
        return trace if "tique_rewriter" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with outcome:
            Rewriter(Tables()).plan(sql)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_twice_the_text_takes_twice_the_steps(text):
    assert steps(text(160)) < 2.3 * steps(text(80))


TOO_DEEP = {
    "+": ("chain of operators", lambda n: "SELECT 1" + "+1" * n, 10_001),
    "AND": ("chain of operators", lambda n: "SELECT true" + " AND true" * n, 10_001),
    "::": ("chain of operators", lambda n: "SELECT '1'" + "::TEXT" * n, 10_001),
    "[]": ("subscripts", lambda n: "SELECT x" + "[1]" * n, 252),
}


class Parsed(Exception):
    """The parser was called."""


@pytest.fixture
def _no_parser(monkeypatch):
    def parser(dialect, **options):
        raise Parsed

    monkeypatch.setattr(Dialect, "parser", parser)


@pytest.mark.usefixtures("_no_parser")
@pytest.mark.parametrize(("what", "text", "least"), TOO_DEEP.values(), ids=TOO_DEEP)
def test_what_makes_a_tree_too_deep_is_refused_before_it_is_parsed(what, text, least):
    for length in (least, 3 * least):
        with pytest.raises(UnsupportedSQL, match=what):
            Rewriter(Tables()).plan(text(length))
    with pytest.raises(Parsed):
        Rewriter(Tables()).plan(text(least - 1))


@pytest.mark.slow
@pytest.mark.parametrize(("_", "text", "least"), TOO_DEEP.values(), ids=TOO_DEEP)
def test_twice_the_depth_is_refused_in_twice_the_steps(_, text, least):
    once, twice = (steps(text(n * least), UnsupportedSQL) for n in (1, 2))
    assert twice < 2.3 * once


def test_many_values_are_no_chain():
    rows = ", ".join(["(1 + 1)"] * 3_000)
    plan = Rewriter(Tables()).plan(f"INSERT INTO account (id) VALUES {rows}").plan
    assert len(plan.rows) == 3_000
