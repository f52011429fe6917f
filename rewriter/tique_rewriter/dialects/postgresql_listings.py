"""PostgreSQL's relations that list the content of a database, of releases 15 to 18.

tique's objects are those in the schema ``tique``; a temporary table of that name, in a
session's own schema, with its row type; the tables that keep long values of all these;
and the extension.
"""

from __future__ import annotations

from tique_rewriter.plans.plan import DRIVERS_OWN

_SCHEMA = "(SELECT n.oid FROM pg_catalog.pg_namespace AS n WHERE n.nspname = 'tique')"
_TEMPORARY = r"relpersistence = 't' AND c.relname ~ '^_?tique_'"
_OWN = f"(c.relnamespace IN {_SCHEMA} OR c.{_TEMPORARY})"
_CLASSES = (
    f"(SELECT c.oid FROM pg_catalog.pg_class AS c WHERE {_OWN} "
    "UNION ALL SELECT c.reltoastrelid FROM pg_catalog.pg_class AS c "
    f"WHERE {_OWN} AND c.reltoastrelid <> 0 "
    "UNION ALL SELECT i.indexrelid FROM pg_catalog.pg_index AS i "
    "JOIN pg_catalog.pg_class AS c ON c.reltoastrelid = i.indrelid "
    f"WHERE {_OWN})"
)
_FUNCTIONS = (
    f"(SELECT p.oid FROM pg_catalog.pg_proc AS p WHERE p.pronamespace IN {_SCHEMA})"
)
_EXTENSIONS = (
    "(SELECT e.oid FROM pg_catalog.pg_extension AS e WHERE e.extname = 'tique')"
)
_ROW_TYPES = (
    f"(SELECT t.oid FROM pg_catalog.pg_type AS t WHERE t.typrelid IN {_CLASSES})"
)
_DEPENDENT = (
    f"({_CLASSES[1:-1]} UNION ALL {_FUNCTIONS[1:-1]} UNION ALL {_EXTENSIONS[1:-1]} "
    f"UNION ALL {_SCHEMA[1:-1]} UNION ALL "
    "SELECT t.oid FROM pg_catalog.pg_type AS t WHERE t.typrelid IN "
    f"{_CLASSES} OR t.typelem IN {_ROW_TYPES} OR t.typnamespace IN {_SCHEMA} UNION ALL "
    "SELECT d.oid FROM pg_catalog.pg_attrdef AS d WHERE d.adrelid IN "
    f"{_CLASSES} UNION ALL "
    "SELECT k.oid FROM pg_catalog.pg_constraint AS k WHERE k.conrelid IN "
    f"{_CLASSES} OR k.connamespace IN {_SCHEMA} UNION ALL "
    "SELECT r.oid FROM pg_catalog.pg_rewrite AS r WHERE r.ev_class IN "
    f"{_CLASSES} UNION ALL "
    "SELECT g.oid FROM pg_catalog.pg_trigger AS g WHERE g.tgrelid IN "
    f"{_CLASSES} UNION ALL "
    "SELECT a.oid FROM pg_catalog.pg_default_acl AS a WHERE a.defaclnamespace IN "
    f"{_SCHEMA})"
)
"""The numbers of all of tique's objects: an object's is in no other catalog."""
_NAMED = "schemaname <> 'tique' AND (schemaname !~ '^pg_temp_' OR {} !~ '^tique_')"


def _outside(column: str) -> str:
    """Where a column has the number of a table or an index."""
    return f"{column} NOT IN {_CLASSES}"


def _named(column: str) -> str:
    """Where columns have the names of a schema and of a table."""
    return _NAMED.format(column)


def _standard(*columns: str, table: str = "") -> str:
    """Where the standard's columns have the names of schemas, and one that of a table."""
    shown = [f"{column} IS DISTINCT FROM 'tique'" for column in columns]
    if table:
        shown.append(f"({columns[0]} !~ '^pg_temp_' OR {table} !~ '^tique_')")
    return " AND ".join(shown)


_IN_CATALOGS = "schemaname = 'pg_catalog'"
_STATS = ("most_common_vals", "histogram_bounds", "most_common_elems")
_STATISTIC = tuple(f"stavalues{number}" for number in range(1, 6))


def _of_catalogs(catalogs: str, *values: str) -> str:
    """Where the statistics of the engine's own catalogs have no name of tique's."""
    return f"NOT ({catalogs} AND concat({', '.join(values)}) ~ 'tique')"


_CATALOGS = {
    "attrdef": _outside("adrelid"),
    "attribute": _outside("attrelid"),
    "available_extension_versions": "name <> 'tique'",
    "available_extensions": "name <> 'tique'",
    "class": _outside("oid"),
    "constraint": f"connamespace NOT IN {_SCHEMA} AND {_outside('conrelid')}",
    "depend": f"objid NOT IN {_DEPENDENT} AND refobjid NOT IN {_DEPENDENT}",
    "description": (
        f"NOT (classoid = 'pg_catalog.pg_proc'::regclass AND objoid IN {_FUNCTIONS}) "
        "AND NOT (classoid = 'pg_catalog.pg_extension'::regclass "
        f"AND objoid IN {_EXTENSIONS})"
    ),
    "extension": "extname <> 'tique'",
    "foreign_table": _outside("ftrelid"),
    "index": _outside("indrelid"),
    "indexes": _named("tablename"),
    "inherits": _outside("inhrelid"),
    "matviews": "schemaname <> 'tique'",
    "namespace": (
        "nspname <> 'tique' AND (nspname !~ '^pg_(toast_)?temp_' OR oid IN (SELECT "
        f"o.relnamespace FROM pg_catalog.pg_class AS o WHERE o.{_outside('oid')}))"
    ),
    "partitioned_table": _outside("partrelid"),
    "policies": "schemaname <> 'tique'",
    "policy": _outside("polrelid"),
    "proc": f"pronamespace NOT IN {_SCHEMA}",
    "publication_rel": _outside("prrelid"),
    "publication_tables": "schemaname <> 'tique'",
    "rewrite": _outside("ev_class"),
    "rules": "schemaname <> 'tique'",
    "sequence": _outside("seqrelid"),
    "sequences": "schemaname <> 'tique'",
    # The values of the engine's own transactions would be wrong.
    "settings": "name NOT IN ({})".format(
        ", ".join(f"'{name}'" for name in sorted(DRIVERS_OWN))
    ),
    "stat_all_indexes": _outside("relid"),
    "stat_all_tables": _outside("relid"),
    "stat_sys_indexes": _outside("relid"),
    "stat_sys_tables": _outside("relid"),
    "stat_user_functions": "schemaname <> 'tique'",
    "stat_user_indexes": _outside("relid"),
    "stat_user_tables": _outside("relid"),
    "statio_all_indexes": _outside("relid"),
    "statio_all_sequences": _outside("relid"),
    "statio_all_tables": _outside("relid"),
    "statio_sys_indexes": _outside("relid"),
    "statio_sys_sequences": _outside("relid"),
    "statio_sys_tables": _outside("relid"),
    "statio_user_indexes": _outside("relid"),
    "statio_user_sequences": _outside("relid"),
    "statio_user_tables": _outside("relid"),
    "statistic": f"{_outside('starelid')} AND {_of_catalogs('starelid < 16384', *_STATISTIC)}",
    "statistic_ext": _outside("stxrelid"),
    "stats": f"{_named('tablename')} AND {_of_catalogs(_IN_CATALOGS, *_STATS)}",
    "stats_ext": "schemaname <> 'tique'",
    "stats_ext_exprs": "schemaname <> 'tique'",
    "tables": _named("tablename"),
    "trigger": _outside("tgrelid"),
    "type": (
        f"typnamespace NOT IN {_SCHEMA} AND {_outside('typrelid')} "
        f"AND typelem NOT IN {_ROW_TYPES}"
    ),
    "views": "schemaname <> 'tique'",
}

_WHOLE = """
aggregate am amop amproc auth_members authid cast collation config conversion database
db_role_setting default_acl enum event_trigger file_settings foreign_data_wrapper
foreign_server group hba_file_rules ident_file_mappings language largeobject_metadata
opclass operator opfamily parameter_acl publication publication_namespace range
replication_origin replication_origin_status replication_slots roles shadow
stat_archiver stat_bgwriter stat_checkpointer stat_database stat_database_conflicts
stat_io stat_recovery_prefetch stat_replication stat_replication_slots stat_slru
stat_subscription stat_subscription_stats stat_wal stat_wal_receiver subscription
subscription_rel tablespace timezone_abbrevs timezone_names transform ts_config
ts_config_map ts_dict ts_parser ts_template user user_mapping user_mappings
"""
"""Relations that show nothing of tables, functions, sessions and statements."""

REFUSED = """
aios backend_memory_contexts cursors init_privs locks prepared_statements
prepared_xacts seclabel seclabels shdepend shdescription shmem_allocations
shmem_allocations_numa shseclabel stat_gssapi stat_progress_analyze
stat_progress_basebackup stat_progress_cluster stat_progress_copy
stat_progress_create_index stat_progress_vacuum stat_ssl stat_xact_all_tables
stat_xact_sys_tables stat_xact_user_functions stat_xact_user_tables statistic_ext_data
wait_events
"""
"""Relations that show tique's sessions, statements, locks, or objects of any kind."""

_STANDARD = {
    "administrable_role_authorizations": "",
    "applicable_roles": "",
    "attributes": _standard("udt_schema"),
    "character_sets": "",
    "check_constraint_routine_usage": _standard("constraint_schema", "specific_schema"),
    "check_constraints": _standard("constraint_schema")
    + " AND constraint_schema !~ '^pg_temp_'",
    "collation_character_set_applicability": "",
    "collations": "",
    "column_column_usage": _standard("table_schema", table="table_name"),
    "column_domain_usage": _standard("table_schema", table="table_name"),
    "column_options": _standard("table_schema", table="table_name"),
    "column_privileges": _standard("table_schema", table="table_name"),
    "column_udt_usage": _standard("table_schema", table="table_name"),
    "columns": _standard("table_schema", table="table_name"),
    "constraint_column_usage": _standard("table_schema", table="table_name"),
    "constraint_table_usage": _standard("table_schema", table="table_name"),
    "data_type_privileges": _standard("object_schema", table="object_name"),
    "domain_constraints": _standard("domain_schema"),
    "domain_udt_usage": _standard("domain_schema"),
    "domains": _standard("domain_schema"),
    "element_types": _standard("object_schema", table="object_name"),
    "enabled_roles": "",
    "foreign_data_wrapper_options": "",
    "foreign_data_wrappers": "",
    "foreign_server_options": "",
    "foreign_servers": "",
    "foreign_table_options": _standard("foreign_table_schema"),
    "foreign_tables": _standard("foreign_table_schema"),
    "information_schema_catalog_name": "",
    "key_column_usage": _standard("table_schema", table="table_name"),
    "parameters": _standard("specific_schema"),
    "referential_constraints": _standard("constraint_schema"),
    "role_column_grants": _standard("table_schema", table="table_name"),
    "role_routine_grants": _standard("routine_schema"),
    "role_table_grants": _standard("table_schema", table="table_name"),
    "role_udt_grants": _standard("udt_schema", table="udt_name"),
    "role_usage_grants": _standard("object_schema"),
    "routine_column_usage": _standard("specific_schema", "table_schema"),
    "routine_privileges": _standard("routine_schema"),
    "routine_routine_usage": _standard("specific_schema", "routine_schema"),
    "routine_sequence_usage": _standard("specific_schema", "sequence_schema"),
    "routine_table_usage": _standard("specific_schema", "table_schema"),
    "routines": _standard("routine_schema"),
    "schemata": _standard("schema_name") + " AND schema_name !~ '^pg_(toast_)?temp_'",
    "sequences": _standard("sequence_schema"),
    "sql_features": "",
    "sql_implementation_info": "",
    "sql_parts": "",
    "sql_sizing": "",
    "table_constraints": _standard("table_schema", table="table_name"),
    "table_privileges": _standard("table_schema", table="table_name"),
    "tables": _standard("table_schema", table="table_name"),
    "transforms": "",
    "triggered_update_columns": _standard("event_object_schema"),
    "triggers": _standard("event_object_schema"),
    "udt_privileges": _standard("udt_schema", table="udt_name"),
    "usage_privileges": _standard("object_schema"),
    "user_defined_types": _standard("user_defined_type_schema"),
    "user_mapping_options": "",
    "user_mappings": "",
    "view_column_usage": _standard("view_schema"),
    "view_routine_usage": _standard("table_schema", "specific_schema"),
    "view_table_usage": _standard("view_schema"),
    "views": _standard("table_schema"),
}


def _query(relation: str, condition: str) -> str:
    return f"SELECT * FROM {relation} WHERE {condition}" if condition else ""


_SESSIONS = "SELECT " + ", ".join(
    f"CASE WHEN FALSE THEN {name} END AS {name}" if is_hidden else name
    for names, is_hidden in (
        ("datid datname pid leader_pid usesysid usename application_name", False),
        ("client_addr client_hostname client_port backend_start", False),
        ("xact_start query_start state_change wait_event_type wait_event state", True),
        ("backend_xid backend_xmin query_id query", True),
        ("backend_type", False),
    )
    for name in names.split()
)
"""The server's sessions, without what they do: as a role sees those of others."""

LISTINGS = {
    "pg_catalog.pg_stat_activity": f"{_SESSIONS} FROM pg_catalog.pg_stat_activity",
    **{f"pg_catalog.pg_{name}": "" for name in _WHOLE.split()},
    **{
        name: _query(name, shown)
        for short, shown in _CATALOGS.items()
        for name in [f"pg_catalog.pg_{short}"]
    },
    **{
        name: _query(name, shown)
        for short, shown in _STANDARD.items()
        for name in [f"information_schema.{short}"]
    },
}
"""As :attr:`~tique_rewriter.dialects.Rules.listings` has them."""


_OWNED = {
    "SCHEMA": "namespace nsp TRUE",
    "TABLE": "class rel table relkind IN ('r', 'v', 'm', 'S')",
    "VIEW": "class rel table relkind = 'v'",
    "MATERIALIZED VIEW": "class rel table relkind = 'm'",
    "SEQUENCE": "class rel table relkind = 'S'",
    "TYPE": "type typ type TRUE",
    "DOMAIN": "type typ type typtype = 'd'",
    "FUNCTION": "proc pro function prokind IN ('f', 'w')",
    "PROCEDURE": "proc pro function prokind = 'p'",
    "AGGREGATE": "proc pro function prokind = 'a'",
}
"""Catalogs, how their columns and ``pg_…_is_visible`` are named, and a condition."""


def _owner(catalog: str, prefix: str, seen: str, condition: str = "") -> str:
    place, signature = "$1::TEXT IS NULL", "$3::TEXT IS NULL"
    if condition:
        place = (
            f"CASE WHEN {place} THEN pg_catalog.pg_{seen}_is_visible(oid) ELSE {prefix}"
            "namespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident($1)) END"
        )
    if seen == "function":
        called = "pg_catalog.pg_get_function_identity_arguments(oid)"
        signature = f"({signature} OR {called} = $3)"
    return (
        f"SELECT pg_catalog.pg_get_userbyid({prefix}owner)::TEXT, current_user::TEXT FROM "
        f"pg_catalog.pg_{catalog} WHERE {prefix}name = $2::TEXT AND {place} AND "
        f"{signature} AND {condition or seen}"
    )


OWNERS = {kind: _owner(*told.split(maxsplit=3)) for kind, told in _OWNED.items()}
"""Queries for the owner of an object and the session's role, by the object's kind.

Given are its schema or NULL, its name, and a function's arguments or NULL.
"""
