"""The command line; the packages it needs come with ``tique[cli]``."""

from __future__ import annotations

import sys

__all__ = ["main"]

_PACKAGES = {"click", "rich"}


def main() -> None:
    """Run the command that the process's arguments name, then leave the process.

    Raises
    ------
    SystemExit
        Always, with the command's status; with 1 and a message if click or rich
        is not installed.
    """
    try:
        from tique.cli._program import main as program
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _PACKAGES:
            raise
        sys.exit(
            f"tique: the command line needs {package}, which is not installed; "
            "run: pip install 'tique[cli]'"
        )
    program(prog_name="tique")
