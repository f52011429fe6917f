"""MonetDB's libraries, fetched once.

They are in the ``monetdbe`` wheel for CPython 3.10, which no other Python installs;
but the libraries in it are plain shared objects that any process can open.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tique_backends.monetdb.server.errors import ServerError
from tique_udfs.folders import FolderError, find_cached, writable_cache_folder

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
