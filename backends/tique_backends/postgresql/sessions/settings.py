"""PostgreSQL's settings that an application may change.

Settings that change what a text means (``standard_conforming_strings``), how a value is
written (``bytea_output``; values are kept in this form by all sessions) keep the values
that tique needs. Planner's and memory's settings are free, and so is the time zone: values
of moments are kept with theirs. The search path is the connection's
(:mod:`tique_backends.postgresql.catalog.paths`).
"""

from __future__ import annotations

import re

from tique_backends.postgresql.catalog.paths import path_text, split_path
from tique_backends.settings import (
    CONNECTIONS,
    LOCK_TIMEOUT,
    ROLES,
    STATEMENT_TIMEOUT,
    SettingRules,
)

PLANNING = re.compile(
    r"enable_\w+|geqo(?:_\w+)?|jit|\w+_cost|\w*parallel\w*|\w+_io_concurrency|"
    r"(?:maintenance_|logical_decoding_)?work_mem|hash_mem_multiplier|effective_cache_size|constraint_exclusion|"
    r"cursor_tuple_fraction|\w+_collapse_limit|default_statistics_target|"
    r"plan_cache_mode|recursive_worktable_factor|stats_fetch_consistency"
)
"""Settings of the planner, the executor and their memory: tique's statements have their own."""

_BOOLEAN = "on|true|yes|1"
_WRITTEN = "values are kept in one written form, which all sessions read"

_AS_IN_DUMPS = ("xmloption", "default_tablespace", "default_table_access_method")
"""Settings that files of pg_dump and migration tools set to what they are by default."""

TIMEOUTS = frozenset({STATEMENT_TIMEOUT, LOCK_TIMEOUT})
"""Settings that tique's own statements must not be under."""

FREE = re.compile(
    f"{PLANNING.pattern}|{'|'.join(TIMEOUTS | CONNECTIONS)}|application_name|timezone|"
    "lc_time|client_min_messages|temp_buffers|temp_file_limit|check_function_bodies|"
    # No transaction of the server's is SERIALIZABLE, and none of tique's has to wait.
    "default_transaction_deferrable"
)

RULES = SettingRules(
    engine="PostgreSQL",
    free=FREE,
    limited={
        "standard_conforming_strings": re.compile(_BOOLEAN),
        "backslash_quote": re.compile("safe_encoding|off|false|no|0"),
        "client_encoding": re.compile("utf-?8|unicode"),
        "datestyle": re.compile(
            "iso(?:,(?:mdy|dmy|ymd|us|european|euro[a-z]*|noneuropean))?"
        ),
        "intervalstyle": re.compile("postgres"),
        "bytea_output": re.compile("hex"),
        "extra_float_digits": re.compile("[123]"),
        "synchronous_commit": re.compile("on|true|yes|1"),
        "row_security": re.compile(_BOOLEAN),
        "default_with_oids": re.compile("off|false|no|0"),
    },
    reasons={
        "standard_conforming_strings": "statements are read as when it is on",
        "backslash_quote": "statements are read as when it is off",
        "client_encoding": "tique needs UTF8",
        "names": 'it is client_encoding, and tique needs "UTF8"',
        "datestyle": f"{_WRITTEN}: ISO",
        "intervalstyle": f"{_WRITTEN}: postgres",
        "bytea_output": f"{_WRITTEN}: hex",
        "extra_float_digits": f"{_WRITTEN}, to the last digit",
        "synchronous_commit": "what is committed is durable, also for other connections "
        "that commit at the same moment",
        "row_security": "the tables of recent versions have policies, which a role that "
        "is not their owner reads them by",
        "default_with_oids": "PostgreSQL has no tables with OIDs any more",
        "role": ROLES,
        "session_authorization": ROLES,
        "transaction_isolation": "use SET TRANSACTION ISOLATION LEVEL",
        "transaction_read_only": "use SET TRANSACTION READ ONLY",
        "transaction_deferrable": "use SET TRANSACTION DEFERRABLE",
        "session_replication_role": "it turns constraints off",
        "lc_monetary": "it changes how MONEY is written",
        "lc_numeric": "it changes how numbers are written",
        "lc_messages": "errors are known by their texts",
        "default_tablespace": "tique's own tables would follow it",
        "default_table_access_method": "tique's own tables would follow it",
        "temp_tablespaces": "tique's own tables would follow it",
        "array_nulls": "statements are read as when it is on",
        "transform_null_equals": "statements are read as when it is off",
        "quote_all_identifiers": "tique reads the catalog's texts",
        "xmloption": "it changes which texts are values of XML",
        "xmlbinary": "it changes what an expression of XML is",
        "default_text_search_config": "it changes what a text search finds",
    },
    custom=re.compile(
        r"(?!(?:tique|plpgsql|plperl\w*|pltcl\w*|plpython\w*|citus|session_\w*|"
        r"auto_explain|pg_\w+|timescaledb)\.)[a-z_][a-z0-9_$]*(?:\.[a-z_][a-z0-9_$]*)+"
    ),
    # A connection may have begun with a role (?options=-crole%3D…), which stays.
    kept={
        "role": "SELECT 'none' WHERE pg_catalog.current_setting('role') = 'none'",
        **{
            name: f"SELECT pg_catalog.current_setting('{name}', true)"
            for name in _AS_IN_DUMPS
        },
        # The tables' policies are for other roles than their owner.
        "row_security": "SELECT 'off' FROM pg_catalog.pg_namespace "
        "WHERE nspname = 'tique' AND pg_catalog.pg_has_role(nspowner, 'USAGE')",
    },
    aliases={"time zone": "timezone"},
    has_local=True,
    is_transactional=True,
    resets_all=True,
    prepares_once=True,
    fixed=frozenset({"client_encoding", "standard_conforming_strings"}),
    paths=frozenset({"search_path", "schema"}),
    split_path=split_path,
    path_text=lambda _, schemas: path_text(schemas),
)
