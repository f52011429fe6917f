"""PostgreSQL's settings that an application may change.

Settings that change what a text means (``standard_conforming_strings``), how a value is
written (``bytea_output``; values are kept in this form by all sessions) keep the values
that tique needs. Planner's and memory's settings are free, and so is the time zone: values
of moments are kept with theirs. The search path is the connection's
(:mod:`tique_backends.postgresql.paths`).
"""

from __future__ import annotations

import re

from tique_backends.postgresql.paths import path_text, split_path
from tique_backends.settings import (
    LOCK_TIMEOUT,
    ROLES,
    STATEMENT_TIMEOUT,
    SettingRules,
)

_FREE = """
application_name timezone lc_time client_min_messages statement_timeout lock_timeout
work_mem maintenance_work_mem hash_mem_multiplier temp_buffers temp_file_limit
logical_decoding_work_mem
effective_cache_size effective_io_concurrency maintenance_io_concurrency random_page_cost
seq_page_cost cpu_tuple_cost cpu_index_tuple_cost cpu_operator_cost parallel_setup_cost
parallel_tuple_cost min_parallel_table_scan_size min_parallel_index_scan_size
max_parallel_workers max_parallel_workers_per_gather max_parallel_maintenance_workers
parallel_leader_participation debug_parallel_query force_parallel_mode
enable_async_append enable_bitmapscan enable_distinct_reordering enable_gathermerge
enable_group_by_reordering enable_hashagg enable_hashjoin enable_incremental_sort
enable_indexonlyscan enable_indexscan enable_material enable_memoize enable_mergejoin
enable_nestloop enable_parallel_append enable_parallel_hash enable_partition_pruning
enable_partitionwise_aggregate enable_partitionwise_join enable_presorted_aggregate
enable_self_join_elimination enable_seqscan enable_sort enable_tidscan
constraint_exclusion cursor_tuple_fraction from_collapse_limit join_collapse_limit
default_statistics_target plan_cache_mode recursive_worktable_factor
geqo geqo_effort geqo_generations geqo_pool_size geqo_seed geqo_selection_bias
geqo_threshold jit jit_above_cost jit_inline_above_cost jit_optimize_above_cost
stats_fetch_consistency
"""

_BOOLEAN = "on|true|yes|1"
_WRITTEN = "values are kept in one written form, which all sessions read"

_AS_IN_DUMPS = (
    *("xmloption", "default_tablespace", "default_table_access_method"),
    "check_function_bodies",
)
"""Settings that files of pg_dump and migration tools set to what they are by default."""

TIMEOUTS = frozenset({STATEMENT_TIMEOUT, LOCK_TIMEOUT})
"""Settings that tique's own statements must not be under."""

PLANNING = frozenset(_FREE.split()) - {
    *TIMEOUTS,
    *("application_name", "timezone", "lc_time", "client_min_messages"),
    *("temp_buffers", "temp_file_limit", "logical_decoding_work_mem"),
}
"""Settings of the planner, the executor and their memory: tique's statements have their own."""

RULES = SettingRules(
    engine="PostgreSQL",
    free=frozenset(_FREE.split()),
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
        "row_security": "tables with row-level security are refused in any case",
        "role": ROLES,
        "session_authorization": ROLES,
        "transaction_isolation": "use SET TRANSACTION ISOLATION LEVEL",
        "transaction_read_only": "use SET TRANSACTION READ ONLY",
        "default_transaction_deferrable": "SERIALIZABLE is not supported",
        "transaction_deferrable": "SERIALIZABLE is not supported",
        "idle_in_transaction_session_timeout": "tique keeps no transaction of the "
        "server's open while yours is idle",
        "transaction_timeout": "tique keeps no transaction of the server's open for yours",
        "session_replication_role": "it turns constraints off",
        "check_function_bodies": "functions are not created through tique",
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
        # No transaction of the server's is open meanwhile that a timeout could end.
        "idle_in_transaction_session_timeout": "SELECT '0'",
        "transaction_timeout": "SELECT '0'",
        "role": "SELECT 'none' WHERE pg_catalog.current_setting('role') = 'none'",
        **{
            name: f"SELECT pg_catalog.current_setting('{name}', true)"
            for name in _AS_IN_DUMPS
        },
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
