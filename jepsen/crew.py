"""The run's client processes: started, commanded, and started again when they died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jepsen.plan import Plan

_PAUSE = 0.05
_PATIENCE = 60.0
"""Seconds in which a process has to end."""


class Member:
    """One process of clients, through all of its lives.

    Its lock is held while it is started, killed or written to, so that a signal never
    meets a process that was collected already.
    """

    def __init__(
        self, plan: Plan, path: Path, number: int, environment: Mapping[str, str]
    ) -> None:
        self._command = [sys.executable, "-m", "jepsen.client", str(path)]
        self._clients = list(map(str, plan.share(number)))
        self._folder = plan.folder
        self._errors = plan.folder / f"process-{number}.log"
        self._environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **environment,
        }
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self.lives = 0

    def start(self) -> None:
        """Start it, once more if it ran before."""
        with self._lock, self._errors.open("ab") as errors:
            self._forget()
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [*self._command, str(self.lives), *self._clients],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=self._environment,
            )
            self.lives += 1

    @property
    def is_at_work(self) -> bool:
        """Whether one of its clients has begun something in this life."""
        return any(
            path.stat().st_size
            for client in self._clients
            for path in self._folder.glob(
                f"client-{int(client):03}-{self.lives - 1:05}.jsonl"
            )
        )

    def death(self) -> int | None:
        """Its exit status, if it has ended."""
        with self._lock:
            return self._process.poll() if self._process is not None else None

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; whether it was alive."""
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                return False
            process.send_signal(number)
            return True

    def tell(self, line: str) -> bool:
        """Write a command to it; whether it was alive."""
        with self._lock:
            return self._process is not None and _write(self._process.stdin, line)

    def end(self) -> str | None:
        """Let it end; the problem with its end, if any."""
        self.signal(signal.SIGCONT)
        self.tell("end")
        process = self._process
        assert process is not None
        try:
            code = process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"it does not end within {_PATIENCE:g} s, see {self._errors}"
        with self._lock:
            self._forget()
        return self.complaint(code)

    def complaint(self, code: int) -> str | None:
        """The problem with an unexpected end, if it is one."""
        if code in (0, -signal.SIGKILL):
            return None
        return f"it ended with status {code}, see {self._errors}"

    def kill(self) -> None:
        """SIGKILL, and wait for its end."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        """Close the pipe to a process that is not there any more."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


def _write(file: IO[bytes] | None, line: str) -> bool:
    assert file is not None
    if file.closed:
        return False
    with suppress(OSError):
        file.write(f"{line}\n".encode())
        file.flush()
        return True
    return False


class Crew:
    """All of them, and a thread that starts the dead again."""

    def __init__(
        self, plan: Plan, path: Path, environments: Sequence[Mapping[str, str]]
    ) -> None:
        self.members = [
            Member(plan, path, number, environment)
            for number, environment in enumerate(environments)
        ]
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._keeper = threading.Thread(target=self._keep)

    def start(self) -> None:
        """Start them all."""
        for member in self.members:
            member.start()
        self._keeper.start()

    def _keep(self) -> None:
        while not self._stop.wait(_PAUSE):
            for number, member in enumerate(self.members):
                code = member.death()
                if code is not None:
                    if complaint := member.complaint(code):
                        self.problems.append(f"client process {number}: {complaint}")
                    member.start()

    def end(self, *, killed: int | None = None) -> None:
        """Let all of them end; kill one of them instead."""
        self._stop.set()
        self._keeper.join()
        if killed is not None:
            self.members[killed].kill()
        for number, member in enumerate(self.members):
            if complaint := member.end():
                self.problems.append(f"client process {number}: {complaint}")

    def kill(self) -> None:
        """Kill all of them; idempotent."""
        self._stop.set()
        if self._keeper.ident is not None:
            self._keeper.join()
        for member in self.members:
            member.kill()
