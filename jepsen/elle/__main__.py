"""``python -m jepsen.elle VERDICTS``: whether Elle and our checker agree.

VERDICTS is the output of Elle's project here: one map per history and model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jepsen import checker, edn, history
from jepsen.checker.models import Model

if TYPE_CHECKING:
    from jepsen.checker.verdict import Verdict

# Elle marks an unknown verdict by a keyword.
_VALID = {True: True, False: False, "unknown": None}
_WORDS = {True: "valid", False: "invalid", None: "unknown"}


@click.command()
@click.argument(
    "verdicts", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def main(verdicts: Path) -> None:
    """Check Elle's histories again; the exit status is 1 if the verdicts differ."""
    ours: dict[str, Verdict] = {}
    compared = different = 0
    with verdicts.open(encoding="utf-8") as lines:
        for _, elle in edn.maps(lines):
            name = elle["file"]
            if name not in ours:
                ours[name] = checker.check(history.read(name), "list-append")
            model = Model(elle["model"])
            by_elle, by_us = _VALID[elle["valid"]], ours[name].valid(model)
            compared += 1
            if by_elle is not by_us:
                different += 1
                click.echo(
                    f"{name}, {model}: Elle says {_WORDS[by_elle]} "
                    f"{elle['anomalies']}, we say {_WORDS[by_us]} "
                    f"{sorted(ours[name].counts)}"
                )
    click.echo(f"{compared} verdicts compared, {different} differ")
    sys.exit(1 if different or not compared else 0)


if __name__ == "__main__":
    main(prog_name="python -m jepsen.elle")
