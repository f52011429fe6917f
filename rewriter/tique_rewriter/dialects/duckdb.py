"""DuckDB's dialect."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from sqlglot import expressions as exp
from sqlglot.dialects.duckdb import DuckDB

from tique_rewriter.dialects.duckdb_listings import FUNCTIONS, LISTINGS
from tique_rewriter.dialects.rules import Lexicon, Rules
from tique_rewriter.kinds import definitions, rows, sessions
from tique_rewriter.kinds.registry import Registry
from tique_rewriter.text.tokens import (
    ALONE,
    DOUBLED,
    ESCAPED,
    POSTGRES_WORD,
    postgres_operators,
    token_pattern,
)

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import TokenType


class WholeDuckDB(DuckDB):
    """sqlglot's DuckDB, of which the tokenizer cuts what follows SHOW and the like."""

    NUMBERS_CAN_BE_UNDERSCORE_SEPARATED = True

    class Tokenizer(DuckDB.Tokenizer):
        """Words as DuckDB's own scanner cuts them."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in DuckDB.Tokenizer.KEYWORDS.items()
            if not set(word) & set("{}")
        }


_TABLE_FUNCTIONS = """
generate_series range unnest repeat repeat_row generate_subscripts glob read_csv
read_csv_auto read_parquet parquet_scan read_json read_json_auto read_json_objects
read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects read_text
read_blob read_xlsx sniff_csv parquet_metadata parquet_schema parquet_file_metadata
parquet_kv_metadata json_each json_tree regexp_split_to_table string_split_to_table
pg_timezone_names icu_calendar_names sql_auto_complete test_all_types pragma_version
pragma_platform pragma_database_size pragma_user_agent pragma_collations
"""

_REFUSED_FUNCTIONS = """
query query_table checkpoint force_checkpoint json_execute_serialized_sql
pragma_table_info pragma_storage_info pragma_show from_substrait from_substrait_json
stats current_query current_query_id write_log txid_current current_transaction_id
ago pg_postmaster_start_time pg_conf_load_time
"""

_SIGN = "[-+*/<>=~!@^&|%]"

RULES = Rules(
    name="duckdb",
    engine="DuckDB",
    syntax=WholeDuckDB,
    lexicon=Lexicon(
        tokens=token_pattern(
            string=f"{DOUBLED}|[eE]{ESCAPED}{ALONE}",
            word=POSTGRES_WORD,
            # (Positions are #1; ? is in no operator.)
            # (Release 2.0 takes what follows a colon for a part of an operator.)
            operator=rf"::(?!{_SIGN})|:=(?!(?:[-+]{_SIGN}|(?![-+]){_SIGN}))|:(?![:=])"
            rf"|\.(?!\.)|[,()\[\]{{}};#]|{postgres_operators('~!@^&|%')}",
            blank=r"[ \t\n\r\f]+|--[^\n\r]*",
            number=r"(?:\d+(?:_\d+)*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?",
            # (A name may be: 0x1F is 0 AS x1F.)
            after_number=r"""[\d_.$'"eE]""",
        ),
        interesting=re.compile(r"""['"$%?]|--|/\*"""),
        strings={"": re.compile(DOUBLED), "e": re.compile(ESCAPED)},
        line_comments=frozenset({"--"}),
        line_end=re.compile(r"[\n\r]|\Z"),
        dollar_quotes=True,
        divided=frozenset(["<<", ">>", "!~", "!~*", "!~~", "!~~*"]),
    ),
    default_schema="main",
    temporary_schema="temp",
    ends_temporaries=("PRESERVE ROWS",),
    queries=frozenset({"SELECT", "FROM", "VALUES", "TABLE", "(", "PIVOT", "UNPIVOT"}),
    listings=LISTINGS,
    listing_schemas=("main", "pg_catalog"),
    system_schemas=frozenset({"information_schema", "pg_catalog"}),
    system_relations=re.compile(r"duckdb_logs|pragma_\w+"),
    files=re.compile(r".*\.(parquet|csv|tsv|txt|json|jsonl|ndjson)(\.gz|\.zst)?", re.S),
    table_functions=re.compile("|".join((*_TABLE_FUNCTIONS.split(), *FUNCTIONS))),
    function_schemas=None,
    refused_functions=frozenset(_REFUSED_FUNCTIONS.split()),
    of_storage=frozenset({"storage_info", "pragma_storage_info", "stats"}),
    suffixes=frozenset({"export_state"}),
    moments={
        **dict.fromkeys(["CURRENT_TIMESTAMP", "NOW()"], ()),
        **dict.fromkeys(["GET_CURRENT_TIMESTAMP()", "TRANSACTION_TIMESTAMP()"], ()),
        **dict.fromkeys(["CURRENT_DATE", "CURRENT_DATE()", "TODAY()"], ("DATE",)),
        **dict.fromkeys(["CURRENT_TIME", "GET_CURRENT_TIME()"], ("TIMETZ",)),
        **dict.fromkeys(["LOCALTIME", "CURRENT_LOCALTIME()"], ("TIMESTAMP", "TIME")),
        **dict.fromkeys(["LOCALTIMESTAMP", "CURRENT_LOCALTIMESTAMP()"], ("TIMESTAMP",)),
    },
    stores_rowid=True,
    constraints=frozenset({"check"}),
    crashing_windows=frozenset({"dense_rank"}),
    comma_may_end=True,
    conflict_needs_key=True,
    names_by_text=True,
    views_look_at_home=True,
    definable_types=frozenset({"TYPE", "ALIAS"}),
    unknown_functions=frozenset({"reduce"}),
    maintains=frozenset({"all tables"}),
    own_extensions=frozenset({"core_functions", "icu", "json", "parquet"}),
    explains=True,
    allowed_kinds=frozenset({exp.Pivot, exp.TableSample, exp.Describe, exp.Summarize}),
    allowed_parts=frozenset({"pivots", "sample", "key_expressions", "catalog"}),
    inserts_by_position=True,
    indexes=frozenset({"unique", "expressions", "using art"}),
    collations="compare",
    generated=True,
    copies_generated=True,
    with_changes=True,
    changes_in_turn=True,
    row_assignments=frozenset({"row", "value"}),
    copies=frozenset({"file"}),
    merges=frozenset({"matched", "by source", "all columns"}),
    alterations=frozenset({"type", "view name", "sequence", "owning table"}),
    type_spellings={
        **dict.fromkeys(["REAL", "FLOAT4"], "FLOAT"),
        **dict.fromkeys(["DOUBLE PRECISION", "FLOAT8"], "DOUBLE"),
        "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
        "TIMETZ": "TIME WITH TIME ZONE",
        "BITSTRING": "BIT",
        "LOGICAL": "BOOLEAN",
        "BOOL": "BOOLEAN",
    },
)

STATEMENTS = Registry(
    *definitions.COMMON,
    *rows.CHANGE,
    sessions.CONTROL,
    rows.EXPLAIN.without("PLAN"),
    rows.QUERY,
    definitions.CREATE_TABLE,
    definitions.TEMPORARY_TABLE.without("LOCAL"),
    definitions.TEMPORARY_VIEW.without("LOCAL"),
    definitions.ALTER_VIEW,
    definitions.TYPE.without("DOMAIN"),
    definitions.MACRO,
    sessions.SETTING.without("SHOW"),
    sessions.VARIABLE,
    sessions.USE,
    sessions.DESCRIPTION,
    *sessions.PREPARED,
    sessions.ATTACH,
    sessions.MAINTENANCE,
)
