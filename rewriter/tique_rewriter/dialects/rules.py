"""The differences between SQL dialects, as data: the shape of a dialect's rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from re import Pattern

    from sqlglot import expressions as exp
    from sqlglot.dialects.dialect import Dialect

Construct = tuple[str, tuple[str, ...]]
"""A construct's name for a refusal, and the keywords that show its place."""

STARS = {
    "except_": ("EXCLUDE", ("EXCLUDE", "EXCEPT")),
    "replace": ("* REPLACE", ("REPLACE",)),
    "rename": ("* RENAME", ("RENAME",)),
}
"""The parts of ``*`` that only DuckDB has."""

BY_NAME = ("BY NAME or CORRESPONDING", ("CORRESPONDING", "NAME"))
"""The part of a set operation that only DuckDB has."""

_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


@dataclass(frozen=True)
class Lexicon:
    """How a text falls into strings, names, comments and the rest.

    Parameters
    ----------
    tokens
        Matches a token, whose kind is the group's name: :mod:`tique_rewriter.text.tokens`.
    divided
        Operators of which the parser makes several tokens, with the same meaning.
    interesting
        Matches, outside quotes and comments, where something begins that is not
        copied as it stands.
    strings
        Matches a whole string, from its first quote on, by the small letter before that
        quote; the empty string for a plain one.
    line_comments
        The marks that begin a comment to the end of the line.
    line_end
        Matches the end of such a comment.
    dollar_quotes
        Whether ``$tag$`` begins a string, and ``$`` may be part of a name.
    escapes
        Whether a backslash in a plain string stands for something else.
    strict
        Whether a text is refused unless the engine certainly cuts it at the same
        places: characters that no rule mentions, quotes right after a letter,
        backslashes in names, brackets of comments that overlap. And whether
        placeholders are kept apart from their surroundings, because literals may be
        put in their places.
    escapes_go_on
        Whether a string that follows ``E'…'`` on another line is a part of it, with the
        same escapes.
    unicode_escapes
        The quotes before which ``U&`` may stand: of strings, of names.
    unicode_quirks
        Whether the engine keeps a doubled quote doubled there, and does not join the
        halves of surrogate pairs.
    formats
        The letters of placeholders under ``pyformat``; psycopg has ``b`` and ``t`` beside
        ``s``, which change nothing here: tique decides itself how to send a value.
    question_operators
        Whether ``?`` may be (a part of) an operator: ``??`` stands for it where ``?``
        is a placeholder.
    """

    tokens: Pattern[str]
    interesting: Pattern[str]
    strings: Mapping[str, Pattern[str]]
    line_comments: frozenset[str]
    line_end: Pattern[str]
    dollar_quotes: bool
    escapes: bool = False
    strict: bool = False
    escapes_go_on: bool = False
    unicode_escapes: str = ""
    unicode_quirks: bool = False
    formats: str = "s"
    question_operators: bool = False
    divided: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rules:
    """A dialect, as far as the rewriter must know it.

    Parameters
    ----------
    name
        The name that :class:`~tique_rewriter.Rewriter` takes.
    engine
        The engine's name in messages.
    syntax
        sqlglot's dialect.
    lexicon
        How a text falls into words.
    default_schema
        Where a table lives that is created without naming a schema.
    queries
        The first words of a query (``(`` is one).
    temporary_schema
        The schema of temporary tables, in small letters.
    ends_temporaries
        What may become of their rows when a transaction ends (ON COMMIT …), as
        :class:`~tique_rewriter.kinds.define.temporary.OnCommit` has it; the first if nothing is said.
    first_rows_stay
        Whether ON COMMIT DELETE ROWS leaves the rows of the transaction that created the
        table, until another one changes it.
    listings
        The engine's own relations, as ``schema.name`` or, a function, ``name()``, and the
        query that shows the rows of each that are there natively; empty for all rows.
        ``SHOW NAME`` is one that stands in brackets, as a query of its own.
    listing_schemas
        Where a name without a schema may be one of theirs.
    system_schemas
        Schemas that hold nothing but the engine's own relations.
    system_relations
        Matches the folded names that are refused in the schemas of listings, as the
        engine has relations of that name.
    files
        Matches the folded names that are files, or None where none is.
    table_functions
        Matches the folded names of table functions that read no managed table.
    function_schemas
        The schemas that may be written before such a name; None for any.
    lateral_functions
        Whether LATERAL may stand before a function, and not just before a subquery.
    lateral_selects_only
        Whether LATERAL before VALUES or a set operation crashes the engine.
    refused_functions
        Folded names of functions that see or change state outside any snapshot.
    of_storage
        Folded names of functions and pragmas among them that tell of storage's own rows.
    suffixes
        Folded words after a call that the parser takes for its alias.
    refused_kinds, refused_parts
        Constructs that sqlglot's dialect reads and the engine does not have: kinds of
        nodes, and parts of nodes.
    refused_joins
        Words before JOIN that the engine does not have.
    crashing_windows
        Folded names of functions that crash the engine over all rows of a snapshot
        beside a semi join.
    types
        Matches the types that a column may be given, as
        :func:`~tique_rewriter.local.values.normal_type` writes them; None for any.
    constraints
        "check" if the engine has CHECK constraints, "deferrable" if it has FOREIGN KEY
        constraints that are checked at commit.
    extensions
        The extensions whose functions read no table, each with those of them that draw
        another value each time and may be called.
    samples_rows
        Whether rows of TABLESAMPLE are chosen one by one, as the engine samples no query.
    calls
        Functions that do, called as a whole query, what a statement does: ``set_config``
        is SET, ``pg_notify`` is NOTIFY, ``current_setting`` of a parameter is SHOW.
    chains
        Whether COMMIT and ROLLBACK may begin another transaction, AND CHAIN.
    default_is_null
        Whether DEFAULT as a value stands for NULL where the column has no default;
        else that is an error.
    fewer_values
        Whether the rows of VALUES or of a query may lack values for the last columns.
    exact_quoted_names
        Whether ``"Name"`` and ``"name"`` are two names, and a name without quotes
        stands for its small letters (ASCII only); else the case never matters.
    joins_in_parts
        Whether the engine joins rows in a table's order so much faster than a UNION ALL
        with them that plans say how a join can be cut into parts. (A result that is an
        expression must not be named after its text there.)
    moves_conditions
        Whether it moves conditions into such parts: then WHERE, too, may say how the
        tables are joined.
    confuses_aliases
        Whether it takes results with one alias for one, beside ORDER BY or DISTINCT.
    before_brackets
        Matches the folded names that may stand before ``(``: words and types of the
        language, and functions that read no managed table and have no effect. None
        for any but the refused functions.
    bracket_words
        Folded words that may stand there too, after one of these keywords: elsewhere
        they might be names of functions.
    function_schema
        The one schema that may be written before such a name.
    set_functions
        Matches the folded names of functions that return any number of rows.
    longest_name
        How many bytes of a name the engine looks at; 0 for all.
    hidden_columns
        Columns that every stored table has and no snapshot form of it.
    stores_rowid
        Whether every stored table has a ``rowid``, unless a column is called so.
    typed_rows
        Whether a table's row is a value of the table's own type, and ``table.name`` may
        be a call of a function with it; and whether columns may be selected that are
        not grouped by where the table's key is.
    indexes
        The forms of CREATE INDEX: "unique" if UNIQUE keeps duplicates out, "expressions",
        "concurrently", operator "classes" of columns, and the parser's names of the parts
        that an index may have besides columns; "using art" if it may name that method. With "where" there may be expressions too:
        the engine's staging table refuses a row for which one fails (P4).
    collations
        What collations of columns do: "sort"; or "compare" if they say which texts are
        equal, and are a part of a column's type. Empty if columns may have none.
    comma_may_end
        Whether a comma may follow the last element of CREATE TABLE.
    restarts_identities
        Whether TRUNCATE may restart the sequences of columns, until a rollback.
    conflict_computes_keys
        Whether ON CONFLICT without a key looks at unique indexes on expressions, too.
    conflict_needs_key
        Whether ON CONFLICT DO NOTHING is an error where the table has no key.
    recursive_sees_all
        Whether the members of WITH RECURSIVE see those after them, and themselves
        everywhere.
    names_by_text
        Whether a result without an alias is called by its expression's text.
    distinct_needs_names
        Whether the engine fails at SELECT DISTINCT, as the outermost query, of
        expressions without an alias.
    moments
        Words, and functions with ``()``, in capitals, that stand for the transaction's
        moment, each with the types that it is converted to, one after the other.
    moment_strings
        Whether ``'now'`` and its like are moments where they become times.
    unknown_functions
        Folded names of functions that the parser takes for others, of another number of
        arguments.
    draws
        "phrase" if NEXT VALUE FOR a sequence is an expression.
    extra_syntax
        What the parser does not read: "sort operators" (ORDER BY … USING), "rows from"
        (ROWS FROM, a list of functions), "select into" (SELECT … INTO a new table),
        "absolute" (``@`` before a value), "same as" (the operator ``~=``), "nulls
        distinct" (NULLS DISTINCT of a UNIQUE key).
    literal_types
        Folded names of types that may stand before a string and that the parser does not
        know there.
    plain_objects
        Folded names of functions for which it expects a list of keys and values.
    maintains
        "all tables" if ANALYZE and VACUUM may name none.
    own_extensions
        The extensions that are a part of the engine.
    allowed_kinds, allowed_parts
        Constructs that are understood in this dialect and refused in the others: kinds
        of nodes, and parts of nodes.
    explains
        Whether EXPLAIN has options, and ANALYZE.
    copies
        What COPY reads and writes: "stream" is the client's, "file" a file.
    merges
        The features of MERGE: "matched" if there is MERGE, "by source" for WHEN NOT
        MATCHED BY SOURCE, "all columns" for UPDATE and INSERT without values.
    merge_action
        The name of RETURNING's function for the action that MERGE took, or of its column.
    changes_in_turn
        Whether such members see the changes of those before them.
    names_keys
        Whether ON CONFLICT may name a constraint in the place of a key's columns.
    storage_parameters
        Matches, in small letters, each of the parameters in WITH (…) that CREATE TABLE
        may end with: they change how storage is kept, and not what is in it.
    row_assignments
        The forms of SET (a, b) = …: "row" with ROW or several values, "value" with one
        value in brackets, "query" with a subquery; "element" for SET a[1] = ….
    with_changes
        Whether INSERT, UPDATE and DELETE may be members of a WITH list.
    inserts_by_position
        Whether INSERT … BY POSITION says that values are in the columns' order.
    generated
        Whether a table may have generated columns.
    generated_takes_default
        Whether DEFAULT may be given for a generated column, and values without a list of
        columns are counted with it.
    copies_generated
        Whether COPY without a list of columns writes generated columns.
    overrides_identity
        Whether INSERT has OVERRIDING SYSTEM VALUE.
    returns_joined
        Whether RETURNING may name columns of relations that UPDATE … FROM or
        DELETE … USING joins with the changed table, and ``*`` stands for them too.
    alterations
        The forms of ALTER that it has. Of tables: "several" changes in a statement, "only",
        "not valid" (constraints), "using index" (UNIQUE), "schema" (SET SCHEMA), "statistics" and "storage" (of a column), "type" of a column, "identity" (ADD GENERATED AS IDENTITY), "null" (ALTER COLUMN … DROP NOT NULL is SET NULL there),
        "drop constraint" and "rename constraint" of its own ones.
        Of views: "view name", "view column", "view schema". "schema name" renames a schema
        with all that is in it. Without "sequence" it crashes at anything but RESTART; with "owning table" a table owns
        a sequence, and not a column.
    owners
        Queries for the owner of an object and the session's role, by the object's kind.
    keeps_referencing
        Whether DROP COLUMN without CASCADE keeps a column of a FOREIGN KEY constraint.
    materializes
        Whether it has materialized views.
    changes_views
        Whether the engine can change the tables below a view through it.
    truncates
        The forms of TRUNCATE: "several" tables, "options" behind them; without the latter
        it is a DELETE.
    likes
        The words that may follow LIKE in CREATE TABLE, each with another one; "LIKE" if
        there is LIKE.
    views_look_at_home
        Whether a name in a view, or of the table that a FOREIGN KEY references, is looked up
        in the schema of the view or table first.
    serials
        The integer types of columns with a sequence of their own, by the names that
        these have, as :func:`~tique_rewriter.local.values.normal_type` writes them.
    serial_is_key
        Whether such a column is the primary key.
    identities
        The forms of identity columns that it has, and tique with it.
    definable_types
        TYPE if it has CREATE TYPE … AS ENUM, DOMAIN if it has CREATE DOMAIN, ALIAS if a
        type can be a name of any other that values and columns have, COMPOSITE if it has
        CREATE TYPE … AS with a list of attributes.
    column_type
        The catalog's name of a type, given its text, where
        :func:`~tique_rewriter.local.values.kind_of` would take it for another engine's.
    type_spellings
        The catalog's name, in capitals, by each other name of a type.
    """

    name: str
    engine: str
    syntax: type[Dialect]
    lexicon: Lexicon
    default_schema: str
    temporary_schema: str
    ends_temporaries: tuple[str, ...]
    queries: frozenset[str]
    listings: Mapping[str, str]
    listing_schemas: tuple[str, ...]
    system_schemas: frozenset[str]
    system_relations: Pattern[str]
    files: Pattern[str] | None
    table_functions: Pattern[str]
    function_schemas: frozenset[str] | None
    refused_functions: frozenset[str]
    of_storage: frozenset[str] = frozenset()
    suffixes: frozenset[str] = frozenset()
    refused_kinds: Mapping[type[exp.Expr], Construct] = field(default_factory=dict)
    refused_parts: Mapping[type[exp.Expr], Mapping[str, Construct]] = field(
        default_factory=dict
    )
    refused_joins: frozenset[str] = frozenset()
    crashing_windows: frozenset[str] = frozenset()
    first_rows_stay: bool = False
    lateral_functions: bool = True
    lateral_selects_only: bool = False
    types: Pattern[str] | None = None
    constraints: frozenset[str] = frozenset()
    collations: str = ""
    calls: frozenset[str] = frozenset()
    samples_rows: bool = False
    extensions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    chains: bool = False
    default_is_null: bool = True
    fewer_values: bool = False
    exact_quoted_names: bool = False
    joins_in_parts: bool = False
    moves_conditions: bool = False
    confuses_aliases: bool = False
    before_brackets: Pattern[str] | None = None
    bracket_words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    function_schema: str = ""
    set_functions: Pattern[str] | None = None
    longest_name: int = 0
    hidden_columns: frozenset[str] = frozenset()
    stores_rowid: bool = False
    typed_rows: bool = False
    indexes: frozenset[str] = frozenset()
    comma_may_end: bool = False
    restarts_identities: bool = False
    conflict_computes_keys: bool = False
    conflict_needs_key: bool = False
    recursive_sees_all: bool = False
    names_by_text: bool = False
    distinct_needs_names: bool = False
    moments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    moment_strings: bool = False
    unknown_functions: frozenset[str] = frozenset()
    draws: frozenset[str] = frozenset()
    extra_syntax: frozenset[str] = frozenset()
    literal_types: frozenset[str] = frozenset()
    plain_objects: frozenset[str] = frozenset()
    maintains: frozenset[str] = frozenset()
    own_extensions: frozenset[str] = frozenset()
    explains: bool = False
    allowed_kinds: frozenset[type[exp.Expr]] = frozenset()
    allowed_parts: frozenset[str] = frozenset()
    copies: frozenset[str] = frozenset()
    merges: frozenset[str] = frozenset()
    merge_action: str = ""
    row_assignments: frozenset[str] = frozenset()
    with_changes: bool = False
    changes_in_turn: bool = False
    inserts_by_position: bool = False
    generated: bool = False
    generated_takes_default: bool = False
    copies_generated: bool = False
    overrides_identity: bool = False
    names_keys: bool = False
    storage_parameters: Pattern[str] | None = None
    returns_joined: bool = False
    alterations: frozenset[str] = frozenset()
    owners: Mapping[str, str] = field(default_factory=dict)
    keeps_referencing: bool = True
    materializes: bool = False
    changes_views: bool = False
    truncates: frozenset[str] = frozenset()
    likes: frozenset[str] = frozenset()
    views_look_at_home: bool = False
    serials: Mapping[str, str] = field(default_factory=dict)
    serial_is_key: bool = False
    identities: frozenset[str] = frozenset()
    definable_types: frozenset[str] = frozenset()
    column_type: Callable[[str], str] = str
    type_spellings: Mapping[str, str] = field(default_factory=dict)

    def unquoted(self, name: str) -> str:
        """Return the name that ``name`` without quotes stands for."""
        return name.translate(_ASCII_LOWER) if self.exact_quoted_names else name

    def same(self, name: str) -> str:
        """Return a key that is equal for two names with the same meaning."""
        return name if self.exact_quoted_names else name.lower()
