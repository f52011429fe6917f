"""MonetDB's dialect, as of release 11.41.

A plain string has C's backslash escapes unless the *server* was started with
``raw_strings=true``, and no text tells: the caller must refuse such a server when it
connects.
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot import expressions as exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

from tique_rewriter.dialects.monetdb_listings import LISTINGS, REFUSED
from tique_rewriter.dialects.rules import BY_NAME, STARS, Lexicon, Rules
from tique_rewriter.kinds import definitions, rows, sessions
from tique_rewriter.kinds.define.identity import ALWAYS, AUTO_INCREMENT
from tique_rewriter.kinds.registry import Registry
from tique_rewriter.text.tokens import DOUBLED, ESCAPED, UNICODE_WORD, token_pattern


class MonetDB(Postgres):
    """sqlglot's Postgres with MonetDB's words.

    Only the tokenizer differs: a subclass of its parser does not work where sqlglot
    is compiled. Trees are read and never written out, so that a kind of string may
    stand in for another that ends at the same place: Unicode strings for E'…' and
    byte strings for R'…'.
    """

    class Tokenizer(Postgres.Tokenizer):
        """Words as the server's own scanner cuts them."""

        COMMANDS: ClassVar = set()
        STRING_ESCAPES: ClassVar = ["'", "\\"]
        UNICODE_STRINGS: ClassVar = [("e'", "'"), ("E'", "'")]
        BYTE_STRINGS: ClassVar = [("r'", "'"), ("R'", "'")]
        BYTE_STRING_ESCAPES: ClassVar = ["'"]
        BIT_STRINGS: ClassVar = []
        HEREDOC_STRINGS: ClassVar = []
        COMMENTS: ClassVar = ["--", "#", ("/*", "*/")]
        COMMENTS_TERMINATE_AT_NEWLINE_ONLY = True
        SINGLE_TOKENS: ClassVar = {
            **Tokenizer.SINGLE_TOKENS,
            "$": TokenType.PARAMETER,
        }
        # An operator with # in it would hide the beginning of a comment.
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in Postgres.Tokenizer.KEYWORDS.items()
            if "#" not in word
        } | {"SAMPLE": TokenType.TABLE_SAMPLE}


_DOUBLED, _ESCAPED = re.compile(DOUBLED), re.compile(ESCAPED)

_TYPES = (
    "TINYINT|SMALLINT|INT|INTEGER|MEDIUMINT|BIGINT|HUGEINT",
    r"(?:DECIMAL|DEC|NUMERIC)(?:\(\d+(?:,\d+)?\))?",
    r"REAL|FLOAT(?:\(\d+\))?|DOUBLE(?: PRECISION)?",
    "BOOLEAN|BOOL",
    r"(?:CHAR(?:ACTER)?|CHARACTER VARYING|VARCHAR)(?:\(\d+\))?",
    r"(?:CHARACTER LARGE OBJECT|CLOB|TEXT|STRING)(?:\(\d+\))?",
    r"BLOB(?:\(\d+\))?|BINARY LARGE OBJECT",
    r"DATE|(?:TIME|TIMESTAMP)(?:\(\d+\))?(?: WITH TIME ZONE)?",
    "INTERVAL (?:YEAR|MONTH|DAY|HOUR|MINUTE|SECOND)"
    "(?: TO (?:MONTH|HOUR|MINUTE|SECOND))?",
    r"UUID|JSON|URL(?:\(\d+\))?|INET",
    "SERIAL|BIGSERIAL",
)

RULES = Rules(
    name="monetdb",
    engine="MonetDB",
    syntax=MonetDB,
    lexicon=Lexicon(
        tokens=token_pattern(
            string=f"[eE]?{ESCAPED}|[rRxX]{DOUBLED}",
            word=UNICODE_WORD,
            # (Of two signs in a row some are an operator in one release only; => is in no
            # text that it gets.)
            operator=r"[(),.;+*%]|-(?!-)|/|(?:[<>]=?|<>|<<|>>|=>|\|\|?|[=&^~])(?![<>=|&^~])",
            blank=r"[ \t\n\r\f\v]+|(?:--|\#)[^\n\r]*(?:\r?\n|\Z)",
        ),
        interesting=re.compile(
            r"""['"$%?#]|--|/\*|[^A-Za-z0-9_ \t\n\r\f\v(),.;+\-*/=<>|&^~]"""
        ),
        strings={"": _ESCAPED, "e": _ESCAPED, "r": _DOUBLED, "x": _DOUBLED},
        line_comments=frozenset({"--", "#"}),
        line_end=re.compile(r"\n|\Z"),
        dollar_quotes=False,
        escapes=True,
        strict=True,
        unicode_escapes="'",
        unicode_quirks=True,
        divided=frozenset(["<<", ">>"]),
    ),
    chains=True,
    default_schema="sys",
    temporary_schema="tmp",
    ends_temporaries=("DELETE ROWS", "PRESERVE ROWS", "DROP"),
    first_rows_stay=True,
    queries=frozenset({"SELECT", "VALUES", "("}),
    system_schemas=frozenset({"tmp", "logging"}),
    listings=LISTINGS,
    listing_schemas=("sys",),
    system_relations=re.compile("|".join(REFUSED)),
    files=None,
    table_functions=re.compile("generate_series|env"),
    function_schemas=frozenset({"", "sys"}),
    lateral_functions=False,
    lateral_selects_only=True,
    refused_functions=frozenset({"peak_next_value_for"}),
    refused_kinds={
        exp.Qualify: ("QUALIFY", ("QUALIFY",)),
        exp.Columns: ("COLUMNS()", ("COLUMNS",)),
        exp.Kwarg: ("a named argument", ("=>",)),
        exp.Unnest: ("UNNEST()", ("UNNEST",)),
    },
    refused_parts={
        exp.Insert: {"by_name": ("INSERT BY NAME", ("BY",))},
        exp.Delete: {"using": ("DELETE … USING", ("USING",))},
        exp.Star: STARS,
        exp.Distinct: {"on": ("DISTINCT ON", ("DISTINCT",))},
        exp.SetOperation: {"by_name": BY_NAME},
        exp.CTE: {"materialized": ("MATERIALIZED", ("MATERIALIZED",))},
    },
    refused_joins=frozenset({"ASOF", "SEMI", "ANTI"}),
    allowed_kinds=frozenset({exp.TableSample}),
    allowed_parts=frozenset({"sample"}),
    unknown_functions=frozenset({"bit_and", "bit_or", "bit_xor"}),
    draws=frozenset({"phrase"}),
    types=re.compile("|".join(_TYPES)),
    merges=frozenset({"matched"}),
    default_is_null=False,
    exact_quoted_names=True,
    joins_in_parts=True,
    confuses_aliases=True,
    distinct_needs_names=True,
    truncates=frozenset({"options"}),
    likes=frozenset({"LIKE"}),
    serials={"SERIAL": "INTEGER", "BIGSERIAL": "BIGINT"},
    serial_is_key=True,
    identities=frozenset({ALWAYS, AUTO_INCREMENT}),
    views_look_at_home=True,
    alterations=frozenset({"null", "drop constraint"}),
    type_spellings={
        **dict.fromkeys(["DOUBLE PRECISION", "FLOAT"], "DOUBLE"),
        "BOOL": "BOOLEAN",
        "BINARY LARGE OBJECT": "BLOB",
    },
)

STATEMENTS = Registry(
    *definitions.COMMON,
    *rows.CHANGE,
    sessions.CONTROL,
    rows.EXPLAIN,
    rows.QUERY.without("TABLE", "FROM", "PIVOT", "UNPIVOT"),
    definitions.CREATE_TABLE.without("REPLACE"),
    definitions.TEMPORARY_TABLE,
    definitions.GRANT,
    sessions.SETTING.without("RESET", "SHOW"),
    sessions.MAINTENANCE.without("VACUUM", "CHECKPOINT", "FORCE", "LOAD"),
)
