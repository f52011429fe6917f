"""The cache folder, for files that can be made again: one of the user's own."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


class FolderError(Exception):
    """There is no folder that this user, and no other user, can write to."""


def cache_folders() -> list[Path]:
    """Return the folders to look in, the first that can be written comes first.

    ``$TIQUE_CACHE_DIR`` alone, if it is set; else ``$XDG_CACHE_HOME/tique`` or
    ``~/.cache/tique``, and one of the user's own below the system's temporary folder.
    """
    chosen = os.environ.get("TIQUE_CACHE_DIR")
    if chosen:
        return [Path(chosen).absolute()]
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return [
        Path(os.path.expanduser(base)).absolute() / "tique",
        Path(tempfile.gettempdir()).absolute() / f"tique-{os.geteuid()}",
    ]


def find_cached(name: str) -> Path | None:
    """Return the file kept under ``name``, unless another user could have made it."""
    for folder in cache_folders():
        if (folder / name).exists() and _is_safe(folder):
            return folder / name
    return None


def writable_cache_folder(purpose: str) -> Path:
    """Return the first folder that can be written, made if need be.

    Parameters
    ----------
    purpose
        The kind of files, for the message.

    Raises
    ------
    FolderError
        If there is none; names all that were tried and why not.
    """
    tried = []
    for folder in cache_folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_safe(folder):
                tried.append(f"{folder} (other users may write there)")
                continue
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            tried.append(f"{folder} ({error.strerror})")
    raise FolderError(
        f"no folder to keep {purpose} in; tried {', '.join(tried)}; set "
        "TIQUE_CACHE_DIR to a folder of your own"
    )


def _is_safe(folder: Path) -> bool:
    """Whether no other user could have put something into the folder."""
    status = folder.stat()
    return status.st_uid in {0, os.geteuid()} and not status.st_mode & stat.S_IWOTH
