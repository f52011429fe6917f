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
    found |= orders(transactions)
    return between(found, committed)


def orders(transactions):
    """Return the edges of the clock and of clients, from each to each."""
    found = set()
    for a, (process, _, ended, outcome, _) in enumerate(transactions):
        for b, (other_process, begun, _, _, _) in enumerate(transactions):
            if outcome == "ok" and ended < begun:
                found.add((a, b, "realtime"))
                if process == other_process:
                    found.add((a, b, "process"))
    return found


def between(found, committed):
    """Return the edges between two committed transactions."""
    return {
        (source, target, label)
        for source, target, label in found
        if source != target and {source, target} <= committed
    }


def cycles(transactions):
    """Return the (kind, level) of which there is a cycle, or of a lower one."""
    return cycles_of(edges(transactions), len(transactions))


def cycles_of(found_edges, count):
    """Return the same for a graph of so many transactions."""
    by_pair = {}
    for source, target, label in found_edges:
        by_pair.setdefault((source, target), set()).add(label)
    found = set()
    for size in range(2, count + 1):
        for first, *rest in permutations(range(count), size):
            if first > min(rest):
                continue
            hops = list(zip((first, *rest), (*rest, first), strict=True))
            if all(hop in by_pair for hop in hops):
                for labels in product(*(sorted(by_pair[hop]) for hop in hops)):
                    found |= classify(labels)
    return found


def registers(transactions):
    """Return, for each order of versions that there may be, what `cycles` returns.

    Reads are of None or of values that are written last, by others and not by a failed one.
    """
    written, committed = {}, register_commits(transactions)
    for number, (*_, value) in enumerate(transactions):
        if number in committed:
            for f, key, argument in value:
                if f == "w":
                    written.setdefault(key, {})[argument] = number
    possible = [permutations(values.items()) for values in written.values()]
    found = []
    for chosen in product(*possible):
        edges = orders(transactions)
        for key, versions in zip(written, chosen, strict=True):
            values = [None, *(value for value, _ in versions)]
            writers = [None, *(writer for _, writer in versions)]
            for place, writer in enumerate(writers[1:], 1):
                edges |= {(writer, other, "ww") for other in writers[place + 1 :]}
            for number, read_key, argument in register_reads(transactions):
                if read_key == key:
                    place = values.index(argument)
                    edges |= {(other, number, "wr") for other in writers[1 : place + 1]}
                    edges |= {(number, other, "rw") for other in writers[place + 1 :]}
        found.append(cycles_of(between(edges, committed), len(transactions)))
    return found


def register_reads(transactions):
    """Return (transaction, key, value) of what was read before it was written."""
    found = []
    for number, (*_, outcome, value) in enumerate(transactions):
        written = set()
        for f, key, argument in value if outcome == "ok" else ():
            if f == "w":
                written.add(key)
            elif key not in written:
                found.append((number, key, argument))
    return found


def register_commits(transactions):
    """Return the transactions that are acknowledged, or in doubt and seen."""
    seen = {(key, value) for _, key, value in register_reads(transactions)}
    return {
        number
        for number, (*_, outcome, value) in enumerate(transactions)
        if outcome == "ok"
        or (outcome == "info" and any(each[1:] in seen for each in value))
    }


def has_serial_order(transactions, *, in_real_time):
    """Return whether an order of the committed transactions explains every read."""
    committed = register_commits(transactions)
    after = {(a, b) for a, b, _ in orders(transactions)} if in_real_time else set()
    for order in permutations(committed):
        place = {number: where for where, number in enumerate(order)}
        if any(
            place[a] > place[b] for a, b in after if {a, b} <= committed
        ) or not explains(transactions, order):
            continue
        return True
    return False


def explains(transactions, order):
    """Return whether all reads are right if the transactions run in this order."""
    state = {}
    for number in order:
        *_, outcome, value = transactions[number]
        for f, key, argument in value:
            if f == "w":
                state[key] = argument
            elif outcome == "ok" and state.get(key) != argument:
                return False
    return True


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
