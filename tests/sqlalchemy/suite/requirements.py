"""What each engine allows: everything that is not closed here, with the reason."""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_OPEN = [
    "unique_index_reflect_as_unique_constraints",
    "aggregate_order_by",
    "array_type",
    "autocommit",
    "boolean_col_expressions",
    "check_constraint_reflection",
    "column_collation_reflection",
    "comment_reflection",
    "comment_reflection_full_unicode",
    "computed_columns",
    "computed_columns_default_persisted",
    "computed_columns_reflect_persisted",
    "computed_columns_stored",
    "computed_columns_virtual",
    "constraint_comment_reflection",
    "create_or_replace_view",
    "create_table_as",
    "create_temp_table_as",
    "cross_schema_fk_reflection",
    "ctes",
    "ctes_on_dml",
    "ctes_with_update_delete",
    "ctes_with_values",
    "date_historic",
    "datetime_historic",
    "datetime_interval",
    "datetime_literals",
    "datetime_timezone",
    "datetime_timezone_historic",
    "dbapi_lastrowid",
    "default_schema_name_switch",
    "deferrable_fks",
    "delete_from",
    "except_",
    "expression_server_defaults",
    "fetch_expression",
    "fetch_first",
    "fetch_no_order_by",
    "fetch_offset_with_options",
    "fetch_percent",
    "fetch_ties",
    "fk_constraint_option_reflection_ondelete_restrict",
    "fk_constraint_option_reflection_onupdate_restrict",
    "float_or_double_precision_behaves_generically",
    "foreign_key_constraint_name_reflection",
    "foreign_key_constraint_option_reflection_ondelete",
    "foreign_key_constraint_option_reflection_onupdate",
    "has_temp_table",
    "identity_columns",
    "identity_columns_standard",
    "implicit_default_schema",
    "index_ddl_if_exists",
    "index_reflects_included_columns",
    "indexes_with_expressions",
    "infinity_floats",
    "inline_check_constraint_reflection",
    "intersect",
    "isolation_level",
    "json_type",
    "materialized_views",
    "mod_operator_as_percent_sign",
    "nullsordering",
    "order_by_label_with_expression",
    "percent_schema_names",
    "precision_numerics_enotation_small",
    "precision_numerics_many_significant_digits",
    "precision_numerics_retains_significant_digits",
    "reflect_indexes_with_expressions",
    "reflect_table_options",
    "reflect_tables_no_columns",
    "reflects_pk_names",
    "regexp_match",
    "regexp_replace",
    "repeated_column_foreign_keys",
    "repeated_remote_col_foreign_keys",
    "savepoints",
    "schema_create_delete",
    "schemas",
    "server_defaults",
    "skip_autocommit_rollback",
    "supports_bitwise_and",
    "supports_bitwise_not",
    "supports_bitwise_or",
    "supports_bitwise_shift",
    "supports_bitwise_xor",
    "supports_distinct_on",
    "table_ddl_if_exists",
    "table_value_constructor",
    "temp_table_comment_reflection",
    "temp_table_names",
    "temporary_views",
    "time_timezone",
    "timestamp_microseconds",
    "tuple_in",
    "two_phase_transactions",
    "unicode_ddl",
    "unique_constraints_reflect_as_index",
    "update_from",
    "uuid_data_type",
    "views",
    "window_functions",
    "window_range",
    "window_range_non_numeric",
    "window_range_numeric",
]

_OTHERWISE = {
    "foreign_keys_reflect_as_index": "a FOREIGN KEY makes no index",
    "non_updating_cascade": "ON UPDATE CASCADE works",
    "emulated_lastrowid": "RETURNING gives keys",
    "emulated_lastrowid_even_with_sequences": "RETURNING gives keys",
    "dbapi_lastrowid": "RETURNING gives keys",
    "fk_constraint_option_reflection_ondelete_noaction": "NO ACTION is the default",
    "nvarchar_types": "no engine has NVARCHAR",
    "legacy_unconditional_json_extract": "the legacy behaviour of others",
    "two_phase_transactions": "tique has none",
    "ctes_with_update_delete": "tique refuses parameters in a query in WITH before a change",
    "json_deserializer_binary": "JSON is a text, not bytes",
    "async_dialect": "there is none yet",
    "default_schema_name_switch": "search paths stay as they are",
    "materialized_views_reflect_pk": "a materialized view has no PRIMARY KEY",
    "temporary_views": "tique refuses them",
    "temp_table_reflection": "storage of temporary tables has names of its own",
    "temp_table_names": "storage of temporary tables has names of its own",
    "temp_table_reflect_indexes": "storage of temporary tables has names of its own",
    "temp_table_comment_reflection": "storage of temporary tables has names of its own",
    "has_temp_table": "storage of temporary tables has names of its own",
    "indexes_check_column_order": "columns may come in any order",
    "constraint_comment_reflection": "tique refuses COMMENT ON CONSTRAINT",
    "reflect_tables_no_columns": "tique refuses tables without columns",
    "repeated_column_foreign_keys": "tique refuses a column twice in a key",
    "repeated_remote_col_foreign_keys": "tique refuses a column twice in a key",
}
"""What is closed for all engines."""

_DUCKDB = {
    "materialized_views": "DuckDB has none",
    "unique_index_reflect_as_unique_constraints": "an index is an index",
    "computed_columns_default_persisted": "DuckDB's generated columns are VIRTUAL",
    "computed_columns_stored": "DuckDB's generated columns are VIRTUAL",
    "computed_columns_reflect_persisted": "DuckDB's generated columns are VIRTUAL",
    "fetch_percent": "DuckDB has no FETCH … PERCENT",
    "fetch_ties": "DuckDB has no WITH TIES",
    "window_range": "the suite expects rows in an order that it does not ask for",
    "window_range_numeric": "the suite expects rows in an order that it does not ask for",
    "window_range_non_numeric": "the suite expects rows in an order that it does not ask for",
    "identity_columns": "DuckDB has none: they are columns with a sequence",
    "identity_columns_standard": "DuckDB has none: they are columns with a sequence",
    "reflects_pk_names": "DuckDB gives constraints names of its own",
    "unique_constraint_reflection": "DuckDB gives constraints names of its own",
    "check_constraint_reflection": "DuckDB gives constraints names of its own",
    "inline_check_constraint_reflection": "DuckDB gives constraints names of its own",
    "unique_constraints_reflect_as_index": "a constraint is no index",
    "index_reflects_included_columns": "DuckDB's indexes have no INCLUDE",
}
SKIPPED = {
    "duckdb": {
        "test_string_length_reflection": "DuckDB keeps no length of a text",
        "test_truediv_divisor[numeric_many": "DuckDB divides DECIMALs as DOUBLEs",
        "test_without_metadata[use_temp": "the engine's catalog has no temporary tables",
        "test_long_convention_name[pk": "DuckDB gives constraints names of its own",
        "test_long_convention_name[uq": "DuckDB gives constraints names of its own",
        "test_long_convention_name[ck": "DuckDB gives constraints names of its own",
    },
    "monetdb": {
        "test_select_recursive_round_trip": "MonetDB 11.41 has another WITH RECURSIVE",
        "test_order_by_selectable_in_unions": "MonetDB has no LIMIT in parts of a UNION",
        "test_limit_render_multiple_times": "MonetDB has no LIMIT in parts of a UNION",
        "test_round_trip_same_named_column[%percent": "no name begins with a percent sign",
        "test_distinct_on": "the compiler is PostgreSQL's, which knows it",
        "test_index_cross_casts": "MonetDB's json.filter() gives an array of what it finds",
        "test_truediv_divisor[numeric_": "MonetDB's DECIMALs divide with fewer digits",
        "test_without_metadata[use_temp": "the engine's catalog has no temporary tables",
    },
    "postgresql": {
        "test_without_metadata[use_temp": "the engine's catalog has no temporary tables",
    },
}
"""Tests for which there is no requirement, by the beginnings of their names."""

_POSTGRESQL = {
    "unique_index_reflect_as_unique_constraints": "an index is an index",
    "fetch_percent": "PostgreSQL has no FETCH … PERCENT",
    "computed_columns_virtual": "PostgreSQL 15 has STORED columns only",
}
_MONETDB = {
    "materialized_views": "MonetDB has none",
    "array_type": "MonetDB has no arrays",
    "aggregate_order_by": "MonetDB 11.41 has no ORDER BY in aggregates",
    "check_constraint_reflection": "MonetDB 11.41 has no CHECK",
    "inline_check_constraint_reflection": "MonetDB 11.41 has no CHECK",
    "computed_columns": "MonetDB has no generated columns",
    "computed_columns_default_persisted": "MonetDB has no generated columns",
    "computed_columns_stored": "MonetDB has no generated columns",
    "computed_columns_virtual": "MonetDB has no generated columns",
    "computed_columns_reflect_persisted": "MonetDB has no generated columns",
    "column_collation_reflection": "MonetDB has no collations",
    "ctes_on_dml": "MonetDB has no changes in WITH",
    "deferrable_fks": "only PostgreSQL's syntax has them",
    "fetch_percent": "MonetDB 11.41 has LIMIT only",
    "fetch_ties": "MonetDB 11.41 has LIMIT only",
    "fetch_offset_with_options": "MonetDB 11.41 has LIMIT only",
    "fetch_expression": "MonetDB 11.41 has LIMIT only",
    "regexp_match": "MonetDB 11.41 has no regular expressions",
    "regexp_replace": "MonetDB 11.41 has no regular expressions",
    "index_ddl_if_exists": "MonetDB has no CREATE INDEX IF NOT EXISTS",
    "indexes_with_expressions": "MonetDB has no indexes on expressions",
    "reflect_indexes_with_expressions": "MonetDB has no indexes on expressions",
    "index_reflects_included_columns": "MonetDB's indexes have no INCLUDE",
    "infinity_floats": "MonetDB has no infinity",
    "supports_distinct_on": "MonetDB has no DISTINCT ON",
    "identity_columns_standard": "MonetDB's GENERATED ALWAYS takes values",
    "tuple_in": "MonetDB 11.41 has no IN of rows",
    "sql_expression_limit_offset": "MonetDB takes a number in LIMIT",
    "identity_columns": "MonetDB's are columns with a sequence, as AUTO_INCREMENT's are",
    "expression_server_defaults": "MonetDB's catalog has them in a form of its own",
    "indexes_with_ascdesc": "MonetDB's indexes have no order",
    "reflect_indexes_with_ascdesc": "MonetDB's indexes have no order",
    "implements_get_lastrowid": "RETURNING gives keys",
    "parens_in_union_contained_select_w_limit_offset": "MonetDB has no LIMIT there",
}


def _requirements(closed: dict[str, str]) -> type[SuiteRequirements]:
    closed = _OTHERWISE | closed

    def flag(name: str) -> property:
        reason = closed.get(name)

        def value(self: Any) -> Any:
            return exclusions.open() if reason is None else exclusions.closed(reason)

        return property(value)

    flags = {name: flag(name) for name in {*_OPEN, *closed}}
    return type("Requirements", (SuiteRequirements,), flags)


OF_ENGINES = {
    "duckdb": _requirements(_DUCKDB),
    "monetdb": _requirements(_MONETDB),
    "postgresql": _requirements(_POSTGRESQL),
}

Requirements: type[SuiteRequirements]
"""That of the process's engine, where SQLAlchemy's plugin looks for it."""
