"""A server as a process of its own, started and stopped by this one."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from typing import IO, TYPE_CHECKING

from tique_backends.monetdb.server.errors import ServerError
from tique_backends.monetdb.server.folder import LOG

if TYPE_CHECKING:
    from types import TracebackType

_START_SECONDS = 120
_STOP_SECONDS = 60


class MonetDBServer:
    """A MonetDB server that ends with this object, or with this process.

    Parameters
    ----------
    directory
        The server's folder; a new one gets a new database.
    port
        The TCP port on the loopback address; 0 for any that is free.
    socket
        The path of a Unix socket to listen on in place of TCP.
    sequencer
        Whether it has tique's module; an unprepared server has not, and one process at
        a time can use it.

    Examples
    --------
    >>> with MonetDBServer("/tmp/server") as server:
    ...     print(server.url)
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        port: int = 0,
        socket: str | os.PathLike[str] | None = None,
        sequencer: bool = True,
    ) -> None:
        self._arguments = [os.fspath(directory), f"--port={port}"]
        if not sequencer:
            self._arguments.append("--no-sequencer")
        if socket is not None:
            self._arguments.append(f"--socket={os.fspath(socket)}")
        self._process: subprocess.Popen[str] | None = None
        self._parent = 0
        self._url = ""

    @property
    def url(self) -> str:
        """The running server's URL, with its password.

        Raises
        ------
        ServerError
            If it does not run, with its status and log if it ended by itself.
        """
        self._running()
        return self._url

    @property
    def pid(self) -> int:
        """The running server's process id."""
        return self._running().pid

    def start(self) -> str:
        """Start the server and return its URL when it takes connections.

        Raises
        ------
        ServerError
            If it does not start, with its output.
        """
        if self._process is not None:
            raise ServerError("the server was started already")
        self._parent = os.getpid()
        self._process = process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", __package__ or "", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert process.stdout is not None
        self._url = _first_line(process.stdout, _START_SECONDS)
        if not self._url:
            process.kill()
            _, message = process.communicate()
            self._process = None
            raise ServerError(message.strip() or "the server did not start in time")
        return self._url

    def stop(self) -> None:
        """Stop the server; it gives running queries ten seconds. Idempotent.

        Raises
        ------
        ServerError
            If it did not end by itself, or had crashed.
        """
        process, self._process = self._process, None
        if process is None:
            return
        try:
            # The lifeline ends.
            process.communicate(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if process.returncode not in (0, -signal.SIGALRM):
            raise ServerError(f"the server ended with status {process.returncode}")

    def kill(self) -> None:
        """Kill the server as a crash would, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            raise ServerError("the server does not run")
        process.kill()
        process.communicate()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise ServerError("the server does not run")
        # In a forked child the server is no child, and seems to have ended.
        is_parent = os.getpid() == self._parent
        if is_parent and (status := self._process.poll()) is not None:
            log = os.path.join(self._arguments[0], LOG)
            raise ServerError(f"the server ended with status {status}; see {log}")
        return self._process

    def __enter__(self) -> MonetDBServer:
        """Start the server."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop it."""
        self.stop()


def _first_line(output: IO[str], seconds: float) -> str:
    """The first line, or nothing if the output ends or the time is up before it."""
    readable, _, _ = select.select([output], [], [], seconds)
    return output.readline().strip() if readable else ""
