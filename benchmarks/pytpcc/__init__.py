"""A driver for py-tpcc, another implementation of TPC-C in Python.

py-tpcc looks for a system called ``tique`` in the module ``drivers.tiquedriver``. That one
file is ``tiquedriver.py`` here, and :func:`install` puts it there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

_DRIVER = "tiquedriver.py"


def install(checkout: Path) -> Path:
    """Copy the driver into a checkout of py-tpcc; return its path there.

    Parameters
    ----------
    checkout
        The checkout, or the folder in it that has ``tpcc.py``.

    Raises
    ------
    FileNotFoundError
        If neither has a folder ``drivers`` beside a file ``tpcc.py``.
    """
    for folder in (checkout, checkout / "pytpcc"):
        if (folder / "tpcc.py").is_file() and (folder / "drivers").is_dir():
            target = folder / "drivers" / _DRIVER
            shutil.copyfile(Path(__file__).with_name(_DRIVER), target)
            return target
    raise FileNotFoundError(
        f"{checkout} is no checkout of py-tpcc: it has no tpcc.py beside a folder drivers"
    )
