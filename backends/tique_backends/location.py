"""The place of a database, as its URL tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import (
        Mapping,
    )


@dataclass(frozen=True)
class Server:
    """The part of a URL that has a server's place and the role that logs in.

    Parts that the URL leaves out are None. The password stays out of ``repr``.
    """

    host: str | None = None
    port: int | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Location:
    """The place of a database, as a backend reads it from a URL.

    ``identity`` is equal for two URLs of the same database; None means that
    every connect gets a database of its own (in memory).
    """

    path: str
    identity: str | None
    options: Mapping[str, str] = field(default_factory=dict)
