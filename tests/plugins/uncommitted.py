"""Wide queries in DuckDB 2.0's run read an uncommitted fold, whatever the tables' sizes.

In that of DuckDB 1.5 they do so in a long run; else only the large tables of some tests are
worth it there, so that both forms of every query are tested.
"""

from __future__ import annotations

import duckdb
import pytest

from tests.effort import LONG
from tique.database import settings


@pytest.fixture(autouse=True, scope="session")
def _uncommitted_folds() -> None:
    """Let even an empty table be worth one."""
    if LONG or not duckdb.__version__.startswith("1."):
        settings._FOLD_ROWS = 0
