from __future__ import annotations

import shutil
from datetime import datetime
from decimal import Decimal

import pytest

from benchmarks.targets.duckdb_native import DuckDBTarget
from benchmarks.tpcc.consistency import failed_conditions
from benchmarks.tpcc.inputs import (
    Customer,
    Delivery,
    NewOrder,
    OrderedItem,
    OrderStatus,
    Payment,
    StockLevel,
)
from benchmarks.tpcc.rules import LAST_NAMES
from benchmarks.tpcc.transactions import Application

pytestmark = pytest.mark.one_duckdb

NOW = datetime(2025, 5, 5)
NEXT_ORDER = 31


@pytest.fixture
def target(loaded_file, tmp_path):
    target = DuckDBTarget()
    target.prepare(shutil.copy(loaded_file, tmp_path / "copy.duckdb"))
    yield target
    target.close()


@pytest.fixture
def connection(target):
    connection = target.connect()
    yield connection
    connection.close()


@pytest.fixture
def application(connection):
    return Application(connection, "qmark")


def rows(connection, sql, *parameters):
    cursor = connection.cursor()
    cursor.execute(sql, parameters)
    found = cursor.fetchall()
    connection.rollback()
    return found


def new_order(*items):
    return NewOrder(1, 2, 3, tuple(OrderedItem(*item) for item in items), NOW)


STOCK = (
    "SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock"
    " WHERE s_w_id = ? AND s_i_id = ?"
)


def test_new_order_writes_order_lines_and_stock(application, connection):
    ((before, *_),) = rows(connection, STOCK, 1, 10)
    total = application.new_order(new_order((10, 1, 3), (20, 2, 5), (10, 1, 4)))
    assert total > 0
    ((after, *counters),) = rows(connection, STOCK, 1, 10)
    assert (after - before + 7) % 91 == 0
    assert after >= 10
    assert counters == [7, 2, 0]
    assert rows(connection, STOCK, 2, 20)[0][1:] == (5, 1, 1)
    assert rows(
        connection,
        "SELECT o_c_id, o_ol_cnt, o_all_local, o_entry_d FROM orders"
        " WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = ?",
        NEXT_ORDER,
    ) == [(3, 3, 0, NOW)]
    lines = rows(
        connection,
        "SELECT ol_number, ol_i_id, ol_amount = ol_quantity * i_price,"
        " ol_dist_info = s_dist_02 FROM order_line"
        " JOIN item ON i_id = ol_i_id"
        " JOIN stock ON s_i_id = ol_i_id AND s_w_id = ol_supply_w_id"
        " WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id = ? ORDER BY 1",
        NEXT_ORDER,
    )
    assert lines == [(1, 10, True, True), (2, 20, True, True), (3, 10, True, True)]
    assert failed_conditions(connection) == []


def test_new_order_with_an_unknown_item_leaves_no_trace(application, connection):
    assert application.new_order(new_order((10, 1, 3), (101, 1, 1))) is None
    assert rows(connection, "SELECT MAX(d_next_o_id) FROM district") == [(NEXT_ORDER,)]
    assert rows(connection, "SELECT MAX(o_id) FROM orders") == [(30,)]


def test_payment_moves_the_amount(application, connection):
    amount = Decimal("12.34")
    customer = Customer(2, 4, 5, "")
    balance = application.payment(Payment(1, 2, customer, amount, NOW))
    assert balance == Decimal("-22.34")
    assert rows(
        connection,
        "SELECT c_balance, c_ytd_payment, c_payment_cnt FROM customer"
        " WHERE c_w_id = 2 AND c_d_id = 4 AND c_id = 5",
    ) == [(balance, Decimal("22.34"), 2)]
    assert rows(connection, "SELECT h_amount FROM history WHERE h_date = ?", NOW) == [
        (amount,)
    ]
    assert failed_conditions(connection) == []


def test_payment_of_a_customer_with_bad_credit_is_noted(application, connection):
    ((warehouse, district, number),) = rows(
        connection,
        "SELECT c_w_id, c_d_id, c_id FROM customer WHERE c_credit = 'BC' LIMIT 1",
    )
    customer = Customer(warehouse, district, number, "")
    application.payment(Payment(1, 2, customer, Decimal("1.50"), NOW))
    ((data,),) = rows(
        connection,
        "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        warehouse,
        district,
        number,
    )
    assert data.startswith(f"{number} {district} {warehouse} 2 1 1.50|")
    assert len(data) <= 500


def test_payment_by_last_name_takes_the_middle_namesake(application, connection):
    connection.cursor().execute(
        "UPDATE customer SET c_last = 'SAME', c_first = CAST(c_id AS VARCHAR)"
        " WHERE c_w_id = 1 AND c_d_id = 1 AND c_id BETWEEN 4 AND 7"
    )
    connection.commit()
    customer = Customer(1, 1, None, "SAME")
    application.payment(Payment(1, 1, customer, Decimal(1), NOW))
    assert rows(connection, "SELECT c_id FROM customer WHERE c_payment_cnt = 2") == [
        (5,)
    ]


def test_order_status_shows_the_lines_of_the_last_order(application, connection):
    application.new_order(new_order((10, 1, 3), (20, 1, 5)))
    by_number = application.order_status(OrderStatus(Customer(1, 2, 3, "")))
    assert sorted(line[0] for line in by_number) == [10, 20]
    by_name = OrderStatus(Customer(1, 2, None, LAST_NAMES[2]))
    assert application.order_status(by_name) == by_number


def test_a_customer_that_does_not_exist_is_an_error(application):
    with pytest.raises(LookupError, match="another scale"):
        application.order_status(OrderStatus(Customer(1, 2, None, "NOBODY")))


def test_delivery_takes_the_oldest_order_of_every_district(application, connection):
    delivered = application.delivery(Delivery(1, 10, 7, NOW))
    assert delivered == [(district, 22) for district in range(1, 11)]
    assert rows(
        connection,
        "SELECT DISTINCT o_carrier_id FROM orders WHERE o_w_id = 1 AND o_id = 22",
    ) == [(7,)]
    assert rows(
        connection,
        "SELECT DISTINCT ol_delivery_d FROM order_line"
        " WHERE ol_w_id = 1 AND ol_o_id = 22",
    ) == [(NOW,)]
    assert rows(
        connection,
        "SELECT SUM(c_delivery_cnt), SUM(c_balance + 10) ="
        " (SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = 1 AND ol_o_id = 22)"
        " FROM customer WHERE c_w_id = 1",
    ) == [(10, True)]
    assert failed_conditions(connection) == []


def test_delivery_skips_districts_in_which_nothing_waits(application, connection):
    connection.cursor().execute("DELETE FROM new_order WHERE no_w_id = 1")
    connection.commit()
    assert application.delivery(Delivery(1, 10, 7, NOW)) == []


def test_stock_level_counts_distinct_items(application, connection):
    assert application.stock_level(StockLevel(1, 1, 101)) > 0
    assert application.stock_level(StockLevel(1, 1, 10)) == 0


def test_native_statements_are_counted(application, target, connection):
    before = target.engine_statements()
    application.stock_level(StockLevel(1, 1, 15))
    assert target.engine_statements() - before == 4
