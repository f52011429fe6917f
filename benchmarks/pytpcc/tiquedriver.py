"""py-tpcc's system ``tique``: TPC-C in plain SQL through a driver of PEP 249.

``python -m benchmarks pytpcc install DIR`` puts this file into a checkout's folder ``drivers``, where
py-tpcc looks for the module ``drivers.tiquedriver`` and in that for the class ``TiqueDriver``. It
imports nothing of tique's benchmarks.

py-tpcc runs each client as a process, from which a second one of a DuckDB file is locked
out: there, say ``--clients 1``. No connection is open while it forks.
"""

from __future__ import annotations

import inspect
import random
import time
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

try:
    # py-tpcc's own base, when tpcc.py has loaded this file.
    from drivers.abstractdriver import AbstractDriver
except ModuleNotFoundError:

    class AbstractDriver:  # type: ignore[no-redef]
        """What this driver needs of py-tpcc's class, where that is not there: in tests."""

        def __init__(self, name: str, ddl: object) -> None:
            self.name = name
            self.ddl = ddl


DISTRICTS = 10
LONGEST_C_DATA = 500
NO_CARRIER = 0
BAD_CREDIT = "BC"
ORIGINAL = "ORIGINAL"

_CONFLICTS = ("40001", "40P01")
_LONGEST_PAUSE = 0.04

TABLES = (
    """CREATE TABLE warehouse (
        w_id INTEGER NOT NULL, w_name VARCHAR(16), w_street_1 VARCHAR(32),
        w_street_2 VARCHAR(32), w_city VARCHAR(32), w_state VARCHAR(2), w_zip VARCHAR(9),
        w_tax DECIMAL(5,4) NOT NULL, w_ytd DECIMAL(12,2) NOT NULL, PRIMARY KEY (w_id))""",
    """CREATE TABLE district (
        d_id INTEGER NOT NULL, d_w_id INTEGER NOT NULL, d_name VARCHAR(16),
        d_street_1 VARCHAR(32), d_street_2 VARCHAR(32), d_city VARCHAR(32),
        d_state VARCHAR(2), d_zip VARCHAR(9), d_tax DECIMAL(5,4) NOT NULL,
        d_ytd DECIMAL(12,2) NOT NULL, d_next_o_id INTEGER NOT NULL,
        PRIMARY KEY (d_w_id, d_id))""",
    """CREATE TABLE item (
        i_id INTEGER NOT NULL, i_im_id INTEGER, i_name VARCHAR(32),
        i_price DECIMAL(5,2) NOT NULL, i_data VARCHAR(64), PRIMARY KEY (i_id))""",
    """CREATE TABLE customer (
        c_id INTEGER NOT NULL, c_d_id INTEGER NOT NULL, c_w_id INTEGER NOT NULL,
        c_first VARCHAR(32), c_middle VARCHAR(2), c_last VARCHAR(32),
        c_street_1 VARCHAR(32), c_street_2 VARCHAR(32), c_city VARCHAR(32),
        c_state VARCHAR(2), c_zip VARCHAR(9), c_phone VARCHAR(32), c_since TIMESTAMP,
        c_credit VARCHAR(2), c_credit_lim DECIMAL(12,2), c_discount DECIMAL(5,4) NOT NULL,
        c_balance DECIMAL(12,2) NOT NULL, c_ytd_payment DECIMAL(12,2) NOT NULL,
        c_payment_cnt INTEGER NOT NULL, c_delivery_cnt INTEGER NOT NULL,
        c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id))""",
    """CREATE TABLE history (
        h_c_id INTEGER, h_c_d_id INTEGER, h_c_w_id INTEGER, h_d_id INTEGER,
        h_w_id INTEGER, h_date TIMESTAMP, h_amount DECIMAL(6,2), h_data VARCHAR(64))""",
    """CREATE TABLE stock (
        s_i_id INTEGER NOT NULL, s_w_id INTEGER NOT NULL, s_quantity INTEGER NOT NULL,
        s_dist_01 VARCHAR(32), s_dist_02 VARCHAR(32), s_dist_03 VARCHAR(32),
        s_dist_04 VARCHAR(32), s_dist_05 VARCHAR(32), s_dist_06 VARCHAR(32),
        s_dist_07 VARCHAR(32), s_dist_08 VARCHAR(32), s_dist_09 VARCHAR(32),
        s_dist_10 VARCHAR(32), s_ytd INTEGER NOT NULL, s_order_cnt INTEGER NOT NULL,
        s_remote_cnt INTEGER NOT NULL, s_data VARCHAR(64), PRIMARY KEY (s_w_id, s_i_id))""",
    """CREATE TABLE orders (
        o_id INTEGER NOT NULL, o_c_id INTEGER NOT NULL, o_d_id INTEGER NOT NULL,
        o_w_id INTEGER NOT NULL, o_entry_d TIMESTAMP, o_carrier_id INTEGER,
        o_ol_cnt INTEGER, o_all_local INTEGER, PRIMARY KEY (o_w_id, o_d_id, o_id))""",
    """CREATE TABLE new_order (
        no_o_id INTEGER NOT NULL, no_d_id INTEGER NOT NULL, no_w_id INTEGER NOT NULL,
        PRIMARY KEY (no_w_id, no_d_id, no_o_id))""",
    """CREATE TABLE order_line (
        ol_o_id INTEGER NOT NULL, ol_d_id INTEGER NOT NULL, ol_w_id INTEGER NOT NULL,
        ol_number INTEGER NOT NULL, ol_i_id INTEGER, ol_supply_w_id INTEGER,
        ol_delivery_d TIMESTAMP, ol_quantity INTEGER, ol_amount DECIMAL(6,2),
        ol_dist_info VARCHAR(32), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))""",
)
"""Columns in the order of the loader's tuples; money is exact."""

INDEXES = (
    "CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last)",
    "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id)",
)

_NAMES = (
    "item",
    "warehouse",
    "district",
    "customer",
    "history",
    "stock",
    "orders",
    "new_order",
    "order_line",
)

_CUSTOMER = (
    "c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, "
    "c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_data"
)


class TiqueDriver(AbstractDriver):  # type: ignore[misc]
    """TPC-C's five transactions, each run again after a conflict."""

    DEFAULT_CONFIG: ClassVar[dict[str, tuple[str, str]]] = {
        "database": (
            "The URL of the database: duckdb:///, postgresql:// or monetdb://",
            "duckdb:////tmp/tpcc.duckdb",
        ),
        "through": (
            "tique, or native: the engine's own driver, to compare with",
            "tique",
        ),
        "attempts": ("How often a transaction is tried, at most", "100"),
    }

    # MongoDB's port prints these beside the results.
    warehouses = 0
    denormalize = no_transactions = batch_writes = find_and_modify = False
    causal_consistency = all_in_one_txn = retry_writes = False
    read_preference = read_concern = ""
    write_concern = SimpleNamespace(document={"w": ""})

    def __init__(self, ddl: object) -> None:
        super().__init__("tique", ddl)
        self._config: Mapping[str, Any] = {}
        self._attempts = 1
        self._connection: Any = None
        self._gives_retries = _counts_retries()

    # What py-tpcc calls around transactions

    def makeDefaultConfig(self) -> dict[str, tuple[str, str]]:
        """Names of settings, with what they mean and their defaults."""
        return self.DEFAULT_CONFIG

    def loadConfig(self, config: Mapping[str, Any]) -> None:
        """Take settings; the tables are made if they are not there, or to be new."""
        missing = self.DEFAULT_CONFIG.keys() - config.keys()
        if missing:
            raise ValueError(f"the configuration lacks {', '.join(sorted(missing))}")
        if config["through"] not in ("tique", "native"):
            raise ValueError(f"through is tique or native, not {config['through']!r}")
        self._config = config
        self._attempts = int(config["attempts"])
        self.warehouses = int(config.get("warehouses", 0))
        # Clients that were forked have one of these; the tables are made before.
        if not config.get("load") and not config.get("execute"):
            self._open()
            try:
                self._make_tables(is_new=bool(config.get("reset")))
            finally:
                self._close()

    def loadStart(self) -> None:
        """Connect."""
        self._open()

    def loadTuples(self, tableName: str, tuples: Sequence[Sequence[Any]]) -> None:
        """Insert rows."""
        if not tuples:
            return
        if self._connection is None:
            self._open()
        places = ", ".join(["%s"] * len(tuples[0]))
        statement = f"INSERT INTO {tableName.lower()} VALUES ({places})"
        rows = [tuple(map(_exact, row)) for row in tuples]
        cursor = self._connection.cursor()
        cursor.executemany(statement, rows)
        self._connection.commit()

    def loadFinish(self) -> None:
        """Disconnect."""
        self._close()

    def executeStart(self) -> None:
        """Connect."""
        self._open()

    def executeFinish(self) -> None:
        """Disconnect."""
        self._close()

    def save_result(self, result: object) -> None:
        """MongoDB's port would store the results here; they are printed."""

    # Transactions

    def doDelivery(self, params: Mapping[str, Any]) -> Any:
        """Deliver the oldest new order of each district."""
        return self._run(_deliver, params)

    def doNewOrder(self, params: Mapping[str, Any]) -> Any:
        """Enter an order; None if it asks for an item that there is not."""
        return self._run(_new_order, params)

    def doOrderStatus(self, params: Mapping[str, Any]) -> Any:
        """Look at a customer's last order."""
        return self._run(_order_status, params)

    def doPayment(self, params: Mapping[str, Any]) -> Any:
        """Take a customer's payment."""
        return self._run(_payment, params)

    def doStockLevel(self, params: Mapping[str, Any]) -> Any:
        """Count the items of a district's last orders that are nearly sold out."""
        return self._run(_stock_level, params)

    def _run(
        self,
        work: Callable[[Any, Mapping[str, Any]], Any],
        params: Mapping[str, Any],
    ) -> Any:
        if self._connection is None:
            self._open()
        retries = 0
        while True:
            try:
                value = work(self._connection.cursor(), params)
                if value is None:
                    self._connection.rollback()
                else:
                    self._connection.commit()
                break
            except Exception as error:
                self._connection.rollback()
                if not _is_conflict(error) or retries + 1 >= self._attempts:
                    raise
            retries += 1
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.001 * 2**retries)))  # noqa: S311
        return (value, retries) if self._gives_retries else value

    # The database

    def _open(self) -> None:
        self._close()
        url = self._config["database"]
        if self._config["through"] == "tique":
            import tique

            self._connection = tique.connect(url)
        else:
            self._connection = _connect_natively(url)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _make_tables(self, *, is_new: bool) -> None:
        cursor = self._connection.cursor()
        try:
            cursor.execute("SELECT COUNT(*) FROM order_line WHERE ol_w_id = 0")
            cursor.fetchone()
            is_there = True
        except Exception:
            is_there = False
        self._connection.rollback()
        if is_there and not is_new:
            return
        cursor = self._connection.cursor()
        for name in reversed(_NAMES) if is_there else ():
            cursor.execute(f"DROP TABLE {name}")
        for statement in (*TABLES, *INDEXES):
            cursor.execute(statement)
        self._connection.commit()


def _counts_retries() -> bool:
    """Whether this py-tpcc wants (value, retries) of a transaction, as MongoDB's port does."""
    try:
        from util.results import Results
    except ModuleNotFoundError:
        return False
    return "retries" in inspect.signature(Results.stopTransaction).parameters


def _exact(value: Any) -> Any:
    """A value as the tables have it: py-tpcc makes money and rates of floats."""
    if isinstance(value, float):
        exact = Decimal(f"{value:.4f}")
        # DuckDB 1.5 by itself takes 1E+1, as which ten is normalized, for 1.
        whole = exact == exact.to_integral_value()
        return exact.quantize(Decimal(1)) if whole else exact.normalize()
    return int(value) if isinstance(value, bool) else value


def _is_conflict(error: Exception) -> bool:
    """Whether the transaction may succeed if it is run again."""
    if getattr(error, "sqlstate", None) in _CONFLICTS:
        return True
    # DuckDB and MonetDB by themselves say it in words.
    return "conflict" in str(error).lower()


def _connect_natively(url: str) -> Any:
    """A connection without tique, whose transactions each read one snapshot."""
    parts = urlsplit(url)
    if parts.scheme == "postgresql":
        import psycopg

        connection = psycopg.connect(url)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        return connection
    if parts.scheme == "monetdb":
        import pymonetdb

        return pymonetdb.connect(
            database=parts.path.removeprefix("/"),
            hostname=parts.hostname,
            port=parts.port or 50000,
            username=unquote(parts.username or "monetdb"),
            password=unquote(parts.password or "monetdb"),
        )
    return _DuckDB(unquote(parts.path.removeprefix("/")))


class _DuckDB:
    """DuckDB's own connection, whose transactions begin with their first statement."""

    def __init__(self, path: str) -> None:
        import duckdb

        self._connection = duckdb.connect(path)
        self._is_in_transaction = False

    def cursor(self) -> _DuckDB:
        return self

    def execute(self, statement: str, parameters: Iterable[Any] = ()) -> None:
        self._begin()
        self._connection.execute(statement.replace("%s", "?"), list(parameters))

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows: DuckDB's own executemany() takes a millisecond for each."""
        self._begin()
        head, _, places = statement.partition(" VALUES ")
        many = ", ".join([places.replace("%s", "?")] * len(rows))
        flat = [value for row in rows for value in row]
        self._connection.execute(f"{head} VALUES {many}", flat)

    def fetchone(self) -> Any:
        return self._connection.fetchone()

    def fetchall(self) -> Any:
        return self._connection.fetchall()

    def commit(self) -> None:
        if self._is_in_transaction:
            self._is_in_transaction = False
            self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self._is_in_transaction:
            self._is_in_transaction = False
            # It may be over: a commit that lost has rolled back.
            try:
                self._connection.execute("ROLLBACK")
            except Exception as error:
                if "no transaction is active" not in str(error):
                    raise

    def close(self) -> None:
        self._connection.close()

    def _begin(self) -> None:
        if not self._is_in_transaction:
            self._connection.execute("BEGIN")
            self._is_in_transaction = True


def _one(cursor: Any, statement: str, *values: Any) -> Any:
    cursor.execute(statement, values)
    return cursor.fetchone()


def _all(cursor: Any, statement: str, *values: Any) -> Any:
    cursor.execute(statement, values)
    return cursor.fetchall()


def _customer(cursor: Any, w_id: int, d_id: int, params: Mapping[str, Any]) -> Any:
    """By number, or the one in the middle of those with a last name (2.5.2.2)."""
    if params["c_id"] is not None:
        return _one(
            cursor,
            f"SELECT {_CUSTOMER} FROM customer "
            "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
            *(w_id, d_id, params["c_id"]),
        )
    found = _all(
        cursor,
        f"SELECT {_CUSTOMER} FROM customer "
        "WHERE c_w_id = %s AND c_d_id = %s AND c_last = %s ORDER BY c_first",
        *(w_id, d_id, params["c_last"]),
    )
    return found[(len(found) - 1) // 2]


def _deliver(cursor: Any, params: Mapping[str, Any]) -> list[tuple[int, int]]:
    w_id, done = params["w_id"], []
    for d_id in range(1, DISTRICTS + 1):
        oldest = _one(
            cursor,
            "SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s "
            "ORDER BY no_o_id LIMIT 1",
            *(w_id, d_id),
        )
        if oldest is None:
            continue
        key = (w_id, d_id, oldest[0])
        cursor.execute(
            "DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s",
            key,
        )
        order = "WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s"
        (c_id,) = _one(cursor, f"SELECT o_c_id FROM orders {order}", *key)
        cursor.execute(
            f"UPDATE orders SET o_carrier_id = %s {order}",
            (params["o_carrier_id"], *key),
        )
        lines = "WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
        cursor.execute(
            f"UPDATE order_line SET ol_delivery_d = %s {lines}",
            (params["ol_delivery_d"], *key),
        )
        (total,) = _one(cursor, f"SELECT SUM(ol_amount) FROM order_line {lines}", *key)
        cursor.execute(
            "UPDATE customer SET c_balance = c_balance + %s, "
            "c_delivery_cnt = c_delivery_cnt + 1 "
            "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
            (total, w_id, d_id, c_id),
        )
        done.append((d_id, oldest[0]))
    return done


def _new_order(cursor: Any, params: Mapping[str, Any]) -> Any:
    w_id, d_id, c_id = params["w_id"], params["d_id"], params["c_id"]
    i_ids, i_w_ids, i_qtys = params["i_ids"], params["i_w_ids"], params["i_qtys"]
    items = [
        _one(cursor, "SELECT i_price, i_name, i_data FROM item WHERE i_id = %s", i_id)
        for i_id in i_ids
    ]
    if None in items:
        return None
    (w_tax,) = _one(cursor, "SELECT w_tax FROM warehouse WHERE w_id = %s", w_id)
    district = "WHERE d_w_id = %s AND d_id = %s"
    d_tax, o_id = _one(
        cursor, f"SELECT d_tax, d_next_o_id FROM district {district}", w_id, d_id
    )
    cursor.execute(
        f"UPDATE district SET d_next_o_id = %s {district}", (o_id + 1, w_id, d_id)
    )
    customer = _one(
        cursor,
        "SELECT c_discount, c_last, c_credit FROM customer "
        "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
        *(w_id, d_id, c_id),
    )
    is_local = int(all(supplier == w_id for supplier in i_w_ids))
    cursor.execute(
        "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (o_id, c_id, d_id, w_id, params["o_entry_d"], NO_CARRIER, len(i_ids), is_local),
    )
    cursor.execute("INSERT INTO new_order VALUES (%s, %s, %s)", (o_id, d_id, w_id))
    lines, shown, total = [], [], Decimal(0)
    for number, (item, i_id, supplier, quantity) in enumerate(
        zip(items, i_ids, i_w_ids, i_qtys, strict=True), 1
    ):
        price, name, data = item
        stock, s_data, dist = _one(
            cursor,
            f"SELECT s_quantity, s_data, s_dist_{d_id:02} FROM stock "
            "WHERE s_w_id = %s AND s_i_id = %s",
            *(supplier, i_id),
        )
        stock -= quantity if stock >= quantity + 10 else quantity - 91
        cursor.execute(
            "UPDATE stock SET s_quantity = %s, s_ytd = s_ytd + %s, "
            "s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %s "
            "WHERE s_w_id = %s AND s_i_id = %s",
            (stock, quantity, int(supplier != w_id), supplier, i_id),
        )
        amount = quantity * price
        total += amount
        brand = "B" if ORIGINAL in data and ORIGINAL in s_data else "G"
        lines.append(
            (o_id, d_id, w_id, number, i_id, supplier, None, quantity, amount, dist)
        )
        shown.append((name, stock, brand, price, amount))
    cursor.executemany(
        "INSERT INTO order_line VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", lines
    )
    total *= (1 - customer[0]) * (1 + w_tax + d_tax)
    return [customer, [(w_tax, d_tax, o_id, total)], shown]


def _order_status(cursor: Any, params: Mapping[str, Any]) -> Any:
    w_id, d_id = params["w_id"], params["d_id"]
    customer = _customer(cursor, w_id, d_id, params)
    order = _one(
        cursor,
        "SELECT o_id, o_carrier_id, o_entry_d FROM orders "
        "WHERE o_w_id = %s AND o_d_id = %s AND o_c_id = %s ORDER BY o_id DESC LIMIT 1",
        *(w_id, d_id, customer[0]),
    )
    if order is None:
        return [customer, None, []]
    lines = _all(
        cursor,
        "SELECT ol_supply_w_id, ol_i_id, ol_quantity, ol_amount, ol_delivery_d "
        "FROM order_line WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s",
        *(w_id, d_id, order[0]),
    )
    return [customer, order, lines]


def _payment(cursor: Any, params: Mapping[str, Any]) -> Any:
    w_id, d_id = params["w_id"], params["d_id"]
    c_w_id, c_d_id = params["c_w_id"], params["c_d_id"]
    amount = _exact(params["h_amount"])
    warehouse = _one(
        cursor,
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse "
        "WHERE w_id = %s",
        w_id,
    )
    cursor.execute(
        "UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s", (amount, w_id)
    )
    district = _one(
        cursor,
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district "
        "WHERE d_w_id = %s AND d_id = %s",
        *(w_id, d_id),
    )
    cursor.execute(
        "UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s",
        (amount, w_id, d_id),
    )
    customer = _customer(cursor, c_w_id, c_d_id, params)
    c_id, credit, c_data = customer[0], customer[11], customer[15]
    change = (
        "c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, "
        "c_payment_cnt = c_payment_cnt + 1"
    )
    values = [amount, amount]
    if credit == BAD_CREDIT:
        change += ", c_data = %s"
        history = f"{c_id} {c_d_id} {c_w_id} {d_id} {w_id} {amount}|{c_data}"
        values.append(history[:LONGEST_C_DATA])
    cursor.execute(
        f"UPDATE customer SET {change} WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
        (*values, c_w_id, c_d_id, c_id),
    )
    cursor.execute(
        "INSERT INTO history VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(c_id, c_d_id, c_w_id, d_id, w_id, params["h_date"], amount),
            f"{warehouse[0]}    {district[0]}",
        ),
    )
    return [warehouse, district, customer]


def _stock_level(cursor: Any, params: Mapping[str, Any]) -> int:
    w_id, d_id = params["w_id"], params["d_id"]
    (next_id,) = _one(
        cursor,
        "SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s",
        *(w_id, d_id),
    )
    (count,) = _one(
        cursor,
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock "
        "ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = %s AND ol_d_id = %s "
        "AND ol_o_id >= %s AND ol_o_id < %s AND s_quantity < %s",
        *(w_id, d_id, next_id - 20, next_id, params["threshold"]),
    )
    return int(count)
