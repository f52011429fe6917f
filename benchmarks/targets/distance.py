"""Servers that seem to be on another machine."""

from __future__ import annotations

import subprocess
from pathlib import Path


def distant(milliseconds: float, folder: Path) -> dict[str, str]:
    """Return the environment in which a server gets every message so much later.

    Parameters
    ----------
    milliseconds : float
        The time by which a round trip takes longer.
    folder : pathlib.Path
        Where the server's account can read a library, which is compiled to there.

    Raises
    ------
    RuntimeError
        There is no C compiler, or it fails.
    """
    library = folder / "distance.so"
    source = Path(__file__).with_name("distance.c")
    try:
        subprocess.run(  # noqa: S603
            ["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"],  # noqa: S607
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise RuntimeError("a distance needs a C compiler, `cc`") from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{source} cannot be compiled: {error.stderr}") from None
    return {
        "LD_PRELOAD": str(library),
        "TIQUE_DISTANCE_US": str(round(milliseconds * 1000)),
    }
