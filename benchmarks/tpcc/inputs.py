"""The terminals' inputs of the five transactions (clause 2).

Inputs are made by `random.Random`, one per client: the clients share the interpreter
with the driver under measurement, so making them must cost next to nothing.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.tpcc.rules import (
    A_CUSTOMER,
    A_ITEM,
    A_LAST_NAME,
    C_CUSTOMER,
    C_ITEM,
    C_LAST_NAME_RUN,
    LAST_NAMES,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from benchmarks.tpcc.rules import Scale

MIX = (
    ("new_order", 45),
    ("payment", 43),
    ("order_status", 4),
    ("delivery", 4),
    ("stock_level", 4),
)
"""Cards of each kind in a deck of a hundred (5.2.3, 5.2.4.2)."""


class OrderedItem(NamedTuple):
    """One line of a New-Order."""

    item: int
    supply_warehouse: int
    quantity: int


class NewOrder(NamedTuple):
    """Input of New-Order (2.4.1)."""

    warehouse: int
    district: int
    customer: int
    items: tuple[OrderedItem, ...]
    entered: datetime


class Customer(NamedTuple):
    """A customer, chosen by id or, when `number` is None, by last name."""

    warehouse: int
    district: int
    number: int | None
    last_name: str


class Payment(NamedTuple):
    """Input of Payment (2.5.1)."""

    warehouse: int
    district: int
    customer: Customer
    amount: Decimal
    paid: datetime


class OrderStatus(NamedTuple):
    """Input of Order-Status (2.6.1)."""

    customer: Customer


class Delivery(NamedTuple):
    """Input of Delivery (2.7.1)."""

    warehouse: int
    districts: int
    carrier: int
    delivered: datetime


class StockLevel(NamedTuple):
    """Input of Stock-Level (2.8.1)."""

    warehouse: int
    district: int
    threshold: int


class Terminal:
    """One client: deals transactions from its deck and makes up their inputs.

    Parameters
    ----------
    scale : Scale
        Size of the database.
    client : int
        Number of the client from 0. It is bound to warehouse `client` modulo the
        number of warehouses, and its Stock-Level to one district (2.8.1.1).
    random : random.Random
        The client's own source of randomness.
    roam : bool
        Choose warehouse and district anew for each transaction instead.
    clock : callable
        Returns the date of a transaction.
    """

    def __init__(
        self,
        scale: Scale,
        client: int,
        random: Random,
        *,
        roam: bool = False,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._scale = scale
        self._random = random
        self._roam = roam
        self._now = clock
        self._home = client % scale.warehouses + 1
        self._district = client // scale.warehouses % scale.districts + 1
        self._deck: list[str] = []

    def deal(self) -> str:
        """Return the kind of the next transaction."""
        if not self._deck:
            self._deck = [kind for kind, cards in MIX for _ in range(cards)]
            self._random.shuffle(self._deck)
        return self._deck.pop()

    def new_order(self) -> NewOrder:
        """Return the input of a New-Order; one in a hundred names an unknown item."""
        random, scale = self._random, self._scale
        warehouse = self._warehouse()
        items = [
            OrderedItem(
                self._nurand(A_ITEM, C_ITEM, 1, scale.items),
                self._other_warehouse(warehouse)
                if random.randint(1, 100) == 1
                else warehouse,
                random.randint(1, 10),
            )
            for _ in range(random.randint(5, 15))
        ]
        if random.randint(1, 100) == 1:
            items[-1] = items[-1]._replace(item=scale.items + 1)
        return NewOrder(
            warehouse,
            random.randint(1, scale.districts),
            self._customer_number(),
            tuple(items),
            self._now(),
        )

    def payment(self) -> Payment:
        """Return the input of a Payment; 15 % pay at a warehouse not their own."""
        random = self._random
        warehouse = self._warehouse()
        district = random.randint(1, self._scale.districts)
        if random.randint(1, 100) <= 85:
            customer = self._customer(warehouse, district)
        else:
            customer = self._customer(
                self._other_warehouse(warehouse),
                random.randint(1, self._scale.districts),
            )
        amount = Decimal(random.randint(100, 500_000)).scaleb(-2)
        return Payment(warehouse, district, customer, amount, self._now())

    def order_status(self) -> OrderStatus:
        """Return the input of an Order-Status."""
        district = self._random.randint(1, self._scale.districts)
        return OrderStatus(self._customer(self._warehouse(), district))

    def delivery(self) -> Delivery:
        """Return the input of a Delivery."""
        return Delivery(
            self._warehouse(),
            self._scale.districts,
            self._random.randint(1, 10),
            self._now(),
        )

    def stock_level(self) -> StockLevel:
        """Return the input of a Stock-Level."""
        random = self._random
        district = (
            random.randint(1, self._scale.districts) if self._roam else self._district
        )
        return StockLevel(self._warehouse(), district, random.randint(10, 20))

    def _nurand(self, a: int, c: int, low: int, high: int) -> int:
        """Return the specification's non-uniform random number (2.1.6)."""
        random = self._random
        mixed = random.randint(0, a) | random.randint(low, high)
        return (mixed + c) % (high - low + 1) + low

    def _warehouse(self) -> int:
        if self._roam:
            return self._random.randint(1, self._scale.warehouses)
        return self._home

    def _other_warehouse(self, warehouse: int) -> int:
        """Return a warehouse that is not the given one, if there is another."""
        if self._scale.warehouses == 1:
            return warehouse
        other = self._random.randint(1, self._scale.warehouses - 1)
        return other if other < warehouse else other + 1

    def _customer_number(self) -> int:
        return self._nurand(A_CUSTOMER, C_CUSTOMER, 1, self._scale.customers)

    def _customer(self, warehouse: int, district: int) -> Customer:
        """Return a customer, 60 % by last name (2.5.1.2)."""
        if self._random.randint(1, 100) <= 60:
            name = self._nurand(
                A_LAST_NAME, C_LAST_NAME_RUN, 0, self._scale.last_names - 1
            )
            return Customer(warehouse, district, None, LAST_NAMES[name])
        return Customer(warehouse, district, self._customer_number(), "")
