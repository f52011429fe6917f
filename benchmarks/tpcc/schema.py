"""The nine tables of TPC-C (clause 1.3).

Every table but HISTORY has its primary key in every target. There are no secondary
indexes in any of them, and foreign keys only where they are asked for.
"""

from __future__ import annotations

from benchmarks.tpcc.rules import DISTRICT_COLUMNS

_STOCK_DISTRICTS = ",\n".join(
    f"    s_dist_{number:02} CHAR(24) NOT NULL"
    for number in range(1, DISTRICT_COLUMNS + 1)
)

COLUMNS: dict[str, str] = {
    "warehouse": """
    w_id INTEGER NOT NULL,
    w_name VARCHAR(10) NOT NULL,
    w_street_1 VARCHAR(20) NOT NULL,
    w_street_2 VARCHAR(20) NOT NULL,
    w_city VARCHAR(20) NOT NULL,
    w_state CHAR(2) NOT NULL,
    w_zip CHAR(9) NOT NULL,
    w_tax DECIMAL(4, 4) NOT NULL,
    w_ytd DECIMAL(12, 2) NOT NULL""",
    "district": """
    d_w_id INTEGER NOT NULL,
    d_id INTEGER NOT NULL,
    d_name VARCHAR(10) NOT NULL,
    d_street_1 VARCHAR(20) NOT NULL,
    d_street_2 VARCHAR(20) NOT NULL,
    d_city VARCHAR(20) NOT NULL,
    d_state CHAR(2) NOT NULL,
    d_zip CHAR(9) NOT NULL,
    d_tax DECIMAL(4, 4) NOT NULL,
    d_ytd DECIMAL(12, 2) NOT NULL,
    d_next_o_id INTEGER NOT NULL""",
    "customer": """
    c_w_id INTEGER NOT NULL,
    c_d_id INTEGER NOT NULL,
    c_id INTEGER NOT NULL,
    c_first VARCHAR(16) NOT NULL,
    c_middle CHAR(2) NOT NULL,
    c_last VARCHAR(16) NOT NULL,
    c_street_1 VARCHAR(20) NOT NULL,
    c_street_2 VARCHAR(20) NOT NULL,
    c_city VARCHAR(20) NOT NULL,
    c_state CHAR(2) NOT NULL,
    c_zip CHAR(9) NOT NULL,
    c_phone CHAR(16) NOT NULL,
    c_since TIMESTAMP NOT NULL,
    c_credit CHAR(2) NOT NULL,
    c_credit_lim DECIMAL(12, 2) NOT NULL,
    c_discount DECIMAL(4, 4) NOT NULL,
    c_balance DECIMAL(12, 2) NOT NULL,
    c_ytd_payment DECIMAL(12, 2) NOT NULL,
    c_payment_cnt INTEGER NOT NULL,
    c_delivery_cnt INTEGER NOT NULL,
    c_data VARCHAR(500) NOT NULL""",
    "history": """
    h_c_id INTEGER NOT NULL,
    h_c_d_id INTEGER NOT NULL,
    h_c_w_id INTEGER NOT NULL,
    h_d_id INTEGER NOT NULL,
    h_w_id INTEGER NOT NULL,
    h_date TIMESTAMP NOT NULL,
    h_amount DECIMAL(6, 2) NOT NULL,
    h_data VARCHAR(24) NOT NULL""",
    "new_order": """
    no_w_id INTEGER NOT NULL,
    no_d_id INTEGER NOT NULL,
    no_o_id INTEGER NOT NULL""",
    "orders": """
    o_w_id INTEGER NOT NULL,
    o_d_id INTEGER NOT NULL,
    o_id INTEGER NOT NULL,
    o_c_id INTEGER NOT NULL,
    o_entry_d TIMESTAMP NOT NULL,
    o_carrier_id INTEGER,
    o_ol_cnt INTEGER NOT NULL,
    o_all_local INTEGER NOT NULL""",
    "order_line": """
    ol_w_id INTEGER NOT NULL,
    ol_d_id INTEGER NOT NULL,
    ol_o_id INTEGER NOT NULL,
    ol_number INTEGER NOT NULL,
    ol_i_id INTEGER NOT NULL,
    ol_supply_w_id INTEGER NOT NULL,
    ol_delivery_d TIMESTAMP,
    ol_quantity INTEGER NOT NULL,
    ol_amount DECIMAL(6, 2) NOT NULL,
    ol_dist_info CHAR(24) NOT NULL""",
    "item": """
    i_id INTEGER NOT NULL,
    i_im_id INTEGER NOT NULL,
    i_name VARCHAR(24) NOT NULL,
    i_price DECIMAL(5, 2) NOT NULL,
    i_data VARCHAR(50) NOT NULL""",
    "stock": f"""
    s_w_id INTEGER NOT NULL,
    s_i_id INTEGER NOT NULL,
    s_quantity INTEGER NOT NULL,
{_STOCK_DISTRICTS},
    s_ytd INTEGER NOT NULL,
    s_order_cnt INTEGER NOT NULL,
    s_remote_cnt INTEGER NOT NULL,
    s_data VARCHAR(50) NOT NULL""",
}
"""Column definitions by table."""

KEYS: dict[str, tuple[str, ...]] = {
    "warehouse": ("w_id",),
    "district": ("d_w_id", "d_id"),
    "customer": ("c_w_id", "c_d_id", "c_id"),
    "history": (),
    "new_order": ("no_w_id", "no_d_id", "no_o_id"),
    "orders": ("o_w_id", "o_d_id", "o_id"),
    "order_line": ("ol_w_id", "ol_d_id", "ol_o_id", "ol_number"),
    "item": ("i_id",),
    "stock": ("s_w_id", "s_i_id"),
}
"""Primary key by table; empty where the specification has none."""


FOREIGN_KEYS = (
    ("district", "d_w_id", "warehouse (w_id)"),
    ("customer", "c_w_id, c_d_id", "district (d_w_id, d_id)"),
    ("history", "h_c_w_id, h_c_d_id, h_c_id", "customer (c_w_id, c_d_id, c_id)"),
    ("history", "h_w_id, h_d_id", "district (d_w_id, d_id)"),
    ("orders", "o_w_id, o_d_id, o_c_id", "customer (c_w_id, c_d_id, c_id)"),
    ("new_order", "no_w_id, no_d_id, no_o_id", "orders (o_w_id, o_d_id, o_id)"),
    ("order_line", "ol_w_id, ol_d_id, ol_o_id", "orders (o_w_id, o_d_id, o_id)"),
    ("order_line", "ol_supply_w_id, ol_i_id", "stock (s_w_id, s_i_id)"),
    ("stock", "s_w_id", "warehouse (w_id)"),
    ("stock", "s_i_id", "item (i_id)"),
)
"""Referencing table and columns, and what they reference."""


def create_table(table: str) -> str:
    """Return the statement that creates one table, with its primary key."""
    key = KEYS[table]
    constraint = f",\n    PRIMARY KEY ({', '.join(key)})" if key else ""
    return f"CREATE TABLE {table} ({COLUMNS[table]}{constraint}\n)"
