"""The machine under the figures, and the files that rounds run on."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.workload import Workload

DEFAULT_WORK_DIRECTORY = Path(".benchmarks")
_FSYNCS = 40


def describe(directory: Path) -> dict[str, object]:
    """Return other factors of the figures: versions, cores, the price of an fsync."""
    return {
        "duckdb": duckdb.__version__,
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0))
        if sys.platform == "linux"
        else os.cpu_count(),
        "platform": platform.platform(),
        "fsync_ms": round(fsync_seconds(directory) * 1000, 3),
    }


def fsync_seconds(directory: Path) -> float:
    """Return the median time of appending 4 KiB to a file and making it durable."""
    block = os.urandom(4096)
    times = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(_FSYNCS):
            start = perf_counter()
            file.write(block)
            os.fsync(file.fileno())
            times.append(perf_counter() - start)
    return median(times)


def prepare_work_directory(directory: Path) -> None:
    """Create the directory for databases, out of version control's sight."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / ".gitignore").write_text("*\n", encoding="utf-8")


def loaded_database(workload: Workload, directory: Path) -> Path:
    """Return the file of a loaded workload, and load it if it is not there yet."""
    path = directory / f"{workload.label}-duckdb{duckdb.__version__}.duckdb"
    if not path.exists():
        with scratch_directory(directory) as scratch:
            workload.load(scratch / path.name)
            os.replace(scratch / path.name, path)
    return path


@contextmanager
def scratch_directory(directory: Path) -> Iterator[Path]:
    """Give a directory on the same file system that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="round-", dir=directory) as name:
        yield Path(name)


def durable_copy(source: Path, directory: Path) -> Path:
    """Copy a database file and wait until the copy is on disk.

    A copy that is still being written back would be paid for by the first commits.
    """
    target = directory / source.name
    shutil.copyfile(source, target)
    with target.open("rb+") as file:
        os.fsync(file.fileno())
    return target
