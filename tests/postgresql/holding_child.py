"""A process that takes the lock of the folding process, and keeps it.

python -m tests.postgresql.holding_child URL LEASE
"""

from __future__ import annotations

import sys

import tique
from tests.processes.bank_child import say

if __name__ == "__main__":
    connection = tique.connect(
        sys.argv[1], lease=float(sys.argv[2]), checkpoint="manual"
    )
    shared = connection._database.engine.shared
    assert shared.may_checkpoint(30)
    say("holding")
    sys.stdin.read()
