"""The clients' records, and the one history that is made of them.

*Writers.* Every client (a thread of some process) appends lines to a file of its own:
one before it begins an operation, one after the operation's outcome is there. A line is
one ``os.write`` without a buffer, so that a line written before SIGKILL is in the
kernel and stays.

*Clock.* CLOCK_MONOTONIC is one clock for all processes of a machine. No program can set
it, and the ``clock`` nemesis, which shifts a process's CLOCK_REALTIME, leaves it alone.

*Why the order holds.* Operation A precedes B in the history if A's completion comes
before B's invocation. The completion's time is read after ``commit()`` returned, the
invocation's before the client touches its connection. So whenever the history says that
A precedes B, A had returned before B began: the history never claims more than the truth.
It may claim less, by the time between an event and its stamp. Of two equal stamps the
invocation goes first, which claims that the two were concurrent.

*If the client dies.* On its way to the first line: the line is torn or missing, and the
operation never began, because the line comes first. Between the lines: the operation is
open. In the second line: it is torn, which is the same. A killed client's request may
still be on its way in the server, so an open operation is closed with ``info`` at the
end of the history and not when the client died. Reads after that may or may not see it.

*Processes.* The history's processes are single-threaded and never go on after an ``info``.
A client's number stands for all of its lives; after an ``info`` or a death it goes on as
the process whose number is larger by the number of clients.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

OUTCOMES = ("ok", "fail", "info")


class Recorder:
    """One client's file; for one thread.

    Parameters
    ----------
    folder
        Where the run's files are.
    client
        The client's number.
    life
        How often its process was started before.
    """

    def __init__(self, folder: Path, client: int, life: int) -> None:
        self._file = os.open(
            folder / f"client-{client:03}-{life:05}.jsonl",
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND,
            0o644,
        )

    def invoke(self, f: str, value: Any) -> None:
        """Say that an operation is about to begin."""
        self._write("invoke", f, value, None)

    def complete(self, kind: str, f: str, value: Any, error: str | None = None) -> None:
        """Record its outcome: one of :data:`OUTCOMES`."""
        self._write(kind, f, value, error)

    def _write(self, kind: str, f: str, value: Any, error: str | None) -> None:
        line = json.dumps([time.monotonic_ns(), kind, f, value, error])
        os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


@dataclass(frozen=True)
class Event:
    """A line of the history, before it has an index.

    Attributes
    ----------
    time
        Nanoseconds of CLOCK_MONOTONIC.
    client, process
        One client is several processes, one after the other.
    kind
        ``invoke`` or one of :data:`OUTCOMES`.
    f, value
        The operation.
    error
        Why it failed, or is not known.
    """

    time: int
    client: int
    process: int
    kind: str
    f: str
    value: Any
    error: str | None = None


def merge(folder: Path, clients: int) -> list[Event]:
    """Make one history of all clients' files.

    Parameters
    ----------
    folder
        Where they are.
    clients
        How many clients there are; other writers of files count from there on.

    Returns
    -------
    list of Event
        In the order of the history.
    """
    lives: dict[int, list[Path]] = {}
    for path in sorted(folder.glob("client-*.jsonl")):
        lives.setdefault(int(path.name.split("-")[1]), []).append(path)
    stride = max(clients, *(number + 1 for number in lives), 1)
    events: list[Event] = []
    unfinished: list[Event] = []
    for client, paths in lives.items():
        process = client
        for path in paths:
            is_open: Event | None = None
            for time_, kind, f, value, error in _lines(path):
                event = Event(time_, client, process, kind, f, value, error)
                events.append(event)
                is_open = event if kind == "invoke" else None
                if kind == "info":
                    process += stride
            if is_open is not None:
                unfinished.append(is_open)
                process += stride
    # Of equal times invocations come first.
    events.sort(key=lambda event: (event.time, event.kind != "invoke"))
    end = events[-1].time if events else 0
    events += (
        Event(end, each.client, each.process, "info", each.f, each.value, "killed")
        for each in sorted(unfinished, key=lambda event: event.time)
    )
    return events


def _lines(path: Path) -> Iterator[list[Any]]:
    """The whole lines of a file."""
    text = path.read_bytes()
    whole, _, _ = text.rpartition(b"\n")
    for line in whole.splitlines():
        yield json.loads(line)


def count(events: Iterable[Event]) -> dict[str, dict[str, int]]:
    """How often each operation ended how."""
    found: dict[str, dict[str, int]] = {}
    for event in events:
        if event.kind != "invoke":
            row = found.setdefault(event.f, dict.fromkeys(OUTCOMES, 0))
            row[event.kind] += 1
    return found
