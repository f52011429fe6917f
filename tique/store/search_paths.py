"""The managed tables as a connection with a search path of its own finds them.

A name without a schema means the relation in the first schema of the path that has it. It
may be one that is not under tique's management: then the name means no managed table behind
it (P10). Which schemas are there, and which relations share a name, is asked again whenever a
definition has changed; until then a plan is one of this path's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique_rewriter.hidden_calls import HiddenCalls
    from tique_rewriter.schema import Attached, Table, View

_NO_SCHEMA = "(no schema: the search path has none that is there)"
"""It is in no database: what is made there is refused by the engine (3F000)."""


class CatalogAlong:
    """The tables and views of a catalog along a search path.

    Parameters
    ----------
    catalog
        All of them.
    schemas
        Those of the path that are there.
    alike
        Relations of theirs that share a name, managed or not.
    """

    def __init__(
        self,
        catalog: ManagedCatalog,
        schemas: Sequence[str],
        alike: Iterable[tuple[str, str]] = (),
    ) -> None:
        self._catalog = catalog
        self.search_path = tuple(schemas)
        """The schemas in which a table is looked for that names none."""
        self.hiding = frozenset(
            (schema.lower(), name.lower())
            for schema, name in alike
            if catalog.named(schema, name) is None
            and catalog.view(schema, name) is None
        )
        """Relations that are not managed, and hide others."""

    @property
    def version(self) -> int:
        """A number that changes whenever any table's definition does."""
        return self._catalog.version

    @property
    def lasting(self) -> CatalogAlong:
        """The same: its tables and views are no connection's."""
        return self

    @property
    def usual(self) -> ManagedCatalog:
        """The tables and views along the path of a new connection."""
        return self._catalog

    @property
    def default_schema(self) -> str:
        """The schema of a new table whose name has none."""
        return self.search_path[0] if self.search_path else _NO_SCHEMA

    @property
    def database(self) -> str:
        """The database's own name."""
        return self._catalog.database

    def find(self, schema: str | None, name: str) -> Table | None:
        """As that of the catalog."""
        place = self._place(schema, name)
        return None if place is None else self._catalog.find(place, name)

    def named(self, schema: str | None, name: str) -> Table | None:
        """As that of the catalog."""
        place = self._place(schema, name)
        return None if place is None else self._catalog.named(place, name)

    def view(self, schema: str | None, name: str) -> View | None:
        """As that of the catalog."""
        place = self._place(schema, name)
        return None if place is None else self._catalog.view(place, name)

    def _place(self, schema: str | None, name: str) -> str | None:
        """The schema in which a name is found."""
        if schema:
            return schema
        catalog = self._catalog
        for place in self.search_path:
            if (place.lower(), name.lower()) in self.hiding:
                return None
            if (
                catalog.named(place, name) is not None
                or catalog.view(place, name) is not None
            ):
                return place
        return None

    def may_call(self, schema: str | None, name: str) -> bool:
        """As that of the catalog: functions of one name count together."""
        return self._catalog.may_call(schema, name)

    @property
    def has_unsafe_functions(self) -> bool:
        """As that of the catalog."""
        return self._catalog.has_unsafe_functions

    def is_unsafe(self, name: str) -> bool:
        """As that of the catalog."""
        return self._catalog.is_unsafe(name)

    @property
    def hidden_calls(self) -> HiddenCalls:
        """As that of the catalog, along both paths: its own sessions have the usual one."""
        path = {*self._catalog.search_path, *self.search_path}
        return self._catalog.all_hidden_calls.along(path)

    def attached(self, name: str) -> Attached | None:
        """Another database that is attached by that name."""
        return self._catalog.attached(name)
