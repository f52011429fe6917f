"""Running the programs that compile."""

from __future__ import annotations

import os
import shlex
import subprocess

_SECONDS = 120


class BuildError(Exception):
    """The sequencer's library cannot be built, stored, installed or opened."""


def run_tool(command: list[str], *, what: str, remedy: str) -> str:
    """Run a program and return its output, errors included.

    Parameters
    ----------
    command
        The program and its arguments.
    what
        The kind of program, for the message when it cannot be run.
    remedy
        The advice of that message.

    Raises
    ------
    BuildError
        It cannot be run, takes too long, or fails; with its output.
    """
    # A make that runs this is not the one that runs below.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    }
    try:
        done = subprocess.run(  # noqa: S603 - the user's own programs, no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except OSError as error:
        raise BuildError(
            f"no {what}: {command[0]!r} cannot be run ({error.strerror}); {remedy}"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise BuildError(
            f"{command[0]!r} did not finish in {_SECONDS} seconds"
        ) from error
    if done.returncode != 0:
        raise BuildError(
            f"{shlex.join(command)} failed with status {done.returncode}:\n"
            f"{done.stdout}"
        )
    return done.stdout
