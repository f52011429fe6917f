"""Accounts and transfers, as tables and as what the service takes and gives."""

from __future__ import annotations

from decimal import Decimal

from sqlmodel import Field, SQLModel


class Opening(SQLModel):
    """What opens an account."""

    owner: str = Field(max_length=80, min_length=1)
    balance: Decimal = Field(default=Decimal(0), ge=0, max_digits=12, decimal_places=2)


class Account(Opening, table=True):
    """An account."""

    id: int | None = Field(default=None, primary_key=True)


class Order(SQLModel):
    """What makes a transfer."""

    source: int = Field(foreign_key="account.id")
    target: int = Field(foreign_key="account.id")
    amount: Decimal = Field(gt=0, max_digits=12, decimal_places=2)


class Transfer(Order, table=True):
    """A transfer that was made."""

    id: int | None = Field(default=None, primary_key=True)
