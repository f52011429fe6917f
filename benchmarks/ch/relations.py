"""The three tables that CH-benCHmark adds to TPC-C's: region, nation, supplier.

Sizes and keys are those of Cole et al., "The mixed workload CH-benCHmark" (DBTest 2011): a
supplier has the remainder of warehouse times item by its number, and a customer lives in
the nation whose key is the code of the first character of the customer's state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.tpcc import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

SUPPLIERS = 10_000
_CRITICIZED = 50
"""One supplier in so many has a comment with the word that Q16 looks for."""

_NATIONS = {
    "Africa": "Algeria Angola Egypt Ethiopia Ghana Kenya Mali Morocco Mozambique Niger "
    "Nigeria Senegal Uganda",
    "America": "Argentina Bolivia Brazil Canada Chile Colombia Cuba Ecuador Guatemala "
    "Mexico Peru Uruguay Venezuela",
    "Asia": "Bangladesh Cambodia China India Indonesia Japan Malaysia Mongolia Nepal "
    "Pakistan Thailand Vietnam",
    "Europe": "Austria Belgium Denmark Finland France Germany Greece Hungary Italy Norway "
    "Poland Spain Sweden",
    "Middle East": "Bahrain Iran Iraq Israel Jordan Kuwait Lebanon Oman Qatar Syria Yemen",
}
_STATES = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""First characters of states, each a nation's."""

TABLES: dict[str, str] = {
    "region": """CREATE TABLE region (
    r_regionkey INTEGER NOT NULL,
    r_name VARCHAR(25) NOT NULL,
    r_comment VARCHAR(152) NOT NULL,
    PRIMARY KEY (r_regionkey)
)""",
    "nation": """CREATE TABLE nation (
    n_nationkey INTEGER NOT NULL,
    n_name VARCHAR(25) NOT NULL,
    n_regionkey INTEGER NOT NULL,
    n_comment VARCHAR(152) NOT NULL,
    PRIMARY KEY (n_nationkey)
)""",
    "supplier": """CREATE TABLE supplier (
    su_suppkey INTEGER NOT NULL,
    su_name VARCHAR(25) NOT NULL,
    su_address VARCHAR(40) NOT NULL,
    su_nationkey INTEGER NOT NULL,
    su_phone CHAR(15) NOT NULL,
    su_acctbal DECIMAL(12, 2) NOT NULL,
    su_comment VARCHAR(101) NOT NULL,
    PRIMARY KEY (su_suppkey)
)""",
}
"""The statement that creates each table."""


def generate(seed: int) -> Iterator[tuple[str, pa.Table]]:
    """Yield each table with all of its rows; the seed fixes every value."""
    rng = np.random.default_rng([seed, 22])
    regions = list(_NATIONS)
    yield (
        "region",
        pa.table(
            {
                "r_regionkey": pa.array(range(len(regions)), pa.int32()),
                "r_name": pa.array(regions),
                "r_comment": columns.letters(rng, len(regions), 31, 115),
            }
        ),
    )
    nations = [(name, n) for n, r in enumerate(regions) for name in _NATIONS[r].split()]
    keys = [ord(state) for state in _STATES]
    yield (
        "nation",
        pa.table(
            {
                "n_nationkey": pa.array(keys, pa.int32()),
                "n_name": pa.array([name for name, _ in nations]),
                "n_regionkey": pa.array([region for _, region in nations], pa.int32()),
                "n_comment": columns.letters(rng, len(keys), 31, 114),
            }
        ),
    )
    comments = columns.letters(rng, SUPPLIERS, 30, 90).to_pylist()
    comments[::_CRITICIZED] = [f"bad {comment}" for comment in comments[::_CRITICIZED]]
    yield (
        "supplier",
        pa.table(
            {
                "su_suppkey": pa.array(range(SUPPLIERS), pa.int32()),
                "su_name": pa.array([f"Supplier#{n:09}" for n in range(SUPPLIERS)]),
                "su_address": columns.letters(rng, SUPPLIERS, 10, 40),
                "su_nationkey": pa.array(rng.choice(keys, SUPPLIERS), pa.int32()),
                "su_phone": columns.digits(rng, SUPPLIERS, 15),
                "su_acctbal": columns.decimals(
                    rng.integers(-99_999, 999_999, SUPPLIERS), 12, 2
                ),
                "su_comment": pa.array(comments),
            }
        ),
    )
