"""Updates a million rows at once and measures this process's memory.

    python -m tests.isolation.bulk_child URL ROWS

Prints a JSON object: megabytes of growth and seconds per step.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import tique


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


class Peak:
    """The greatest resident size while a block runs."""

    def __enter__(self):
        self.value = resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._stop.wait(0.002):
            self.value = max(self.value, resident())

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def main(url, rows):
    seconds = {}

    def timed(name, body):
        started = time.perf_counter()
        result = body()
        seconds[name] = round(time.perf_counter() - started, 2)
        return result

    connection = tique.connect(url, checkpoint="manual")
    connection.execute("SELECT count(*) FROM t WHERE id < 10").fetchall()
    connection.rollback()
    before = resident()
    with Peak() as update:
        cursor = timed("update", lambda: connection.execute("UPDATE t SET v = v + 1"))
    assert cursor.rowcount == rows
    with Peak() as own:
        total = timed(
            "read own",
            lambda: connection.execute("SELECT count(*), sum(v) FROM t").fetchone(),
        )
        assert total == (rows, rows)
        assert connection.execute("SELECT v FROM t WHERE id = 77").fetchone() == (1,)
    with Peak() as commit:
        timed("commit", connection.commit)
    with Peak() as checkpoint:
        moved = timed("checkpoint", connection.checkpoint)
    assert moved == rows
    assert connection.execute("SELECT sum(v) FROM t").fetchone() == (rows,)
    connection.close()
    grown = {
        "update": update.value,
        "read own": own.value,
        "commit": commit.value,
        "checkpoint": checkpoint.value,
    }
    print(
        json.dumps(
            {
                "grown": {name: round(value - before) for name, value in grown.items()},
                "seconds": seconds,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
