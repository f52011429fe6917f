"""The command line.

Standard output holds the answer and nothing else; messages, warnings and progress
go to standard error. The exit status is 0, 1 for an error, 2 for wrong usage.
"""

from __future__ import annotations

import logging

import click
from typing_extensions import override

from tique import __version__
from tique.cli._adoption import adopt_command, detach_command
from tique.cli._changes import changes_command, diff_command, restore_command
from tique.cli._explain import explain_command
from tique.cli._history import history_group
from tique.cli._monetdb import monetdb_group
from tique.cli._operation import checkpoint_command, status_command
from tique.cli._output import one_line
from tique.cli._replica import promote_command, replicate_command
from tique.cli._top import top_command
from tique.cli._udf import udf_group
from tique.errors import Error
from tique_backends.monetdb.server import ServerError
from tique_udfs import BuildError, SequencerError

__all__ = ["main"]

_EXPECTED = (Error, BuildError, SequencerError, ServerError)
_CLICKS_OWN = (
    click.ClickException,
    click.exceptions.Exit,
    click.Abort,
    BrokenPipeError,
)


class _ErrorLine(click.Group):
    """A group whose commands fail with one line instead of a traceback."""

    @override
    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except _CLICKS_OWN:
            raise
        except _EXPECTED as error:
            raise click.ClickException(one_line(str(error))) from error
        except Exception as error:
            message = one_line(f"{type(error).__name__}: {error}")
            raise click.ClickException(message) from error


class _WarningLine(logging.Formatter):
    """A record as one line, without the traceback that it may carry."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.capitalize()}: {one_line(record.getMessage())}"


@click.group(cls=_ErrorLine, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="tique")
@click.pass_context
def main(context: click.Context) -> None:
    """Manage databases under tique's management.

    URL is duckdb:///relative/path, duckdb:////absolute/path or
    monetdb://user:password@host:port/database.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(_WarningLine())
    handler.setLevel(logging.WARNING)
    logger = logging.getLogger("tique")
    logger.addHandler(handler)
    context.call_on_close(lambda: logger.removeHandler(handler))


main.add_command(adopt_command)
main.add_command(detach_command)
main.add_command(checkpoint_command)
main.add_command(status_command)
main.add_command(top_command)
main.add_command(explain_command)
main.add_command(changes_command)
main.add_command(diff_command)
main.add_command(restore_command)
main.add_command(history_group)
main.add_command(replicate_command)
main.add_command(promote_command)
main.add_command(udf_group)
main.add_command(monetdb_group)
