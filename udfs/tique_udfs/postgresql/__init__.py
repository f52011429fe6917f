"""PostgreSQL's sequencer, for servers with the extension and for those without."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["plain_script"]

_PARTS = ("state", "locks", "clients", "timestamps")


def plain_script() -> str:
    """The statements that make the sequencer in schema ``tique``, in plain PL/pgSQL.

    The role that owns the schema runs them, in one transaction.
    """
    folder = files(__name__).joinpath("plain")
    return "\n".join(folder.joinpath(f"{p}.sql").read_text("utf-8") for p in _PARTS)
