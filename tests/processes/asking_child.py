"""A process that runs the queries it is told, in one transaction: ``URL``."""

from __future__ import annotations

import sys

import tique
from tests.processes.bank_child import say

if __name__ == "__main__":
    connection = tique.connect(sys.argv[1], checkpoint="manual")
    say("ready")
    for query in sys.stdin:
        try:
            ((value,),) = connection.execute(query).fetchall()
            say("answer", value)
        except tique.Error as error:
            say("answer", type(error).__name__)
