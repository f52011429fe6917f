"""``tique monetdb``."""

from __future__ import annotations

from contextlib import ExitStack

import click

from tique.cli._output import json_option, print_json, progress
from tique_backends.monetdb.server import serve


@click.group("monetdb")
def monetdb_group() -> None:
    """Run a MonetDB server for trials and tests."""


@monetdb_group.command("start")
@click.argument("directory", metavar="DIR", type=click.Path(file_okay=False))
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port on 127.0.0.1; by default any that is free.",
)
@click.option(
    "--socket",
    metavar="PATH",
    type=click.Path(dir_okay=False),
    help="Listen on this Unix socket, and on no port.",
)
@json_option
def start_command(directory: str, port: int, socket: str | None, as_json: bool) -> None:
    """Run a MonetDB server on DIR until it is told to stop.

    Prints the server's URL when it takes connections. The URL holds the password,
    which is in DIR too; data stays there for the next start. MonetDB's libraries are
    fetched with pip the first time. Ctrl-C or SIGTERM stops the server.
    """
    if socket is not None and port:
        raise click.UsageError("give --port or --socket, not both")
    with ExitStack() as starting:
        starting.enter_context(progress("Starting MonetDB"))

        def ready(url: str) -> None:
            starting.close()
            if as_json:
                print_json({"url": url})
            else:
                click.echo(url)

        serve(directory, port=port, socket=socket, ready=ready)
