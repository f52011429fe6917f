"""A shop on PostgreSQL: threads that sell, each sale a transaction over two tables."""

from __future__ import annotations

import secrets
import threading
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import tique

if TYPE_CHECKING:
    from types import TracebackType

TABLES = (
    "CREATE TABLE IF NOT EXISTS product "
    "(id INTEGER PRIMARY KEY, name TEXT NOT NULL, sold BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS sale (id UUID PRIMARY KEY, product INTEGER NOT NULL, "
    "price NUMERIC(8,2) NOT NULL, sold_at DOUBLE PRECISION NOT NULL)",
)
PRODUCTS = ("bread", "cheese", "milk", "olives", "tea")
PAUSE = 0.02


class Shop:
    """Threads that sell from ``open`` on, until the block ends."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._closed = threading.Event()
        self._sellers: list[threading.Thread] = []
        with tique.connect(url, autocommit=True) as conn:
            for table in TABLES:
                conn.execute(table)
            if conn.execute("SELECT count(*) FROM product").fetchone() == (0,):
                rows = [(number, name, 0) for number, name in enumerate(PRODUCTS)]
                with conn.cursor() as cursor:
                    cursor.executemany("INSERT INTO product VALUES (%s, %s, %s)", rows)

    def open(self, sellers: int) -> None:
        """Begin to sell."""
        for _ in range(sellers):
            seller = threading.Thread(target=self._sell, daemon=True)
            seller.start()
            self._sellers.append(seller)

    def __enter__(self) -> Self:
        """Enter a block at whose end the shop closes."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the shop."""
        self._closed.set()
        for seller in self._sellers:
            seller.join()

    def _sell(self) -> None:
        with tique.connect(self._url) as conn:
            while not self._closed.wait(PAUSE):
                tique.run_transaction(conn, sell_one)


def sell_one(conn: tique.Connection[Any]) -> None:
    """One sale: a row of its own, and the product's count, which updates of others merge with."""
    product = secrets.randbelow(len(PRODUCTS))
    price = Decimal(100 + secrets.randbelow(900)) / 100
    conn.execute("UPDATE product SET sold = sold + 1 WHERE id = %s", (product,))
    conn.execute(
        "INSERT INTO sale VALUES (%s, %s, %s, %s)",
        (uuid4(), product, price, time.time()),
    )
