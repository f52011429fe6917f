"""Runs episodes, in a process that may die of them.

``python -m tests.differential.child ENGINE PLACES SEED START STOP LENGTH``, where PLACES is JSON. It
prints each episode's number, each finding as a line of JSON, and counts in the end.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from dataclasses import asdict

from tests.differential.bare import NativeCrash
from tests.differential.statements import Episode
from tests.differential.trial import OWN_FAULT, Trial, minimised
from tests.fuzz.runs import ENGINE_DIED

_MINIMISED = 12
"""Findings of one child that are made small: a fault may be in every episode."""


def _say(line):
    os.write(1, json.dumps(line).encode() + b"\n")


def _alive():
    os.write(1, b"...\n")


def _told(episode, steps):
    """An episode as text that can be run by hand."""
    lines = [f"-- buffered rows: {episode.buffered}, certifier: {episode.certifier}"]
    for step in steps:
        text = step.sql or f"-- {step.kind}"
        lines.append(f"{text} {step.parameters}" if step.parameters else text)
    return lines


def main(engine, places, seed, start, stop, length):
    # What is imported stays: it need not be looked at again and again.
    gc.freeze()
    trial = Trial(engine, places)
    found, faults = 0, []
    for number in range(start, stop):
        os.write(1, b"@%d\n" % number)
        episode, steps = Episode(engine, seed, number, length), []
        try:
            episode, steps, finding = trial.episode(seed, number, _alive, length=length)
        except NativeCrash:
            trial.count("native crash")
            _say({"counts": trial.counts})
            # The servers are started again for the next process.
            os._exit(ENGINE_DIED)
        except Exception as error:
            _say(
                {
                    "number": number,
                    "what": f"exception {type(error).__name__}",
                    "found": "".join(traceback.format_exception(error))[-3000:],
                }
            )
            trial.close()
            trial = Trial(engine, places)
            continue
        if finding is None:
            continue
        if finding.what == OWN_FAULT:
            trial.count(OWN_FAULT)
            faults.append({"number": number, **asdict(finding)})
            continue
        found += 1
        again = None
        counts = dict(trial.counts)
        if found <= _MINIMISED:
            steps, again = minimised(trial, episode, steps, finding, _alive)
            if again:
                finding = trial.again(episode, steps) or finding
        # Each statement counts once.
        trial.counts = counts
        _say(
            {
                "seed": seed,
                "number": number,
                "length": length,
                "what": finding.what,
                "step": finding.step,
                "found": finding.found,
                "expected": finding.expected,
                "comes again": again,
                "steps": _told(episode, steps),
            }
        )
    _say({"counts": trial.counts, "refused": trial.refused, "faults": faults})
    trial.close()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]), *map(int, sys.argv[3:]))
