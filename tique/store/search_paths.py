"""The managed tables as a connection with a search path of its own finds them.

A name without a schema means the relation in the first schema of the path that has it. It
may be one that is not under tique's management: then the name means no managed table behind
it (P10). Which schemas are there, and which relations share a name, is asked again whenever a
definition has changed; until then a plan is one of this path's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from tique_rewriter.schema import DerivedDefinitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique_rewriter.safety.hidden_calls import HiddenCalls
    from tique_rewriter.schema import Table, View

_NO_SCHEMA = "(no schema: the search path has none that is there)"
"""It is in no database: what is made there is refused by the engine (3F000)."""


class CatalogAlong(DerivedDefinitions):
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
        super().__init__(catalog)
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
    @override
    def without_temporaries(self) -> CatalogAlong:
        """The same: its tables and views are no connection's."""
        return self

    @property
    @override
    def default_path(self) -> ManagedCatalog:
        """The tables and views along the path of a new connection."""
        return self._catalog

    @property
    @override
    def default_schema(self) -> str:
        """The schema of a new table whose name has none."""
        return self.search_path[0] if self.search_path else _NO_SCHEMA

    @override
    def find(self, schema: str | None, name: str) -> Table | None:
        """As that of the catalog."""
        place = self._place(schema, name)
        return None if place is None else self._catalog.find(place, name)

    @override
    def named(self, schema: str | None, name: str) -> Table | None:
        """As that of the catalog."""
        place = self._place(schema, name)
        return None if place is None else self._catalog.named(place, name)

    @override
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

    @property
    @override
    def hidden_calls(self) -> HiddenCalls:
        """As that of the catalog, along both paths: its own sessions have the usual one."""
        path = {*self._catalog.search_path, *self.search_path}
        return self._catalog.all_hidden_calls.along(path)
