"""A server's folder: its lock, its password, its database.

The lock is an ``flock`` on a file: it goes with the process that holds it, however
that ends. The password is on disk before the database exists, and the database is
made with it: whatever moment a first start dies at, the next one finds either no
database or one with this password, and never is there one with MonetDB's default.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from tique_backends.monetdb.server.errors import ServerError

DATABASE = "tique"
"""The database's name: MonetDB takes the last part of its folder's path for it."""

LOG = "server.log"
"""The file with MonetDB's output."""

_LOCK, _PASSWORD = "lock", "password"


class ServerFolder:
    """One folder, locked by this process until it ends.

    Parameters
    ----------
    directory
        The folder. It is made if it does not exist.

    Raises
    ------
    ServerError
        If another server runs on the folder, or it holds something else.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.path = Path(directory).absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            names = {entry.name for entry in self.path.iterdir()}
            if names and _LOCK not in names:
                raise ServerError(
                    f"{self.path} holds something that is not tique's MonetDB server; "
                    "name an empty folder or a new one"
                )
            self._lock()
            self.password = self._password()
        except OSError as error:
            raise ServerError(f"cannot use {self.path}: {error.strerror}") from error

    @property
    def database(self) -> Path:
        """MonetDB's own folder."""
        return self.path / DATABASE

    @property
    def log(self) -> Path:
        """The file with MonetDB's output."""
        return self.path / LOG

    def _lock(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(self.path / _LOCK, flags, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._descriptor, 20).decode(errors="replace").strip()
            os.close(self._descriptor)
            raise ServerError(
                f"a server runs on {self.path} already (process {holder or '?'})"
            ) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def _password(self) -> str:
        file = self.path / _PASSWORD
        if file.exists():
            return file.read_text().strip()
        if self.database.exists():
            raise ServerError(
                f"{file} is gone, and with it the password of the database in "
                f"{self.path}"
            )
        password = secrets.token_hex(16)
        fresh = file.with_suffix(".new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(fresh, flags, 0o600), "w") as opened:
            opened.write(password + "\n")
            opened.flush()
            os.fsync(opened.fileno())
        fresh.replace(file)
        return password
