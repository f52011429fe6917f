"""PostgreSQL's dialect, as of release 15.

A plain string has no backslash escapes only while ``standard_conforming_strings`` is
on, and a name without quotes keeps the case of letters beyond ASCII only where the
server's encoding is UTF-8. No text tells, so the caller must check both when it
connects.

*The names that PostgreSQL's dialect knows, of releases 15 to 18.*
Functions are on the list that look at nothing but their arguments, at system catalogs
or at a clock. Not on it: those that run a text as SQL or read a table by its name, that
see transactions, sessions or files as the server has them, and that have an effect
(those of sequences and ``setseed`` aside, which no transaction takes back either: the
session whose random numbers it begins anew is the connection's own).
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import expressions as exp
from sqlglot.dialects.postgres import Postgres

from tique_rewriter.dialects.postgresql_listings import LISTINGS, OWNERS, REFUSED
from tique_rewriter.dialects.rules import BY_NAME, STARS, Lexicon, Rules
from tique_rewriter.kinds import definitions, rows, sessions
from tique_rewriter.kinds.define.identity import ALWAYS, BY_DEFAULT
from tique_rewriter.kinds.registry import Registry
from tique_rewriter.text.tokens import (
    ALONE,
    DOUBLED,
    ESCAPED,
    POSTGRES_WORD,
    postgres_operators,
    token_pattern,
)

FUNCTIONS = """
abbrev abs aclexplode acos acosd acosh age any_value area array_agg array_append
array_cat array_dims array_fill array_length array_lower array_ndims array_position
array_positions array_prepend array_remove array_replace array_reverse array_sample
array_shuffle array_sort array_to_json array_to_string array_to_tsvector array_upper
ascii asin asind asinh atan atan2 atan2d atand atanh avg bit bit_and bit_count
bit_length bit_or bit_xor bool bool_and bool_or box bpchar broadcast btrim
cardinality casefold cash_words cbrt ceil ceiling center char char_length
character_length chr cidr circle clock_timestamp col_description concat concat_ws
convert convert_from convert_to corr cos cosd cosh cot cotd count covar_pop
covar_samp crc32 crc32c cume_dist current_database current_schema current_schemas
current_setting current_user currval date date_add date_bin date_part date_subtract
date_trunc datemultirange daterange decode degrees dense_rank diagonal diameter div
encode enum_first enum_last enum_range erf erfc every exp extract factorial family
first_value float4 float8 floor format format_type gamma gcd gen_random_uuid
generate_series generate_subscripts get_bit get_byte get_current_ts_config
getdatabaseencoding has_any_column_privilege has_column_privilege
has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege
has_language_privilege has_parameter_privilege has_schema_privilege
has_sequence_privilege has_server_privilege has_table_privilege
has_tablespace_privilege has_type_privilege hashtext hashtextextended height host
hostmask inet_client_addr inet_client_port inet_merge inet_same_family
inet_server_addr inet_server_port initcap int2 int4 int4multirange int4range int8
int8multirange int8range interval is_normalized isclosed isempty isfinite
ishorizontal isopen isparallel isperp isvertical json_agg json_array_elements
json_array_elements_text json_array_length json_build_array json_build_object
json_each json_each_text json_extract_path json_extract_path_text json_object
json_object_agg json_object_keys json_populate_record json_populate_recordset
json_scalar json_serialize json_strip_nulls json_to_record json_to_recordset
json_to_tsvector json_typeof jsonb_agg jsonb_array_elements
jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object
jsonb_concat jsonb_contains jsonb_delete jsonb_delete_path jsonb_each
jsonb_each_text jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_insert
jsonb_object jsonb_object_agg jsonb_object_keys jsonb_path_exists
jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first
jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls
jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_days
justify_hours justify_interval lag last_value lastval lcm lead left length lgamma like line
ln log log10 lower lower_inc lower_inf lpad lseg ltrim macaddr macaddr8
macaddr8_set7bit merge_action make_date make_interval make_time make_timestamp make_timestamptz
masklen max md5 min min_scale mod mode money multirange name netmask network nextval
normalize now npoints nth_value ntile num_nonnulls num_nulls numeric nummultirange
numnode numrange obj_description octet_length oid oidvectortypes overlaps overlay
parse_ident path pclose percent_rank percentile_cont percentile_disc
pg_backend_pid
pg_char_to_encoding pg_client_encoding pg_collation_for pg_collation_is_visible
pg_column_is_updatable pg_column_size pg_conversion_is_visible pg_describe_object
pg_encoding_max_length pg_encoding_to_char pg_function_is_visible
pg_get_catalog_foreign_keys pg_get_constraintdef pg_get_expr
pg_get_function_arg_default pg_get_function_arguments
pg_get_function_identity_arguments pg_get_function_result pg_get_function_sqlbody
pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_object_address
pg_get_partition_constraintdef pg_get_partkeydef pg_get_replica_identity_index
pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef
pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions
pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_has_role pg_identify_object
pg_identify_object_as_address pg_index_column_has_property pg_index_has_property
pg_indexam_has_property pg_indexes_size pg_input_is_valid pg_is_in_recovery pg_operator_is_visible pg_options_to_table
pg_partition_root pg_relation_is_updatable pg_relation_size pg_sequence_parameters pg_size_bytes
pg_size_pretty pg_sleep pg_statistics_obj_is_visible pg_table_is_visible pg_table_size
pg_timezone_abbrevs pg_timezone_names pg_total_relation_size pg_ts_config_is_visible pg_ts_dict_is_visible
pg_ts_parser_is_visible pg_ts_template_is_visible pg_type_is_visible pg_typeof
phraseto_tsquery pi plainto_tsquery point polygon popen position pow power querytree
quote_ident quote_literal quote_nullable radians radius random random_normal
range_adjacent range_agg range_intersect_agg range_merge rank regclass regexp_count
regexp_instr regexp_like regexp_match regexp_matches regexp_replace
regexp_split_to_array regexp_split_to_table regexp_substr regr_avgx regr_avgy
regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat
replace reverse right round row_number row_security_active row_to_json rpad rtrim
scale session_user set_bit set_byte set_masklen setseed setweight sha224 sha256 sha384
sha512 setval shobj_description sign similar_to_escape sin sind sinh slope split_part sqrt starts_with
statement_timestamp stddev stddev_pop stddev_samp string_agg string_to_array
string_to_table strip strpos substr substring sum tan tand tanh text textcat time
timeofday timestamp timestamptz timetz timezone to_ascii to_bin to_char to_date
to_hex to_json to_jsonb to_number to_oct to_regclass to_regcollation to_regnamespace
to_regoper to_regoperator to_regproc to_regprocedure to_regrole to_regtype
to_timestamp to_tsquery to_tsvector transaction_timestamp translate trim_array
trim_scale trunc ts_debug ts_delete ts_filter ts_headline ts_lexize ts_parse ts_rank
ts_rank_cd ts_token_type tsmultirange tsrange tstzmultirange tstzrange
tsvector_to_array unicode_assigned unistr unnest upper upper_inc upper_inf
uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7 var_pop var_samp varbit
varchar variance version websearch_to_tsquery width width_bucket xml
xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document xmlagg
xmlcomment xmlexists xmltext xmlvalidate xpath xpath_exists
"""
"""Functions of the schema ``pg_catalog``."""

SET_FUNCTIONS = """
aclexplode generate_series generate_subscripts json_array_elements
json_array_elements_text json_each json_each_text json_object_keys
json_populate_recordset json_to_recordset jsonb_array_elements
jsonb_array_elements_text jsonb_each jsonb_each_text jsonb_object_keys
jsonb_path_query jsonb_path_query_tz jsonb_populate_recordset jsonb_to_recordset
pg_get_catalog_foreign_keys
pg_get_keywords pg_options_to_table pg_timezone_abbrevs pg_timezone_names
regexp_matches regexp_split_to_table string_to_table ts_debug ts_parse ts_token_type
unnest
"""
"""Those of them that return any number of rows."""

WORDS = """
all and any array as asc between bigint bit boolean case cast char character check
coalesce collate cube current_time current_timestamp dec decimal default desc
distinct else end except exists extract fetch float from greatest group grouping having ilike in int integer
intersect interval into join lateral least like limit localtime localtimestamp
national nchar normalize not nullif numeric offset on only or order overlaps overlay placing position real
returning rollup row select setof similar smallint some substring symmetric then
time timestamp to treat trim union unique using values varchar when where window
with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse
xmlpi xmlroot xmlserialize xmltable
"""
"""Words and types after which a bracket may open: none can be the name of a function
of the application's own, or none is likely to be."""

LITERAL_TYPES = """
box cidr line lseg path circle polygon macaddr macaddr8 tsvector tsquery pg_lsn
regclass regtype oid citext hstore varbit
"""
"""Types that may stand before a string and that the parser does not know there."""


class PostgreSQL(Postgres):
    """sqlglot's Postgres without the words that PostgreSQL does not have."""

    class Tokenizer(Postgres.Tokenizer):
        """Words as the server's own scanner cuts them."""

        COMMANDS: ClassVar = set()
        # A template's brackets and comments are none of SQL's, nor is the operator.
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in Postgres.Tokenizer.KEYWORDS.items()
            if word != "==" and not set(word) & set("{}")
        }


_DOUBLED, _ESCAPED = re.compile(DOUBLED), re.compile(ESCAPED)
_PADDED = re.compile(r"(?:CHAR|CHARACTER|NCHAR|NATIONAL CHAR(?:ACTER)?)(?:\((\d+)\))?")
_UNBOUNDED = re.compile(r"(?:NUMERIC|DECIMAL|DEC)|BPCHAR")
_SERIALS = {
    f"{place}{name}": type_
    for place in ("", "PG_CATALOG.")
    for type_, names in (
        ("smallint", ("SMALLSERIAL", "SERIAL2")),
        ("integer", ("SERIAL", "SERIAL4")),
        ("bigint", ("BIGSERIAL", "SERIAL8")),
    )
    for name in names
}


def column_type(type_: str) -> str:
    """Return the catalog's name of a type, given SQL's or ``format_type()``'s name.

    ``NUMERIC`` without a precision has no scale of its own, and ``CHAR(n)`` is filled
    up with blanks that do not count: not so in other engines. With a schema before
    them, these names are PostgreSQL's alone.
    """
    text = " ".join(type_.upper().split())
    text = re.sub(r" ?([(,]) ?| (?=\))", r"\1", text)
    if match := _PADDED.fullmatch(text):
        return f"pg_catalog.bpchar({match.group(1) or 1})"
    if _UNBOUNDED.fullmatch(text):
        name = "bpchar" if text == "BPCHAR" else "numeric"
        return f"pg_catalog.{name}"
    return type_


RULES = Rules(
    name="postgresql",
    engine="PostgreSQL",
    syntax=PostgreSQL,
    lexicon=Lexicon(
        tokens=token_pattern(
            string=f"{DOUBLED}|(?:[eE]{ESCAPED}|[bBxX]'[0-9A-Fa-f]*'){ALONE}",
            word=POSTGRES_WORD,
            operator=r"::|:=|\.(?!\.)|[,()\[\];:]|" + postgres_operators("~!@#^&|?%"),
            blank=r"[ \t\n\r\f]+|--[^\n\r]*",
        ),
        interesting=re.compile(
            r"""['"$%?]|--|/\*|[^A-Za-z0-9_ \t\n\r\f,().;:\[\]+\-*/<>=~!@#^&|]"""
        ),
        strings={"e": _ESCAPED, **dict.fromkeys(["", "b", "x", "n"], _DOUBLED)},
        line_comments=frozenset({"--"}),
        line_end=re.compile(r"[\n\r]|\Z"),
        dollar_quotes=True,
        strict=True,
        escapes_go_on=True,
        unicode_escapes="'\"",
        question_operators=True,
        formats="sbt",
        divided=frozenset(["<<", ">>", "!~", "!~*", "!~~", "!~~*", "~="]),
    ),
    default_schema="public",
    temporary_schema="pg_temp",
    ends_temporaries=("PRESERVE ROWS", "DELETE ROWS", "DROP"),
    queries=frozenset({"SELECT", "VALUES", "TABLE", "("}),
    listings=LISTINGS,
    listing_schemas=("pg_catalog",),
    system_schemas=frozenset({"information_schema"}),
    system_relations=re.compile(f"pg_(?:{'|'.join(REFUSED.split())})"),
    files=None,
    table_functions=re.compile(".*", re.DOTALL),
    function_schemas=None,
    refused_functions=frozenset(),
    moments={
        **dict.fromkeys(["CURRENT_TIMESTAMP", "NOW()", "TRANSACTION_TIMESTAMP()"], ()),
        "CURRENT_DATE": ("DATE",),
        "CURRENT_TIME": ("TIMETZ",),
        "LOCALTIME": ("TIME",),
        "LOCALTIMESTAMP": ("TIMESTAMP",),
    },
    moment_strings=True,
    allowed_kinds=frozenset({exp.TableSample}),
    allowed_parts=frozenset({"search", "only", "sample", "seed"}),
    refused_kinds={
        exp.Qualify: ("QUALIFY", ("QUALIFY",)),
        exp.Columns: ("COLUMNS()", ("COLUMNS",)),
        exp.Placeholder: ("? without a value before it", ("?",)),
    },
    refused_parts={
        exp.Star: STARS,
        exp.Insert: {
            "alternative": ("INSERT OR", ("OR",)),
            "by_name": ("INSERT BY NAME", ("BY",)),
        },
        exp.SetOperation: {"by_name": BY_NAME},
    },
    refused_joins=frozenset({"ASOF", "SEMI", "ANTI", "POSITIONAL"}),
    fewer_values=True,
    returns_joined=True,
    generated=True,
    generated_takes_default=True,
    overrides_identity=True,
    names_keys=True,
    storage_parameters=re.compile(
        r"(?:(?:toast\.)?(?:autovacuum|vacuum|log_autovacuum)_[a-z_]+|fillfactor"
        r"|parallel_workers)=('?)(?:[0-9.]+|on|off|true|false|auto)\1"
    ),
    changes_views=True,
    with_changes=True,
    row_assignments=frozenset({"row", "query", "element"}),
    copies=frozenset({"stream"}),
    merges=frozenset({"matched", "by source"}),
    merge_action="merge_action",
    joins_in_parts=True,
    moves_conditions=True,
    exact_quoted_names=True,
    before_brackets=re.compile("|".join((FUNCTIONS + WORDS).split())),
    bracket_words={
        "by": frozenset({"GROUP", "ORDER", "PARTITION"}),
        "over": frozenset({")"}),
        "filter": frozenset({")"}),
        "conflict": frozenset({"ON"}),
        "sets": frozenset({"GROUPING"}),
        "materialized": frozenset({"AS", "NOT"}),
        "set": frozenset({"UPDATE"}),
        "insert": frozenset({"THEN"}),
        "first": frozenset({"FETCH"}),
        "next": frozenset({"FETCH"}),
        "varying": frozenset({"CHARACTER", "CHAR", "BIT"}),
        "zone": frozenset({"TIME"}),
        "bernoulli": frozenset({"TABLESAMPLE"}),
        "system": frozenset({"TABLESAMPLE"}),
        "repeatable": frozenset({")"}),
    },
    function_schema="pg_catalog",
    set_functions=re.compile("|".join(SET_FUNCTIONS.split())),
    longest_name=63,
    hidden_columns=frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}),
    typed_rows=True,
    indexes=frozenset(
        (
            *("unique", "expressions", "concurrently", "classes"),
            *("using", "include", "where"),
        )
    ),
    conflict_computes_keys=True,
    restarts_identities=True,
    serials=_SERIALS,
    definable_types=frozenset({"TYPE", "DOMAIN", "COMPOSITE"}),
    materializes=True,
    identities=frozenset({ALWAYS, BY_DEFAULT}),
    recursive_sees_all=True,
    constraints=frozenset({"check", "deferrable"}),
    collations="sort",
    calls=frozenset({"set_config", "pg_notify", "current_setting"}),
    chains=True,
    plain_objects=frozenset({"json_object"}),
    literal_types=frozenset(LITERAL_TYPES.split()),
    samples_rows=True,
    extra_syntax=frozenset(
        (
            *("sort operators", "rows from", "select into", "absolute", "same as"),
            *("nulls distinct", "bit varying"),
        )
    ),
    extensions={
        **dict.fromkeys(
            (
                *("citext", "hstore", "ltree", "pg_trgm", "unaccent", "btree_gin"),
                *("btree_gist", "fuzzystrmatch", "intarray", "cube", "earthdistance"),
                *("seg", "vector", "plpgsql"),
            ),
            frozenset(),
        ),
        "pgcrypto": frozenset({"gen_random_bytes", "gen_salt", "gen_random_uuid"}),
        "uuid-ossp": frozenset(
            {"uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v4"}
        ),
    },
    explains=True,
    column_type=column_type,
    truncates=frozenset({"several", "options"}),
    likes=frozenset({"LIKE", "INCLUDING", "EXCLUDING"}),
    alterations=frozenset(
        [
            *("several", "only", "type", "identity", "storage"),
            *("drop constraint", "rename constraint", "schema", "statistics"),
            *("not valid", "using index", "schema name", "sequence", "view name"),
            *("view column", "view schema"),
        ]
    ),
    owners=OWNERS,
    keeps_referencing=False,
    type_spellings={
        "FLOAT4": "REAL",
        **dict.fromkeys(["FLOAT", "FLOAT8"], "DOUBLE PRECISION"),
        "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
        "TIMETZ": "TIME WITH TIME ZONE",
        "VARBIT": "BIT VARYING",
        "BOOL": "BOOLEAN",
    },
)

STATEMENTS = Registry(
    *definitions.COMMON,
    *rows.CHANGE,
    sessions.CONTROL,
    rows.EXPLAIN.without("PLAN"),
    rows.QUERY.without("FROM", "PIVOT", "UNPIVOT"),
    definitions.CREATE_TABLE.without("REPLACE"),
    definitions.UNLOGGED_TABLE,
    definitions.TEMPORARY_TABLE,
    definitions.TEMPORARY_VIEW,
    definitions.ALTER_VIEW,
    *definitions.MATERIALIZED_VIEW,
    definitions.ALTER_INDEX,
    definitions.TYPE,
    definitions.FUNCTION,
    definitions.EXTENSION,
    definitions.GRANT,
    definitions.DEFAULT_PRIVILEGES,
    sessions.SETTING,
    sessions.CONSTRAINTS,
    sessions.DISCARD,
    *sessions.PREPARED,
    sessions.CURSOR,
    sessions.NOTIFY,
    *sessions.TIDYING,
)
