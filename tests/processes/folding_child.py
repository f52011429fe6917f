"""A process that holds an uncommitted fold: ``URL LEASE``.

It asks for a sum, in a transaction of its own, for each line that it reads, and says what it
found, and whether it read that in the uncommitted fold.
"""

from __future__ import annotations

import sys

import tique
from tests.processes.bank_child import say

SUM = "SELECT sum(v + 0) FROM t"

if __name__ == "__main__":
    options = {"checkpoint": "manual", "uncommitted_fold_rows": 0}
    connection = tique.connect(sys.argv[1], lease=float(sys.argv[2]), **options)
    fold = connection._database.uncommitted
    say("ready")
    for _ in sys.stdin:
        before = fold.queries
        try:
            ((total,),) = connection.execute(SUM).fetchall()
            connection.rollback()
        except tique.OperationalError as error:
            say("answer", error.sqlstate, False)
            connection = tique.connect(sys.argv[1], lease=float(sys.argv[2]), **options)
            fold = connection._database.uncommitted
            continue
        say("answer", total, fold.queries > before)
