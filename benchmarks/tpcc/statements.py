"""The SQL of the five transactions, the same for every target.

Statements are written with %s for parameters and brought into a target's style once,
when a client starts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from benchmarks.targets.base import in_style

if TYPE_CHECKING:
    from benchmarks.targets.base import ParameterStyle


@dataclass(frozen=True, slots=True)
class Statements:
    """One field per statement."""

    warehouse_tax: str = "SELECT w_tax FROM warehouse WHERE w_id = %s"
    district_order: str = (
        "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s"
    )
    advance_district: str = (
        "UPDATE district SET d_next_o_id = %s WHERE d_w_id = %s AND d_id = %s"
    )
    customer_discount: str = (
        "SELECT c_discount, c_last, c_credit FROM customer"
        " WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )
    insert_order: str = (
        "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id,"
        " o_ol_cnt, o_all_local) VALUES (%s, %s, %s, %s, %s, NULL, %s, %s)"
    )
    insert_new_order: str = (
        "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (%s, %s, %s)"
    )
    item: str = "SELECT i_price, i_name, i_data FROM item WHERE i_id = %s"
    # Clause 2.4.2.2: S_DIST_xx, where xx is the order's district.
    stock: tuple[str, ...] = tuple(
        f"SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt, s_dist_{district:02}, "
        "s_data FROM stock WHERE s_w_id = %s AND s_i_id = %s"
        for district in range(1, 11)
    )
    update_stock: str = (
        "UPDATE stock SET s_quantity = %s, s_ytd = %s, s_order_cnt = %s,"
        " s_remote_cnt = %s WHERE s_w_id = %s AND s_i_id = %s"
    )
    insert_order_line: str = (
        "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id,"
        " ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, ol_dist_info)"
        " VALUES (%s, %s, %s, %s, %s, %s, NULL, %s, %s, %s)"
    )

    warehouse_address: str = (
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip"
        " FROM warehouse WHERE w_id = %s"
    )
    pay_warehouse: str = "UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s"
    district_address: str = (
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip"
        " FROM district WHERE d_w_id = %s AND d_id = %s"
    )
    pay_district: str = (
        "UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s"
    )
    customers_by_name: str = (
        "SELECT c_id FROM customer"
        " WHERE c_w_id = %s AND c_d_id = %s AND c_last = %s ORDER BY c_first"
    )
    customer: str = (
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state,"
        " c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance"
        " FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )
    customer_data: str = (
        "SELECT c_data FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )
    pay_customer: str = (
        "UPDATE customer SET c_balance = c_balance - %s,"
        " c_ytd_payment = c_ytd_payment + %s, c_payment_cnt = c_payment_cnt + 1"
        " WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )
    pay_bad_customer: str = (
        "UPDATE customer SET c_balance = c_balance - %s,"
        " c_ytd_payment = c_ytd_payment + %s, c_payment_cnt = c_payment_cnt + 1,"
        " c_data = %s WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )
    insert_history: str = (
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date,"
        " h_amount, h_data) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    )

    customer_status: str = (
        "SELECT c_first, c_middle, c_last, c_balance FROM customer"
        " WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )
    last_order: str = (
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders"
        " WHERE o_w_id = %s AND o_d_id = %s AND o_c_id = %s"
        " ORDER BY o_id DESC LIMIT 1"
    )
    order_lines: str = (
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d"
        " FROM order_line WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
    )

    oldest_new_order: str = (
        "SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s"
        " ORDER BY no_o_id LIMIT 1"
    )
    order_customer: str = (
        "SELECT o_c_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s"
    )
    order_amount: str = (
        "SELECT SUM(ol_amount) FROM order_line"
        " WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
    )
    delete_new_order: str = (
        "DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s"
    )
    deliver_order: str = (
        "UPDATE orders SET o_carrier_id = %s"
        " WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s"
    )
    deliver_order_lines: str = (
        "UPDATE order_line SET ol_delivery_d = %s"
        " WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
    )
    deliver_to_customer: str = (
        "UPDATE customer SET c_balance = c_balance + %s,"
        " c_delivery_cnt = c_delivery_cnt + 1"
        " WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s"
    )

    next_order: str = "SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s"
    low_stock: str = (
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock"
        " WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id < %s AND ol_o_id >= %s"
        " AND s_w_id = %s AND s_i_id = ol_i_id AND s_quantity < %s"
    )


_LOCKING = {"district_order", "stock", "oldest_new_order"}
"""Queries for values that the transaction computes new ones from."""


def statements_in_style(style: ParameterStyle, *, locking: bool = False) -> Statements:
    """Return all statements in a target's parameter style.

    With `locking` a transaction locks the rows that it reads and then writes: at READ
    COMMITTED it would lose updates otherwise.
    """
    written = Statements()
    styled: dict[str, Any] = {}
    for field in fields(Statements):
        sql = getattr(written, field.name)
        clause = " FOR UPDATE" if locking and field.name in _LOCKING else ""
        styled[field.name] = (
            tuple(in_style(variant + clause, style) for variant in sql)
            if isinstance(sql, tuple)
            else in_style(sql + clause, style)
        )
    return Statements(**styled)
