"""A process whose main thread ends while daemon threads write.

    python -m tests.signals.exit_child URL SECONDS

It prints the key of every row whose commit was acknowledged.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import tique


def write(url, number):
    connection = tique.connect(url)
    key = number * 1_000_000
    while True:
        key += 1
        connection.execute("INSERT INTO t VALUES (%s)", (key,))
        connection.execute("SELECT count(*) FROM t").fetchone()
        connection.commit()
        os.write(1, f"{key}\n".encode())


if __name__ == "__main__":
    kept = tique.connect(sys.argv[1])
    for number in range(4):
        threading.Thread(target=write, args=(sys.argv[1], number), daemon=True).start()
    time.sleep(float(sys.argv[2]))
