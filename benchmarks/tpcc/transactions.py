"""The five TPC-C transactions, written once against DB-API (clause 2).

They are written like an ordinary Python application: a SELECT for each item and
each stock row of an order, and one `executemany` per table for rows that are written
together. No statement is written for the sake of one target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.tpcc.statements import statements_in_style

if TYPE_CHECKING:
    from decimal import Decimal

    from benchmarks.targets.base import Connection, ParameterStyle
    from benchmarks.tpcc.inputs import (
        Customer,
        Delivery,
        NewOrder,
        OrderStatus,
        Payment,
        StockLevel,
    )

STOCK_COUNTERS = 4
"""Columns of the stock statement before S_DIST_xx."""


class Application:
    """One client's connection with the five transactions as methods.

    Every method runs one transaction to its end and returns the terminal's output;
    New-Order returns None when it rolled back as the specification wants. An
    exception leaves the transaction open, and the caller rolls it back.
    """

    def __init__(
        self, connection: Connection, style: ParameterStyle, *, locking: bool = False
    ) -> None:
        self._connection = connection
        self._cursor = connection.cursor()
        self._sql = statements_in_style(style, locking=locking)

    def new_order(self, order: NewOrder) -> Decimal | None:
        """Enter an order (2.4) and return its total, or None if an item is unknown."""
        sql, warehouse, district = self._sql, order.warehouse, order.district
        (warehouse_tax,) = self._row(sql.warehouse_tax, warehouse)
        district_tax, number = self._row(sql.district_order, warehouse, district)
        discount, _, _ = self._row(
            sql.customer_discount, warehouse, district, order.customer
        )
        self._cursor.execute(sql.advance_district, (number + 1, warehouse, district))
        all_local = all(line.supply_warehouse == warehouse for line in order.items)
        self._cursor.execute(
            sql.insert_order,
            (
                warehouse,
                district,
                number,
                order.customer,
                order.entered,
                len(order.items),
                int(all_local),
            ),
        )
        self._cursor.execute(sql.insert_new_order, (warehouse, district, number))

        stock_rows: dict[tuple[int, int], tuple[Any, ...]] = {}
        line_rows = []
        total = 0
        for line_number, (item, supplier, quantity) in enumerate(order.items, 1):
            self._cursor.execute(sql.item, (item,))
            found = self._cursor.fetchone()
            if found is None:
                self._connection.rollback()
                return None
            stock = self._row(sql.stock[district - 1], supplier, item)
            in_stock, sold, orders, remote_orders = stock_rows.get(
                (supplier, item), stock[:STOCK_COUNTERS]
            )
            enough = in_stock >= quantity + 10
            stock_rows[supplier, item] = (
                in_stock - quantity if enough else in_stock - quantity + 91,
                sold + quantity,
                orders + 1,
                remote_orders + (supplier != warehouse),
            )
            amount = found[0] * quantity
            total += amount
            line_rows.append(
                (
                    warehouse,
                    district,
                    number,
                    line_number,
                    item,
                    supplier,
                    quantity,
                    amount,
                    stock[STOCK_COUNTERS],
                )
            )
        self._cursor.executemany(
            sql.update_stock, [(*row, *key) for key, row in stock_rows.items()]
        )
        self._cursor.executemany(sql.insert_order_line, line_rows)
        self._connection.commit()
        charged: Decimal = total * (1 - discount) * (1 + warehouse_tax + district_tax)
        return charged

    def payment(self, payment: Payment) -> Decimal:
        """Take a customer's payment (2.5) and return the customer's new balance."""
        sql, warehouse, district = self._sql, payment.warehouse, payment.district
        warehouse_name = self._row(sql.warehouse_address, warehouse)[0]
        self._cursor.execute(sql.pay_warehouse, (payment.amount, warehouse))
        district_name = self._row(sql.district_address, warehouse, district)[0]
        self._cursor.execute(sql.pay_district, (payment.amount, warehouse, district))
        key = self._customer_key(payment.customer)
        *_, credit, _limit, _discount, balance = self._row(sql.customer, *key)
        if credit == "BC":
            (data,) = self._row(sql.customer_data, *key)
            entry = " ".join(
                map(str, (key[2], key[1], key[0], district, warehouse, payment.amount))
            )
            self._cursor.execute(
                sql.pay_bad_customer,
                (payment.amount, payment.amount, f"{entry}|{data}"[:500], *key),
            )
        else:
            self._cursor.execute(
                sql.pay_customer, (payment.amount, payment.amount, *key)
            )
        self._cursor.execute(
            sql.insert_history,
            (
                key[2],
                key[1],
                key[0],
                district,
                warehouse,
                payment.paid,
                payment.amount,
                f"{warehouse_name}    {district_name}",
            ),
        )
        self._connection.commit()
        new_balance: Decimal = balance - payment.amount
        return new_balance

    def order_status(self, status: OrderStatus) -> list[tuple[Any, ...]]:
        """Return the lines of a customer's last order (2.6)."""
        sql = self._sql
        warehouse, district, customer = self._customer_key(status.customer)
        self._row(sql.customer_status, warehouse, district, customer)
        number, _, _ = self._row(sql.last_order, warehouse, district, customer)
        self._cursor.execute(sql.order_lines, (warehouse, district, number))
        lines = self._cursor.fetchall()
        self._connection.commit()
        return lines

    def delivery(self, delivery: Delivery) -> list[tuple[int, int]]:
        """Deliver the oldest order of every district (2.7).

        Returns
        -------
        list of (int, int)
            District and order of each delivery; a district in which no order waits is
            skipped.
        """
        sql, warehouse = self._sql, delivery.warehouse
        delivered: list[tuple[int, int]] = []
        customers: list[tuple[Decimal, int, int, int]] = []
        for district in range(1, delivery.districts + 1):
            self._cursor.execute(sql.oldest_new_order, (warehouse, district))
            waiting = self._cursor.fetchone()
            if waiting is None:
                continue
            (order,) = waiting
            (customer,) = self._row(sql.order_customer, warehouse, district, order)
            (amount,) = self._row(sql.order_amount, warehouse, district, order)
            delivered.append((district, order))
            customers.append((amount, warehouse, district, customer))
        if delivered:
            keys = [(warehouse, *order) for order in delivered]
            self._cursor.executemany(sql.delete_new_order, keys)
            self._cursor.executemany(
                sql.deliver_order, [(delivery.carrier, *key) for key in keys]
            )
            self._cursor.executemany(
                sql.deliver_order_lines, [(delivery.delivered, *key) for key in keys]
            )
            self._cursor.executemany(sql.deliver_to_customer, customers)
        self._connection.commit()
        return delivered

    def stock_level(self, level: StockLevel) -> int:
        """Return how many recently sold items are low in stock (2.8)."""
        sql, warehouse, district = self._sql, level.warehouse, level.district
        (number,) = self._row(sql.next_order, warehouse, district)
        (count,) = self._row(
            sql.low_stock,
            warehouse,
            district,
            number,
            number - 20,
            warehouse,
            level.threshold,
        )
        self._connection.commit()
        return int(count)

    def _customer_key(self, customer: Customer) -> tuple[int, int, int]:
        """Return a customer's key; of several namesakes the middle one (2.5.2.2)."""
        if customer.number is not None:
            return customer.warehouse, customer.district, customer.number
        self._cursor.execute(
            self._sql.customers_by_name,
            (customer.warehouse, customer.district, customer.last_name),
        )
        namesakes = self._cursor.fetchall()
        if not namesakes:
            raise LookupError(f"no {customer}: is the database of another scale?")
        middle = (len(namesakes) + 1) // 2 - 1
        return customer.warehouse, customer.district, namesakes[middle][0]

    def _row(self, sql: str, *parameters: object) -> tuple[Any, ...]:
        """Return the one row that a statement of the specification must find."""
        self._cursor.execute(sql, parameters)
        row = self._cursor.fetchone()
        if row is None:
            raise LookupError(f"no row for {sql!r} with {parameters}")
        return row
