"""PostgreSQL's search path: which schemas a name without one is looked for in.

The application's sessions have the application's. tique's queries of the catalog must not
depend on it, as all sessions use what one has read: types, expressions and views are
written with their schemas (:func:`without_path`). tique's own statements name schemas, and
the functions of its schema have paths of their own. A bare operator has no schema, and
one of another role's in a schema of the path may fit better than PostgreSQL's (P11): so
connections of tique's own, and folds, look along :func:`path_locked`, and whatever compares
keys along the application's path names the schema (:attr:`Column.equality`). So do calls
with arguments of any type.

*Invariant* (P12). The path that the URL, the role or the database sets is the session's as it
stands there, and means what it means to PostgreSQL at every statement: which of its schemas
are there is asked again when a definition has changed, and before each statement that defines
something or names no table that is known, as other programs make and drop schemas, too.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_backends.settings import refused_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_backends.session import Session

SET_PATH = "SELECT pg_catalog.set_config('search_path', $1, false)"
_READING = {"search_path": "", "jit": "off", "join_collapse_limit": "1"}
"""Settings for questions of the catalog.

PostgreSQL takes them for expensive: compiling one takes longer than running it, and so does
the search for a better order of its joins than the one that it is written in.
"""
_BEFORE = ", ".join(f"pg_catalog.current_setting('{name}')" for name in _READING)
_SET = ", ".join(
    f"pg_catalog.set_config('{name}', '{value}', false)"
    for name, value in _READING.items()
)
_READ_CATALOG = f"WITH _before(_v) AS MATERIALIZED (SELECT ARRAY[{_BEFORE}]) SELECT _v, {_SET} FROM _before"
_AS_BEFORE = "SELECT " + ", ".join(
    f"pg_catalog.set_config('{name}', ${number}, false)"
    for number, name in enumerate(_READING, 1)
)

USER = "$user"
"""Stands for the schema that is called as the role."""

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")
_IDENTIFIER = re.compile(r'\s*(?:"((?:[^"\x00]|"")*)"|([A-Za-z_$][A-Za-z0-9_$]*))\s*')

_SCHEMAS = "SELECT pg_catalog.current_schemas(false)::TEXT[]"
_SHADOWING = """
SELECT n.nspname::TEXT, c.relname::TEXT FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ANY(CAST($1 AS TEXT[])) AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
  AND lower(c.relname) IN (SELECT lower(o.relname) FROM pg_catalog.pg_class AS o
    JOIN pg_catalog.pg_namespace AS s ON s.oid = o.relnamespace
    WHERE s.nspname = ANY(CAST($1 AS TEXT[])) AND o.relkind IN ('r', 'v', 'm', 'f', 'p')
    GROUP BY 1 HAVING count(DISTINCT s.oid) > 1)"""


def path_locked(local: str) -> str:
    """What lets names be PostgreSQL's own (P11), TRUE: for an engine transaction."""
    return f"set_config('search_path', 'pg_catalog, pg_temp', {local})"


@contextmanager
def without_path(session: Session) -> Iterator[None]:
    """Have PostgreSQL write a schema before every name that is not one of its own.

    Other settings are those that the catalog is read fastest with.
    """
    ((before, *_),) = session.execute(_READ_CATALOG).fetch_all()
    try:
        yield
    finally:
        # In an engine transaction that has failed it comes back by itself.
        with suppress(EngineError):
            session.execute(_AS_BEFORE, before).close()


def split_path(text: str) -> list[str]:
    """The schemas of a path as set_config() takes it.

    Raises
    ------
    EngineError
        It is not a list of names.
    """
    names: list[str] = []
    place = 0
    while text.strip():
        found = _IDENTIFIER.match(text, place)
        if found is None or text[found.end() : found.end() + 1] not in ("", ","):
            raise EngineError(
                ErrorKind.PROGRAMMING,
                'invalid value for parameter "search_path": it is a list of names',
                "22023",
            )
        quoted, bare = found.groups()
        names.append(bare.lower() if quoted is None else quoted.replace('""', '"'))
        place = found.end() + 1
        if place > len(text):
            break
    return names


def path_text(names: Sequence[str]) -> str:
    """The path of these schemas, as PostgreSQL shows it.

    Raises
    ------
    EngineError
        UNSUPPORTED, for schemas whose names would be other objects than those that
        tique's rewriter knows.
    """
    for number, name in enumerate(names):
        folded = name.casefold()
        if folded == "tique":
            raise refused_schema(name, "its tables are tique's own")
        if folded == "pg_catalog" and number == 0:
            continue
        if folded == "pg_catalog":
            raise refused_schema(
                name,
                "behind others PostgreSQL's own names would be those of the schemas "
                "before; leave it out: then it comes first",
            )
        if folded.startswith("pg_"):
            raise refused_schema(name, "it is PostgreSQL's own")
        if "\x00" in name:
            raise refused_schema("", "no name has a NUL character")
    return ", ".join(name if _PLAIN.fullmatch(name) else quote(name) for name in names)


def without_user(text: str, role: str) -> str:
    """The path without ``"$user"``, where that stands for tique's own schema."""
    if role.casefold() != "tique":
        return text
    return path_text([name for name in split_path(text) if name != USER])


def resolve(session: Session) -> tuple[list[str], set[tuple[str, str]]]:
    """The schemas of a session's path that are there, and relations to tell apart.

    The second are those whose names more than one of these schemas has.
    """
    ((schemas,),) = session.execute(_SCHEMAS).fetch_all()
    if len(schemas) < 2:
        return schemas, set()
    found = session.execute(_SHADOWING, [schemas]).fetch_all()
    return schemas, {(schema, name) for schema, name in found}
