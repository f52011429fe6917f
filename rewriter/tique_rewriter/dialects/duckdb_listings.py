"""DuckDB's relations that list the content of a database, of releases 1.5 and 2.0.

tique's objects are in the schema ``tique``, among the temporary tables (where the
application's have other names, and are not listed) and among the functions, as an
extension of the same name.
"""

from __future__ import annotations

_SCHEMA = "schema_name <> 'tique'"
_TABLE = "schema_name <> 'tique' AND database_name <> 'temp'"
_COLUMNS = "schema_name <> 'tique' AND (internal OR database_name <> 'temp')"
_FUNCTION = "NOT starts_with(function_name, 'tique_')"
_STANDARD = "table_schema <> 'tique' AND table_catalog <> 'temp'"
_STANDARD_CONSTRAINT = "constraint_schema <> 'tique' AND constraint_catalog <> 'temp'"
_DEFINITION = (
    "NOT starts_with(coalesce(sql, ''), 'CREATE TABLE tique.') "
    "AND NOT starts_with(coalesce(sql, ''), 'CREATE TEMP')"
)
_TABLES = (
    "(SELECT table_oid FROM system.main.duckdb_tables() "
    "WHERE schema_name = 'tique' OR temporary)"
)
_STAGE = "NOT starts_with(tablename, 'tique_')"

_NUMBERED = (
    "* REPLACE (row_number() OVER (ORDER BY constraint_index) - 1 AS constraint_index)"
)

_FUNCTIONS = {
    "duckdb_columns": _COLUMNS,
    "duckdb_constraints": _TABLE,
    "duckdb_extensions": "extension_name <> 'tique'",
    "duckdb_functions": _FUNCTION,
    "duckdb_indexes": _TABLE,
    "duckdb_schemas": _SCHEMA,
    "duckdb_sequences": _SCHEMA,
    "duckdb_tables": _TABLE,
    "duckdb_triggers": _TABLE,
    "duckdb_types": _SCHEMA,
    "duckdb_views": _SCHEMA,
}

_WHOLE = """
duckdb_approx_database_count duckdb_available_metrics duckdb_coordinate_systems
duckdb_databases duckdb_dialects duckdb_extension_repositories
duckdb_external_file_cache duckdb_external_resource_types duckdb_external_resources
duckdb_grammar_extensions duckdb_keywords duckdb_optimizers
duckdb_secret_type_parameters duckdb_secret_types duckdb_secrets duckdb_settings
duckdb_variables
"""
"""Table functions that tell nothing of tables, statements and memory."""

_VIEWS = {
    "main.duckdb_columns": _COLUMNS,
    "main.duckdb_constraints": _TABLE,
    "main.duckdb_databases": "",
    "main.duckdb_indexes": _TABLE,
    "main.duckdb_schemas": _SCHEMA,
    "main.duckdb_tables": _TABLE,
    "main.duckdb_types": _SCHEMA,
    "main.duckdb_views": _SCHEMA,
    "main.pragma_database_list": "",
    "main.sqlite_master": _DEFINITION,
    "main.sqlite_schema": _DEFINITION,
    "main.sqlite_temp_master": _DEFINITION,
    "main.sqlite_temp_schema": _DEFINITION,
    "information_schema.character_sets": "",
    "information_schema.check_constraints": _STANDARD_CONSTRAINT,
    "information_schema.columns": _STANDARD,
    "information_schema.constraint_column_usage": _STANDARD,
    "information_schema.constraint_table_usage": _STANDARD,
    "information_schema.key_column_usage": _STANDARD,
    "information_schema.referential_constraints": _STANDARD_CONSTRAINT,
    "information_schema.schemata": _SCHEMA,
    "information_schema.table_constraints": _STANDARD,
    "information_schema.tables": _STANDARD,
    "information_schema.views": _STANDARD,
    "pg_catalog.pg_am": "",
    "pg_catalog.pg_attrdef": f"adrelid NOT IN {_TABLES}",
    "pg_catalog.pg_attribute": f"attrelid NOT IN {_TABLES}",
    "pg_catalog.pg_class": f"oid NOT IN {_TABLES}",
    "pg_catalog.pg_collation": "",
    "pg_catalog.pg_constraint": f"conrelid NOT IN {_TABLES}",
    "pg_catalog.pg_database": "",
    "pg_catalog.pg_depend": f"objid NOT IN {_TABLES} AND refobjid NOT IN {_TABLES}",
    "pg_catalog.pg_description": f"objoid NOT IN {_TABLES}",
    "pg_catalog.pg_enum": "",
    "pg_catalog.pg_index": f"indrelid NOT IN {_TABLES}",
    "pg_catalog.pg_indexes": f"schemaname <> 'tique' AND {_STAGE}",
    "pg_catalog.pg_namespace": "nspname <> 'tique'",
    "pg_catalog.pg_proc": "NOT starts_with(proname, 'tique_')",
    "pg_catalog.pg_sequence": "",
    "pg_catalog.pg_sequences": "schemaname <> 'tique'",
    "pg_catalog.pg_settings": "",
    "pg_catalog.pg_tables": f"schemaname <> 'tique' AND {_STAGE}",
    "pg_catalog.pg_tablespace": "",
    "pg_catalog.pg_type": "",
    "pg_catalog.pg_views": "schemaname <> 'tique'",
}


def _query(relation: str, condition: str) -> str:
    if not condition:
        return ""
    # Constraints are numbered through all tables.
    shown = _NUMBERED if "duckdb_constraints" in relation else "*"
    return f"SELECT {shown} FROM system.{relation} WHERE {condition}"


_OF_PATH = "in_search_path(database_name, schema_name)"
_SHOWN = {
    "TABLES": 'SELECT table_name AS "name" '
    f"FROM ({_query('main.duckdb_tables()', _TABLE)}) WHERE {_OF_PATH} UNION ALL "
    f"SELECT view_name FROM ({_query('main.duckdb_views()', _SCHEMA)}) "
    f"WHERE {_OF_PATH} AND NOT internal ORDER BY 1",
    "ALL TABLES": "SELECT * FROM (SHOW ALL TABLES) WHERE \"schema\" <> 'tique' AND NOT "
    "(temporary AND starts_with(\"name\", 'tique_')) ORDER BY ALL",
    "DATABASES": "SHOW DATABASES",
    "SCHEMAS": "SELECT * FROM (SHOW SCHEMAS) WHERE schema_name <> 'tique' ORDER BY ALL",
}

LISTINGS = {
    **{f"SHOW {name}": query for name, query in _SHOWN.items()},
    **{f"{n}()": _query(f"main.{n}()", shown) for n, shown in _FUNCTIONS.items()},
    **{name: _query(name, shown) for name, shown in _VIEWS.items()},
}
"""As :attr:`~tique_rewriter.dialects.Rules.listings` has them."""

FUNCTIONS = (*_FUNCTIONS, *_WHOLE.split())
"""The table functions among these, and others that may be called."""
