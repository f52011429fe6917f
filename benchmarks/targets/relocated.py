"""PostgreSQL's server a second time, with the extension, in a folder of one's own.

A server finds its libraries and extensions relative to its own executable file, so a copy
of that file sees another folder: links to everything that the installed server has, and
tique's three files. No file is written where PostgreSQL is installed, which takes root,
lasts after the server, and would change the files that every other server finds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tique_udfs import BuildError, pgxs


def relocate(programs: Path, folder: Path, *, extension: bool = True) -> Path:
    """Make the copy; return the folder of its executable file.

    Parameters
    ----------
    programs
        The folder of the installed server's programs.
    folder
        Where the copy goes. All users may read it.
    extension
        Whether it finds tique's extension.

    Raises
    ------
    BuildError
        The extension cannot be compiled (as :func:`tique_udfs.pgxs.build`), or the
        installation's folders have no parent in common.
    """
    pg_config = programs / "pg_config"
    library = pgxs.build(pg_config=pg_config) if extension else None
    places = [
        Path(pgxs.ask(pg_config, option))
        for option in ("--bindir", "--sharedir", "--pkglibdir")
    ]
    shared = Path(os.path.commonpath(places))
    if shared == Path(shared.anchor):
        raise BuildError(
            f"the server in {programs} cannot be copied: {', '.join(map(str, places))} "
            "have no parent in common"
        )
    bindir, sharedir, pkglibdir = (
        folder / place.relative_to(shared) for place in places
    )
    _link(places[1], sharedir, but="extension")
    _link(places[1] / "extension", sharedir / "extension")
    _link(places[2], pkglibdir)
    if library is not None:
        pgxs.put(library, pkglibdir, sharedir)
    _make(bindir)
    shutil.copy(places[0] / "postgres", bindir)
    return bindir


def _link(installed: Path, folder: Path, *, but: str = "") -> None:
    """Link everything but one name and the extension's own files."""
    _make(folder)
    for path in installed.iterdir():
        if path.name != but and not path.name.startswith("tique"):
            (folder / path.name).symlink_to(path)


def _make(folder: Path) -> None:
    """Make it so that the server's account can read it, whatever the umask is."""
    for missing in reversed([folder, *folder.parents]):
        if not missing.exists():
            missing.mkdir()
            missing.chmod(0o755)
