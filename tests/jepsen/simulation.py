"""A store with snapshot isolation, or serializable, simulated, that can be told to break it.

Clients begin, take a snapshot, commit and hear of it in a random order fixed by a seed. An
append is visible to the snapshots taken after its commit; of two transactions that overlap
the first to commit a key wins; a serializable store looks at the keys that were read, too, of
who writes anything. Some are told nothing: these commit, at once or later, or never.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace

from jepsen.history import Operation

# What a serializable store forgets now and then, and the anomaly that shows it.
SERIALIZABLE_FAULTS = {"unnoted read": "G2-item"}

# The faults of the store, each with an anomaly that shows it.
FAULTS = {
    "aborted read": "G1a",
    "doubled commit": "duplicate-elements",
    "dropped commit": "lost-append",
    "forgotten own write": "internal",
    "lost update": "lost-update",
    "no snapshot": "G-single-item",
    "overwritten append": "incompatible-order",
    "stale session": "G-single-item-process",
    "stale snapshot": "G-single-item-realtime",
    "torn commit": "G-single-item",
}


@dataclass
class Client:
    process: int
    step: str = "idle"
    asked: list = field(default_factory=list)
    done: list = field(default_factory=list)
    own: dict = field(default_factory=dict)
    snapshot: int = 0
    committed: bool = False


class Simulation:
    """One run.

    Parameters
    ----------
    seed : int
        Fixes everything.
    transactions, clients, keys, appends : int
        How many begin; how many at a time; how many keys at a time, and how often one is
        appended to before another takes its place.
    fault : str, optional
        One of `FAULTS`, done now and then.
    serializable : bool
        Whether it is more than snapshot isolation.
    in_doubt, aborted : float
        How many are told nothing, and how many give up by themselves.
    """

    def __init__(
        self,
        seed,
        transactions,
        *,
        clients=8,
        keys=6,
        appends=40,
        fault=None,
        serializable=False,
        in_doubt=0.05,
        aborted=0.05,
    ):
        self.random = random.Random(seed)
        self.left = transactions
        self.clients = [Client(process) for process in range(clients)]
        self.next_process = clients
        self.keys = list(range(keys))
        self.appends = appends
        self.appended = defaultdict(int)
        self.fault = fault
        self.serializable = serializable
        self.in_doubt = in_doubt
        self.aborted = aborted
        self.clock = 0
        self.versions = defaultdict(list)  # by key: (commit timestamp, element)
        self.late = []  # commits in doubt
        self.rest = []  # of torn commits
        self.operations = []

    def faulty(self, fault, probability=0.2):
        return self.fault == fault and self.random.random() < probability

    def run(self):
        """Return the history; every key is read once more when all is over."""
        while self.left or any(each.step != "idle" for each in self.clients):
            if self.late and self.random.random() < 0.02:
                self.settle(*self.late.pop())
            if self.rest and self.random.random() < 0.2:
                self.publish(self.rest.pop())
            client = self.random.choice(self.clients)
            if client.step != "idle" or self.left:
                getattr(self, client.step)(client)
        reader = Client(self.next_process)
        for key in sorted(self.appended):
            self.note(reader, "invoke", [("r", key, None)])
            value = tuple(element for _, element in self.versions[key])
            self.note(reader, "ok", [("r", key, value or None)])
        return self.operations

    def note(self, client, what, value):
        index = len(self.operations)
        self.operations.append(
            Operation(index, index * 1000, client.process, what, "txn", tuple(value))
        )

    def idle(self, client):
        self.left -= 1
        client.asked, client.done, client.own = [], [], defaultdict(list)
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(len(self.keys))
            key = self.keys[place]
            kind = self.random.random()
            if kind < 0.7:
                client.asked.append(("r", key, None))
            if kind > 0.5:
                self.appended[key] += 1
                client.asked.append(("append", key, self.appended[key]))
            if self.appended[key] == self.appends:
                self.keys[place] = max(self.keys) + 1
        self.note(client, "invoke", client.asked)
        client.step = "take"

    def take(self, client):
        before, client.snapshot = client.snapshot, self.clock
        if self.faulty("stale snapshot"):
            client.snapshot = max(0, self.clock - self.random.randint(1, 20))
        elif self.faulty("stale session"):
            client.snapshot = max(0, before - self.random.randint(1, 5))
        client.step = "execute"

    def execute(self, client):
        f, key, argument = client.asked[len(client.done)]
        if f == "append":
            client.own[key].append(argument)
        else:
            now = self.clock if self.fault == "no snapshot" else client.snapshot
            seen = [
                element for timestamp, element in self.versions[key] if timestamp <= now
            ]
            mine = [] if self.faulty("forgotten own write") else client.own[key]
            argument = (*seen, *mine) or None
        client.done.append((f, key, argument))
        if len(client.done) == len(client.asked):
            client.step = "commit"

    def commit(self, client):
        writes = {key: elements for key, elements in client.own.items() if elements}
        client.committed = self.random.random() >= self.aborted and (
            self.faulty("lost update", 0.5)
            or self.certified(client.snapshot, self.certain_keys(client, writes))
        )
        client.step = "hear"
        if self.random.random() >= self.in_doubt:
            if client.committed or self.faulty("aborted read"):
                self.publish(writes)
            return
        if client.committed:
            match self.random.randrange(3):
                case 0:
                    self.publish(writes)
                case 1:
                    keys = self.certain_keys(client, writes)
                    self.late.append((client.snapshot, keys, writes))
        self.note(client, "info", client.asked)
        client.process, self.next_process = self.next_process, self.next_process + 1
        client.step = "idle"

    def certain_keys(self, client, writes):
        """Return the keys that must not have changed since the snapshot."""
        if not self.serializable or not writes or self.faulty("unnoted read", 0.5):
            return set(writes)
        return {key for _, key, _ in client.done}

    def certified(self, snapshot, keys):
        """Return whether no client committed one of the keys after the snapshot."""
        newest = (self.versions[key][-1][0] for key in keys if self.versions[key])
        return all(timestamp <= snapshot for timestamp in newest)

    def settle(self, snapshot, keys, writes):
        """Commit writes in doubt, if no other commit has come between."""
        if self.certified(snapshot, keys):
            self.publish(writes)

    def publish(self, writes):
        if not writes or self.faulty("dropped commit"):
            return
        self.clock += 1
        torn = len(writes) > 1 and self.faulty("torn commit", 0.5)
        for key, elements in writes.items():
            if torn:
                torn = False
                self.rest.append({key: elements})
                continue
            if self.versions[key] and self.faulty("overwritten append"):
                self.versions[key].pop()
            times = 2 if self.faulty("doubled commit", 0.05) else 1
            self.versions[key] += [(self.clock, each) for each in elements] * times

    def hear(self, client):
        if client.committed:
            self.note(client, "ok", client.done)
        else:
            self.note(client, "fail", client.asked)
        client.step = "idle"


def simulate(seed, transactions, **options):
    """Return the history of a run; see `Simulation`."""
    return Simulation(seed, transactions, **options).run()


def as_registers(operations):
    """Return a history of lists as one of registers that hold the last element of each."""
    return [
        replace(
            each,
            value=tuple(
                ("w", key, argument)
                if f == "append"
                else ("r", key, argument[-1] if argument else None)
                for f, key, argument in each.value
            ),
        )
        for each in operations
    ]
