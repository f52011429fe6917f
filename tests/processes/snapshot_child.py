"""A process that has a snapshot open until it is killed: ``URL LEASE``."""

from __future__ import annotations

import sys

import tique
from tests.processes.bank_child import say

if __name__ == "__main__":
    connection = tique.connect(
        sys.argv[1], lease=float(sys.argv[2]), checkpoint="manual"
    )
    connection.execute("SELECT * FROM t").fetchall()
    say("reading")
    sys.stdin.read()
