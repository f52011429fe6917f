"""Commits a bulk write, and stops before COMMIT until it is killed: ``URL``."""

import sys
import time

import tique
from tique_backends.postgresql.guests import GuestSequencer


def stop(sequencer, session):
    print("barred", flush=True)
    time.sleep(600)


GuestSequencer.commit = stop
connection = tique.connect(sys.argv[1], checkpoint="manual", lease=300)
connection.execute(
    "INSERT INTO open SELECT _n + 10, 0, '' FROM generate_series(1, 3000) AS _n"
)
connection.commit()
