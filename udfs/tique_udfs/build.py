"""Find the compiled sequencer, or compile it once and keep it in a cache folder.

A wheel carries it (``compiled/``, put there by ``hatch_build.py``), so only a source
checkout needs a compiler. The library is found by a hash of the sources beside it, so
that it never answers for other sources than its own.

For DuckDB the result is one shared object for two doors: ctypes opens it, and DuckDB
loads it as an extension, for which it ends with a footer that DuckDB reads. For
MonetDB it is a module that the server opens. A compiler is enough; no header or
library of an engine is needed. PostgreSQL's extension is the exception, see
:mod:`tique_udfs.pgxs`.
"""

from __future__ import annotations

import hashlib
import logging
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

__all__ = ["PACKAGED", "BuildError", "build", "compile_into", "duckdb_platform"]

PACKAGED = Path(__file__).parent / "compiled"
"""The folder of a wheel's compiled libraries; a source checkout has none."""

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
_logger = logging.getLogger("tique.sequencer")
_DUCKDB_ABI = "C_STRUCT"
_DUCKDB_API_VERSION = "v1.2.0"


class _Target(NamedTuple):
    """The sources that are compiled for an engine, and the library's name."""

    folders: tuple[str, ...]
    name: str
    has_footer: bool


_TARGETS = {
    # DuckDB derives the entry point's name from the text before the first dot.
    "duckdb": _Target(("core", "duckdb"), "tique.{}.duckdb_extension", True),
    "monetdb": _Target(("core", "monetdb"), "lib_tique.{}.so", False),
}


def build(target: str = "duckdb", *, force: bool = False) -> Path:
    """Return the compiled sequencer, compiling it when there is none yet.

    It comes from the wheel, else from the cache, else from the compiler. The file's
    name holds a hash of the sources, the compiler's flags and the platform, so an
    upgrade compiles anew and old files do no harm. Several processes may build at
    once. For the cache's folder see :mod:`tique_udfs.folders`; one that other users
    may write to is never used. The compiler is ``$CC``, else ``cc``.

    Parameters
    ----------
    target
        The engine to build for: ``"duckdb"``, ``"monetdb"`` or ``"postgresql"``.
    force
        Compile into the cache even when there is one.

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
    name = _target(target).name.format(_digest(target))
    if not force:
        packaged = PACKAGED / name
        found = packaged if packaged.exists() else find_cached(name)
        if found is not None:
            return found
    try:
        folder = writable_cache_folder("the compiled sequencer")
    except FolderError as error:
        raise BuildError(str(error)) from error
    _logger.info("compiling the sequencer for %s, once, into %s", target, folder)
    return compile_into(folder, target)


def compile_into(folder: Path, target: str) -> Path:
    """Compile the sequencer for DuckDB or MonetDB into a folder, replacing older files.

    Parameters
    ----------
    folder
        Where to put it; it has to exist.
    target
        The engine to compile for: ``"duckdb"`` or ``"monetdb"``.

    Returns
    -------
    pathlib.Path
        The shared object, under the name that :func:`build` looks for.

    Raises
    ------
    BuildError
        No compiler, a compiler's error (with its output), or the folder cannot be
        written.
    """
    digest = _digest(target)
    library = folder / _target(target).name.format(digest)
    sources = [path for path in _sources(target) if path.suffix == ".c"]
    footer = _footer(version=digest) if _target(target).has_footer else b""
    _compile(sources, library, footer)
    return library


def _target(name: str) -> _Target:
    try:
        return _TARGETS[name]
    except KeyError:
        raise BuildError(
            f"there is no build for {name!r}; targets: "
            f"{', '.join([*_TARGETS, 'postgresql'])}"
        ) from None


def _sources(target: str) -> list[Path]:
    return [
        path
        for folder in _target(target).folders
        for path in sorted((_HERE / folder).iterdir())
        if path.suffix in {".c", ".h"}
    ]


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


def _digest(target: str) -> str:
    content = hashlib.sha256()
    for part in (*_FLAGS, duckdb_platform(), _DUCKDB_ABI, _DUCKDB_API_VERSION):
        content.update(part.encode() + b"\0")
    for path in _sources(target):
        text = path.read_bytes()
        content.update(f"{path.name}\0{len(text)}\0".encode() + text)
    return content.hexdigest()[:16]


def _compile(sources: list[Path], library: Path, footer: bytes) -> None:
    """Compile beside the library and rename, so that no process reads half a file."""
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
    """Write the footer that DuckDB reads at a library's end before it loads it.

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
