"""The interface of the system that a run works on, besides its URL."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, ClassVar

import tique

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

    from jepsen.faultpoints import FaultPoints
    from jepsen.workloads.base import Workload


class Unusable(Exception):
    """The system cannot be used as it was asked for."""


class System(ABC):
    """One database, which clients reach by its URL.

    Parameters
    ----------
    url
        As it was given: a scheme and a colon alone (``postgresql:``) is a database of
        the run's own.
    folder
        Where the run's files are.
    """

    is_embedded: ClassVar[bool] = False
    """Whether one process owns the database: all clients are threads of it."""
    workloads: ClassVar[Collection[type[Workload]] | None] = None
    """Those that can be run on it; None: all."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder

    @classmethod
    def expect(cls, workload: type[Workload]) -> None:
        """Refuse a workload that cannot be run on it."""
        if cls.workloads is not None and workload not in cls.workloads:
            names = ", ".join(each.name for each in cls.workloads)
            raise Unusable(f"on this system there are, at level snapshot: {names}")

    @property
    @abstractmethod
    def is_own(self) -> bool:
        """Whether there is a server that this run may kill."""

    @abstractmethod
    def start(self, environment: Mapping[str, str]) -> None:
        """Start the system if it is the run's own, with more in its environment."""

    def create(self, workload: type[Workload]) -> None:
        """Make a workload's tables, and the rows that are there from the start."""
        with tique.connect(self.url) as connection:
            workload.create(connection)

    @abstractmethod
    def crash(self, chance: random.Random) -> str:
        """Kill the server, or part of it, and have it serve again; the killed part."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the system if it is the run's own."""

    @classmethod
    @abstractmethod
    def instrument(cls, points: FaultPoints) -> None:
        """Lead every call to the engine of this process through fault points."""


def sever(wire: socket.socket, moment: str) -> None:
    """Cut a connection around a call.

    Of a connection that is cut ``amid`` a call the request still goes out, but nothing
    comes back.
    """
    with suppress(OSError):
        if moment == "amid":
            _deafen(wire)
            wire.shutdown(socket.SHUT_RD)
        else:
            wire.shutdown(socket.SHUT_RDWR)


_SO_ATTACH_FILTER = 26
_DROP_ALL = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A packet filter of one instruction: keep 0 bytes (Linux's ``struct sock_filter``)."""


def _deafen(wire: socket.socket) -> None:
    """Drop all packets that arrive from now on.

    Linux hands out bytes that reach a TCP socket after it was shut down for reading, if
    they are there before a read asks for them: a quick server's reply would be read.
    """
    program = ctypes.create_string_buffer(_DROP_ALL)
    wire.setsockopt(
        socket.SOL_SOCKET,
        _SO_ATTACH_FILTER,
        struct.pack("HP", 1, ctypes.addressof(program)),
    )


@contextmanager
def surroundings(changes: Mapping[str, str]) -> Iterator[None]:
    """Add variables to the environment of processes that are started within."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]
