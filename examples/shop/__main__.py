"""``python -m examples.shop --url duckdb+tique:///shop.duckdb --threads 8 --seconds 30``."""

from __future__ import annotations

import argparse
import sys

from examples.shop.runner import run


def main() -> int:
    """Run the shop; 1 if something is wrong in the end."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.shop", description=__doc__
    )
    parser.add_argument("--url", required=True, help="SQLAlchemy's URL of a database")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    report = run(
        given.url, threads=given.threads, seconds=given.seconds, seed=given.seed
    )
    print(*report.lines(), sep="\n")
    for fault in report.faults:
        print("WRONG:", fault)
    if not report.faults:
        print("No update is lost, no row is an orphan, the money adds up.")
    return bool(report.faults)


sys.exit(main())
