"""What a session of the application's begins with: settings of its URL, role and database.

*Invariant* (P12). Of each setting that the URL (``options``), ``PG*`` variables, a service
file, the role, the database or the server's files give a session, one is true: the server
obeys it in every session that runs the connection's statements; the driver obeys it
(:data:`OBEYED`, :func:`planning`); it has another value, which means the same to an application
(:data:`OVERRIDDEN`); or the connection is refused with its name. One that is on no list is
refused, unless it has PostgreSQL's own default or belongs to an extension.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.postgresql.sessions.settings import PLANNING, RULES, TIMEOUTS
from tique_backends.settings import CONNECTIONS, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BEGAN = (
    "ARRAY(SELECT ARRAY[name, setting, boot_val, source] FROM pg_catalog.pg_settings "
    "WHERE context IN ('user', 'superuser') AND source NOT IN ('default', 'override'))"
)
"""An expression: the settings that something gives a session, before tique gives it others."""

OBEYED = (
    {"default_transaction_isolation", "default_transaction_read_only"}
    | TIMEOUTS
    | CONNECTIONS
)
"""Settings of connections, transactions and statements, which are the driver's."""

OVERRIDDEN = frozenset({"synchronous_commit", "search_path"})
"""A commit is durable; the path is followed
(:mod:`tique_backends.postgresql.catalog.paths`)."""

_SERVERS = re.compile(
    "(?:(?:auto|backend|client_connection|commit|debug|gin|icu|io|jit|log|"
    "scram|tcp|track|trace|vacuum|wal)_.*|allow_(?:in_place|system)_.*|"
    "(?:local|session)_preload_libraries|(?:dynamic_library|extension_control)_path|"
    "extension_destdir|output_plugin_libraries|"
    "backtrace_functions|check_function_bodies|composite_type_mismatch|compute_query_id|"
    "createrole_self_grant|deadlock_timeout|default_tablespace|temp_tablespaces|"
    "default_text_search_config|default_toast_compression|escape_string_warning|"
    "event_triggers|file_copy_method|ignore_checksum_failure|lc_messages|lc_numeric|"
    "lo_compat_privileges|max_stack_depth|password_encryption|synchronize_seqscans|"
    "timezone_abbreviations|update_process_title|xmlbinary|xmloption|"
    "zero_damaged_pages)"
)
"""Settings that every session of the connection's begins with, and the server obeys."""

_ROLES_OWN = {"client", "user", "database user"}
_SERVERS_OWN = {"configuration file", "command line", "environment variable"}
_MONEY = "lc_monetary"


def planning(began: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """The planner's settings that are the URL's, the role's or the database's.

    An application's statements are under them, and tique's own are not: these have
    PostgreSQL's own values, or the server's (P6).
    """
    return {
        name: usual
        for name, _, usual, source in began
        if source not in _SERVERS_OWN and PLANNING.fullmatch(name)
    }


def obeyed(began: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """The settings that the driver obeys, of those that a session began with.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming a setting that cannot be obeyed.
    """
    own = planning(began)
    found = {name: value for name, value, *_ in began if name in own}
    for name, value, usual, source in began:
        folded = name.lower()
        if folded in OBEYED:
            found[folded] = value
        elif folded == _MONEY and source in _ROLES_OWN:
            # Values of MONEY are kept as the database's other sessions write them.
            raise _refusal(name, value, source, RULES.reasons[_MONEY])
        elif not (
            value == usual
            or "." in name
            or folded in OVERRIDDEN | {_MONEY}
            or RULES.free.fullmatch(folded)
            or _SERVERS.fullmatch(folded)
        ):
            _check(name, value, source)
    return found


def _check(name: str, value: str, source: str) -> None:
    folded = name.lower()
    try:
        RULES.check(folded, [value])
    except EngineError as error:
        reason = RULES.reasons.get(folded, UNKNOWN)
        raise _refusal(name, value, source, reason) from error


def _refusal(name: str, value: str, source: str, reason: str) -> EngineError:
    return EngineError(
        ErrorKind.UNSUPPORTED,
        f'setting "{name}" is not supported to be "{value}" (from {source}): {reason}; '
        f"give this connection another value, as by options=-c{name}%3D… in the URL or "
        "ALTER ROLE … SET",
    )
