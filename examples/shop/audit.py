"""Whether the database is what it must be, held against what the clients know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from examples.shop.models import Customer, Line, Order, Payment, Product, Status, Till
from examples.shop.work import STOCK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from sqlalchemy import Executable
    from sqlalchemy.orm import Session

    from examples.shop.work import Known


def faults(session: Session, known: Known) -> list[str]:
    """Everything that is wrong, one sentence each."""
    return [
        *_lost_updates(session, known),
        *_orphans(session),
        *_wrong_orders(session),
    ]


def _lost_updates(session: Session, known: Known) -> Iterator[str]:
    """Each number that transactions read, changed and wrote, recounted."""
    orders = session.scalar(select(func.count()).select_from(Order))
    if orders != known.orders:
        yield f"{orders} orders, where {known.orders} were committed"
    taken = session.scalar(select(func.sum(Till.taken)))
    if taken != known.taken:
        yield f"{taken} in the tills, where {known.taken} was committed"
    paid: dict[int, Decimal] = _pairs(
        session,
        select(Order.customer_id, func.sum(Payment.amount))
        .join(Payment.order)
        .group_by(Order.customer_id),
    )
    if sum(paid.values()) != known.taken:
        yield f"payments of {sum(paid.values())}, where {known.taken} was committed"
    balances = _pairs(session, select(Customer.id, Customer.balance))
    if balances.keys() != set(known.customers):
        yield f"customers {sorted(balances.keys() ^ set(known.customers))} differ"
    for key in balances.keys() & set(known.customers):
        expected = known.deposits[key] - paid.get(key, 0)
        if balances[key] != expected:
            yield f"customer {key} has {balances[key]}, not {expected}"
    in_orders: dict[int, int] = _pairs(
        session,
        select(Line.product_id, func.sum(Line.quantity)).group_by(Line.product_id),
    )
    for key, stock in session.execute(select(Product.id, Product.stock)):
        if stock + in_orders.get(key, 0) != STOCK:
            yield f"product {key}: {stock} left and {in_orders.get(key, 0)} ordered"


def _pairs(session: Session, query: Executable) -> dict[int, Any]:
    return {row[0]: row[1] for row in session.execute(query)}


def _orphans(session: Session) -> Iterator[str]:
    """Rows whose parents are not there."""
    for child, parent, columns in (
        (Order, Customer, (Order.customer_id, Customer.id)),
        (Line, Order, (Line.order_id, Order.id)),
        (Line, Product, (Line.product_id, Product.id)),
        (Payment, Order, (Payment.order_id, Order.id)),
    ):
        of_child, of_parent = columns
        count = session.scalar(
            select(func.count())
            .select_from(child)
            .outerjoin(parent, of_child == of_parent)
            .where(of_parent.is_(None))
        )
        if count:
            yield f"{count} rows of {child.__tablename__} have no {parent.__tablename__}"


def _wrong_orders(session: Session) -> Iterator[str]:
    """Orders whose sums differ from those of their lines or payments."""
    lines = (
        select(Line.order_id, func.sum(Line.quantity * Line.price).label("total"))
        .group_by(Line.order_id)
        .subquery()
    )
    payments = (
        select(Payment.order_id, func.sum(Payment.amount).label("paid"))
        .group_by(Payment.order_id)
        .subquery()
    )
    for order, total, paid in session.execute(
        select(
            Order, func.coalesce(lines.c.total, 0), func.coalesce(payments.c.paid, 0)
        )
        .outerjoin(lines, lines.c.order_id == Order.id)
        .outerjoin(payments, payments.c.order_id == Order.id)
    ):
        if order.total != total:
            yield f"order {order.id} of {order.total} has lines of {total}"
        if paid != (order.total if order.status is Status.PAID else 0):
            yield f"order {order.id} of {order.total} is paid with {paid}"
