"""The functions of MonetDB's libraries that make a server, by way of ctypes.

The calls and their order are those of MonetDB 11.41's own ``mserver5``: the data's
place, the settings, the kernel, the accounts, then the interpreter with SQL and the
listener. No client can connect before the last one; so the default password never
works.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, cast

from tique_backends.monetdb.server.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LIBRARIES = ("pcre", "stream", "bat", "mapi", "monetdb5", "monetdbsql", "monetdbe")
"""In the order in which they need each other's symbols."""

_CONFIGURED = 2
_SUCCEEDED = 1
_PERSISTENT, _TRANSIENT = 1 << 0, 1 << 1
_NO_LIMITS = (0, 0, 0, 0)
_DEFAULT_VAULT_KEY = b"Xas632jsi2whjds8"

_LARGEST_LOG = 64 << 20
"""Bytes of MonetDB's log from which on a new one begins when the server starts. It has once
written the same error until the disk was full."""


class MServer:
    """MonetDB, of which a process can have one.

    Parameters
    ----------
    libraries
        The folder with MonetDB's shared libraries.

    Raises
    ------
    ServerError
        If they cannot be opened.
    """

    def __init__(self, libraries: Path) -> None:
        opened = {}
        try:
            for name in _LIBRARIES:
                (file,) = libraries.glob(f"lib{name}-*.so*")
                opened[name] = ctypes.CDLL(str(file), mode=ctypes.RTLD_GLOBAL)
        except (OSError, ValueError) as error:
            raise ServerError(
                f"MonetDB's libraries in {libraries} cannot be opened: {error}"
            ) from error
        self.kernel = opened["bat"]
        self.interpreter = opened["monetdb5"]
        self._options = opened["monetdbe"]

    def start(self, database: Path, password: str, settings: Mapping[str, str]) -> None:
        """Open the database, or make it with this password, and listen.

        Raises
        ------
        ServerError
            If MonetDB does not start; this process has no second try.
        """
        database.mkdir(exist_ok=True)
        log = database / "mdbtrace.log"
        if log.exists() and log.stat().st_size > _LARGEST_LOG:
            log.replace(log.with_suffix(".old"))
        path = os.fsencode(database)
        add_farm = self.kernel.BBPaddfarm
        add_farm.argtypes = [ctypes.c_char_p, ctypes.c_uint, ctypes.c_bool]
        for role in (_PERSISTENT, _TRANSIENT):
            if add_farm(path, role, False) != _SUCCEEDED:
                raise ServerError(f"MonetDB does not take {database}")
        initialise = self.kernel.GDKinit
        initialise.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_bool]
        options, count = self._configured({"gdk_dbpath": str(database), **settings})
        if initialise(options, count, False) != _SUCCEEDED:
            raise ServerError(f"MonetDB cannot open the data in {database}")
        self._call("msab_dbpathinit", path)
        self._call("msab_wildRetreat")
        self._call("msab_registerStarting")
        self._call("AUTHunlockVault", _DEFAULT_VAULT_KEY)
        # Does nothing to a database that has its users already.
        self._call("AUTHinitTables", password.encode())
        with_listener = True
        self._call("malEmbeddedBoot", *_NO_LIMITS, with_listener)
        self._call("msab_registerStarted")

    def stop(self) -> NoReturn:
        """Close the database and end the process."""
        with suppress(ServerError):
            self._call("msab_registerStop")
        self.interpreter.mal_exit(0)
        os._exit(1)

    def _configured(self, settings: Mapping[str, str]) -> tuple[ctypes.c_void_p, int]:
        options = ctypes.c_void_p()
        place = ctypes.byref(options)
        add = self._options.mo_add_option
        add.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        add.argtypes += [ctypes.c_char_p, ctypes.c_char_p]
        count = self._options.mo_builtin_settings(place)
        for name, value in settings.items():
            count = add(place, count, _CONFIGURED, name.encode(), os.fsencode(value))
        return options, count

    def _call(self, function: str, *arguments: bytes | int) -> None:
        """Call a function that returns NULL or an error's text."""
        called = getattr(self.interpreter, function)
        called.restype = ctypes.c_char_p
        message = cast("bytes | None", called(*arguments))
        if message is not None:
            raise ServerError(f"MonetDB: {message.decode(errors='replace').strip()}")
