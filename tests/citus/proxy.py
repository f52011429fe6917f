"""A way from Citus' coordinator to a worker on which the worker dies at a chosen message."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PIECE = 1 << 16


class Proxy:
    """Forwards connections to a port of this machine; a context manager.

    Parameters
    ----------
    port
        The worker's.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._word = b""
        self._skips = 0
        self._kill: Callable[[], None] | None = None
        self.fired = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, word: bytes, kill: Callable[[], None], skips: int = 0) -> None:
        """Call ``kill`` in place of forwarding the next message with ``word``.

        After so many that it ``skips``.
        """
        with self._lock:
            self._word, self._kill, self._skips = word, kill, skips
            self.fired.clear()

    def disarm(self) -> None:
        """Forward all messages again."""
        with self._lock:
            self._kill = None

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                for source, target, watched in (
                    (client, server, True),
                    (server, client, False),
                ):
                    threading.Thread(
                        target=self._pump, args=(source, target, watched), daemon=True
                    ).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, watched: bool
    ) -> None:
        # The other direction's thread closes its own source.
        with source:
            with suppress(OSError):
                while data := source.recv(_PIECE):
                    if watched and self._fires(data):
                        break
                    target.sendall(data)
            for each in (source, target):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _fires(self, data: bytes) -> bool:
        with self._lock:
            if self._kill is None or self._word not in data:
                return False
            if self._skips:
                self._skips -= 1
                return False
            kill, self._kill = self._kill, None
            kill()
            self.fired.set()
            return True
