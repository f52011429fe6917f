"""``python -m tests.fuzz --engine duckdb --count 100000 --seed 1``.

Prints failures as they are found, a line of JSON each, and counts at the end. A
statement comes again with ``--start NUMBER --count 1`` and the same seed; whether it
fails depends on nothing before it, except where the world was changed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.fuzz.runs import ENGINES, place_of, run

_BATCH = 5000


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    begin = time.monotonic()
    done = found = 0
    counts = {}
    stop = options.start + options.count
    with place_of(options.engine) as place:
        for at in range(options.start, stop, _BATCH):
            outcome = run(
                options.engine,
                place,
                options.seed,
                at,
                min(stop, at + _BATCH),
                report=lambda finding: print(json.dumps(finding), flush=True),
            )
            done += outcome.done
            found += len(outcome.findings)
            for kind, count in outcome.counts.items():
                counts[kind] = counts.get(kind, 0) + count
            print(
                f"{done} statements, {found} findings, "
                f"{time.monotonic() - begin:.0f} s: {counts}",
                file=sys.stderr,
                flush=True,
            )
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
