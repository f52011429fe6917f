"""What collecting tests has left is no garbage: ``gc.collect()`` need not look at it.

Thirty thousand tests are two million objects. To walk through them takes half a second,
in every test that asks whether something is gone, and whenever memory has grown by a
quarter.
"""

from __future__ import annotations

import gc


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
