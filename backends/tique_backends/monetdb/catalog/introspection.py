"""Schemas of tables, and views, read from MonetDB's catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.catalog.foreign_keys import Declared
from tique_backends.catalog.relations import Relations, expect_free
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.values.types import type_name
from tique_rewriter.schema import Action, Column, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_backends.records import Row
    from tique_backends.session import Session

# Of `sys._tables` and `sys._columns`, not of the views above them: what these have beside, a
# session's temporary tables, may be unreadable (README.md).

_PRIMARY, _UNIQUE, _FOREIGN = 0, 1, 2

USER_TABLES = """
SELECT s.name, t.name FROM sys._tables AS t JOIN sys.schemas AS s ON s.id = t.schema_id
WHERE t.type = 0 AND NOT t.system AND t.commit_action = 0 AND s.name <> R'tique'
ORDER BY 1, 2"""

_TABLES = """
SELECT s.name, t.name, t.id, t.type, k.table_type_name, t.access
FROM sys._tables AS t JOIN sys.schemas AS s ON s.id = t.schema_id
JOIN sys.table_types AS k ON k.table_type_id = t.type
WHERE NOT t.system AND t.commit_action = 0 AND s.name <> R'tique'"""

_SPELLED = f"""
SELECT schema_name, table_name FROM ({_TABLES}) AS _t(schema_name, table_name, _1, _2, _3, _4)
WHERE lower(schema_name) = lower($1) AND lower(table_name) = lower($2) ORDER BY 1, 2"""

_COLUMNS = """
SELECT table_id, name, type, type_digits, type_scale, NOT "null", "default"
FROM sys._columns WHERE table_id IN (SELECT id FROM sys._tables WHERE NOT system)
ORDER BY table_id, number"""

_KEYS = """
SELECT k.table_id, k.id, k.type, o.name, k.name
FROM sys.keys AS k JOIN sys.objects AS o ON o.id = k.id ORDER BY k.id, o.nr"""

_INDEXES = """
SELECT i.table_id, o.name FROM sys.idxs AS i JOIN sys.objects AS o ON o.id = i.id
WHERE o.nr = 0"""

_REFERENCED = """
SELECT DISTINCT k.table_id FROM sys.keys AS f JOIN sys.keys AS k ON k.id = f.rkey
WHERE f.type = 2"""

_REFERENCING = """
SELECT DISTINCT s.name, t.name FROM sys.keys AS f JOIN sys.keys AS k ON k.id = f.rkey
JOIN sys._tables AS t ON t.id = f.table_id JOIN sys.schemas AS s ON s.id = t.schema_id
JOIN sys._tables AS p ON p.id = k.table_id JOIN sys.schemas AS q ON q.id = p.schema_id
WHERE f.type = 2 AND q.name = $1 AND p.name = $2 ORDER BY 1, 2"""

_FOREIGN_KEYS = """
SELECT f.id, f.name, s.name, t.name, f."action", o.name, r.name
FROM sys.keys AS f JOIN sys._tables AS c ON c.id = f.table_id
JOIN sys.schemas AS d ON d.id = c.schema_id
JOIN sys.keys AS k ON k.id = f.rkey JOIN sys._tables AS t ON t.id = k.table_id
JOIN sys.schemas AS s ON s.id = t.schema_id
JOIN sys.objects AS o ON o.id = f.id
JOIN sys.objects AS r ON r.id = k.id AND r.nr = o.nr
WHERE f.type = 2 AND d.name = $1 AND c.name = $2 ORDER BY f.id, o.nr"""

_ACTIONS = (
    Action.NO_ACTION,
    Action.CASCADE,
    Action.RESTRICT,
    Action.SET_NULL,
    Action.SET_DEFAULT,
)
"""As MonetDB numbers them, ON UPDATE in the second byte."""

_TRIGGERS = "SELECT table_id FROM sys.triggers"

_VIEWS = """
SELECT t.id, s.name, t.name, t.query FROM sys._tables AS t
JOIN sys.schemas AS s ON s.id = t.schema_id
WHERE t.type = 1 AND NOT t.system AND s.name <> R'tique' ORDER BY t.id"""

_VIEW_COLUMNS = """
SELECT c.table_id, c.name, c.type, c.type_digits, c.type_scale FROM sys._columns AS c
JOIN sys._tables AS t ON t.id = c.table_id WHERE t.type = 1 AND NOT t.system
ORDER BY c.table_id, c.number"""

LAYOUTS = """
SELECT t.name, c.name FROM sys._columns AS c
JOIN sys._tables AS t ON t.id = c.table_id JOIN sys.schemas AS s ON s.id = t.schema_id
WHERE s.name = R'tique' ORDER BY t.id, c.number"""
"""A query for the columns of tique's tables: table and column name, in order."""


class Descriptions:
    """The schemas of tables."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._named = Relations(session, width=2)
        self._relations = Relations(session)

    def describe(self, schema: str, name: str, table_id: int = 0) -> Table:
        """Return a table's schema; the names are matched without regard to case.

        Raises
        ------
        EngineError
            PROGRAMMING if there is no such table, UNSUPPORTED if it has something
            whose promises tique cannot keep.
        """
        found = (schema, name)
        if not self._named.rows(_TABLES, *found):
            spelled = self._session.execute(_SPELLED, found).fetch_all()
            if not spelled:
                raise EngineError(
                    ErrorKind.PROGRAMMING, f"there is no table {schema}.{name}"
                )
            found = spelled[0]
        (row,) = self._named.rows(_TABLES, *found)
        return _described(self._relations.rows, found, row, table_id)


def describe(session: Session, schema: str, name: str, table_id: int = 0) -> Table:
    """Read one table's schema, as :meth:`Descriptions.describe` does."""
    return Descriptions(session).describe(schema, name, table_id)


def _described(
    ask: Callable[..., list[Row]], named: tuple[str, str], found: Row, table_id: int
) -> Table:
    schema, name = named
    number, kind, kind_name, access = found
    label = f"{schema}.{name}"

    def refuse(what: str) -> EngineError:
        return EngineError(ErrorKind.UNSUPPORTED, f"table {label} {what}")

    if kind != 0:
        raise refuse(f"is a {kind_name.lower()}")
    if access != 0:
        raise refuse("is read-only or insert-only")
    columns = []
    for column, engine_type, digits, scale, not_null, default in ask(_COLUMNS, number):
        expect_free(label, column)
        text = type_name(engine_type, digits, scale)
        if text is None:
            raise refuse(f"has column {column!r} of type {engine_type}")
        columns.append(Column(column, text, not_null, default))
    if table_id and ask(_REFERENCED, number):
        raise refuse("is referenced by another table's FOREIGN KEY constraint")
    if ask(_TRIGGERS, number):
        # A fold would set it off, long after the commit and for several at once.
        raise refuse("has a trigger")
    positions = {column.name: i for i, column in enumerate(columns)}
    keys: dict[int, tuple[int, ...]] = {}
    kinds: dict[int, int] = {}
    names: dict[int, str] = {}
    for key, key_kind, column, constraint in ask(_KEYS, number):
        if key_kind == _FOREIGN:
            if table_id:
                raise refuse("has a FOREIGN KEY constraint")
            # The caller takes it over.
            continue
        if key_kind not in (_PRIMARY, _UNIQUE):
            raise refuse("has a constraint of a kind that tique does not know")
        kinds[key], names[key] = key_kind, constraint
        keys[key] = (*keys.get(key, ()), positions[column])
    primary = [keys[key] for key, key_kind in kinds.items() if key_kind == _PRIMARY]
    unique = [keys[key] for key, key_kind in kinds.items() if key_kind == _UNIQUE]
    alone = {key[0] for key in keys.values() if len(key) == 1}
    heads = {positions[column] for (column,) in ask(_INDEXES, number)}
    return Table(
        schema,
        name,
        tuple(columns),
        primary[0] if primary else (),
        tuple(unique),
        (),
        table_id,
        key_names=tuple([(names[key], columns) for key, columns in keys.items()]),
        heads=frozenset(heads - alone),
    )


def foreign_keys(session: Session, table: Table) -> list[Declared]:
    """The FOREIGN KEY constraints that MonetDB has on a table."""
    found: dict[int, Declared] = {}
    rows = session.execute(_FOREIGN_KEYS, [table.schema, table.name]).fetch_all()
    for number, name, schema, parent, action, column, key in rows:
        before = found.get(number)
        found[number] = Declared(
            name,
            [*(before.columns if before else ()), column],
            (schema, parent),
            [*(before.key if before else ()), key],
            _ACTIONS[action & 255],
            _ACTIONS[action >> 8 & 255],
        )
    return list(found.values())


def referencing_tables(session: Session, table: Table) -> list[Row]:
    """Schema and name of each table with a constraint that references this one."""
    return session.execute(_REFERENCING, [table.schema, table.name]).fetch_all()


def views(session: Session) -> list[View]:
    """The application's views.

    The columns in the catalog are those from their creation: a star stands for more, if
    the table has more by now.
    """
    found = session.execute(_VIEWS).fetch_all()
    if not found:
        return []
    columns: dict[int, list[Column]] = {}
    for number, name, kind, digits, scale in session.execute(_VIEW_COLUMNS).fetch_all():
        text = type_name(kind, digits, scale) or kind.upper()
        columns.setdefault(number, []).append(Column(name, text))
    return [
        View(
            Table(schema, name, tuple(columns.get(number, ())), id=-number),
            definition,
            has_its_columns=False,
        )
        for number, schema, name, definition in found
    ]
