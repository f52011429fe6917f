"""The driver for py-tpcc: found as py-tpcc finds it, on a tiny database."""

from __future__ import annotations

import importlib
import sys
from datetime import datetime
from decimal import Decimal

import pytest
from click.testing import CliRunner

from benchmarks.cli import main

NOW = datetime(2026, 1, 2, 3, 4, 5)
STREET = ("Street", "", "City", "ST", "123411111")


@pytest.fixture
def checkout(tmp_path):
    """The folders of a checkout of py-tpcc, without its files."""
    drivers = tmp_path / "py-tpcc" / "pytpcc" / "drivers"
    drivers.mkdir(parents=True)
    (drivers / "__init__.py").touch()
    (drivers.parent / "tpcc.py").touch()
    return tmp_path / "py-tpcc"


@pytest.fixture
def driver_class(checkout, monkeypatch):
    """The class that tpcc.py would import for the system ``tique``."""
    done = CliRunner().invoke(main, ["pytpcc", "install", str(checkout)])
    assert done.exit_code == 0, done.output
    monkeypatch.syspath_prepend(checkout / "pytpcc")
    yield importlib.import_module("drivers.tiquedriver").TiqueDriver
    for name in [n for n in sys.modules if n.partition(".")[0] in ("drivers", "util")]:
        del sys.modules[name]


def configured(driver_class, engine, *, through="tique", **changes):
    driver = driver_class("/nowhere/tpcc.sql")
    config = {name: value for name, (_, value) in driver.makeDefaultConfig().items()}
    config |= {"database": engine.url, "through": through, "warehouses": 2, **changes}
    if through == "native":
        config["database"] = engine.url.partition("&sequencer")[0]
    driver.loadConfig({**config, "reset": True, "load": False, "execute": False})
    return driver


def load(driver):
    """Two warehouses as the loader's tuples have them: money in floats."""
    driver.loadStart()
    driver.loadTuples(
        "ITEM", [[n, n, f"item {n}", 2.5, "ORIGINAL"] for n in range(1, 21)]
    )
    for w_id in (1, 2):
        driver.loadTuples("WAREHOUSE", [[w_id, "W", *STREET, 0.1, 300000.0]])
        driver.loadTuples(
            "STOCK",
            [
                [n, w_id, 50, *(f"dist {d}" for d in range(1, 11)), 0, 0, 0, "ORIGINAL"]
                for n in range(1, 21)
            ],
        )
        for d_id in range(1, 11):
            driver.loadTuples(
                "DISTRICT", [[d_id, w_id, "D", *STREET, 0.0525, 30000.0, 4]]
            )
            driver.loadTuples(
                "CUSTOMER",
                [
                    [
                        *(c_id, d_id, w_id, f"first {c_id}", "OE", "BARBARBAR"),
                        *(*STREET, "0123", NOW, "BC" if c_id == 1 else "GC"),
                        *(50000.0, 0.25, -10.0, 10.0, 1, 0, "data"),
                    ]
                    for c_id in (1, 2, 3)
                ],
            )
            driver.loadTuples(
                "ORDERS", [[n, n, d_id, w_id, NOW, 0, 1, True] for n in (1, 2, 3)]
            )
            driver.loadTuples("NEW_ORDER", [[n, d_id, w_id] for n in (2, 3)])
            driver.loadTuples(
                "ORDER_LINE",
                [[n, d_id, w_id, 1, n, w_id, None, 5, 7.25, "dist"] for n in (1, 2, 3)],
            )
    driver.loadTuples("HISTORY", [])
    driver.loadFinish()


def ask(driver, query):
    cursor = driver._connection.cursor()
    cursor.execute(query)
    found = cursor.fetchall()
    driver._connection.rollback()
    return found


def check_transactions(driver):
    """All five of them, and what the tables say afterwards."""
    place = {"w_id": 1, "d_id": 1}
    order = {**place, "c_id": 2, "o_entry_d": NOW}
    wanted = {"i_ids": [3, 4], "i_w_ids": [1, 2], "i_qtys": [2, 45]}
    customer, misc, lines = driver.doNewOrder({**order, **wanted})
    assert customer == (Decimal("0.25"), "BARBARBAR", "GC")
    # (2 + 45) * 2.5, less the discount, with both taxes.
    assert misc == [(Decimal("0.1"), Decimal("0.0525"), 4, Decimal("101.5640625"))]
    assert lines == [
        ("item 3", 48, "B", Decimal("2.5"), Decimal("5.0")),
        ("item 4", 96, "B", Decimal("2.5"), Decimal("112.5")),
    ]
    unknown = {"i_ids": [3, 99], "i_w_ids": [1, 1], "i_qtys": [1, 1]}
    assert driver.doNewOrder({**order, **unknown}) is None
    query = "SELECT d_next_o_id FROM district WHERE d_w_id = 1 AND d_id = 1"
    assert ask(driver, query) == [(5,)]

    status = driver.doOrderStatus({**place, "c_id": None, "c_last": "BARBARBAR"})
    assert (status[0][0], status[1], len(status[2])) == (2, (4, 0, NOW), 2)

    payment = {**place, "c_w_id": 2, "c_d_id": 3, "c_last": None, "h_date": NOW}
    driver.doPayment({**payment, "c_id": 1, "h_amount": 12.3})
    query = (
        "SELECT c_balance, c_ytd_payment, c_payment_cnt, c_data FROM customer "
        "WHERE c_w_id = 2 AND c_d_id = 3 AND c_id = 1"
    )
    paid = Decimal("-22.30"), Decimal("22.30"), 2, "1 3 2 1 1 12.3|data"
    assert ask(driver, query) == [paid]
    assert ask(driver, "SELECT h_amount, h_data FROM history") == [
        (Decimal("12.30"), "W    D")
    ]

    delivered = driver.doDelivery({"w_id": 1, "o_carrier_id": 7, "ol_delivery_d": NOW})
    assert delivered == [(d_id, 2) for d_id in range(1, 11)]
    query = "SELECT COUNT(*) FROM new_order WHERE no_w_id = 1"
    assert ask(driver, query) == [(11,)]
    query = (
        "SELECT c_balance, c_delivery_cnt FROM customer "
        "WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 2"
    )
    assert ask(driver, query) == [(Decimal("-2.75"), 1)]

    assert driver.doStockLevel({**place, "threshold": 60}) == 4
    assert driver.doStockLevel({**place, "threshold": 49}) == 1


@pytest.mark.parametrize("through", ["tique", "native"])
def test_transactions(driver_class, engine, through):
    driver = configured(driver_class, engine, through=through)
    load(driver)
    driver.executeStart()
    try:
        check_transactions(driver)
    finally:
        driver.executeFinish()


@pytest.mark.slow
@pytest.mark.written_for(["duckdb"], reason="it says the same on every engine")
def test_a_transaction_that_loses_is_run_again(driver_class, engine):
    driver = configured(driver_class, engine)
    load(driver)
    driver._gives_retries = True
    driver.executeStart()
    other = engine.connect()
    attempts = []

    def work(cursor, params):
        cursor.execute("SELECT w_ytd FROM warehouse WHERE w_id = 1")
        (before,) = cursor.fetchone()
        attempts.append(before)
        if len(attempts) < 3:
            other.execute("UPDATE warehouse SET w_ytd = w_ytd + 5 WHERE w_id = 1")
            other.commit()
        cursor.execute("UPDATE warehouse SET w_ytd = %s WHERE w_id = 1", (before,))
        return "done"

    assert driver._run(work, {}) == ("done", 2)
    driver._attempts = 1
    attempts.clear()
    with pytest.raises(Exception, match="run the transaction again"):
        driver._run(work, {})
    driver.executeFinish()


@pytest.mark.engine_free
def test_the_configuration(driver_class):
    driver = driver_class(None)
    with pytest.raises(ValueError, match="lacks attempts, through"):
        driver.loadConfig({"database": "duckdb:///:memory:"})
    config = {"database": "x", "attempts": "1", "through": "magic"}
    with pytest.raises(ValueError, match="'magic'"):
        driver.loadConfig(config)


@pytest.mark.engine_free
def test_the_driver_finds_what_py_tpcc_has(checkout, driver_class):
    assert driver_class.__mro__[1].__module__ == "drivers.tiquedriver"
    assert not driver_class(None)._gives_retries
    for name in ("drivers.tiquedriver", "drivers"):
        del sys.modules[name]
    package = checkout / "pytpcc"
    (package / "drivers" / "abstractdriver.py").write_text(
        "class AbstractDriver:\n"
        "    def __init__(self, name, ddl):\n"
        "        self.name, self.ddl = name, ddl\n"
    )
    (package / "util").mkdir()
    (package / "util" / "__init__.py").touch()
    (package / "util" / "results.py").write_text(
        "class Results:\n    def stopTransaction(self, id, retries=0): ...\n"
    )
    importlib.invalidate_caches()
    found = importlib.import_module("drivers.tiquedriver").TiqueDriver
    assert found.__mro__[1].__module__ == "drivers.abstractdriver"
    driver = found("tpcc.sql")
    assert (driver.name, driver.ddl, driver._gives_retries) == (
        "tique",
        "tpcc.sql",
        True,
    )


@pytest.mark.engine_free
def test_another_folder_is_refused(tmp_path):
    done = CliRunner().invoke(main, ["pytpcc", "install", str(tmp_path)])
    assert done.exit_code == 1
    assert "no checkout of py-tpcc" in done.output
