"""``tique udf``."""

from __future__ import annotations

import click

from tique.cli._output import json_option, print_json, progress
from tique_udfs.build import build


@click.group("udf")
def udf_group() -> None:
    """Look after the functions that run inside the engine."""


@udf_group.command("build")
@click.argument("target", default="duckdb")
@click.option("--force", is_flag=True, help="Compile even what is compiled already.")
@json_option
def build_command(target: str, force: bool, as_json: bool) -> None:
    """Compile the sequencer for TARGET (duckdb or monetdb) and print where it is."""
    with progress("Compiling"):
        library = build(target, force=force)
    if as_json:
        print_json({"target": target, "path": str(library)})
    else:
        click.echo(library)
