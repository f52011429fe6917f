"""The plan of a run: the same for all of its processes."""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Plan:
    """A run.

    Attributes
    ----------
    url
        The database, as clients reach it.
    workload, level
        A workload's name, and the isolation level: of :data:`jepsen.workloads.LEVELS`.
    folder
        Where all of its files are.
    clients, processes
        How many clients there are, as threads of how many processes.
    seed
        Where every choice comes from; the engine's timing does not.
    began
        CLOCK_MONOTONIC, in nanoseconds, when the run began.
    options
        Of ``tique.connect``, in every client.
    mutation
        How tique is broken in the clients' processes, if it is.
    bulk
        The share of transactions that commit in bulk, as those with many rows do.
    """

    url: str
    workload: str
    level: str
    folder: Path
    clients: int
    processes: int
    seed: int
    began: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    mutation: str | None = None
    bulk: float = 0.0

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return (time.monotonic_ns() - self.began) / 1e9

    def write(self, path: Path) -> None:
        """Write it to a file, which only this account can read: the URL is secret."""
        path.touch(mode=0o600)
        fields = dataclasses.asdict(self) | {"folder": str(self.folder)}
        path.write_text(json.dumps(fields))

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read it from a file."""
        fields = json.loads(path.read_text())
        return cls(**(fields | {"folder": Path(fields["folder"])}))

    def share(self, process: int) -> list[int]:
        """The clients of one process."""
        return list(range(process, self.clients, self.processes))
