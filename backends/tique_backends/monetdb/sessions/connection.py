"""One connection to the server: a statement, a round trip, an answer."""

from __future__ import annotations

import logging
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pymonetdb
from typing_extensions import override

from tique_backends.concurrency.inherited import noted
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.monetdb.errors import UnreadableError, translated
from tique_backends.monetdb.sessions.reply import Reply, read_reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique_backends.records import Statistics

DEFAULT_PORT = 50000

PIECE = 10_000
"""Rows that come together of a large result, at most."""

_PIECE_OF_SOCKET, _PIECE_OF_PORT = 1 << 17, 1 << 20
"""Bytes, roughly, that come together at most: as many as the kernel takes from the server
before the client reads any (measured: 160 KB, and 4 MB), for when the client dies first."""

_UNFINISHED = re.compile(r"&1 (\d+) (\d+) \d+ (\d+)")
"""A result's number, its number of rows, and of those that came with the reply."""

_READINGS = 50
_PAUSE = 0.001

NO_RESULT = "MonetDB gave no result and no error"
# A string in a plan has its line ends escaped.
_RETURNING = re.compile(r"^=\s+X_\d+:int := sql\.resultSet\(", re.MULTILINE)
_PREPARED = re.compile(r"\s*&5 (\d+) ")
_MOST_PREPARED = 200

# It logs every statement, in which there are values (P11).
logging.getLogger("pymonetdb").setLevel(logging.INFO)


@dataclass(frozen=True)
class Address:
    """The place of a server, and the account that logs in.

    Attributes
    ----------
    host, port : str, int
        The TCP address; not used if there is a socket.
    socket : str or None
        The path of a Unix socket.
    database, user, password : str
        The database and the account; the password stays out of ``repr``.
    """

    host: str
    port: int
    socket: str | None
    database: str
    user: str
    password: str = field(repr=False)

    @override
    def __str__(self) -> str:
        place = self.socket or f"{self.host}:{self.port}"
        return f"MonetDB database {self.database!r} at {place}"


@dataclass
class Rest:
    """The part of a result that the server keeps: rows from ``offset`` to ``total``.

    The last rows that came had ``width`` characters each, on average.
    """

    number: int
    offset: int
    total: int
    width: int


def unfinished(text: str) -> Rest | None:
    """Return the part of a result that a reply does not bring."""
    found = _UNFINISHED.match(text)
    if found is None:
        return None
    number, total, shown = map(int, found.groups())
    if shown >= total:
        return None
    return Rest(number, shown, total, len(text) // max(shown, 1))


class Connection:
    """A connection in autocommit mode; for one thread at a time.

    The first reply brings up to ``PIECE`` rows, so that most queries are one round trip.
    The server keeps the others, whatever else the session does, until it is told to
    forget them. If it cannot send them, as the client has died or broken off, the session
    does not end by itself (README.md).

    Parameters
    ----------
    reads_whole
        Whether each reply brings all rows, which leaves no such session.
    """

    def __init__(
        self, address: Address, statistics: Statistics, *, reads_whole: bool = False
    ) -> None:
        self._statistics = statistics
        self._most = _PIECE_OF_SOCKET if address.socket else _PIECE_OF_PORT
        arguments: dict[str, Any] = {
            "hostname": None if address.socket else address.host,
            "port": None if address.socket else address.port,
            "unix_socket": address.socket,
            "username": address.user,
            "password": address.password,
            "autocommit": True,
            "replysize": -1 if reads_whole else PIECE,
            "binary": 0,
        }
        self.serial = 0
        """The number by which its owner knows the session on the server."""
        self._prepared: dict[str, int] = {}
        self.is_lost = False
        """Whether it broke before a statement's reply: the server may still run it."""
        self.is_left_sending = False
        """Whether it broke before further rows of a result had come."""
        # pymonetdb is typed in part only.
        self._wire: Any = None
        try:
            self._wire = pymonetdb.connect(address.database, **arguments)
            noted(self._wire.mapi.sock)
        except (pymonetdb.Error, OSError, EOFError) as error:
            raise EngineError(
                ErrorKind.OPERATIONAL, f"cannot connect to {address}: {error}"
            ) from error
        try:
            self.session_id = int(self.ask("SELECT current_sessionid()").rows[0][0])
        except BaseException:
            self.close()
            raise

    def ask(self, sql: str) -> Reply:
        """Send one statement, or several that return no rows; read the answer.

        Raises
        ------
        EngineError
            As :meth:`ask_text`, and DATA if Python has no such value.
        """
        return read_reply(self.ask_text(sql))

    def ask_text(self, sql: str, *, once: bool = False, whole: bool = True) -> str:
        """As :meth:`ask`; the answer as it came, if not ``whole`` its first rows only.

        A statement that met a concurrent commit and could not read, and so did nothing,
        is repeated. Not (``once``) if it begins, ends or is part of a transaction: the
        whole of that is broken then.

        Raises
        ------
        EngineError
            ConnectionLostError if its outcome is not known.
        """
        if once:
            return self._send(sql, whole=whole)
        return _repeated(lambda: self._send(sql, whole=whole))

    def ask_prepared(self, statement: str, arguments: Sequence[str]) -> str:
        """As :meth:`ask_text`, outside of transactions, but compiled only once.

        The server drops prepared statements whenever a statement of the session fails:
        this one is prepared again when it is used next.

        Parameters
        ----------
        statement
            With a ``?`` for each argument.
        arguments
            Literals, of exactly the types that the statement gives them.
        """
        return _repeated(lambda: self._execute(statement, arguments))

    def describe(self, query: str) -> str:
        """Have the results of a query described, without running it.

        Raises
        ------
        EngineError
            As :meth:`ask_text`, and INTERNAL if MonetDB has no result of it: PREPARE
            of such a query ends the server (README.md).
        """
        if _RETURNING.search(self._send(f"EXPLAIN {query}")) is None:
            raise EngineError(ErrorKind.INTERNAL, NO_RESULT)
        text = self._send(f"PREPARE {query}")
        found = _PREPARED.match(text)
        assert found is not None
        self._send(f"DEALLOCATE {found[1]}")
        return text

    def _execute(self, statement: str, arguments: Sequence[str]) -> str:
        number = self._prepared.get(statement)
        if number is None:
            if len(self._prepared) == _MOST_PREPARED:
                self._send("DEALLOCATE ALL")
                self._prepared.clear()
            found = _PREPARED.match(self._send(f"PREPARE {statement}"))
            assert found is not None
            number = self._prepared[statement] = int(found[1])
        return self._send(f"EXEC {number}({', '.join(arguments)})")

    def _send(self, sql: str, *, whole: bool = True) -> str:
        text = self._exchange("execute", sql)
        rest = unfinished(text) if whole else None
        if rest is None:
            return text
        pieces = [text]
        while rest.offset < rest.total:
            pieces.append(self.more(rest))
        self.forget(rest.number)
        return "".join(pieces)

    def more(self, rest: Rest) -> str:
        """The lines of some more rows of a result, which has fewer left then.

        Raises
        ------
        EngineError
            INTERNAL if the server does not have them.
        """
        most = self._most // max(rest.width, 1)
        count = min(max(most, 1), PIECE, rest.total - rest.offset)
        command = f"Xexport {rest.number} {rest.offset} {count}"
        try:
            text = self._exchange("command", command)
        finally:
            self.is_left_sending = self.is_lost
        header, _, lines = text.partition("\n")
        if header.split()[:1] != ["&6"] or int(header.split()[3]) != count:
            raise EngineError(
                ErrorKind.INTERNAL, "MonetDB does not have the rest of a result"
            )
        rest.offset += count
        rest.width = len(lines) // count
        return lines

    def forget(self, number: int) -> None:
        """Let the server drop the rows of a result that it keeps."""
        self._exchange("command", f"Xclose {number}")

    def _exchange(self, call: str, text: str) -> str:
        if self._wire is None:
            raise ConnectionLostError(
                ErrorKind.OPERATIONAL, "the connection to MonetDB is closed"
            )
        started = time.perf_counter()
        try:
            reply: str = getattr(self._wire, call)(text)
        except (pymonetdb.Error, OSError, EOFError, UnicodeError) as error:
            failure = translated(error)
            if isinstance(failure, ConnectionLostError):
                self._lose()
            self._prepared.clear()
            raise failure from error
        except BaseException:
            # This one's reply would be taken for that of the next statement.
            self._lose()
            raise
        finally:
            self._statistics.statements += 1
            self._statistics.seconds += time.perf_counter() - started
        return reply

    def _lose(self) -> None:
        self.is_lost = True
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether the connection was neither closed nor lost."""
        return self._wire is not None

    def close(self) -> None:
        """Close the connection; idempotent."""
        wire, self._wire = self._wire, None
        if wire is not None:
            with suppress(pymonetdb.Error, OSError):
                wire.close()


def _repeated(attempt: Callable[[], str]) -> str:
    """Attempt to read until no concurrent commit is in the way."""
    for _ in range(_READINGS):
        with suppress(UnreadableError):
            return attempt()
        time.sleep(_PAUSE)
    return attempt()
