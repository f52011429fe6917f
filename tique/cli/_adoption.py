"""``tique adopt`` and ``tique detach``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tique import errors
from tique._adoption import adopt, detach
from tique.cli._output import (
    json_option,
    progress,
    report_tables,
)
from tique.cli._target import existing, managed, tables_argument, url_argument

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.command("adopt")
@url_argument
@tables_argument
@json_option
def adopt_command(url: str, tables: Sequence[str], as_json: bool) -> None:
    """Take existing tables under tique's management.

    No row moves. Without a TABLE (name or schema.name) all tables are adopted that
    are not managed yet.
    """
    with existing(url, instead="tique.adopt()"), progress("Adopting"):
        try:
            names = adopt(url, tables or None)
        except errors.NotSupportedError as error:
            raise errors.NotSupportedError(
                f"{error}; nothing was adopted: name the tables to take in, "
                "without this one"
            ) from error
    report_tables("adopted", names, as_json=as_json)


@click.command("detach")
@url_argument
@tables_argument
@json_option
def detach_command(url: str, tables: Sequence[str], as_json: bool) -> None:
    """Release tables from tique's management.

    Recent versions are folded into the tables first. Without a TABLE all are
    released, and the database is left without a trace of tique.
    """
    with managed(url, instead="tique.detach()"), progress("Detaching"):
        names = detach(url, tables or None)
    report_tables("detached", names, as_json=as_json)
