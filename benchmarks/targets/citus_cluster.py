"""A coordinator and workers of Citus of one's own, on this machine.

``make citus`` builds the extension. Each node is a :class:`Cluster`; all have one password, which
they log in to each other with.
"""

from __future__ import annotations

import os
import pwd
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psycopg

from benchmarks.targets.cluster import DATABASE, USER, Cluster, binaries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_prepared_transactions": "300",
    "max_connections": "300",
    "citus.node_conninfo": "sslmode=disable",
    # A transaction that a worker's death left prepared is looked for each second.
    "citus.recover_2pc_interval": "1s",
    "citus.shard_count": "8",
}


def is_installed() -> bool:
    """Whether the server that clusters run has the extension."""
    return any(binaries().parent.glob("share/extension/citus.control")) or any(
        Path("/usr/share/postgresql").glob(
            f"{binaries().parent.name}/extension/citus.control"
        )
    )


class CitusCluster:
    """A context manager that starts and stops them.

    Parameters
    ----------
    folder
        Where their data is: as :class:`Cluster` takes it.
    workers
        How many there are beside the coordinator.
    settings
        Settings that differ, of all nodes.
    extension
        Whether the coordinator is to have tique's extension.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        workers: int = 2,
        settings: Mapping[str, str] | None = None,
        *,
        extension: bool = True,
    ) -> None:
        self.folder = Path(folder).absolute()
        self._password = secrets.token_hex(16)
        own = {**_SETTINGS, **(settings or {})}
        names = [
            "coordinator",
            *(f"worker{number}" for number in range(1, workers + 1)),
        ]
        self.nodes = [
            Cluster(
                self.folder / name,
                own,
                {"PGPASSFILE": str(self.folder / "passwords")},
                extension=extension and name == "coordinator",
                auth="md5",
            )
            for name in names
        ]
        for node in self.nodes:
            node.password = self._password
        self.way: Callable[[Cluster], int] = lambda worker: worker.port
        """The port at which the other nodes reach a worker."""

    @property
    def coordinator(self) -> Cluster:
        """The node that clients connect to."""
        return self.nodes[0]

    @property
    def workers(self) -> list[Cluster]:
        """The nodes with the shards."""
        return self.nodes[1:]

    @property
    def url(self) -> str:
        """The URL of the coordinator's database, over TCP."""
        return self.coordinator.url

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> str:
        """Make the data, start all nodes, and let them know of each other.

        Raises
        ------
        ClusterError
            As :meth:`Cluster.start`.
        """
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        secret = self.folder / "passwords"
        secret.touch(mode=0o600)
        secret.write_text(f"*:*:*:*:{self._password}\n")
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            for path in (self.folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        with ExitStack() as stack:
            for node in self.nodes:
                stack.callback(node.stop)
                node.start()
            self.join(DATABASE)
            stack.pop_all()
        return self.url

    def join(self, database: str) -> None:
        """Make a database on all nodes, if there is none, in which they work together."""
        for node in self.nodes:
            if database != DATABASE:
                node.run("createdb", database)
            self._run(node, database, "CREATE EXTENSION citus")
        port = self.coordinator.port
        self._run(
            self.coordinator,
            database,
            f"SELECT citus_set_coordinator_host('127.0.0.1', {port})",
            *(
                f"SELECT citus_add_node('127.0.0.1', {self.way(worker)})"
                for worker in self.workers
            ),
        )

    def drop(self, database: str) -> None:
        """Drop a database on all nodes."""
        for node in self.nodes:
            node.run("dropdb", "--force", database)

    @staticmethod
    def _run(node: Cluster, database: str, *statements: str) -> None:
        place = f"postgresql://{USER}:{node.password}@127.0.0.1:{node.port}/{database}"
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)

    def stop(self) -> None:
        """End all nodes in order; idempotent."""
        for node in self.nodes:
            node.stop()


if __name__ == "__main__":
    raise SystemExit(not is_installed())
