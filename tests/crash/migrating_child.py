"""A process that is killed between the COMMIT of its DDL and the end of its timestamp.

    python -m tests.crash.migrating_child URL STATEMENT...

Says ``committing`` and its transaction's id first.
"""

from __future__ import annotations

import os
import signal
import sys

import tique
from tests.processes.bank_child import say


def main(url, *statements):
    connection = tique.connect(url, checkpoint="manual")
    for statement in statements:
        connection.execute(statement)
    shared = connection._database.engine.shared
    shared.finish = lambda _: os.kill(os.getpid(), signal.SIGKILL)
    say("committing", connection.txid)
    connection.commit()


if __name__ == "__main__":
    main(*sys.argv[1:])
