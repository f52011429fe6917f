"""What customers do: each function is the work of one transaction.

``retrying`` runs it, again if another transaction was first. It chooses by its ``Random``, reads,
changes objects, and returns what it did; None if there was nothing to do.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from sqlalchemy import select

from examples.shop.models import Customer, Line, Order, Payment, Product, Status, Till

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from sqlalchemy.orm import Session

CUSTOMERS, PRODUCTS, TILLS = 40, 30, 4
OPENING, STOCK = Decimal(100), 1_000_000
_RECENT = 200


@dataclass(frozen=True)
class Done:
    """What a transaction did, as the client that committed it knows."""

    orders: int = 0
    """So many more, or fewer."""
    taken: Decimal = Decimal(0)
    """Money that went from a customer to a till."""
    opened: int | None = None
    """A customer who is new."""
    closed: int | None = None
    """A customer who has left."""
    deposited: tuple[int, Decimal] | None = None
    """A customer, and money that the customer's account got."""
    order: int | None = None
    """An order that was placed."""


@dataclass
class Known:
    """What all clients know of what was committed: the database is held against it."""

    products: Sequence[int]
    tills: Sequence[int]
    deposits: dict[int, Decimal]
    """Of each customer who has not left."""
    customers: list[int]
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))
    orders: int = 0
    taken: Decimal = Decimal(0)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, done: Done) -> None:
        """Add what was committed."""
        with self.lock:
            self.orders += done.orders
            self.taken += done.taken
            if done.opened is not None:
                self.customers.append(done.opened)
            if done.order is not None:
                self.recent.append(done.order)
            if done.deposited is not None:
                customer, amount = done.deposited
                self.deposits[customer] = self.deposits.get(customer, Decimal(0))
                self.deposits[customer] += amount
            if done.closed is not None:
                self.customers.remove(done.closed)

    def customer(self, chance: Random) -> int:
        """A customer."""
        with self.lock:
            return chance.choice(self.customers)

    def order(self, chance: Random) -> int | None:
        """One of the last orders, which may have been cancelled."""
        with self.lock:
            return chance.choice(self.recent) if self.recent else None


def fill(session: Session) -> Known:
    """The first customers, products and tills."""
    customers = [
        Customer(email=f"{number}@shop.example", balance=OPENING)
        for number in range(CUSTOMERS)
    ]
    products = [
        Product(sku=f"P{number:04}", price=Decimal(number % 9 + 1), stock=STOCK)
        for number in range(PRODUCTS)
    ]
    tills = [Till(taken=Decimal(0)) for _ in range(TILLS)]
    session.add_all([*customers, *products, *tills])
    session.flush()
    keys = [customer.id for customer in customers]
    return Known(
        products=[product.id for product in products],
        tills=[till.id for till in tills],
        deposits=dict.fromkeys(keys, OPENING),
        customers=keys,
    )


def place(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer orders up to four products."""
    customer = session.get(Customer, known.customer(chance))
    if customer is None:
        return None
    lines = []
    # Sorted, so that PostgreSQL by itself has fewer deadlocks.
    wanted = sorted(chance.sample(known.products, chance.randint(1, 4)))
    for number, key in enumerate(wanted, 1):
        product = session.get_one(Product, key)
        quantity = chance.randint(1, 3)
        product.stock -= quantity
        lines.append(
            Line(number=number, product=product, quantity=quantity, price=product.price)
        )
    order = Order(
        customer=customer,
        status=Status.PLACED,
        lines=lines,
        total=sum((line.quantity * line.price for line in lines), Decimal(0)),
    )
    session.add(order)
    session.flush()
    return Done(orders=1, order=order.id)


def pay(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer pays an order, from the account into a till."""
    order = _order(session, chance, known, Status.PLACED)
    if order is None or order.customer.balance < order.total:
        return None
    order.status = Status.PAID
    order.note = f"paid from {order.customer.balance}"
    return _transfer(session, chance, known, order, order.total)


def give_back(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer returns the first line of an order that is paid, and gets the money."""
    order = _order(session, chance, known, Status.PAID)
    if order is None or not order.lines:
        return None
    line = order.lines[0]
    amount = line.quantity * line.price
    line.product.stock += line.quantity
    order.lines.remove(line)
    order.total -= amount
    return _transfer(session, chance, known, order, -amount)


def cancel(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer cancels an order that is not paid."""
    order = _order(session, chance, known, Status.PLACED)
    if order is None:
        return None
    _put_back(order)
    session.delete(order)
    return Done(orders=-1)


def deposit(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer fills the account."""
    customer = session.get(Customer, known.customer(chance))
    if customer is None:
        return None
    amount = Decimal(chance.randint(10, 50))
    customer.balance += amount
    return Done(deposited=(customer.id, amount))


def join(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer comes."""
    customer = Customer(
        email=f"{chance.getrandbits(64)}@shop.example", balance=Decimal(0)
    )
    session.add(customer)
    session.flush()
    return Done(opened=customer.id, deposited=(customer.id, Decimal(0)))


def leave(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer who has paid nothing leaves, and the orders with the customer."""
    customer = session.get(Customer, known.customer(chance))
    if customer is None or any(
        order.status is Status.PAID for order in customer.orders
    ):
        return None
    for order in customer.orders:
        _put_back(order)
    orders = len(customer.orders)
    session.delete(customer)
    return Done(orders=-orders, closed=customer.id)


def look(session: Session, chance: Random, known: Known) -> Done | None:
    """A customer looks at all orders, and their sum is what their lines say."""
    query = select(Order).where(Order.customer_id == known.customer(chance))
    for order in session.scalars(query):
        total = sum(line.quantity * line.price for line in order.lines)
        if total != order.total:
            raise AssertionError(f"order {order.id}: {order.total}, not {total}")
    return Done()


def _order(
    session: Session, chance: Random, known: Known, status: Status
) -> Order | None:
    key = known.order(chance)
    order = None if key is None else session.get(Order, key)
    return order if order is not None and order.status is status else None


def _transfer(
    session: Session, chance: Random, known: Known, order: Order, amount: Decimal
) -> Done:
    order.customer.balance -= amount
    session.get_one(Till, chance.choice(known.tills)).taken += amount
    order.payments.append(Payment(amount=amount))
    return Done(taken=amount)


def _put_back(order: Order) -> None:
    for line in order.lines:
        line.product.stock += line.quantity


MIX: dict[str, tuple[int, Callable[[Session, Random, Known], Done | None]]] = {
    "place": (30, place),
    "pay": (25, pay),
    "give back": (10, give_back),
    "cancel": (8, cancel),
    "deposit": (15, deposit),
    "join": (3, join),
    "leave": (2, leave),
    "look": (7, look),
}
"""The tasks, with how often each is done."""
