from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from benchmarks.tpcc.inputs import MIX, Terminal
from benchmarks.tpcc.rules import Scale

pytestmark = pytest.mark.engine_free

FULL = Scale(warehouses=8)


def terminal(client=0, *, scale=FULL, roam=False):
    return Terminal(scale, client, Random(5), roam=roam)


def test_a_deck_holds_the_mix_of_the_specification():
    one = terminal()
    dealt = Counter(one.deal() for _ in range(300))
    assert dealt == {kind: 3 * cards for kind, cards in MIX}


def test_a_client_stays_at_home_unless_it_roams():
    one = terminal(client=9)
    assert {one.new_order().warehouse for _ in range(50)} == {2}
    assert len({one.stock_level().district for _ in range(50)}) == 1
    roaming = terminal(client=9, roam=True)
    assert {roaming.new_order().warehouse for _ in range(200)} == set(range(1, 9))


def test_new_orders_follow_the_rules():
    one = terminal()
    orders = [one.new_order() for _ in range(3000)]
    lines = [line for order in orders for line in order.items]
    assert {len(order.items) for order in orders} == set(range(5, 16))
    unknown = sum(order.items[-1].item > FULL.items for order in orders)
    assert unknown / len(orders) == pytest.approx(0.01, abs=0.007)
    remote = sum(line.supply_warehouse != 1 for line in lines)
    assert remote / len(lines) == pytest.approx(0.01, abs=0.004)
    assert all(1 <= order.customer <= FULL.customers for order in orders)
    assert all(1 <= line.quantity <= 10 for line in lines)


def test_payments_follow_the_rules():
    one = terminal()
    payments = [one.payment() for _ in range(3000)]
    remote = sum(payment.customer.warehouse != 1 for payment in payments)
    assert remote / len(payments) == pytest.approx(0.15, abs=0.03)
    by_name = sum(payment.customer.number is None for payment in payments)
    assert by_name / len(payments) == pytest.approx(0.60, abs=0.03)
    assert all(1 <= payment.amount <= 5000 for payment in payments)


def test_one_warehouse_has_no_remote_customers_or_stock():
    one = terminal(scale=Scale(warehouses=1))
    assert {one.payment().customer.warehouse for _ in range(100)} == {1}
    suppliers = {
        line.supply_warehouse for _ in range(100) for line in one.new_order().items
    }
    assert suppliers == {1}


def test_a_seed_fixes_the_sequence():
    first, second = terminal(), terminal()
    assert [first.payment()[:4] for _ in range(20)] == [
        second.payment()[:4] for _ in range(20)
    ]
