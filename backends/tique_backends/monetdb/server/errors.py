"""Errors of the bundled server."""

from __future__ import annotations


class ServerError(Exception):
    """The server cannot be had, started or reached."""
