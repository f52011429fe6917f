"""The commands of `python -m benchmarks`."""

from __future__ import annotations

import click

from benchmarks.cli import ch, micro, protocols, replica, tpcc


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure an engine with tique beside the same engine without it."""


for _module in (tpcc, ch, micro, protocols, replica):
    for _command in _module.COMMANDS:
        main.add_command(_command)
