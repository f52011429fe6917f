"""What FOREIGN KEYs there are: tique keeps them, so no engine's catalog shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tique.store.catalog import ManagedCatalog


@dataclass(frozen=True)
class ForeignKey:
    """A FOREIGN KEY constraint.

    Attributes
    ----------
    schema, table : str
        The table that has it.
    name : str
        Its name.
    columns : tuple of str
        Its columns.
    referred_schema, referred_table : str
        The table that it references.
    referred_columns : tuple of str
        The columns there, in the order of ``columns``.
    on_delete, on_update : str
        ``"NO ACTION"``, ``"RESTRICT"``, ``"CASCADE"``, ``"SET NULL"`` or
        ``"SET DEFAULT"``.
    is_deferred : bool
        Whether it is ``DEFERRABLE INITIALLY DEFERRED``.
    """

    schema: str
    table: str
    name: str
    columns: tuple[str, ...]
    referred_schema: str
    referred_table: str
    referred_columns: tuple[str, ...]
    on_delete: str
    on_update: str
    is_deferred: bool


def foreign_keys(catalog: ManagedCatalog) -> list[ForeignKey]:
    """All of a catalog, in the order of names."""
    found = [
        ForeignKey(
            table.schema,
            table.name,
            key.name,
            tuple(table.columns[i].name for i in key.columns),
            *key.parent,
            tuple(catalog.parent(key).columns[i].name for i in key.key),
            key.on_delete.value,
            key.on_update.value,
            key.is_deferred,
        )
        for table in catalog
        for key in table.foreign_keys
    ]
    return sorted(found, key=lambda key: (key.schema, key.table, key.name))
