"""A process that commits one change of :data:`CHANGES`: ``URL CHANGE``."""

from __future__ import annotations

import sys

from tests.sharing.playing import Process


def small(process):
    process.run("UPDATE t SET v = 1 WHERE id = 1")
    print("txid", process.connection.txid, flush=True)
    process.connection.commit()


def bulk(process):
    process.commit("UPDATE t SET v = 1")


def definition(process):
    process.commit("CREATE TABLE mark (id INTEGER PRIMARY KEY)")


CHANGES = {change.__name__: change for change in (small, bulk, definition)}

if __name__ == "__main__":
    CHANGES[sys.argv[2]](Process(sys.argv[1]))
