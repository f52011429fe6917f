"""CREATE, ALTER and DROP of schemas and sequences.

The engine runs them as they stand. Every word of them is accounted for here: an option
that is on no list, and a name in tique's schema, are refused.

*ALTER … OWNER TO*, which dumps have for every object, has nothing to do: only the role
that is the owner already may be named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.kinds.define.identity import are_options
from tique_rewriter.plans.ddl_plans import DefineObjects, RenameSchema
from tique_rewriter.plans.plan import Plan
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import (
    check_reserved,
    check_writable,
    quote,
    unmanaged,
)

if TYPE_CHECKING:
    from tique_rewriter.schema import Definitions
    from tique_rewriter.text.source import Source

_OWNED = ("OWNED", "BY")


@dataclass(frozen=True)
class KeepOwner(Plan):
    """ALTER … OWNER TO: whether the session's role is named and is the owner already.

    ``question`` is a query for the owner and the session's role, given the object's schema
    or None, its name, and what is in the brackets behind it or None. ``role`` is None for
    CURRENT_USER.
    """

    kind: str
    question: str
    given: tuple[str | None, str, str | None]
    role: str | None
    if_exists: bool


def plan_object(source: Source, catalog: Definitions) -> Plan:
    """Return the plan of CREATE, ALTER or DROP of a schema or a sequence.

    Raises
    ------
    UnsupportedSQL
        For a clause that is not on the list, or a reserved name.
    """
    cursor = Cursor.of_definition(source)
    verb, replaces = cursor.take().keyword, cursor.accept("OR REPLACE")
    kind = cursor.take().keyword
    if replaces and (kind != "SEQUENCE" or verb != "CREATE"):
        raise source.unsupported(f"{verb} OR REPLACE {kind}", source.start)
    cursor.accept("IF NOT EXISTS" if verb == "CREATE" else "IF EXISTS")
    if kind == "SCHEMA":
        return _schema(cursor, catalog, verb)
    return _sequence(cursor, catalog, verb)


def _schema(cursor: Cursor, catalog: Definitions, verb: str) -> Plan:
    source = cursor.source
    if verb == "ALTER":
        return _rename_schema(source)
    names = cursor.names(several=verb == "DROP")
    if any(schema for schema, _ in names):
        raise source.unsupported("a name with a database in it", cursor.before.start)
    for _, name in names:
        check_writable(source, catalog, name, source.start)
    behaviour = cursor.accept_last("CASCADE", "RESTRICT") if verb == "DROP" else ""
    cursor.finish(f"in {verb} SCHEMA")
    dropped = [name for _, name in names] if behaviour == "CASCADE" else []
    return DefineObjects(0, (), cursor.statement, tuple(dropped))


def _rename_schema(source: Source) -> RenameSchema:
    words, forms = source.words, source.rules.alterations
    match source.keywords(2):
        case [_, "RENAME", "TO", _] if "schema name" in forms:
            before, after = source.identifier(words[2]), source.identifier(words[5])
        case _:
            raise source.unsupported("ALTER SCHEMA", words[0].start)
    for name in (before, after):
        check_reserved(source, name, words[0].start)
    return RenameSchema(0, (), source.words_text(words), (before, after))


def _sequence(cursor: Cursor, catalog: Definitions, verb: str) -> DefineObjects:
    source = cursor.source
    names = cursor.names(catalog.default_schema, several=verb == "DROP")
    for schema, _ in names:
        check_writable(source, catalog, schema, source.start)
    if verb == "ALTER" and cursor.follows("RENAME TO"):
        if "sequence" not in source.rules.alterations:
            raise source.unsupported("RENAME of a sequence", cursor.start)
        _rename(cursor)
    elif verb == "DROP":
        cursor.accept_last("RESTRICT")
        cursor.finish("in DROP SEQUENCE")
    elif "owning table" in source.rules.alterations and cursor.accept("OWNED BY"):
        return _own(cursor, catalog)
    else:
        _check_options(cursor, verb)
    return DefineObjects(0, (), cursor.statement)


def _own(cursor: Cursor, catalog: Definitions) -> DefineObjects:
    """Read the table with which the sequence is dropped."""
    source, begin, start = cursor.source, cursor.source.start, cursor.start
    schema, name = cursor.qualified()
    cursor.finish("in OWNED BY")
    table = catalog.find(schema or None, name)
    if table is None:
        raise unmanaged(source, f'unknown table "{source.text[start:]}"', start)
    check_writable(source, catalog, table.schema, start)
    place = f"{quote(table.schema)}.{quote(table.name)}"
    return DefineObjects(0, (), f"{source.text[begin:start]}{place}")


def _rename(cursor: Cursor) -> None:
    """Read RENAME TO and a name, the statement's last word."""
    cursor.accept("RENAME TO")
    cursor.name()
    cursor.finish("in RENAME")


def _check_options(cursor: Cursor, verb: str) -> None:
    source, words, keywords = cursor.source, cursor.rest, cursor.keywords
    if tuple(keywords[-5:-3]) == _OWNED or tuple(keywords[-7:-5]) == _OWNED:
        start = len(words) - (3 if tuple(keywords[-5:-3]) == _OWNED else 5)
        owner = source.identifier(words[start])
        check_reserved(source, owner, source.start)
        words = words[: start - 2]
    elif keywords[-3:] == [*_OWNED, "NONE"]:
        words = words[:-3]
    changes = {word.keyword for word in words} - {"RESTART", "WITH", "-", "+"}
    only_restarts = verb == "ALTER" and "sequence" not in source.rules.alterations
    if only_restarts and any(not word.isdigit() for word in changes):
        raise source.unsupported(
            "ALTER SEQUENCE of anything but RESTART",
            source.start,
            f"{source.rules.engine} crashes",
        )
    if not are_options(words):
        raise source.unsupported(
            f"an option of {verb} SEQUENCE",
            words[0].start if words else source.start,
        )


def plan_owner(source: Source) -> KeepOwner | None:
    """Return the plan of ALTER … OWNER TO; None for any other statement."""
    keywords = source.keywords()
    if keywords[0] != "ALTER" or keywords[-3:-1] != ["OWNER", "TO"]:
        return None
    cursor = Cursor.of_definition(source, 1)
    if not (kind := cursor.accept(*source.rules.owners)):
        return None
    if_exists = bool(cursor.accept("IF EXISTS"))
    if kind == "TABLE":
        cursor.accept("ONLY")
    schema, name = cursor.unreserved("")
    listed = cursor.brackets()
    signature = None if listed is None else ""
    if listed:
        signature = source.words_text(listed)
    if not cursor.accept("OWNER TO") or cursor.keyword == "SESSION_USER":
        return None
    own = cursor.accept_last("CURRENT_USER", "CURRENT_ROLE")
    role = None if own else cursor.name()
    given = (schema or None, name, signature)
    question = source.rules.owners[kind]
    return KeepOwner(0, (), kind, question, given, role, if_exists)


def plan_alter_index(source: Source, catalog: Definitions) -> DefineObjects:
    """Return the plan of ALTER INDEX … RENAME TO.

    Raises
    ------
    UnsupportedSQL
        For any other change, or an index of tique's.
    """
    cursor = Cursor(source, number=2)
    cursor.accept("IF EXISTS")
    schema, _ = cursor.qualified(catalog.default_schema)
    check_reserved(source, schema, source.start)
    if not cursor.follows("RENAME TO"):
        raise source.unsupported("ALTER INDEX of anything but its name", source.start)
    _rename(cursor)
    return DefineObjects(0, (), cursor.statement)
