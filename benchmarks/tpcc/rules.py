"""Numbers that TPC-C fixes, and the ones that tests may make smaller.

References in the form "4.3.3.1" are clauses of the TPC-C standard specification,
revision 5.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

SYLLABLES = (
    "BAR",
    "OUGHT",
    "ABLE",
    "PRI",
    "PRES",
    "ESE",
    "ANTI",
    "CALLY",
    "ATION",
    "EING",
)
LAST_NAMES = tuple(
    SYLLABLES[number // 100] + SYLLABLES[number // 10 % 10] + SYLLABLES[number % 10]
    for number in range(1000)
)
"""Customer last names by number (4.3.2.3)."""

A_LAST_NAME, A_CUSTOMER, A_ITEM = 255, 1023, 8191
"""The constant A of NURand for last names, customer ids and item ids (2.1.6)."""

C_LAST_NAME_LOAD, C_LAST_NAME_RUN = 157, 243
"""The constant C for last names; the two must lie 65 to 119 apart (2.1.6.1)."""

C_CUSTOMER, C_ITEM = 259, 7911
"""The constant C of NURand for customer ids and item ids."""

LOADED_AT = datetime(2024, 1, 1)
"""The date in every loaded row: one fixed instant, so that a seed fixes the bytes."""

ORIGINAL_SHARE = 10
"""One row in so many carries ORIGINAL in its data column (4.3.3.1)."""

DISTRICT_COLUMNS = 10
"""The number of S_DIST_xx columns of STOCK, for any number of districts."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How large a TPC-C database is.

    Only `warehouses` varies in a measurement; the other numbers are the
    specification's (1.2.1) and are reduced by tests alone.

    Attributes
    ----------
    warehouses : int
        Number of warehouses, the scale factor.
    districts : int
        Districts per warehouse, at most 10.
    customers : int
        Customers per district, and as many orders.
    items : int
        Items, and stock rows per warehouse.
    """

    warehouses: int = 1
    districts: int = 10
    customers: int = 3000
    items: int = 100_000

    def __post_init__(self) -> None:
        if self.warehouses < 1 or self.items < 1:
            raise ValueError(f"{self}: warehouses and items must be at least 1")
        if not 1 <= self.districts <= DISTRICT_COLUMNS:
            raise ValueError(f"{self}: districts must be 1 to {DISTRICT_COLUMNS}")
        if self.customers < len(SYLLABLES):
            raise ValueError(f"{self}: customers must be at least {len(SYLLABLES)}")

    @property
    def open_orders(self) -> int:
        """Orders per district that wait for delivery: 900 of 3000 (4.3.3.1)."""
        return self.customers * 3 // 10

    @property
    def last_names(self) -> int:
        """Distinct last names that occur in every district."""
        return min(len(LAST_NAMES), self.customers)

    @property
    def label(self) -> str:
        """A name for the scale that can be part of a file's name."""
        return f"{self.warehouses}w-{self.districts}d-{self.customers}c-{self.items}i"
