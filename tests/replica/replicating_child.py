"""Replicates until it is killed, at its nth call of DuckDB that may write if there is one.

python -m tests.replica.replicating_child SOURCE TARGET POINT
"""

from __future__ import annotations

import sys
import time

import duckdb

import tique
from tests.crash.faults import KillAt, watched_connect, watched_run
from tique_udfs.duckdb import Prepared


def main(source, target, point):
    if point:
        watch = KillAt(point)
        duckdb.connect = watched_connect(duckdb, watch)
        Prepared.run = watched_run(watch)
    replication = tique.replicate(source, target, epoch=0.005)
    print("following", flush=True)
    while True:
        time.sleep(0.05)
        replication.fold()
        print("at", replication.status().durable, flush=True)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
