"""What is made in a database: the sequencer in one of its two forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tique_backends.errors import EngineError, ErrorKind
from tique_udfs.postgresql import plain_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_backends.base import Session

FORMS = ("extension", "plain")


class Form(NamedTuple):
    """One of them, and the statements that make it in the schema ``tique``."""

    name: str
    statements: tuple[str, ...]

    @classmethod
    def choose(cls, session: Session, wanted: str | None) -> Form:
        """The form that is wanted; else the extension, if it may be made here.

        Raises
        ------
        EngineError
            UNSUPPORTED if the extension is wanted and there is none.
        """
        obstacle = None if wanted == "plain" else _obstacle(session)
        if wanted == "extension" and obstacle:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"the extension tique cannot be made here: {obstacle}; leave "
                "?sequencer=extension out for the form that needs none",
            )
        name = "plain" if wanted == "plain" or obstacle else "extension"
        return cls(name, _STATEMENTS[name]())


_STATEMENTS: dict[str, Callable[[], tuple[str, ...]]] = {
    "extension": lambda: ("CREATE EXTENSION tique WITH SCHEMA tique",),
    "plain": lambda: (plain_script(),),
}


def _obstacle(session: Session) -> str | None:
    """Why the extension cannot be made, if so."""
    available = session.execute(
        "SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = 'tique'"
    ).fetch_all()
    if not available:
        return "the server does not have it (tique udf build postgresql --install)"
    ((is_allowed,),) = session.execute(
        "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
    ).fetch_all()
    return None if is_allowed else "only a superuser may make it"
