"""MonetDB's skin of the sequencer: SQL functions over the server's own."""

from __future__ import annotations

from typing import NamedTuple

from tique_udfs.monetdb.callbacks import TEXTS, register

__all__ = ["FUNCTIONS", "TEXTS", "Function", "register"]


_LONG_TEXT = "CLOB"


class Function(NamedTuple):
    """An SQL function, of the same name in MAL.

    Parameters are BIGINT, but for those that are ``TEXTS``.
    """

    name: str
    parameters: tuple[str, ...] = ()
    result: str = "BIGINT"

    @property
    def definition(self) -> str:
        """The statement that makes it callable, where the module is loaded."""
        parameters = ", ".join(
            f'"{name}" {_LONG_TEXT if name in TEXTS else "BIGINT"}'
            for name in self.parameters
        )
        return (
            f'CREATE OR REPLACE FUNCTION tique."{self.name}"({parameters}) '
            f'RETURNS {self.result} EXTERNAL NAME tique."{self.name}"'
        )


FUNCTIONS = (
    Function("incarnation"),
    Function("recover", ("sts", "txid")),
    Function("join_client", ("milliseconds",)),
    Function("renew_client", ("client", "milliseconds")),
    Function("leave_client", ("client",)),
    Function("begin_transaction", ("client",), _LONG_TEXT),
    Function("advance_transaction", ("client", "txid", "sts")),
    Function("end_transaction", ("client", "txid")),
    Function("certify", ("client", "sts", "keys")),
    Function("certify_as", ("client", "locker", "sts", "keys"), _LONG_TEXT),
    Function("next_cts", ("client",)),
    Function("finish", ("client", "cts")),
    Function("sts_for", ("client",), _LONG_TEXT),
    Function("abort", ("client", "cts")),
    Function("wait", ("cts", "milliseconds")),
    Function("sts"),
    Function("cts"),
    Function("lambda"),
    Function("active"),
    Function("clients"),
    Function("keys"),
    Function("doubtful"),
    Function("fence", ("cts",)),
    Function("open_locker", ("client",)),
    Function("close_locker", ("client", "locker")),
    Function("interrupt_locker", ("client", "locker")),
    Function(
        "lock", ("client", "locker", "shared", "milliseconds", "numbers"), _LONG_TEXT
    ),
    Function("unlock", ("client", "locker", "shared", "numbers")),
    Function("locks"),
)
"""The functions of ``module.c`` and ``callbacks.py``; the former describes each."""
