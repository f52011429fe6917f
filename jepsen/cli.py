"""The commands of ``python -m jepsen``."""

from __future__ import annotations

import click

from jepsen.check import check
from jepsen.run import run


@click.group()
def main() -> None:
    """Record histories and judge them."""


main.add_command(check)
main.add_command(run)
