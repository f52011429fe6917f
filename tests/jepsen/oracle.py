"""Cycles found by trying all of them, for histories of a few transactions.

Written from the anomalies' definitions and not from the checker: every pair is looked
at, no edge is left out because others imply it, real time is compared pair by pair.
"""

from __future__ import annotations

from itertools import permutations, product

KINDS = ("G0", "G1c", "SI", "G2")
LEVELS = ("", "-process", "-realtime")


def edges(transactions):
    """Return a set of (source, target, label).

    Transactions are (process, begun, ended, outcome, micro-operations); one in doubt ended
    at None. Every read of a key is the beginning of the longest one.
    """
    order, written, seen = {}, {}, set()
    for number, (_, _, _, outcome, value) in enumerate(transactions):
        for f, key, argument in value:
            if f == "append":
                written[key, argument] = number
            elif outcome == "ok":
                order[key] = max(order.get(key, ()), argument or (), key=len)
                seen |= {(key, element) for element in argument or ()}
    committed = {
        number
        for number, (*_, outcome, _) in enumerate(transactions)
        if outcome == "ok"
        or (outcome == "info" and any(written[each] == number for each in seen))
    }
    late = {}
    for (key, element), writer in written.items():
        if writer in committed and (key, element) not in seen:
            late.setdefault(key, []).append(writer)
    found = set()
    for key in {key for key, _ in written}:
        chain = [written[key, element] for element in order.get(key, ())]
        for place, writer in enumerate(chain):
            after = chain[place + 1 :] + late.get(key, [])
            found |= {(writer, other, "ww") for other in after}
        for number, (*_, outcome, value) in enumerate(transactions):
            for f, read_key, argument in value:
                if f == "r" and read_key == key and outcome == "ok":
                    length = len(argument or ())
                    found |= {(other, number, "wr") for other in chain[:length]}
                    after = chain[length:] + late.get(key, [])
                    found |= {(number, other, "rw") for other in after}
    for a, (process, _, ended, outcome, _) in enumerate(transactions):
        for b, (other_process, begun, _, _, _) in enumerate(transactions):
            if outcome == "ok" and ended < begun:
                found.add((a, b, "realtime"))
                if process == other_process:
                    found.add((a, b, "process"))
    return {
        (source, target, label)
        for source, target, label in found
        if source != target and {source, target} <= committed
    }


def cycles(transactions):
    """Return the (kind, level) of which there is a cycle, or of a lower one."""
    by_pair = {}
    for source, target, label in edges(transactions):
        by_pair.setdefault((source, target), set()).add(label)
    found = set()
    for size in range(2, len(transactions) + 1):
        for first, *rest in permutations(range(len(transactions)), size):
            if first > min(rest):
                continue
            hops = list(zip((first, *rest), (*rest, first), strict=True))
            if all(hop in by_pair for hop in hops):
                for labels in product(*(sorted(by_pair[hop]) for hop in hops)):
                    found |= classify(labels)
    return found


def classify(labels):
    """Return every (kind, level) that a cycle with these labels is one of."""
    data = [label for label in labels if label not in ("process", "realtime")]
    if not data:
        return set()
    adjacent = any(
        here == there == "rw"
        for here, there in zip(labels, (*labels[1:], labels[0]), strict=True)
    )
    if "rw" in labels:
        lowest = "G2" if adjacent else "SI"
    else:
        lowest = "G1c" if "wr" in labels else "G0"
    level = 2 if "realtime" in labels else 1 if "process" in labels else 0
    return {
        (kind, suffix)
        for kind in KINDS[KINDS.index(lowest) :]
        for suffix in LEVELS[level:]
    }
