"""Compile PostgreSQL's extension for a server, and install it there.

PostgreSQL's own makefiles (PGXS) do the compiling, in a folder of the cache. The
server is that of the given ``pg_config``; if none is given ``$PG_CONFIG``, else the one
in the path.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ._tools import BuildError, run_tool
from .folders import FolderError, find_cached, writable_cache_folder

_HERE = Path(__file__).parent
_SOURCES = {".c", ".h", ".sql", ".control"}
_CONTROL = "tique.control"
_SCRIPT = "tique--1.0.sql"
_LIBRARY = "'$libdir/tique'"
_DEVELOPMENT = (
    "install PostgreSQL's development files (Debian: postgresql-server-dev-NN), or "
    "set PG_CONFIG"
)


def build(
    *, force: bool = False, pg_config: str | os.PathLike[str] | None = None
) -> Path:
    """Return the extension's library, compiling it when it is not in the cache.

    Beside it lie the two other files that a server needs: ``tique.control`` and the
    SQL script. The names of the folder and of the library hold a hash of the sources
    and of the server's version.

    Parameters
    ----------
    force
        Compile even when the cache has it.
    pg_config
        The program that says where the server's files are.

    Raises
    ------
    BuildError
        PostgreSQL's development files or make are missing, a compiler's error (with
        its output), or no folder that can be written.
    """
    program = os.fspath(pg_config or _program())
    digest = _digest(program)
    name = f"tique-postgresql-{digest}"
    library = f"tique-{digest}.so"
    if not force:
        cached = find_cached(f"{name}/{library}")
        if cached is not None:
            return cached
    try:
        kept = writable_cache_folder("PostgreSQL's extension") / name
    except FolderError as error:
        raise BuildError(str(error)) from error
    try:
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            fresh = Path(folder)
            _make(fresh, digest, program)
            # A server that looks for it by its whole name finds it under this one
            # everywhere.
            for made in fresh.glob("tique-*.dylib"):
                made.replace(fresh / library)
            control = (_HERE / "postgresql" / _CONTROL).read_text()
            (fresh / _CONTROL).write_text(
                control.replace(_LIBRARY, f"'$libdir/{library}'")
            )
            (fresh / _SCRIPT).write_bytes((_HERE / "postgresql" / _SCRIPT).read_bytes())
            kept.mkdir(exist_ok=True)
            # The library is the file that is looked for, so it comes last.
            for file in (_CONTROL, _SCRIPT, library):
                (fresh / file).replace(kept / file)
    except OSError as error:
        raise BuildError(f"cannot write {kept}: {error.strerror}") from error
    return kept / library


def install(*, force: bool = False) -> list[Path]:
    """Put the extension where the server looks for it; return the installed files.

    Files are replaced as a whole, and a server that runs another build keeps its
    library, which has another name. ``CREATE EXTENSION`` takes the new one.

    Parameters
    ----------
    force
        Compile even when the cache has it.

    Raises
    ------
    BuildError
        As :func:`build`, or the server's folders cannot be written to.
    """
    library = build(force=force)
    program = _program()
    return put(
        library, Path(ask(program, "--pkglibdir")), Path(ask(program, "--sharedir"))
    )


def put(library: Path, pkglibdir: Path, sharedir: Path) -> list[Path]:
    """Put the files of :func:`build` into a server's folders; return the files there.

    Parameters
    ----------
    library
        The result of :func:`build`.
    pkglibdir, sharedir
        The folders that ``pg_config`` calls so, of the server or of a copy of it.

    Raises
    ------
    BuildError
        The folders cannot be written to.
    """
    extensions = sharedir / "extension"
    # The control file makes the others count, so it comes last.
    places = [
        (library, pkglibdir),
        (library.with_name(_SCRIPT), extensions),
        (library.with_name(_CONTROL), extensions),
    ]
    return [_put(file, folder / file.name) for file, folder in places]


def ask(pg_config: str | os.PathLike[str], option: str) -> str:
    """Return the answer of ``pg_config`` to an option.

    Raises
    ------
    BuildError
        It cannot be run.
    """
    return run_tool(
        [os.fspath(pg_config), option], what="pg_config", remedy=_DEVELOPMENT
    ).strip()


def _put(file: Path, target: Path) -> Path:
    # Beside it under a name of its own, so that no process reads half a file.
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        fresh.write_bytes(file.read_bytes())
        fresh.chmod(0o755 if target.suffix == ".so" else 0o644)
        fresh.replace(target)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise BuildError(
            f"cannot install {target}: {error.strerror}; run this as the account that "
            "owns that folder, which is root's as a rule"
        ) from error
    return target


def _make(folder: Path, digest: str, program: str) -> None:
    run_tool(
        [
            "make",
            "-C",
            str(folder),
            "-f",
            str(_HERE / "postgresql" / "Makefile"),
            f"PG_CONFIG={program}",
            f"TIQUE_LIBRARY=tique-{digest}",
            f"TIQUE_BUILD={digest}",
        ],
        what="make",
        remedy="install it",
    )


def _digest(program: str) -> str:
    content = hashlib.sha256()
    for option in ("--version", "--pgxs", "--cc", "--cflags"):
        content.update(ask(program, option).encode() + b"\0")
    for folder in ("core", "postgresql"):
        for path in sorted((_HERE / folder).iterdir()):
            if path.suffix in _SOURCES or path.name == "Makefile":
                text = path.read_bytes()
                content.update(f"{path.name}\0{len(text)}\0".encode() + text)
    return content.hexdigest()[:16]


def _program() -> str:
    return os.environ.get("PG_CONFIG") or "pg_config"
