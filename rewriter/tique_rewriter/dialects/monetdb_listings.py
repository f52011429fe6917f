"""MonetDB's relations that list the content of a database, as of release 11.41.

tique's objects are in the schema ``tique``, or are temporary tables (applications have
none through tique). A rollback may leave the catalog of temporary tables unreadable, also to
other sessions: it is not read, and what lists those beside others is read from below.
"""

from __future__ import annotations

_SCHEMAS = "(SELECT s.id FROM sys.schemas AS s WHERE s.name IN ('tique', 'tmp'))"
_TABLES = (
    "(SELECT t.id FROM sys._tables AS t "
    f"WHERE NOT t.system AND t.schema_id IN {_SCHEMAS})"
)
_PARTS = f"table_id NOT IN {_TABLES}"
_FUNCTIONS = (
    "(SELECT f.id FROM sys.functions AS f JOIN sys.schemas AS s ON s.id = f.schema_id "
    "WHERE s.name = 'tique')"
)
_OWN = "({} UNION ALL {} UNION ALL {})".format(
    _TABLES[1:-1],
    _FUNCTIONS[1:-1],
    " UNION ALL ".join(
        f"SELECT o.id FROM sys.{parts} AS o WHERE o.table_id IN {_TABLES}"
        for parts in ("_columns", "keys", "idxs")
    ),
)
_NAMED = "schema_id NOT IN (SELECT s.id FROM sys.schemas AS s WHERE s.name = 'tique')"
_LISTED = {
    "schemas": "name <> 'tique'",
    "keys": _PARTS,
    "idxs": _PARTS,
    "objects": " AND ".join(
        f"id NOT IN (SELECT o.id FROM sys.{parts} AS o WHERE o.table_id IN {_TABLES})"
        for parts in ("keys", "idxs")
    ),
    "sequences": f"schema_id NOT IN {_SCHEMAS}",
    "_tables": f"system OR schema_id NOT IN {_SCHEMAS}",
    "_columns": _PARTS,
    "functions": _NAMED,
    "args": f"func_id NOT IN {_FUNCTIONS}",
    "triggers": _PARTS,
    "comments": f"id NOT IN {_OWN}",
    "privileges": f"obj_id NOT IN {_OWN}",
    "dependencies": f"id NOT IN {_OWN} AND depend_id NOT IN {_OWN}",
    "fully_qualified_functions": f"id NOT IN {_FUNCTIONS}",
    "systemfunctions": f"function_id NOT IN {_FUNCTIONS}",
    "describe_constraints": "sch NOT IN ('tique', 'tmp')",
    "describe_tables": "sch NOT IN ('tique', 'tmp')",
    "describe_comments": f"id NOT IN {_OWN}",
    "table_partitions": _PARTS,
}
_WHOLE = """
auths db_user_info dependency_types environment roles types user_role users keywords
function_languages function_types index_types key_types privilege_codes table_types
"""
REFUSED = (
    "bbp|fkey_actions",
    r"dependenc(?!ies$|y_types$)\w+|describe_(?!constraints$|tables$|comments$)\w+",
    r"dump_\w+|fkeys|ids|malfunctions|optimizers|prepared_statements(?:_args)?",
    r"procedures|querylog_\w+|queue|rejects|schemastorage|sessions|statistics",
    r"storage\w*|(?:range|value)_partitions|tablestorage\w*|tracelog",
    "unclosed_result_sets|var_values",
)
"""Relations that show tique's objects, sessions and statements, or might."""

_KIND = (
    'CAST(CASE WHEN system THEN "type" + 10 WHEN commit_action = 0 THEN "type" '
    'ELSE "type" + 20 END AS SMALLINT) AS "type"'
)

LISTINGS = {
    **{f"sys.{name}": "" for name in _WHOLE.split()},
    "sys.tables": (
        f"SELECT id, name, schema_id, query, {_KIND}, system, commit_action, access, "
        "CASE WHEN NOT system AND commit_action > 0 THEN 1 ELSE 0 END AS temporary "
        f'FROM sys._tables WHERE "type" <> 2 AND ({_LISTED["_tables"]})'
    ),
    "sys.columns": f"SELECT * FROM sys._columns WHERE {_PARTS}",
    **{
        f"sys.{name}": f"SELECT * FROM sys.{name} WHERE {shown}"
        for name, shown in _LISTED.items()
    },
}
"""As :attr:`~tique_rewriter.dialects.Rules.listings` has them."""
