"""``python -m tests.differential --engine duckdb --count 100000 --seed 1``.

Runs as many random statements through tique and on the bare engine. Prints differences
as they are found, a line of JSON each, with the fewest statements that show it, and
counts at the end. An episode comes again with ``--start NUMBER --count 1``, the seed and the length.

``python -m tests.differential corpus --engine duckdb`` says what of the corpus is refused.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from types import SimpleNamespace

from tests.differential import corpus
from tests.differential.runs import places_of, run
from tests.differential.statements import STEPS
from tests.fuzz.runs import ENGINES
from tests.plugins.engine import ENGINES as BACKENDS

_BATCH = 5000
"""Statements of a child process."""


def report_corpus():
    parser = argparse.ArgumentParser(prog="python -m tests.differential corpus")
    parser.add_argument("--engine", choices=ENGINES, required=True)
    chosen = parser.parse_args(sys.argv[2:]).engine
    kind = next(kind for kind in BACKENDS if kind.name == chosen)
    with TemporaryDirectory() as folder:
        folders = SimpleNamespace(mktemp=lambda name, **_: Path(mkdtemp(dir=folder)))
        with kind.lasting(folders) as engine:
            report = corpus.run(engine)
    print("\n".join(report.lines()))
    return bool(report.faults or report.unknown)


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--count", type=int, default=1000, help="statements")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="the first episode")
    parser.add_argument(
        "--length", type=int, default=STEPS, help="statements of an episode"
    )
    options = parser.parse_args()
    begin = time.monotonic()
    found = 0
    counts = Counter()
    refused = {}
    length = options.length
    episodes = max(1, options.count // length)
    stop = options.start + episodes
    batch = max(1, _BATCH // length)
    with places_of(options.engine) as place:
        for at in range(options.start, stop, batch):
            outcome = run(
                options.engine,
                place,
                options.seed,
                at,
                min(batch, stop - at) * length,
                length=length,
                report=lambda finding: print(json.dumps(finding), flush=True),
            )
            for reason in outcome.refused.keys() - refused.keys():
                print(
                    json.dumps({"refused": reason, "sql": outcome.refused[reason]}),
                    flush=True,
                )
            for fault in outcome.faults:
                print(json.dumps(fault), flush=True)
            refused |= outcome.refused
            found += len(outcome.findings)
            counts.update(outcome.counts)
            print(
                f"{min(at + batch, stop) - options.start} episodes, {found} findings, "
                f"{time.monotonic() - begin:.0f} s: {dict(counts)}",
                file=sys.stderr,
                flush=True,
            )
    return found > 0


if __name__ == "__main__":
    sys.exit(report_corpus() if sys.argv[1:2] == ["corpus"] else main())
