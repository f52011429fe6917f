"""Compile the sequencer once, and keep it in a cache folder.

For DuckDB the result is one shared object for two doors: ctypes opens it, and DuckDB
loads it as an extension, for which it ends with a footer that DuckDB reads. For
MonetDB it is a module that the server opens. A compiler is all it takes; no header or
library of an engine is needed. PostgreSQL's extension is the exception, see
:mod:`tique_udfs.pgxs`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import pgxs
from ._tools import BuildError, run_tool
from .folders import FolderError, find_cached, writable_cache_folder

__all__ = ["BuildError", "build", "duckdb_platform"]

_HERE = Path(__file__).parent
_FLAGS = (
    "-std=c11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-pthread",
    "-Wall",
    "-Wextra",
)
_DUCKDB_ABI = "C_STRUCT"
_DUCKDB_API_VERSION = "v1.2.0"


class _Target(NamedTuple):
    """What is compiled for an engine, and under which name it is kept."""

    folders: tuple[str, ...]
    name: str
    has_footer: bool


_TARGETS = {
    # DuckDB derives the entry point's name from what precedes the first dot.
    "duckdb": _Target(("core", "duckdb"), "tique.{}.duckdb_extension", True),
    "monetdb": _Target(("core", "monetdb"), "lib_tique.{}.so", False),
}


def build(target: str = "duckdb", *, force: bool = False) -> Path:
    """Return the compiled sequencer, compiling it when it is not in the cache.

    The file's name holds a hash of the sources, the compiler's flags and the
    platform, so an upgrade compiles anew and old files do no harm. Several
    processes may build at once. For the folder see :mod:`tique_udfs.folders`; one
    that other users may write to is never used. The compiler is ``$CC``, else
    ``cc``.

    Parameters
    ----------
    target
        The engine to build for: ``"duckdb"``, ``"monetdb"`` or ``"postgresql"``.
    force
        Compile even when the cache has the file.

    Returns
    -------
    pathlib.Path
        The absolute path of the shared object.

    Raises
    ------
    BuildError
        No compiler, a compiler's error (with its output), or no folder that can
        be written.
    """
    if target == "postgresql":
        return pgxs.build(force=force)
    chosen = _TARGETS.get(target)
    if chosen is None:
        raise BuildError(
            f"there is no build for {target!r}; targets: "
            f"{', '.join([*_TARGETS, 'postgresql'])}"
        )
    sources = [
        path
        for folder in chosen.folders
        for path in sorted((_HERE / folder).iterdir())
        if path.suffix in {".c", ".h"}
    ]
    digest = _digest(sources)
    name = chosen.name.format(digest)
    if not force:
        cached = find_cached(name)
        if cached is not None:
            return cached
    try:
        library = writable_cache_folder("the compiled sequencer") / name
    except FolderError as error:
        raise BuildError(str(error)) from error
    _compile(
        [path for path in sources if path.suffix == ".c"],
        library,
        _footer(version=digest) if chosen.has_footer else b"",
    )
    return library


@cache
def duckdb_platform() -> str:
    """Name this machine the way DuckDB does (``linux_amd64``)."""
    system = {"Linux": "linux", "Darwin": "osx"}.get(platform.system())
    machine = {
        "x86_64": "amd64",
        "amd64": "amd64",
        "aarch64": "arm64",
        "arm64": "arm64",
    }.get(platform.machine().lower())
    if system is None or machine is None:
        raise BuildError(
            f"the C sequencer is not ported to {platform.system()} on "
            f"{platform.machine()}"
        )
    musl = system == "linux" and platform.libc_ver()[0] != "glibc"
    return f"{system}_{machine}{'_musl' if musl else ''}"


def _digest(sources: list[Path]) -> str:
    content = hashlib.sha256()
    for part in (*_FLAGS, duckdb_platform(), _DUCKDB_ABI, _DUCKDB_API_VERSION):
        content.update(part.encode() + b"\0")
    for path in sources:
        text = path.read_bytes()
        content.update(f"{path.name}\0{len(text)}\0".encode() + text)
    return content.hexdigest()[:16]


def _compile(sources: list[Path], library: Path, footer: bytes) -> None:
    """Compile beside the library and rename, so that nobody sees half a file."""
    compiler = shlex.split(os.environ.get("CC") or "cc")
    try:
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            fresh = Path(folder) / library.name
            run_tool(
                [*compiler, *_FLAGS, "-o", str(fresh), *map(str, sources)],
                what="C compiler",
                remedy="install gcc or clang, or set CC",
            )
            with fresh.open("ab") as file:
                file.write(footer)
            fresh.replace(library)
    except OSError as error:
        raise BuildError(f"cannot write {library}: {error.strerror}") from error


def _footer(*, version: str) -> bytes:
    """Write what DuckDB reads at a library's end before it loads it.

    A WebAssembly custom section (the form that serves all of DuckDB's platforms)
    named ``duckdb_signature`` of 512 bytes: eight fields of 32, in reverse order,
    and room for a signature, which stays empty.
    """
    fields = (
        "",
        "",
        "",
        _DUCKDB_ABI,
        version,
        _DUCKDB_API_VERSION,
        duckdb_platform(),
        "4",
    )
    name = b"duckdb_signature"
    content = b"".join(field.encode().ljust(32, b"\0") for field in fields)
    content += bytes(256)
    section = bytes([len(name)]) + name + _leb128(len(content)) + content
    return b"\0" + _leb128(len(section)) + section


def _leb128(number: int) -> bytes:
    """Encode a number as WebAssembly does: seven bits a byte, lowest first."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
