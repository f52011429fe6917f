"""``tique udf``."""

from __future__ import annotations

import click

from tique.cli._output import json_option, print_json, progress
from tique_udfs import pgxs
from tique_udfs.build import build


@click.group("udf")
def udf_group() -> None:
    """Build the functions that run inside the engine."""


@udf_group.command("build")
@click.argument("target", default="duckdb")
@click.option("--force", is_flag=True, help="Compile even if it is compiled already.")
@click.option(
    "--install",
    is_flag=True,
    help="Also put PostgreSQL's extension where pg_config says that the server looks.",
)
@json_option
def build_command(target: str, force: bool, install: bool, as_json: bool) -> None:
    """Compile the sequencer for TARGET and print where it is.

    TARGET is duckdb, monetdb or postgresql.
    """
    if install and target != "postgresql":
        raise click.UsageError(
            f"--install is for postgresql only; tique itself loads the one for {target}"
        )
    with progress("Compiling"):
        library = build(target, force=force)
        installed = pgxs.install() if install else []
    if as_json:
        answer: dict[str, object] = {"target": target, "path": str(library)}
        if install:
            answer["installed"] = [str(path) for path in installed]
        print_json(answer)
    else:
        for path in installed or [library]:
            click.echo(path)
