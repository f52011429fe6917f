"""The server's process: started, listening, told to stop.

Signals: until the database is up they kill the process, which MonetDB's log is made
for. Then they, or the end of the lifeline, ask for a clean stop. MonetDB waits for
queries that run; if they take too long, an alarm kills the process.

*MonetDB's libraries, fetched once.*
They are in the ``monetdbe`` wheel for CPython 3.10, which no other Python installs;
but the libraries in it are plain shared objects that any process can open.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import select
import signal
import socket as sockets
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

from tique_backends.monetdb.server.errors import ServerError
from tique_backends.monetdb.server.folder import DATABASE, ServerFolder
from tique_backends.monetdb.server.mserver import MServer
from tique_udfs import BuildError, PythonSequencer, sequencer_choice
from tique_udfs.build import build
from tique_udfs.folders import FolderError, find_cached, writable_cache_folder
from tique_udfs.monetdb import register

if TYPE_CHECKING:
    from collections.abc import Callable


_logger = logging.getLogger("tique.sequencer")

USER = "monetdb"
_ADDRESS = "127.0.0.1"
_NO_PORT = -1
_MAX_CLIENTS = 256
_STOP_SECONDS = 10
_SOCKET_BYTES = 107
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(
    directory: str | os.PathLike[str],
    *,
    port: int = 0,
    socket: str | os.PathLike[str] | None = None,
    sequencer: bool = True,
    ready: Callable[[str], None],
    lifeline: int | None = None,
) -> NoReturn:
    """Run a MonetDB server in this process, which it ends.

    Parameters
    ----------
    directory
        The server's folder; a new one gets a new database.
    port
        The TCP port on the loopback address; 0 for any that is free.
    socket
        The path of a Unix socket to listen on in place of TCP.
    sequencer
        Whether it has tique's module.
    ready
        Called with the server's URL when it takes connections.
    lifeline
        A file descriptor: the server stops when it comes to its end.

    Raises
    ------
    ServerError
        If the folder is in use, the port or socket is taken, or MonetDB does not
        start. Nothing runs then, but this process must not try again.
    """
    path = None if socket is None else _free_socket(Path(socket).absolute())
    if path is None:
        _check_port(port)
    monetdb = MServer(monetdb_libraries())
    folder = ServerFolder(directory)
    os.umask(0o077)
    _divert_output(folder.log)
    module = _load_sequencer(monetdb) if sequencer else None
    monetdb.start(
        folder.database,
        folder.password,
        {
            "mapi_listenaddr": _ADDRESS,
            "mapi_port": str(port if path is None else _NO_PORT),
            "mapi_usock": "" if path is None else str(path),
            "max_clients": str(_MAX_CLIENTS),
            "sql_optimizer": "default_pipe",
        },
    )
    waking, awake = os.pipe()
    os.set_blocking(awake, False)
    for number in _STOPPING:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(awake)
    ready(_url(folder, path))
    select.select([waking] if lifeline is None else [waking, lifeline], [], [])
    signal.alarm(_STOP_SECONDS)
    # MonetDB may call into it up to here.
    del module
    monetdb.stop()


def _free_socket(path: Path) -> Path:
    """Refuse a path that a process listens on; a dead server's leftover is free."""
    if len(os.fsencode(path)) > _SOCKET_BYTES:
        raise ServerError(f"a socket's path has at most {_SOCKET_BYTES} bytes: {path}")
    if not path.parent.is_dir():
        raise ServerError(f"there is no folder {path.parent} for the socket")
    if path.exists() and not path.is_socket():
        raise ServerError(f"{path} exists and is no socket")
    with sockets.socket(sockets.AF_UNIX) as probe, suppress(OSError):
        probe.connect(str(path))
        raise ServerError(f"another server listens on {path}")
    return path


def _check_port(port: int) -> None:
    """Refuse a port that is taken; MonetDB would take another or none."""
    with sockets.socket() as probe:
        probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        try:
            probe.bind((_ADDRESS, port))
        except (OSError, OverflowError) as error:
            raise ServerError(f"cannot listen on {_ADDRESS}:{port}: {error}") from None


def _divert_output(log: Path) -> None:
    """Send MonetDB's output to a file; Python's own output stays where it is."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, name in ((1, "stdout"), (2, "stderr")):
        getattr(sys, name).flush()
        setattr(sys, name, os.fdopen(os.dup(number), "w", buffering=1))
        os.dup2(file, number)
    os.close(file)


def _url(folder: ServerFolder, socket: Path | None) -> str:
    who = f"monetdb://{USER}:{folder.password}@"
    if socket is not None:
        return f"{who}/{DATABASE}?sock={quote(str(socket))}"
    # MonetDB writes down where it listens: "mapi:monetdb://localhost:PORT/".
    try:
        line = (folder.database / ".conn").read_text().split()[0]
        port = int(line.rstrip("/").rpartition(":")[2])
    except (OSError, IndexError, ValueError):
        raise ServerError(
            f"MonetDB started but does not listen; see {folder.log}"
        ) from None
    return f"{who}{_ADDRESS}:{port}/{DATABASE}"


def _load_sequencer(monetdb: MServer) -> object:
    """Give MonetDB the module that tique's SQL functions call, before it starts.

    ``TIQUE_SEQUENCER`` chooses as it does for :func:`tique_udfs.open_sequencer`.

    Returns
    -------
    object
        References that must be kept for as long as the server runs.

    Raises
    ------
    ServerError
        If the sequencer in C is asked for and cannot be had.
    """
    try:
        choice = sequencer_choice()
        if choice != "python":
            return ctypes.CDLL(os.fspath(build("monetdb")), mode=ctypes.RTLD_GLOBAL)
    except ValueError as error:
        raise ServerError(str(error)) from error
    except (BuildError, OSError) as error:
        if choice == "c":
            raise ServerError(str(error)) from error
        _logger.warning("the server's sequencer is the slower one in Python: %s", error)
    sequencer = PythonSequencer("MonetDB")
    return register(sequencer, monetdb.interpreter, monetdb.kernel)


_PACKAGE = "monetdbe==0.11"
_SHA256 = "4f42d6328ac2ffddc6de07271671431c90c40c5560ce4790e789a24ef6dfa55d"
_INSIDE = "monetdbe.libs/"
_NAME = f"monetdb-11.41.14-{_SHA256[:12]}"
_DOWNLOAD_SECONDS = 300


def monetdb_libraries() -> Path:
    """Return the folder with MonetDB's shared libraries, fetching them if need be.

    Several processes may fetch at once: a folder appears whole or not at all.

    Raises
    ------
    ServerError
        If this machine is not Linux on x86-64 with glibc, the package cannot be
        fetched or is not the known one, or there is no folder to keep it in.
    """
    cached = find_cached(_NAME)
    if cached is not None:
        return cached
    system, machine = platform.system(), platform.machine()
    if (system, machine, platform.libc_ver()[0]) != ("Linux", "x86_64", "glibc"):
        raise ServerError(
            "the bundled MonetDB is for Linux with glibc on x86-64, this is "
            f"{system} on {machine}; use a MonetDB server of your own"
        )
    try:
        folder = writable_cache_folder("MonetDB's libraries")
        with tempfile.TemporaryDirectory(dir=folder) as work:
            fresh = _unpack(_download(Path(work)), Path(work) / _NAME)
            return _keep(fresh, folder / _NAME)
    except FolderError as error:
        raise ServerError(str(error)) from error
    except OSError as error:
        raise ServerError(
            f"cannot keep MonetDB's libraries: {error.strerror}"
        ) from error


def _download(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", _PACKAGE, "--no-deps"]
    command += ["--only-binary=:all:", "--python-version=3.10", "--abi=cp310"]
    command += ["--implementation=cp", "--platform=manylinux2014_x86_64"]
    command += ["--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 - pip of this environment, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_DOWNLOAD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ServerError(
            f"pip did not fetch {_PACKAGE} within {_DOWNLOAD_SECONDS} seconds"
        ) from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise ServerError(
            f"pip could not fetch {_PACKAGE}, which has MonetDB's libraries: "
            f"{done.stdout.strip()}"
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    """Take the libraries out of a wheel that is the known one, byte for byte."""
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != _SHA256:
        raise ServerError(f"{wheel.name} is not the file that was expected")
    target.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            if member.startswith(_INSIDE) and not member.endswith("/"):
                (target / Path(member).name).write_bytes(archive.read(member))
    return target


def _keep(fresh: Path, target: Path) -> Path:
    try:
        fresh.rename(target)
    except OSError:
        # Another process was first, and its folder is as good.
        if not target.is_dir():
            raise
    return target
