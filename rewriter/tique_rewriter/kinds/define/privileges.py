"""GRANT and REVOKE, which the engine runs as they stand.

A role's privileges on a table are those on its versions, so nothing else has to be done.
Every word is accounted for: the objects are of kinds on a list, and none is tique's but
the schema itself, which any role may be given the use of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plans.ddl_plans import Grant
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import PRIVATE_SCHEMA, check_reserved
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.text.source import Source, Word

_PRIVILEGES = frozenset(
    (
        *("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"),
        *("USAGE", "CREATE", "CONNECT", "TEMPORARY", "TEMP", "EXECUTE", "MAINTAIN"),
        *("ALL", "ALL PRIVILEGES"),
    )
)
_KINDS = frozenset({"TABLE", "SEQUENCE", "SCHEMA", "DATABASE", "TYPE", "DOMAIN"})
_CALLED = frozenset({"FUNCTION", "PROCEDURE", "ROUTINE"})
_SETS = frozenset({"TABLES", "SEQUENCES", "FUNCTIONS", "PROCEDURES", "ROUTINES"})
_TAILS = (
    *((), ("CASCADE",), ("RESTRICT",), ("WITH", "GRANT", "OPTION")),
    *(("WITH", "ADMIN", "OPTION"),),
)


def plan_grant(source: Source) -> Grant:
    """Return the plan of GRANT or REVOKE of privileges on objects.

    Raises
    ------
    UnsupportedSQL
        For an object of a kind that is on no list, or one of tique's.
    """
    words, cursor = source.words, Cursor.of_definition(source)
    verb = cursor.take().keyword
    if verb == "REVOKE":
        cursor.accept("GRANT OPTION FOR")
    listed = cursor.take_until({"ON"})
    if not cursor.accept("ON"):
        raise source.unsupported(
            f"{verb} of a role",
            words[0].start,
            "roles are the server's; use its own client",
        )
    privileges = [_privilege(source, piece) for piece in split(listed)]
    first = cursor.number
    objects = cursor.take_until({"TO" if verb == "GRANT" else "FROM"})
    if not privileges or cursor.left < 2 or not objects:
        raise source.syntax("a role is expected", words[-1].start)
    _check_objects(source, first, cursor.number, uses_only=privileges == ["USAGE"])
    cursor.take()
    _check_roles(cursor)
    return Grant(0, (), cursor.statement)


def plan_default_privileges(source: Source) -> Grant:
    """Return the plan of ALTER DEFAULT PRIVILEGES, which are of objects to come.

    tique's own get none of them.

    Raises
    ------
    UnsupportedSQL
        For objects of a kind that is on no list, or in tique's schema.
    """
    words, cursor = source.words, Cursor.of_definition(source, 3)
    if cursor.accept("FOR ROLE", "FOR USER"):
        cursor.list_of(cursor.unreserved_name)
    if cursor.accept("IN SCHEMA"):
        cursor.list_of(cursor.unreserved_name)
    verb = cursor.accept("GRANT", "REVOKE")
    if not verb:
        raise source.syntax("GRANT or REVOKE is expected", words[-1].start)
    cursor.accept("GRANT OPTION FOR")
    privileges = cursor.take_until({"ON"})
    cursor.accept("ON")
    for piece in split(privileges):
        _privilege(source, piece)
    kind = [w.keyword for w in cursor.take_until({"TO" if verb == "GRANT" else "FROM"})]
    if len(kind) != 1 or kind[0] not in _SETS | {"TYPES", "SCHEMAS"}:
        raise source.unsupported(
            "this form of ALTER DEFAULT PRIVILEGES", words[0].start
        )
    if cursor.left < 2 or not privileges:
        raise source.syntax("a role is expected", words[-1].start)
    cursor.take()
    _check_roles(cursor)
    return Grant(0, (), cursor.statement)


def _privilege(source: Source, piece: list[Word]) -> str:
    """The name of a privilege, which a list of columns may follow."""
    names = [word for word in piece if not word.depth]
    name = " ".join(word.keyword for word in names)
    listed = piece[len(names) :]
    if name not in _PRIVILEGES or (
        listed and source.closing(listed) != len(listed) - 1
    ):
        shown = source.words_text(piece) if piece else ","
        raise source.unsupported(f"{source.words[0].keyword} {shown}", source.start)
    return name


def _check_objects(source: Source, first: int, end: int, *, uses_only: bool) -> None:
    """Read the objects, from word ``first`` up to word ``end``."""
    keywords = source.keywords()[first:end]
    cursor, kind = Cursor(source, number=first), keywords[0]
    if kind == "ALL" and keywords[2:4] == ["IN", "SCHEMA"] and keywords[1] in _SETS:
        kind, cursor.number, uses_only = "SCHEMA", first + 4, False
    elif keywords[1:2] in ([], [","], ["."]):
        kind = "TABLE"
    elif kind in _KINDS | _CALLED:
        cursor.take()
    else:
        raise source.unsupported(f"{source.words[0].keyword} ON {kind}", source.start)
    while True:
        place = cursor.start
        schema, name = cursor.qualified()
        if kind == "SCHEMA":
            schema = name
        if not (uses_only and kind == "SCHEMA" and name == PRIVATE_SCHEMA):
            check_reserved(source, schema, place)
        if kind in _CALLED and cursor.number < end:
            cursor.brackets()
        if cursor.number >= end:
            return
        if not cursor.accept(","):
            raise source.syntax(", or the end of the list is expected", cursor.start)


def _check_roles(cursor: Cursor) -> None:
    source, missing = cursor.source, "a role is expected"

    def role() -> str:
        cursor.accept("GROUP")
        return cursor.name(missing)

    cursor.list_of(role)
    rest = cursor.keywords
    if rest[:2] == ["GRANTED", "BY"] and len(rest) > 2:
        rest = rest[3:]
    elif rest[-3:-1] == ["GRANTED", "BY"]:
        rest = rest[:-3]
    if tuple(rest) not in _TAILS:
        raise source.unsupported(
            f'"{source.words_text(cursor.rest)}" in {source.words[0].keyword}',
            cursor.start,
        )
