"""A PostgreSQL server, the run's own or an existing one."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from typing_extensions import override

from benchmarks.targets.cluster import Cluster, ClusterError
from jepsen.systems.base import System, Unusable, sever, surroundings

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

    from jepsen.faultpoints import FaultPoints


_STOP_SECONDS = 10.0
_PAUSE = 0.001


class PostgreSQL(System):
    """A server, in a folder of its own that its account can reach.

    ``postgresql:?sequencer=plain`` is one without tique's extension.
    """

    _scheme = "postgresql:"
    """What a URL of the run's own server begins with."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url, folder)
        scheme, _, self._options = url.partition("?")
        self._cluster: Cluster | None = None
        self._parent: Path | None = None
        if scheme == self._scheme:
            self._parent = Path(tempfile.mkdtemp(prefix="tique-jepsen-"))
            self._parent.chmod(0o755)
            self._cluster = self._prepare(
                self._parent / "server",
                extension="sequencer=plain" not in self._options,
            )
        self._environment: Mapping[str, str] = {}
        # A server ends with the thread that started it, and a nemesis ends early.
        self._starter = ThreadPoolExecutor(1)

    def _prepare(self, folder: Path, *, extension: bool) -> Cluster:
        """The run's own server, which clients connect to."""
        return Cluster(folder, extension=extension)

    @property
    @override
    def is_own(self) -> bool:
        """Whether it is the run's own."""
        return self._cluster is not None

    @override
    def start(self, environment: Mapping[str, str]) -> None:
        """Start the server."""
        if self._cluster is None:
            return
        self._environment = environment
        try:
            self._begin()
        except ClusterError as error:
            raise Unusable(str(error)) from error
        self.url = "&".join(filter(None, (self._cluster.socket_url, self._options)))

    def _begin(self) -> None:
        """Start what there is for the first time."""
        assert self._cluster is not None
        self._serve(self._cluster.start)

    def _serve(self, start: Callable[[], object]) -> None:
        with surroundings(self._environment):
            self._starter.submit(start).result()

    @override
    def crash(self, chance: random.Random) -> str:
        """SIGKILL one session, at which the server restarts itself, or all of it."""
        if self._cluster is None:
            raise Unusable("the server is not the run's own")
        return self._crash(self._cluster, chance)

    def _crash(self, node: Cluster, chance: random.Random, away: float = 0.0) -> str:
        """The same of one server; all of it is away for so many seconds."""
        if chance.random() < 0.5 and _kill_session(node, chance):
            return "session"
        kill_all(node.pid)
        node.kill()
        time.sleep(away)
        self._serve(node.start)
        return "server"

    @override
    def stop(self) -> None:
        """Stop the server, keep its log, and remove its data."""
        if self._cluster is not None:
            self._end({"server": self._cluster})

    def _end(self, nodes: Mapping[str, Cluster]) -> None:
        """Stop servers, keep their logs by these names, and remove the data of all."""
        assert self._parent is not None
        for node in nodes.values():
            node.stop()
        self._starter.shutdown()
        for name, node in nodes.items():
            if node.log.exists():
                shutil.copyfile(node.log, self._folder / f"{name}.log")
        shutil.rmtree(self._parent)

    @classmethod
    @override
    def instrument(cls, points: FaultPoints) -> None:
        """Change psycopg's cursors, for this process."""
        cursors: Any = psycopg.Cursor
        genuine_execute, genuine_copy = cursors.execute, cursors.copy

        def execute(cursor: Any, *arguments: Any, **options: Any) -> Any:
            with points.passing(lambda moment: _cut(cursor.connection, moment)):
                return genuine_execute(cursor, *arguments, **options)

        @contextmanager
        def copy(cursor: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
            with (
                points.passing(lambda moment: _cut(cursor.connection, moment)),
                genuine_copy(cursor, *arguments, **options) as copying,
            ):
                yield copying

        cursors.execute, cursors.copy = execute, copy


def _kill_session(node: Cluster, chance: random.Random) -> bool:
    with (
        # A session that has ended by itself, and the effect of the kill on this one.
        suppress(ProcessLookupError, psycopg.OperationalError),
        psycopg.connect(node.socket_url, autocommit=True) as connection,
    ):
        sessions = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() ORDER BY pid"
        ).fetchall()
        if not sessions:
            return False
        os.kill(chance.choice(sessions)[0], signal.SIGKILL)
        # One that had ended just before crashes nothing: no session misses it.
        connection.execute("SELECT pg_sleep(5)")
        return False
    return True


def _cut(connection: psycopg.Connection[Any], moment: str) -> None:
    # The file stays libpq's: a copy of its number is shut down and closed.
    with (
        suppress(psycopg.Error, OSError),
        socket.socket(fileno=os.dup(connection.fileno())) as wire,
    ):
        sever(wire, moment)


def kill_all(postmaster: int) -> None:
    """SIGKILL a postmaster and all its children, of which none is to be left.

    It is stopped first: a child that it forked after its children were listed would
    keep the shared memory, and no server starts beside that.
    """
    os.kill(postmaster, signal.SIGSTOP)
    deadline = time.monotonic() + _STOP_SECONDS
    while not _is_stopped(postmaster) and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    for process in (postmaster, *map(int, children.split())):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _is_stopped(process: int) -> bool:
    # The state comes after the name, which may have blanks and parentheses in it.
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


SYSTEM = PostgreSQL
