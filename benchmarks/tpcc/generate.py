"""The initial population of a TPC-C database (clause 4.3.3).

Rows come as Arrow tables, one batch per table and warehouse, already in the order of
their primary keys. A batch depends on the seed and its warehouse alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.tpcc import columns
from benchmarks.tpcc.rules import (
    A_LAST_NAME,
    C_LAST_NAME_LOAD,
    DISTRICT_COLUMNS,
    LAST_NAMES,
    LOADED_AT,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from benchmarks.tpcc.rules import Scale


def generate(scale: Scale, seed: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield every row of the database in batches, ordered by primary key.

    Parameters
    ----------
    scale : Scale
        Size of the database.
    seed : int
        Fixes every value.

    Yields
    ------
    tuple of (str, pyarrow.Table)
        A table's name and some of its rows. Batches of one table come in the order
        of its primary key.
    """
    yield "item", _items(np.random.default_rng([seed, 0]), scale)
    for warehouse in range(1, scale.warehouses + 1):
        rng = np.random.default_rng([seed, warehouse])
        yield "warehouse", _warehouse(rng, scale, warehouse)
        yield "district", _districts(rng, scale, warehouse)
        yield "stock", _stock(rng, scale, warehouse)
        yield "customer", _customers(rng, scale, warehouse)
        yield "history", _history(rng, scale, warehouse)
        yield from _orders(rng, scale, warehouse)


def _span(first: int, last: int) -> npt.NDArray[np.int64]:
    return np.arange(first, last + 1, dtype=np.int64)


def _between(
    rng: np.random.Generator, low: int, high: int, count: int
) -> npt.NDArray[np.int64]:
    """Return uniform integers in [low .. high], both ends included."""
    return rng.integers(low, high + 1, count, dtype=np.int64)


def _same(count: int, value: int) -> npt.NDArray[np.int64]:
    return np.full(count, value, np.int64)


def _moments(count: int) -> pa.Array:
    return pa.array(np.full(count, np.datetime64(LOADED_AT, "us")))


def _address(rng: np.random.Generator, count: int, prefix: str) -> dict[str, pa.Array]:
    return {
        f"{prefix}_street_1": columns.letters(rng, count, 10, 20),
        f"{prefix}_street_2": columns.letters(rng, count, 10, 20),
        f"{prefix}_city": columns.letters(rng, count, 10, 20),
        f"{prefix}_state": columns.letters(rng, count, 2, 2),
        f"{prefix}_zip": columns.zip_codes(rng, count),
    }


def _items(rng: np.random.Generator, scale: Scale) -> pa.Table:
    count = scale.items
    return pa.table(
        {
            "i_id": _span(1, count),
            "i_im_id": _between(rng, 1, 10_000, count),
            "i_name": columns.letters(rng, count, 14, 24),
            "i_price": columns.decimals(_between(rng, 100, 10_000, count), 5, 2),
            "i_data": columns.original_data(rng, count),
        }
    )


def _warehouse(rng: np.random.Generator, scale: Scale, warehouse: int) -> pa.Table:
    return pa.table(
        {
            "w_id": _same(1, warehouse),
            "w_name": columns.letters(rng, 1, 6, 10),
            **_address(rng, 1, "w"),
            "w_tax": columns.decimals(_between(rng, 0, 2000, 1), 4, 4),
            "w_ytd": columns.constant_decimals(
                1, scale.districts * scale.customers * 1000, 12, 2
            ),
        }
    )


def _districts(rng: np.random.Generator, scale: Scale, warehouse: int) -> pa.Table:
    count = scale.districts
    return pa.table(
        {
            "d_w_id": _same(count, warehouse),
            "d_id": _span(1, count),
            "d_name": columns.letters(rng, count, 6, 10),
            **_address(rng, count, "d"),
            "d_tax": columns.decimals(_between(rng, 0, 2000, count), 4, 4),
            "d_ytd": columns.constant_decimals(count, scale.customers * 1000, 12, 2),
            "d_next_o_id": _same(count, scale.customers + 1),
        }
    )


def _stock(rng: np.random.Generator, scale: Scale, warehouse: int) -> pa.Table:
    count = scale.items
    nothing = _same(count, 0)
    return pa.table(
        {
            "s_w_id": _same(count, warehouse),
            "s_i_id": _span(1, count),
            "s_quantity": _between(rng, 10, 100, count),
            **{
                f"s_dist_{number:02}": columns.letters(rng, count, 24, 24)
                for number in range(1, DISTRICT_COLUMNS + 1)
            },
            "s_ytd": nothing,
            "s_order_cnt": nothing,
            "s_remote_cnt": nothing,
            "s_data": columns.original_data(rng, count),
        }
    )


def _last_names(rng: np.random.Generator, scale: Scale) -> npt.NDArray[np.int64]:
    """Return each customer's name number: all names once, then NURand (4.3.3.1)."""
    known = scale.last_names
    count = scale.districts * (scale.customers - known)
    skewed = (
        (_between(rng, 0, A_LAST_NAME, count) | _between(rng, 0, known - 1, count))
        + C_LAST_NAME_LOAD
    ) % known
    numbers = np.empty((scale.districts, scale.customers), np.int64)
    numbers[:, :known] = np.arange(known)
    numbers[:, known:] = skewed.reshape(scale.districts, -1)
    return numbers.reshape(-1)


def _customers(rng: np.random.Generator, scale: Scale, warehouse: int) -> pa.Table:
    count = scale.districts * scale.customers
    bad = np.zeros(count, np.int64)
    bad[rng.choice(count, count // 10, replace=False)] = 1
    return pa.table(
        {
            "c_w_id": _same(count, warehouse),
            "c_d_id": np.repeat(_span(1, scale.districts), scale.customers),
            "c_id": np.tile(_span(1, scale.customers), scale.districts),
            "c_first": columns.letters(rng, count, 8, 16),
            "c_middle": pa.repeat("OE", count),
            "c_last": pa.array(LAST_NAMES).take(pa.array(_last_names(rng, scale))),
            **_address(rng, count, "c"),
            "c_phone": columns.digits(rng, count, 16),
            "c_since": _moments(count),
            "c_credit": pa.array(["GC", "BC"]).take(pa.array(bad)),
            "c_credit_lim": columns.constant_decimals(count, 5_000_000, 12, 2),
            "c_discount": columns.decimals(_between(rng, 0, 5000, count), 4, 4),
            "c_balance": columns.constant_decimals(count, -1000, 12, 2),
            "c_ytd_payment": columns.constant_decimals(count, 1000, 12, 2),
            "c_payment_cnt": _same(count, 1),
            "c_delivery_cnt": _same(count, 0),
            "c_data": columns.letters(rng, count, 300, 500),
        }
    )


def _history(rng: np.random.Generator, scale: Scale, warehouse: int) -> pa.Table:
    count = scale.districts * scale.customers
    districts = np.repeat(_span(1, scale.districts), scale.customers)
    return pa.table(
        {
            "h_c_id": np.tile(_span(1, scale.customers), scale.districts),
            "h_c_d_id": districts,
            "h_c_w_id": _same(count, warehouse),
            "h_d_id": districts,
            "h_w_id": _same(count, warehouse),
            "h_date": _moments(count),
            "h_amount": columns.constant_decimals(count, 1000, 6, 2),
            "h_data": columns.letters(rng, count, 12, 24),
        }
    )


def _orders(
    rng: np.random.Generator, scale: Scale, warehouse: int
) -> Iterator[tuple[str, pa.Table]]:
    count = scale.districts * scale.customers
    districts = np.repeat(_span(1, scale.districts), scale.customers)
    numbers = np.tile(_span(1, scale.customers), scale.districts)
    waiting = numbers > scale.customers - scale.open_orders
    line_counts = _between(rng, 5, 15, count)
    yield (
        "orders",
        pa.table(
            {
                "o_w_id": _same(count, warehouse),
                "o_d_id": districts,
                "o_id": numbers,
                "o_c_id": np.concatenate(
                    [
                        rng.permutation(scale.customers) + 1
                        for _ in range(scale.districts)
                    ]
                ),
                "o_entry_d": _moments(count),
                "o_carrier_id": pa.array(_between(rng, 1, 10, count), mask=waiting),
                "o_ol_cnt": line_counts,
                "o_all_local": _same(count, 1),
            }
        ),
    )
    yield (
        "new_order",
        pa.table(
            {
                "no_w_id": _same(int(waiting.sum()), warehouse),
                "no_d_id": districts[waiting],
                "no_o_id": numbers[waiting],
            }
        ),
    )
    yield (
        "order_line",
        _order_lines(rng, scale, warehouse, districts, numbers, waiting, line_counts),
    )


def _order_lines(
    rng: np.random.Generator,
    scale: Scale,
    warehouse: int,
    districts: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64],
    waiting: npt.NDArray[np.bool_],
    line_counts: npt.NDArray[np.int64],
) -> pa.Table:
    count = int(line_counts.sum())
    first_line = np.repeat(np.cumsum(line_counts) - line_counts, line_counts)
    undelivered = np.repeat(waiting, line_counts)
    amounts = np.where(undelivered, _between(rng, 1, 999_999, count), 0)
    return pa.table(
        {
            "ol_w_id": _same(count, warehouse),
            "ol_d_id": np.repeat(districts, line_counts),
            "ol_o_id": np.repeat(numbers, line_counts),
            "ol_number": np.arange(count, dtype=np.int64) - first_line + 1,
            "ol_i_id": _between(rng, 1, scale.items, count),
            "ol_supply_w_id": _same(count, warehouse),
            "ol_delivery_d": pa.array(
                np.full(count, np.datetime64(LOADED_AT, "us")), mask=undelivered
            ),
            "ol_quantity": _same(count, 5),
            "ol_amount": columns.decimals(amounts, 6, 2),
            "ol_dist_info": columns.letters(rng, count, 24, 24),
        }
    )
