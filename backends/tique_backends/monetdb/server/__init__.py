"""A MonetDB server for tests and for users without one.

It runs MonetDB's own libraries, as they come with the ``monetdbe`` package, in a
process of its own. Users with a MonetDB server use that one instead.
"""

from __future__ import annotations

from tique_backends.monetdb.server.errors import ServerError
from tique_backends.monetdb.server.process import serve
from tique_backends.monetdb.server.supervisor import MonetDBServer

__all__ = ["MonetDBServer", "ServerError", "serve"]
