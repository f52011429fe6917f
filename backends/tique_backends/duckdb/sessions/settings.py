"""DuckDB's settings that an application may change.

Most of DuckDB's settings are the instance's: all connections of the process have them, as
without tique. So one that changes what a statement means, how rows are ordered or what
is durable would change tique's own statements too. The connection's are the time zone and
the search path (:mod:`tique_backends.duckdb.catalog.paths`).

*Invariant* (P12). An option of the URL is obeyed or refused by name: it is one that SET may
change, too, or one that is decided when the database is opened (:func:`check_options`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.duckdb.catalog.paths import path_text
from tique_backends.settings import SettingRules

if TYPE_CHECKING:
    from collections.abc import Mapping

_INSTANCE = re.compile(
    "(?:external_)?threads|memory_limit|max_temp_directory_size|temp_directory|"
    r"preserve_insertion_order|allocator_\w+|pin_threads|perfect_ht_threshold|"
    r"\w+_join_threshold|index_scan_\w+|late_materialization_max_rows|"
    r"ordered_aggregate_threshold|prefer_range_joins|partitioned_write_\w+|"
    "dynamic_or_filter_threshold|pivot_filter_threshold|pivot_limit|"
    "enable_external_file_cache|enable_http_metadata_cache|parquet_metadata_cache|"
    "prefetch_all_parquet_files|disable_parquet_prefetching|"
    r"http_(?:proxy\w*|timeout|retries)|custom_user_agent|pandas_analyze_sample|"
    "scheduler_process_partial|enable_object_cache|explain_output|"
    "arrow_large_buffer_size"
)
_FREE = re.compile(
    f"(?!(?:external_)?threads$)(?:{_INSTANCE.pattern}|timezone|enable_progress_bar|"
    r"enable_progress_bar_print|progress_bar_time|(?:max_)?streaming_buffer_size)"
)
_AT_OPENING = """
access_mode enable_external_access allowed_directories allowed_paths allowed_configs
lock_configuration allow_unsigned_extensions allow_community_extensions
allow_extensions_metadata_mismatch allow_persistent_secrets allow_unredacted_secrets
autoinstall_known_extensions autoload_known_extensions autoinstall_extension_repository
custom_extension_repository extension_directory extension_directories
disabled_filesystems secret_directory default_secret_storage home_directory
file_search_path duckdb_api storage_compatibility_version default_block_size
temp_file_encryption
"""
_REASONS = {
    "DuckDB would end the process; give at most 999": "threads external_threads",
    "values are read by the Gregorian calendar": "calendar",
    "it changes what statements mean, of all connections and of tique's own": """
default_order default_null_order default_collation integer_division old_implicit_casting
lambda_syntax preserve_identifier_case order_by_non_integer_literal
scalar_subquery_error_on_multiple_rows ieee_floating_point_ops disable_timestamptz_casts
max_expression_depth dialect_compatibility_mode current_dialect show_behavior
binary_as_string current_transaction_invalidation_policy warnings_as_errors
default_transaction_invalidation_policy
""",
    "tique runs the engine's checkpoints, and commits are durable": """
checkpoint_threshold wal_autocheckpoint fsync_mode wal_autocheckpoint_entries
immediate_transaction_mode auto_checkpoint_skip_wal_threshold checkpoint_on_detach
""",
    "it is decided when the database is opened: give it in the URL": _AT_OPENING,
    "it would write tique's own statements, with their values; use EXPLAIN ANALYZE": """
enable_profiling profiling_mode profile_output profiling_output enable_logging
log_query_path logging_storage logging_level
""",
    "errors are known by their texts": "errors_as_json",
}
"""Why others are refused."""

_THREADS = re.compile(r"-?\d{1,3}|[a-z]+")
"""Not thousands: DuckDB 2.0 ends the process when it cannot start them."""

RULES = SettingRules(
    engine="DuckDB",
    free=_FREE,
    instance=_INSTANCE,
    limited={
        "threads": _THREADS,
        "external_threads": _THREADS,
        "calendar": re.compile("gregorian"),
    },
    reasons={name: why for why, names in _REASONS.items() for name in names.split()},
    paths=frozenset({"schema", "search_path"}),
    path_text=path_text,
    aliases={
        "max_memory": "memory_limit",
        "worker_threads": "threads",
        "null_order": "default_null_order",
    },
)


def check_options(options: Mapping[str, str]) -> None:
    """Refuse an option of the URL that would change what tique relies on.

    Raises
    ------
    EngineError
        UNSUPPORTED, with its name.
    """
    for name, value in options.items():
        folded = RULES.name(name.lower())
        if folded not in _AT_OPENING.split():
            RULES.check(folded, [value])
