"""Libraries that are preloaded into a process, and the numbers that steer them."""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

_HERE = Path(__file__).parent


class PreloadError(Exception):
    """A library cannot be compiled."""


class Preload:
    """One library, and the number that it reads.

    Parameters
    ----------
    name
        The source's name, without ``.c``.
    library
        The compiled library.
    number
        The file of its number. Other accounts can read it: a server may run as one.
    """

    def __init__(self, name: str, library: Path, number: Path) -> None:
        self._name = name
        self._library = library
        self._number = number
        number.write_bytes(struct.pack("q", 0))
        number.chmod(0o644)
        with number.open("r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), 8)

    def set(self, nanoseconds: int) -> None:
        """Write the number; the process reads it with its next call."""
        self._mapped[:8] = struct.pack("q", nanoseconds)

    @property
    def library(self) -> str:
        """The library's path."""
        return str(self._library)

    @property
    def variable(self) -> tuple[str, str]:
        """The environment variable by which the library finds the number."""
        return f"JEPSEN_{self._name.upper()}", str(self._number)


def environment(*preloads: Preload) -> dict[str, str]:
    """The environment of a process that has preloaded libraries."""
    others = os.environ.get("LD_PRELOAD", "").split(":")
    libraries = [*(each.library for each in preloads), *filter(None, others)]
    return {
        "LD_PRELOAD": ":".join(libraries),
        **dict(each.variable for each in preloads),
    }


def compiled(name: str, folder: Path) -> Path:
    """Compile a library into a folder.

    Raises
    ------
    PreloadError
        If there is no C compiler, or it fails.
    """
    library = folder / f"{name}.so"
    if library.exists():
        return library
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise PreloadError(f"the nemesis needs a C compiler for {name}.c")
    made = subprocess.run(  # noqa: S603 - a compiler, and our own source
        [
            compiler,
            "-O2",
            "-shared",
            "-fPIC",
            "-o",
            library,
            _HERE / f"{name}.c",
            "-ldl",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise PreloadError(f"{name}.c cannot be compiled: {made.stderr.strip()}")
    library.chmod(0o755)
    return library
