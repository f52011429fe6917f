"""The shop's tables: what is mapped, and what the migrations are held against."""

from __future__ import annotations

import enum
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from sqlalchemy import Enum, ForeignKey, Index, MetaData, Numeric, String, func
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship

Key = Annotated[int, mapped_column(primary_key=True)]
Money = Annotated[Decimal, mapped_column(Numeric(12, 2))]


class Base(DeclarativeBase):
    """Constraints have names, so that a migration can drop them."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ix": "ix_%(table_name)s_%(column_0_name)s",
        }
    )


class Status(enum.Enum):
    """Where an order stands."""

    PLACED = "placed"
    PAID = "paid"


class Customer(Base):
    """A customer with an account, which payments are taken from."""

    __tablename__ = "customer"

    id: Mapped[Key]
    email: Mapped[str] = mapped_column(String(80), unique=True)
    balance: Mapped[Money]
    # The ORM deletes a customer's orders one by one.
    orders: Mapped[list[Order]] = relationship(
        back_populates="customer", cascade="all, delete-orphan"
    )


class Product(Base):
    """A thing that is sold: ``stock`` is what no order has."""

    __tablename__ = "product"

    id: Mapped[Key]
    sku: Mapped[str] = mapped_column(String(20), unique=True)
    price: Mapped[Money]
    stock: Mapped[int]


class Till(Base):
    """Where the money goes: a few rows that every payment changes."""

    __tablename__ = "till"

    id: Mapped[Key]
    taken: Mapped[Money]


class Order(Base):
    """An order; ``version`` counts its changes, and SQLAlchemy checks it."""

    __tablename__ = "customer_order"
    __table_args__ = (Index("ix_customer_order_status", "status"),)

    id: Mapped[Key]
    customer_id: Mapped[int] = mapped_column(
        ForeignKey("customer.id", ondelete="CASCADE")
    )
    status: Mapped[Status] = mapped_column(
        Enum(
            Status,
            native_enum=False,
            length=10,
            values_callable=lambda statuses: [status.value for status in statuses],
        )
    )
    total: Mapped[Money]
    placed_at: Mapped[datetime] = mapped_column(server_default=func.now())
    note: Mapped[str | None] = mapped_column(String(200))
    version: Mapped[int] = mapped_column()
    customer: Mapped[Customer] = relationship(back_populates="orders")
    lines: Mapped[list[Line]] = relationship(
        back_populates="order", cascade="all, delete-orphan", order_by="Line.number"
    )
    # The database deletes them with the order.
    payments: Mapped[list[Payment]] = relationship(
        back_populates="order", cascade="all, delete-orphan", passive_deletes=True
    )

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - as SQLAlchemy has it


class Line(Base):
    """So many of one product, in one order."""

    __tablename__ = "line"

    order_id: Mapped[int] = mapped_column(
        ForeignKey("customer_order.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    product_id: Mapped[int] = mapped_column(ForeignKey("product.id"))
    quantity: Mapped[int]
    price: Mapped[Money]
    order: Mapped[Order] = relationship(back_populates="lines")
    product: Mapped[Product] = relationship()


class Payment(Base):
    """Money for an order; below zero if it was given back."""

    __tablename__ = "payment"

    id: Mapped[Key]
    order_id: Mapped[int] = mapped_column(
        ForeignKey("customer_order.id", ondelete="CASCADE")
    )
    amount: Mapped[Money]
    order: Mapped[Order] = relationship(back_populates="payments")
