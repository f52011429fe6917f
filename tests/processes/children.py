"""Processes that a test starts, talks to and kills."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Self

from tests.effort import patience


class ChildProcess:
    """A Python module that runs in a process of its own; its lines are collected."""

    def __init__(self, module: str, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[list[str]] = []
        self.errors = ""
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read_lines),
            threading.Thread(target=self._read_errors),
        ]
        for reader in self._readers:
            reader.start()

    def _read_lines(self) -> None:
        for line in self._process.stdout:
            with self._news:
                self.lines.append(line.split())
                self._news.notify_all()

    def _read_errors(self) -> None:
        self.errors = self._process.stderr.read()

    def write(self, text: str) -> None:
        """Write to its standard input."""
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def await_lines(self, kind: str, count: int = 1, timeout: float = 60) -> list[str]:
        """Wait for so many lines of a kind; the last one, without its kind."""
        with self._news:
            there = self._news.wait_for(
                lambda: len(self.of_kind(kind)) >= count, patience(timeout)
            )
        if not there:
            self.kill()
        assert there, f"no {kind!r} from the child: {self.lines[-3:]} {self.errors}"
        return self.of_kind(kind)[-1]

    def of_kind(self, kind: str) -> list[list[str]]:
        """The lines of one kind, without it."""
        return [line[1:] for line in self.lines if line[0] == kind]

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def end(self, timeout: float = 30) -> None:
        """Close its standard input and wait for its end."""
        self._process.stdin.close()
        self._process.wait(patience(timeout))
        self._collect()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait(patience(10))
        self._collect()

    def _collect(self) -> None:
        for reader in self._readers:
            reader.join(10)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self.kill()
