"""A PostgreSQL server of one's own: for tests, benchmarks and trying things out.

It is made by ``initdb`` in a folder of its own, listens on a loopback port of its own
and on a Unix socket in that folder, and has a random password of its own. It ends
with the process that started it. PostgreSQL refuses to run as root: root's servers run
as the account ``postgres``, which Debian's package makes, and own their folder.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from benchmarks.targets.relocated import relocate
from tique_udfs import BuildError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USER = "tique"
DATABASE = "tique"

_ACCOUNT = "postgres"
_START_SECONDS = 300.0
"""It recovers first, if it was killed: again from the start if it is not let finish."""
_STOP_SECONDS = 30.0
_PAUSE = 0.02
_RESTART_PAUSE = 0.2
_PORTS = 5
"""The number of ports that are tried before the reason must be another one."""

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "logging_collector": "off",
}


class ClusterError(Exception):
    """The server cannot be made or started."""


class Cluster:
    """One server; a context manager that starts and stops it.

    Parameters
    ----------
    folder
        Where its data and its socket are. It is made if it does not exist, and must be
        one that the account ``postgres`` can reach if this process is root's.
    settings
        Settings that differ from ``postgresql.conf``.
    environment
        Additions to this process's environment, for the server.
    extension
        Whether the server is to have tique's extension, whatever is installed: its
        executable file is a copy (:mod:`benchmarks.targets.relocated`).
    auth
        How accounts log in, as ``pg_hba.conf`` has it.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        settings: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        extension: bool = False,
        auth: str = "scram-sha-256",
    ) -> None:
        self.folder = Path(folder).absolute()
        self.password = secrets.token_hex(16)
        self.port = 0
        self._auth = auth
        own = _SETTINGS | {"password_encryption": auth}
        self._settings = own | dict(settings or {})
        self._environment = dict(environment or {})
        self._has_extension = extension
        self._copy: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The URL of its database, over TCP."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    @property
    def socket_url(self) -> str:
        """The URL of its database, over the Unix socket."""
        return (
            f"postgresql://{USER}:{self.password}@/{DATABASE}"
            f"?host={self.folder}&port={self.port}"
        )

    @property
    def log(self) -> Path:
        """The file with the server's output."""
        return self.folder / "server.log"

    @property
    def pid(self) -> int:
        """The process of the running server."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> str:
        """Make the data if there is none, start the server, and return its URL.

        Raises
        ------
        ClusterError
            If PostgreSQL is not installed or does not start, or the extension cannot
            be compiled.
        """
        server = self._programs() / "postgres"
        data = self.folder / "data"
        is_new = not data.exists()
        if is_new:
            self._make(data)
        if self.port:
            self._serve_again(server, data)
        else:
            self._serve_first(server, data)
        if is_new:
            self.run("createdb", DATABASE)
        return self.url

    def stop(self) -> None:
        """End the server in order; idempotent."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End the server at once (an immediate shutdown): its next start recovers."""
        self._end(signal.SIGQUIT)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs against this server; return its output."""
        environment = {
            "PGHOST": str(self.folder),
            "PGPORT": str(self.port),
            "PGUSER": USER,
            "PGPASSWORD": self.password,
            "LC_ALL": "C.UTF-8",
        }
        return subprocess.run(  # noqa: S603
            [str(binaries() / program), *arguments],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def standby(self, folder: Path) -> Cluster:
        """A hot standby of this running server, made by a base backup; not started yet."""
        other = Cluster(folder, self._settings, extension=self._has_extension)
        other.password = self.password
        other.folder.mkdir(mode=0o700)
        data = str(other.folder / "data")
        self.run("pg_basebackup", "-D", data, "-R", "-X", "stream", "-c", "fast")
        if os.geteuid() == 0:
            account = _account()
            for path in (other.folder, *other.folder.rglob("*")):
                os.chown(path, account.pw_uid, account.pw_gid)
        return other

    def _programs(self) -> Path:
        """The folder of the server's executable file."""
        programs = binaries()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._has_extension:
            return programs
        if self._copy is None:
            folder = self.folder / "installation"
            shutil.rmtree(folder, ignore_errors=True)
            try:
                self._copy = relocate(programs, folder)
            except BuildError as error:
                raise ClusterError(str(error)) from error
        return self._copy

    def _make(self, data: Path) -> None:
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(self.password)
        if os.geteuid() == 0:
            account = _account()
            for path in (self.folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        made = subprocess.run(  # noqa: S603
            [
                *_as_account(),
                str(binaries() / "initdb"),
                f"--pgdata={data}",
                f"--username={USER}",
                f"--pwfile={secret}",
                f"--auth={self._auth}",
                "--encoding=UTF8",
                "--locale=C.UTF-8",
            ],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        secret.unlink()
        if made.returncode:
            raise ClusterError(f"initdb failed: {made.stderr.strip()}")

    def _serve_first(self, server: Path, data: Path) -> None:
        """Start it on a free port; another one if that is taken in between."""
        for _ in range(_PORTS):
            self.port = _free_port()
            if self._serve(server, data):
                return
        self.port = 0
        raise ClusterError(f"PostgreSQL does not start, see {self.log}")

    def _serve_again(self, server: Path, data: Path) -> None:
        """Start it on its port, which its clients know, once that is possible.

        PostgreSQL refuses to start while a child of a killed postmaster still has the
        shared memory; such a child ends when it next waits for its client.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not self._serve(server, data):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"PostgreSQL does not start again within {_START_SECONDS:g} s, "
                    f"see {self.log}"
                )
            time.sleep(_RESTART_PAUSE)

    def _serve(self, server: Path, data: Path) -> bool:
        """Start it; whether it serves, or ended instead."""
        options = {
            **self._settings,
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [
                    *_as_account(),
                    str(server),
                    "-D",
                    str(data),
                    *(f"--{name}={value}" for name, value in options.items()),
                ],
                cwd=self.folder,
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                return False
            with socket.socket(socket.AF_UNIX) as probe:
                if _is_ready(probe, self.folder / f".s.PGSQL.{self.port}"):
                    return True
            time.sleep(_PAUSE)
        self.kill()
        raise ClusterError(
            f"PostgreSQL does not serve within {_START_SECONDS:g} s, see {self.log}"
        )

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def binaries() -> Path:
    """The folder of PostgreSQL's programs, the newest release's if there are several.

    Raises
    ------
    ClusterError
        If it is not installed.
    """
    found = shutil.which("postgres")
    if found is not None:
        return Path(found).resolve().parent
    releases = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"),
        key=lambda path: int(path.parts[-3]),
    )
    if not releases:
        raise ClusterError(
            "PostgreSQL's server is not installed (apt-get install postgresql)"
        )
    return releases[-1].parent


def _account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_ACCOUNT)
    except KeyError:
        raise ClusterError(
            f"root's servers run as the account {_ACCOUNT!r}, which there is not"
        ) from None


def _as_account() -> Sequence[str]:
    """Return a command's prefix: it ends with this process and does not run as root."""
    words = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() == 0:
        account = _account()
        words += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}"]
        words.append("--init-groups")
    return words


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_ready(probe: socket.socket, path: Path) -> bool:
    """Whether the server takes connections, not whether it is about to."""
    # It asks for the password once it is ready, and answers 57P03 before.
    try:
        probe.settimeout(_START_SECONDS)
        probe.connect(str(path))
        body = b"\x00\x03\x00\x00user\x00" + USER.encode() + b"\x00\x00"
        probe.sendall((len(body) + 4).to_bytes(4, "big") + body)
        answer = probe.recv(1024)
    except OSError:
        return False
    return answer.startswith(b"R")
