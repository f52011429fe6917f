"""What a name means to the statements of one session.

There are the tables and views of the database, which :class:`Definitions` of their owner have;
the session's search path, if that is not a new connection's; and its temporary tables and
views, which come first. A view's query sees them in its own way, and so does a statement that
defines what lasts. All of these are one catalog each, made of another by one change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from typing_extensions import override

from tique_rewriter.errors import UnsupportedSQL
from tique_rewriter.schema import Definitions, Relations

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.plans.plan import ViewQuery
    from tique_rewriter.safety.hidden_calls import HiddenCalls
    from tique_rewriter.schema import Attached, Table, View

_NO_SCHEMA = "(no schema: the search path has none that is there)"
"""It is in no database: what is made there is refused by the engine (3F000)."""

_VERSIONS = 1 << 32


class SearchPath(NamedTuple):
    """The schemas in which a relation is looked for that names none.

    A name without a schema means the relation in the first of them that has it. It may be
    one that is not under tique's management: then the name means no managed table behind
    it (P10). These are ``hiding``, by schema and name in small letters.
    """

    schemas: tuple[str, ...]
    hiding: frozenset[tuple[str, str]] = frozenset()


class Temporaries(Relations, Protocol):
    """The temporary tables and views of a session, as their owner gives them."""

    @property
    def version(self) -> int:
        """A number that changes whenever any of them does."""


@dataclass(eq=False)
class Catalog(Definitions):
    """The tables and views, as the statements of one session see them.

    Parameters
    ----------
    definitions
        Those of the database, along the path of a new connection.
    plan_view
        Plans the query of a view, for the statements that see this catalog.
    search_path
        The session's; None for that of a new connection.
    temporaries
        The session's temporary tables and views, if it has any.
    refuses_temporaries
        Whether their names are refused: they would mean another relation to the engine
        than to tique.
    home
        The schema in which a name is looked up first, inside a view.
    above
        The ids of the views whose queries are being planned.
    """

    definitions: Definitions
    plan_view: Callable[[View, Catalog], ViewQuery]
    search_path: SearchPath | None = None
    temporaries: Temporaries | None = None
    refuses_temporaries: bool = False
    home: str | None = None
    above: tuple[int, ...] = ()
    _queries: tuple[int, dict[int, ViewQuery]] = field(
        default_factory=lambda: (-1, {}), init=False
    )
    """The catalog's version, and the queries that were planned by it, by view."""

    @property
    def without_temporaries(self) -> Catalog:
        """The same without temporary tables and views."""
        return replace(self, temporaries=None)

    @property
    def refusing_temporaries(self) -> Catalog:
        """The same for what lasts: no temporary table or view may be named."""
        return replace(self, refuses_temporaries=True)

    @property
    def default_path(self) -> Catalog:
        """The same along the path of a new connection."""
        return replace(self, search_path=None)

    def inside(self, home: str | None, *above: int) -> Catalog:
        """Return the catalog as the query of a view sees it, with its home if it has one.

        A view names no temporary table: it means the same to every connection.
        """
        above = (*self.above, *above)
        found = replace(self, temporaries=None, home=home, above=above)
        found._queries = self._queries
        return found

    @property
    @override
    def version(self) -> int:
        """A number for each state of the definitions and the temporaries."""
        if self.temporaries is None:
            return self.definitions.version
        return self.definitions.version * _VERSIONS + self.temporaries.version

    @property
    @override
    def default_schema(self) -> str:
        if self.search_path is None:
            return self.definitions.default_schema
        schemas = self.search_path.schemas
        return schemas[0] if schemas else _NO_SCHEMA

    @property
    @override
    def database(self) -> str:
        return self.definitions.database

    @override
    def find(self, schema: str | None, name: str) -> Table | None:
        relations, place = self._resolve(schema, name)
        return None if relations is None else relations.find(place, name)

    @override
    def named(self, schema: str | None, name: str) -> Table | None:
        relations, place = self._resolve(schema, name)
        return None if relations is None else relations.named(place, name)

    @override
    def view(self, schema: str | None, name: str) -> View | None:
        relations, place = self._resolve(schema, name)
        return None if relations is None else relations.view(place, name)

    def _resolve(
        self, schema: str | None, name: str
    ) -> tuple[Relations | None, str | None]:
        """Return among which relations a name is, if among any, and in which schema.

        Raises
        ------
        UnsupportedSQL
            It is a temporary table's or view's, and these are refused.
        """
        definitions = self.definitions
        if self.temporaries is not None:
            if self.refuses_temporaries:
                self._refuse_temporary(self.temporaries, schema, name)
            elif _has(self.temporaries, schema, name):
                return self.temporaries, schema
        if schema is None and self.home and _has(definitions, self.home, name):
            return definitions, self.home
        if schema or self.search_path is None:
            return definitions, schema
        for place in self.search_path.schemas:
            if (place.lower(), name.lower()) in self.search_path.hiding:
                break
            if _has(definitions, place, name):
                return definitions, place
        return None, None

    def _refuse_temporary(
        self, temporaries: Temporaries, schema: str | None, name: str
    ) -> None:
        for place in {schema, None} if schema == self.default_schema else {schema}:
            if _has(temporaries, place, name):
                kind = "view" if temporaries.view(place, name) else "table"
                raise UnsupportedSQL(
                    f'this statement is not supported while "{name}" is a temporary '
                    f"{kind} of this connection: drop it first"
                )

    @override
    def may_call(self, schema: str | None, name: str) -> bool:
        return self.definitions.may_call(schema, name)

    @property
    @override
    def has_unsafe_functions(self) -> bool:
        return self.definitions.has_unsafe_functions

    @override
    def is_unsafe(self, name: str) -> bool:
        return self.definitions.is_unsafe(name)

    @property
    @override
    def hidden_calls(self) -> HiddenCalls:
        """Those along both paths: sessions of tique's own have a new connection's."""
        found = self.definitions.hidden_calls
        path = self.search_path
        return found if path is None else found.along_also(path.schemas)

    @override
    def attached(self, name: str) -> Attached | None:
        """Another database that is attached by that name; no view may read one.

        Raises
        ------
        UnsupportedSQL
            Inside of a view.
        """
        found = self.definitions.attached(name)
        if found is not None and self.home is not None:
            raise UnsupportedSQL(
                f'a view over "{name}", another database, is not supported: the view '
                "would be there without it; write the query out"
            )
        return found

    def query_of(self, view: View) -> ViewQuery:
        """Return the query that is read in a view's place.

        Raises
        ------
        RewriteError
            One of its subclasses, if the query is not one that a statement may have.
        """
        version, known = self._queries
        if version != self.version:
            # Replaced as a whole: threads share it.
            known = {}
            self._queries = self.version, known
        found = known.get(view.table.id)
        if found is None:
            found = known[view.table.id] = self.plan_view(view, self)
        return found


def _has(relations: Relations, schema: str | None, name: str) -> bool:
    return (
        relations.named(schema, name) is not None
        or relations.view(schema, name) is not None
    )
