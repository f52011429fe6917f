"""P6: turns of contenders for the same keys, and their bounds."""

from __future__ import annotations

import threading
import time

import pytest

from tique.commit import turns
from tique.commit.turns import Turns

pytestmark = pytest.mark.engine_free

A, B, C = ((1, (0,), (key,)) for key in "abc")


def test_the_first_place_has_the_turn():
    queues = Turns()
    first, second = (
        queues.take(dict.fromkeys([A]), 60),
        queues.take(dict.fromkeys([A]), 60),
    )
    assert first.opened.is_set()
    assert not second.opened.is_set()
    assert queues.holders({A: None}) == {first}
    queues.leave(first)
    assert first.gone.is_set()
    assert second.opened.is_set()
    queues.leave(second)
    assert not queues.are_taken


def test_a_place_has_its_turn_when_it_is_the_first_for_all_its_keys():
    queues = Turns()
    first, other = (
        queues.take(dict.fromkeys([A]), 60),
        queues.take(dict.fromkeys([B]), 60),
    )
    both, behind = (
        queues.take(dict.fromkeys([A, B]), 60),
        queues.take(dict.fromkeys([B, C]), 60),
    )
    queues.leave(first)
    assert not both.opened.is_set()
    assert not behind.opened.is_set()
    assert not queues.holders({A: None})
    queues.leave(other)
    assert both.opened.is_set()
    assert not behind.opened.is_set()
    queues.leave(both)
    assert behind.opened.is_set()


def test_a_turn_that_is_over_is_passed_on():
    queues = Turns()
    first, second = (
        queues.take(dict.fromkeys([A]), 0.01),
        queues.take(dict.fromkeys([A]), 60),
    )
    assert 0 <= queues.patience(second) <= 0.01
    time.sleep(0.02)
    assert queues.holders({A: None}) == {second}
    assert first.gone.is_set()
    assert second.opened.is_set()


def test_a_place_is_left_twice():
    queues = Turns()
    first, second = (
        queues.take(dict.fromkeys([A, B]), 60),
        queues.take(dict.fromkeys([A, B]), 60),
    )
    queues.leave(first)
    queues.leave(first)
    assert second.opened.is_set()


class Transaction:
    """A write set of nothing but its keys."""

    is_validated = False
    writes = ()

    def __init__(self, monkeypatch, *claims):
        monkeypatch.setattr(turns, "_claims", lambda *_: dict.fromkeys(claims))


def test_a_contender_that_does_not_try_again_has_no_turn(monkeypatch):
    monkeypatch.setattr(turns, "_SHORTEST_TURN", 0.01)
    queues = Turns()
    contender = turns.Contender(queues)
    transaction = Transaction(monkeypatch, A)
    contender.begin()
    contender.lose(transaction)
    contender.wait()
    assert queues.are_taken
    time.sleep(0.02)
    contender.begin()
    monkeypatch.setattr(turns, "_SHORTEST_TURN", 1.0)
    contender.lose(transaction)
    assert not queues.are_taken
    # It came back in time.
    contender.begin()
    contender.lose(transaction)
    assert queues.are_taken


def test_giving_way_ends_with_the_turn(monkeypatch):
    queues = Turns()
    holder, newcomer = turns.Contender(queues), turns.Contender(queues)
    transaction = Transaction(monkeypatch, A)
    holder._began = time.monotonic() - 10
    holder.lose(transaction)
    timer = threading.Timer(0.05, holder.end)
    timer.start()
    started = time.monotonic()
    newcomer.give_way(transaction)
    assert 0.04 < time.monotonic() - started < 0.9
    # The holder itself does not wait.
    holder.lose(transaction)
    holder.give_way(transaction)


@pytest.mark.parametrize("has_company", [True, False])
def test_what_was_lost_to_other_processes_is_reserved(has_company):
    """P6: turns are a process's own; and none of the others' commits in between."""
    queues = Turns(lambda: has_company)
    contender = turns.Contender(queues)
    contender._place = queues.take(dict.fromkeys([A, B]), 60)
    asked = []

    def lock(claims, lasting):
        asked.append((claims, lasting))
        # It lasts while the others are waited for, and then as long as any.
        assert contender._place.over > time.monotonic() + 60 + turns.PATIENCE - 1
        return False

    queues.contest(A, None)
    assert not contender.reserve(lock)
    queues.contest(B, None, to_others=True)
    # What is known of it stays, if it is then lost within the process.
    queues.contest(B, None)
    assert contender.reserve(lock) == has_company
    assert asked == ([([B], 60)] if has_company else [])
    assert contender._place.over < time.monotonic() + 60.1


@pytest.mark.parametrize(
    ("were_taken", "goes_on"), [(True, True), (False, False), (None, True)]
)
def test_keys_are_reserved_as_long_as_others_are_met(were_taken, goes_on):
    queues = Turns(lambda: True)
    contender = turns.Contender(queues)
    contender._place = queues.take({A: None}, 60)
    queues.contest(A, None, to_others=True)
    queues._contested[A].wanted = time.monotonic() + 0.02
    assert contender.reserve(lambda *_: were_taken) == (were_taken is not None)
    time.sleep(0.03)
    assert bool(queues.wanted([A])) == goes_on
    contender.end()
    assert not contender.reserve(lambda *_: False)
