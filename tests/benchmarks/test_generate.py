from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.tpcc import schema
from benchmarks.tpcc.generate import generate
from benchmarks.tpcc.rules import LAST_NAMES, Scale

pytestmark = pytest.mark.engine_free


def population(scale, seed):
    batches = defaultdict(list)
    for table, rows in generate(scale, seed):
        batches[table].append(rows)
    return {table: pa.concat_tables(found) for table, found in batches.items()}


@pytest.fixture(scope="module")
def tables(small_scale):
    return population(small_scale, seed=7)


def test_cardinalities(tables, small_scale):
    districts = small_scale.warehouses * small_scale.districts
    customers = districts * small_scale.customers
    counts = {table: rows.num_rows for table, rows in tables.items()}
    lines = counts.pop("order_line")
    assert counts == {
        "warehouse": small_scale.warehouses,
        "district": districts,
        "customer": customers,
        "history": customers,
        "orders": customers,
        "new_order": districts * 9,
        "item": small_scale.items,
        "stock": small_scale.warehouses * small_scale.items,
    }
    assert lines == pc.sum(tables["orders"]["o_ol_cnt"]).as_py()
    assert 5 * customers <= lines <= 15 * customers


def test_full_scale_has_the_cardinalities_of_the_specification():
    scale = Scale(warehouses=1)
    assert (scale.districts, scale.customers, scale.items) == (10, 3000, 100_000)
    assert (scale.open_orders, scale.last_names) == (900, 1000)


@pytest.mark.parametrize("table", [name for name, key in schema.KEYS.items() if key])
def test_rows_are_ordered_by_a_key_without_duplicates(tables, table):
    columns = [tables[table][name].to_pylist() for name in schema.KEYS[table]]
    keys = list(zip(*columns, strict=True))
    assert keys == sorted(set(keys))


def test_same_seed_same_rows_other_seed_other_rows(tables, small_scale):
    again = population(small_scale, seed=7)
    assert all(again[name].equals(tables[name]) for name in schema.KEYS)
    other = population(small_scale, seed=8)
    assert not other["stock"].equals(tables["stock"])


def test_one_row_in_ten_is_original(tables, small_scale):
    for column in (tables["item"]["i_data"], tables["stock"]["s_data"]):
        marked = pc.sum(pc.match_substring(column, "ORIGINAL")).as_py()
        assert marked == len(column) // 10
        lengths = pc.utf8_length(column)
        assert pc.min(lengths).as_py() >= 26
        assert pc.max(lengths).as_py() <= 50


def test_one_customer_in_ten_has_bad_credit(tables):
    credit = tables["customer"]["c_credit"]
    assert pc.sum(pc.equal(credit, "BC")).as_py() == len(credit) // 10


@pytest.mark.parametrize(
    ("table", "column", "shortest", "longest"),
    [
        ("customer", "c_data", 300, 500),
        ("customer", "c_first", 8, 16),
        ("customer", "c_phone", 16, 16),
        ("customer", "c_zip", 9, 9),
        ("item", "i_name", 14, 24),
        ("stock", "s_dist_10", 24, 24),
        ("order_line", "ol_dist_info", 24, 24),
        ("history", "h_data", 12, 24),
    ],
)
def test_text_lengths(tables, table, column, shortest, longest):
    lengths = pc.utf8_length(tables[table][column])
    assert pc.min(lengths).as_py() >= shortest
    assert pc.max(lengths).as_py() <= longest


def test_zip_codes_end_in_ones(tables):
    assert pc.all(pc.ends_with(tables["warehouse"]["w_zip"], "11111")).as_py()


def test_orders_are_a_permutation_of_customers_in_every_district(tables, small_scale):
    customers = defaultdict(set)
    orders = tables["orders"]
    for warehouse, district, customer in zip(
        *(orders[name].to_pylist() for name in ("o_w_id", "o_d_id", "o_c_id")),
        strict=True,
    ):
        customers[warehouse, district].add(customer)
    everyone = set(range(1, small_scale.customers + 1))
    assert all(found == everyone for found in customers.values())


def test_only_the_last_orders_wait_for_delivery(tables, small_scale):
    first_open = small_scale.customers - small_scale.open_orders + 1
    orders, lines = tables["orders"], tables["order_line"]
    waiting = pc.is_null(orders["o_carrier_id"])
    assert waiting.equals(pc.greater_equal(orders["o_id"], first_open))
    undelivered = pc.greater_equal(lines["ol_o_id"], first_open)
    assert pc.is_null(lines["ol_delivery_d"]).equals(undelivered)
    assert pc.greater(lines["ol_amount"], 0).equals(undelivered)
    assert pc.min(tables["new_order"]["no_o_id"]).as_py() == first_open


def test_first_customers_carry_every_last_name_once(tables, small_scale):
    names = tables["customer"]["c_last"].to_pylist()[: small_scale.customers]
    assert names == list(LAST_NAMES[: small_scale.customers])
    assert LAST_NAMES[371] == "PRICALLYOUGHT"


@pytest.mark.parametrize(
    "sizes", [{"warehouses": 0}, {"districts": 11}, {"customers": 9}, {"items": 0}]
)
def test_impossible_scales_are_refused(sizes):
    with pytest.raises(ValueError, match="must be"):
        Scale(**sizes)
