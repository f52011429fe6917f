"""MonetDB's relations that list the content of a database, as of release 11.41.

tique's objects are in the schema ``tique``, or are temporary tables (applications have
none through tique).
"""

from __future__ import annotations

_SCHEMAS = "(SELECT s.id FROM sys.schemas AS s WHERE s.name IN ('tique', 'tmp'))"
_TABLES = (
    "(SELECT t.id FROM sys.tables AS t "
    f"WHERE NOT t.system AND t.schema_id IN {_SCHEMAS})"
)
_PARTS = f"table_id NOT IN {_TABLES}"
_LISTED = {
    "schemas": "name <> 'tique'",
    "tables": f"system OR schema_id NOT IN {_SCHEMAS}",
    "columns": _PARTS,
    "keys": _PARTS,
    "idxs": _PARTS,
    "objects": " AND ".join(
        f"id NOT IN (SELECT o.id FROM sys.{parts} AS o WHERE o.table_id IN {_TABLES})"
        for parts in ("keys", "idxs")
    ),
    "sequences": f"schema_id NOT IN {_SCHEMAS}",
}
_WHOLE = (
    "types",
    "keywords",
    "function_languages",
    "function_types",
    "index_types",
    "key_types",
    "privilege_codes",
    "table_types",
)
REFUSED = (
    "_columns|_tables|args|auths|bbp|comments|db_user_info|environment|fkey_actions",
    r"dependenc\w+|describe_\w+|dump_\w+|fkeys|functions|fully_qualified_functions",
    "ids|malfunctions|optimizers|prepared_statements(?:_args)?|privileges|procedures",
    r"querylog_\w+|queue|rejects|roles|schemastorage|sessions|statistics|storage\w*",
    r"systemfunctions|(?:range|table|value)_partitions|tablestorage\w*|tracelog",
    "triggers|unclosed_result_sets|user_role|users|var_values",
)
"""Relations that show tique's objects, sessions and statements, or might."""

LISTINGS = {
    **{f"sys.{name}": "" for name in _WHOLE},
    **{
        f"sys.{name}": f"SELECT * FROM sys.{name} WHERE {shown}"
        for name, shown in _LISTED.items()
    },
}
"""As :attr:`~tique_rewriter.dialects.Rules.listings` has them."""
