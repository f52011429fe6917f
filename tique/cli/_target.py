"""The database of a command."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from typing_extensions import override

from tique import errors
from tique._translation import translating
from tique.database.database import Database, acquire, release
from tique.database.url import parse_url
from tique_backends import registry

if TYPE_CHECKING:
    from collections.abc import Iterator


class URL(click.ParamType[str]):
    """A URL of a database that other processes can open too."""

    name = "url"

    @override
    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        try:
            url = parse_url(value)
        except errors.InterfaceError as error:
            self.fail(str(error), param, ctx)
        if url.in_memory:
            self.fail(
                "a database in memory lives in the process that opened it; "
                "give the URL of a file",
                param,
                ctx,
            )
        return value


url_argument = click.argument("url", type=URL())
tables_argument = click.argument("tables", metavar="[TABLE]...", nargs=-1)


@contextmanager
def existing(url: str, *, instead: str) -> Iterator[None]:
    """Check that there is such a database: a command never creates one.

    Parameters
    ----------
    url
        The database's URL.
    instead
        The call that does the same in a process that has the database open.
    """
    parsed = parse_url(url)
    if parsed.server is None and not os.path.exists(parsed.path):
        raise errors.OperationalError(f"there is no database {parsed.path}")
    try:
        with translating():
            yield
    except errors.DatabaseLocked as error:
        message = str(error).rstrip(". \n")
        raise errors.DatabaseLocked(
            f"{message}. In that process, use {instead}"
        ) from error


@contextmanager
def managed(url: str, *, instead: str) -> Iterator[None]:
    """As :func:`existing`, and refuse a database that tique does not manage.

    Opening it would leave tique's schema in it.
    """
    with existing(url, instead=instead):
        parsed = parse_url(url)
        backend = registry.find(parsed.backend)
        location = backend.locate(parsed.path, parsed.options, parsed.server)
        engine = backend.open_engine(location)
        try:
            is_managed = engine.is_managed()
        finally:
            engine.close()
        if not is_managed:
            raise errors.OperationalError(
                f"the database {parsed.path} is not under tique's management; "
                "'tique adopt' takes its tables in"
            )
        yield


@contextmanager
def opened(url: str, *, instead: str) -> Iterator[Database]:
    """As :func:`managed`, and open it."""
    with managed(url, instead=instead):
        database = acquire(url, {})
        try:
            yield database
        finally:
            release(database)
