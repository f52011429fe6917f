"""The FOREIGN KEY constraints of managed tables, as they are kept in tique's schema.

The storage tables do not have them: folds bring rows in an order of their own. The
relation that keeps them is created with the first one, in the engine transaction that
creates or adopts its table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tique_backends.names import key_list, quote, storage_name
from tique_rewriter.schema import Action, ForeignKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

NAME = "foreign_keys"

KEPT = "SELECT id, definition FROM tique.foreign_keys ORDER BY id, number"

CREATION = (
    "CREATE TABLE tique.foreign_keys (id BIGINT NOT NULL, number BIGINT NOT NULL, "
    "definition TEXT NOT NULL)"
)


def read(session: Session, layouts: Iterable[Row]) -> Sequence[Row]:
    """The rows of ``KEPT``, given the columns of tique's tables."""
    if all(name != NAME for name, _ in layouts):
        return ()
    return session.execute(KEPT).fetch_all()


def keep(
    session: Session,
    layouts: str,
    table: Table,
    tables: Mapping[tuple[str, str], Table],
    creation: Sequence[str] = (CREATION,),
) -> None:
    """Keep a managed table's constraints, in place of those that it had.

    Parameters
    ----------
    session
        The session, in an engine transaction.
    layouts
        The engine's query for the columns of tique's tables.
    table
        The child.
    tables
        The tables that it references, by schema and name.
    creation
        Statements that create the relation.
    """
    exists = any(name == NAME for name, _ in session.execute(layouts).fetch_all())
    if not exists:
        if not table.foreign_keys:
            return
        for statement in creation:
            session.execute(statement)
    _delete(session, table)
    for number, key in enumerate(table.foreign_keys):
        definition = _written(table, tables[key.parent], key)
        session.execute(
            "INSERT INTO tique.foreign_keys VALUES ($1, $2, $3)",
            [table.id, number, definition],
        )


def forget(session: Session, table: Table) -> None:
    """Keep the constraints of a table no longer that is about to be released."""
    if table.foreign_keys:
        _delete(session, table)


def _delete(session: Session, table: Table) -> None:
    session.execute(f"DELETE FROM tique.foreign_keys WHERE id = {table.id}")


def _written(child: Table, parent: Table, key: ForeignKey) -> str:
    return json.dumps(
        {
            "name": key.name,
            "columns": [child.columns[i].name for i in key.columns],
            "schema": key.parent[0],
            "table": key.parent[1],
            "key": [parent.columns[i].name for i in key.key],
            "on_delete": key.on_delete.value,
            "on_update": key.on_update.value,
            "deferred": key.is_deferred,
        }
    )


@dataclass(frozen=True)
class Declared:
    """A FOREIGN KEY constraint that an engine's table has, by names."""

    name: str
    columns: Sequence[str]
    parent: tuple[str, str]
    key: Sequence[str]
    on_delete: Action
    on_update: Action
    is_deferred: bool = False

    def resolved(self, child: Table, parent: Table) -> ForeignKey | None:
        """The constraint; None if it references no key of the parent that is known."""
        pairs = dict(
            zip(
                _positions(parent, self.key),
                _positions(child, self.columns),
                strict=True,
            )
        )
        for key in (parent.primary_key, *parent.unique):
            if set(key) == set(pairs):
                return ForeignKey(
                    self.name,
                    tuple([pairs[i] for i in key]),
                    self.parent,
                    key,
                    self.on_delete,
                    self.on_update,
                    self.is_deferred,
                )
        return None


def dropping(table: Table) -> Iterator[str]:
    """Statements that take a storage table's constraints from it."""
    for key in table.foreign_keys:
        yield f"ALTER TABLE {storage_name(table)} DROP CONSTRAINT {quote(key.name)}"


def adding(table: Table, tables: Mapping[tuple[str, str], Table]) -> Iterator[str]:
    """Statements that give a storage table its constraints back."""
    for key in table.foreign_keys:
        parent = tables[key.parent]
        deferred = " DEFERRABLE INITIALLY DEFERRED" if key.is_deferred else ""
        yield (
            f"ALTER TABLE {storage_name(table)} ADD CONSTRAINT {quote(key.name)} "
            f"FOREIGN KEY ({key_list(table, key.columns)}) "
            f"REFERENCES {storage_name(parent)} ({key_list(parent, key.key)}) "
            f"ON DELETE {key.on_delete.value} ON UPDATE {key.on_update.value}{deferred}"
        )


def attached(tables: Sequence[Table], kept: Iterable[Row]) -> list[Table]:
    """The tables with their constraints, and with their keys that are referenced."""
    by_name = {(table.schema, table.name): table for table in tables}
    written: dict[int, list[Mapping[str, Any]]] = {}
    for number, definition in kept:
        written.setdefault(number, []).append(json.loads(definition))
    found = [
        replace(
            table,
            foreign_keys=tuple(_read(table, by_name, d) for d in written[table.id]),
        )
        if table.id in written
        else table
        for table in tables
    ]
    referencing: dict[tuple[str, str], list[tuple[Table, ForeignKey]]] = {}
    for table in found:
        for key in table.foreign_keys:
            referencing.setdefault(key.parent, []).append((table, key))
    return [
        _referenced(table, referencing.get((table.schema, table.name), ()))
        for table in found
    ]


def _referenced(
    table: Table, referencing: Collection[tuple[Table, ForeignKey]]
) -> Table:
    if not referencing:
        return table
    return replace(
        table,
        referenced=frozenset(key.key for _, key in referencing),
        referencing=frozenset(
            (child.schema, child.name, key.name) for child, key in referencing
        ),
    )


def _read(
    child: Table,
    tables: Mapping[tuple[str, str], Table],
    written: Mapping[str, Any],
) -> ForeignKey:
    """A constraint; of a table that cannot be used it has no columns."""
    name = (written["schema"], written["table"])
    return ForeignKey(
        written["name"],
        _positions(child, written["columns"]),
        name,
        _positions(tables.get(name), written["key"]),
        Action(written["on_delete"]),
        Action(written["on_update"]),
        written["deferred"],
    )


def _positions(table: Table | None, names: Sequence[str]) -> tuple[int, ...]:
    positions = {} if table is None else table.positions
    found = [positions.get(name.lower()) for name in names]
    return () if None in found else tuple([i for i in found if i is not None])
