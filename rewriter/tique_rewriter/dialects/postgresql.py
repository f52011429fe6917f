"""PostgreSQL's dialect, as of release 15.

A plain string has no backslash escapes only while ``standard_conforming_strings`` is
on, and a name without quotes keeps the case of letters beyond ASCII only where the
server's encoding is UTF-8. No text tells, so the caller must check both when it
connects.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import expressions as exp
from sqlglot.dialects.postgres import Postgres

from tique_rewriter.dialects.postgresql_listings import LISTINGS, REFUSED
from tique_rewriter.dialects.postgresql_names import (
    FUNCTIONS,
    SET_FUNCTIONS,
    WORDS,
)
from tique_rewriter.dialects.rules import Lexicon, Rules
from tique_rewriter.identity import ALWAYS, BY_DEFAULT
from tique_rewriter.tokens import (
    ALONE,
    DOUBLED,
    ESCAPED,
    POSTGRES_WORD,
    postgres_operators,
    token_pattern,
)


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


_DOUBLED = re.compile(r"'(?:[^']|'')*'")
_ESCAPED = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
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
        strings={"": _DOUBLED, "e": _ESCAPED, "b": _DOUBLED, "x": _DOUBLED},
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
    renames_schemas=True,
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
        exp.Star: {
            "except_": ("EXCLUDE", ("EXCLUDE", "EXCEPT")),
            "replace": ("* REPLACE", ("REPLACE",)),
            "rename": ("* RENAME", ("RENAME",)),
        },
        exp.Insert: {
            "alternative": ("INSERT OR", ("OR",)),
            "by_name": ("INSERT BY NAME", ("BY",)),
        },
        exp.SetOperation: {
            "by_name": ("BY NAME or CORRESPONDING", ("CORRESPONDING", "NAME"))
        },
    },
    refused_joins=frozenset({"ASOF", "SEMI", "ANTI", "POSITIONAL"}),
    fewer_values=True,
    returns_joined=True,
    generated=True,
    generated_takes_default=True,
    overrides_identity=True,
    names_keys=True,
    has_unlogged=True,
    storage_parameters=re.compile(
        r"(?:(?:toast\.)?(?:autovacuum|vacuum|log_autovacuum)_[a-z_]+|fillfactor"
        r"|parallel_workers)=(?:[0-9.]+|on|off|true|false|auto)"
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
    indexes_expressions=True,
    index_parts=frozenset({"using", "include", "where"}),
    conflict_computes_keys=True,
    restarts_identities=True,
    serials=_SERIALS,
    definable_types=frozenset({"TYPE", "DOMAIN", "COMPOSITE"}),
    alters_views=frozenset({"RENAME TO", "RENAME COLUMN", "SET SCHEMA"}),
    materializes=True,
    identities=frozenset({ALWAYS, BY_DEFAULT}),
    recursive_sees_all=True,
    deferrable=True,
    collates=True,
    sets_by_query=True,
    notifies=True,
    chains=True,
    grants=True,
    grants_ahead=True,
    plain_objects=frozenset({"json_object"}),
    literal_types=frozenset(
        (
            *("box", "cidr", "line", "lseg", "path", "circle", "polygon", "macaddr"),
            *(
                "macaddr8",
                "tsvector",
                "tsquery",
                "pg_lsn",
                "regclass",
                "regtype",
                "oid",
            ),
            *("citext", "hstore", "varbit"),
        )
    ),
    renames_indexes=True,
    has_cursors=True,
    samples_rows=True,
    phrases=frozenset(
        (
            *("sort operators", "rows from", "select into", "absolute", "same as"),
            *("nulls distinct", "bit varying"),
        )
    ),
    defines_functions=True,
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
    tidies=frozenset({"ANALYZE", "ANALYSE", "VACUUM", "REINDEX", "CLUSTER"}),
    session_verbs=frozenset(
        ["SET", "RESET", "SHOW", "DISCARD", "PREPARE", "EXECUTE", "DEALLOCATE"]
    ),
    explains=True,
    column_type=column_type,
    truncates=frozenset({"several", "options"}),
    likes=frozenset({"LIKE", "INCLUDING", "EXCLUDING"}),
    alterations=frozenset(
        [
            *("several", "only", "type"),
            *("drop constraint", "rename constraint", "schema", "statistics"),
            *("own owner", "not valid", "using index"),
        ]
    ),
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
