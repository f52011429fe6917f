"""The managed tables of one database: definitions and their recent versions; its views."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeVar

from tique import errors
from tique.store.attachments import Attachments
from tique.store.cache import Cache
from tique.store.policy import CacheInfo, CachePolicy
from tique.store.versions import TableVersions
from tique_rewriter.dialects import rules_of
from tique_rewriter.local.values import kind_of
from tique_rewriter.safety.functions import NO_FUNCTIONS, classify_functions
from tique_rewriter.safety.hidden_calls import NO_CALLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_backends.sharing import SharedSequencer
    from tique_rewriter.schema import (
        Attached,
        ForeignKey,
        Function,
        HiddenCall,
        Table,
        View,
    )

_Found = TypeVar("_Found")

_NO_ROWS: Mapping[int, float] = MappingProxyType({})


class ManagedCatalog:
    """The managed tables, as the rewriter's ``Definitions``, and each table's versions.

    Readers take no lock: a change replaces the dictionaries as a whole.
    """

    def __init__(self, engine: Engine, policy: CachePolicy) -> None:
        self._engine = engine
        usual = rules_of(engine.capabilities.dialect).default_schema
        self._search_path = tuple(engine.search_path or (usual,))
        self.policy = replace(policy, page_keys=engine.capabilities.page_keys)
        self._cache = Cache(self.policy)
        self._tables: dict[tuple[str, str], Table] = {}
        self._views: dict[tuple[str, str], View] = {}
        self._by_id: dict[int, Table] = {}
        self._versions: dict[int, TableVersions] = {}
        self._buffered: dict[int, bool] = {}
        self._temporary: dict[int, tuple[TableVersions, bool]] = {}
        """Of connections' temporary tables, by id: no versions, and whether rows are held."""
        self._referencing: dict[int, list[tuple[Table, ForeignKey]]] = {}
        self._trusted: dict[str, str] = {}
        self._callable = NO_FUNCTIONS
        self._hidden: tuple[HiddenCall, ...] = ()
        self.hidden_calls = NO_CALLS
        """Those that are refused along the usual path."""
        self._version = 0
        self.attachments = Attachments(engine)
        """The other databases: shared by all copies, as they are the engine's."""
        self.held: Set[int] = frozenset()
        """Ids of tables that an open transaction changes: no other one may commit to them."""
        self.long_writers: dict[int, int] = {}
        """The snapshots of transactions that the engine keeps, and that may write, by txid."""

    @property
    def version(self) -> int:
        """A number that changes whenever any table's definition does."""
        return self._version + self.attachments.version

    @property
    def search_path(self) -> tuple[str, ...]:
        """The schemas in which a table is looked for that names none."""
        return self._search_path

    @property
    def default_schema(self) -> str:
        """The schema of a new table whose name has none."""
        return self._search_path[0]

    @property
    def database(self) -> str:
        """The database's own name, which may stand before a schema's; or empty."""
        return self._engine.database

    def find(self, schema: str | None, name: str) -> Table | None:
        """Return the managed table of that name, whatever its case.

        Raises
        ------
        OperationalError
            If it was changed without tique.
        """
        found = self.named(schema, name)
        if found is not None and found.fault is not None:
            raise errors.OperationalError(
                f"table {found.qualified_name} cannot be used, it was changed without "
                f"tique: {found.fault}; take that back and connect again, or drop it",
                sqlstate="55000",
            )
        return found

    def named(self, schema: str | None, name: str) -> Table | None:
        """The same, whether or not the table can be used."""
        tables, name = self._tables, name.lower()
        for place in (schema,) if schema else self._search_path:
            found = tables.get((place.lower(), name))
            if found is not None or (place.lower(), name) in self._views:
                return found
        return None

    def view(self, schema: str | None, name: str) -> View | None:
        """Return the view of that name, whatever its case."""
        views, name = self._views, name.lower()
        for place in (schema,) if schema else self._search_path:
            found = views.get((place.lower(), name))
            if found is not None or (place.lower(), name) in self._tables:
                return found
        return None

    def may_call(self, schema: str | None, name: str) -> bool:
        """Whether every function of the application's of that name may be called."""
        return self._callable.has(schema, name)

    @property
    def has_unsafe_functions(self) -> bool:
        """Whether there is any function of the application's that may not be called."""
        return bool(self._callable)

    def is_unsafe(self, name: str) -> bool:
        """Whether one of that name is there, whatever its case and schema."""
        return self._callable.is_unsafe(name)

    def attached(self, name: str) -> Attached | None:
        """Return the other database that is attached by that name."""
        return self.attachments.find(name)

    def unmanaged(
        self, relations: Iterable[tuple[str, str]]
    ) -> frozenset[tuple[str, str]]:
        """Return those of the relations that are none of these, in small letters."""
        places = {(schema.lower(), name.lower()) for schema, name in relations}
        return frozenset(places.difference(self._tables, self._views))

    def relations(self) -> set[str]:
        """The names of all tables and views, in small letters."""
        return {name for _, name in (*self._tables, *self._views)}

    def trust(self, trusted: Iterable[Function], functions: Iterable[Function]) -> None:
        """Let statements call functions, as long as they are what they are now.

        ``functions`` are all that are there.
        """
        self._trusted = {**self._trusted, **{f.signature: f.digest for f in trusted}}
        self._note(functions)
        self._version += 1

    def _note(self, functions: Iterable[Function]) -> None:
        self._callable, hidden_calls = classify_functions(
            functions,
            self._hidden,
            rules_of(self._engine.capabilities.dialect),
            self.relations(),
            self._trusted,
        )
        self.hidden_calls = hidden_calls.along(self._search_path)

    def clone(self) -> Self:
        """Return a catalog of its own with the same content: a change of one is its own.

        Tables that stay what they are share their versions.
        """
        return copy(self)

    def go_back(self, before: ManagedCatalog) -> None:
        """Become what a copy of this catalog (:meth:`apart`) is."""
        version = self._version
        self.__dict__.update(vars(before))
        self._version = version + 1

    def referenced_by(self, tables: Sequence[Table]) -> Self:
        """Return the same catalog with the FOREIGN KEY constraints of these tables only."""
        other = copy(self)
        other._referencing = _referencing(tables)
        return other

    def with_views(self, views: Iterable[View]) -> Self:
        """Return the same catalog with these views in place of its own."""
        other = copy(self)
        other._views = _by_name(views)
        return other

    def __iter__(self) -> Iterator[Table]:
        """All managed tables."""
        return iter(self._tables.values())

    def versions(self, table: Table) -> TableVersions:
        """The table's recent versions.

        Raises
        ------
        ProgrammingError
            If the table has been dropped since the statement was planned.
        SerializationError
            If there is another one of its name by now, or it was altered.
        OperationalError
            If recovery could not bring its versions back.
        """
        if table.is_temporary:
            return self._of_temporary(table)[0]
        found = self._present(self._versions, table)
        if found.is_behind:
            raise errors.OperationalError(
                f"table {table.qualified_name} cannot be used: its recent versions "
                "could not be brought back from the log; the status says why, and "
                "every checkpoint tries again",
                sqlstate="55000",
            )
        return found

    def known_versions(self, table: Table) -> TableVersions:
        """The same, whether or not they are all there."""
        return self._present(self._versions, table)

    def by_id(self) -> Mapping[int, Table]:
        """All managed tables that can be used, by id."""
        return self._by_id

    def is_current(self, table: Table) -> bool:
        """Whether a table's definition is still the one that a statement used."""
        now = self._by_id.get(table.id)
        return now is table or now == table

    def oldest_writer(self) -> float:
        """The oldest snapshot of which folds keep the later keys; asked after λ."""
        return min(list(self.long_writers.values()), default=inf)

    def find_versions(self, table_id: int) -> TableVersions | None:
        """The recent versions of a table, if it is managed."""
        return self._versions.get(table_id)

    def lacking(
        self, cts: int, written: Mapping[int, _Found]
    ) -> Iterator[tuple[TableVersions, _Found]]:
        """The tables here that a commit wrote to and storage has not that of, with what."""
        for number, found in written.items():
            versions = self.find_versions(number)
            if versions is not None and found and cts > versions.folded_until:
                yield versions, found

    def all_versions(self) -> list[TableVersions]:
        """Every table's recent versions."""
        return list(self._versions.values())

    def buffers(self, table: Table) -> bool:
        """Whether the driver can hold the table's rows unchanged."""
        if table.is_temporary:
            return self._of_temporary(table)[1]
        return self._present(self._buffered, table)

    def referencing(self, table: Table) -> Sequence[tuple[Table, ForeignKey]]:
        """The FOREIGN KEY constraints that reference the table, each with its child."""
        return self._referencing.get(table.id, ())

    def parent(self, key: ForeignKey) -> Table:
        """The table that a FOREIGN KEY constraint references.

        Raises
        ------
        OperationalError
            If it was changed without tique.
        """
        parent = self.find(*key.parent)
        if parent is None:
            raise errors.OperationalError(
                f"table {'.'.join(key.parent)}, which the FOREIGN KEY {key.name} "
                "references, is gone",
                sqlstate="55000",
            )
        return parent

    def caches(self) -> tuple[CacheInfo, ...]:
        """The sizes and hits of the caches of storage rows."""
        counts = [versions.remembered for versions in self.all_versions()]
        entries, hits, misses, evictions = map(
            sum, zip(*counts, (0, 0, 0, 0), strict=True)
        )
        rows = CacheInfo("rows", entries, 0, self.policy.rows, hits, misses, evictions)
        return rows, self._cache.info()

    def reload(
        self,
        session: Session,
        since: Mapping[int, float] = _NO_ROWS,
        others: float = 0,
    ) -> None:
        """Read the managed tables' definitions again after one changed.

        ``since`` and ``others`` are as for :meth:`load`.
        """
        tables = self._engine.managed_tables(session)
        views, functions = self._engine.views(session), self._engine.functions(session)
        hidden = self._engine.hidden_calls(session)
        self.load(tables, views, since, functions, others, hidden)

    def load(
        self,
        tables: Iterable[Table],
        views: Iterable[View] = (),
        since: Mapping[int, float] = _NO_ROWS,
        functions: Iterable[Function] = (),
        others: float = 0,
        hidden: Iterable[HiddenCall] = (),
    ) -> None:
        """Replace the catalog's content; known tables keep their versions.

        ``since`` has, of tables that were made, the oldest snapshots that may
        see them, by id; that of other new ones is ``others``.
        """
        tables = list(tables)
        known = self._versions
        versions = {table.id: self._known_or_new(table) for table in tables}
        for number in versions.keys() - known.keys():
            versions[number].since = others
        for number, sts in since.items():
            if number in versions:
                versions[number].since = sts
        self._versions = versions
        self._buffered = {table.id: self._is_buffered(table) for table in tables}
        self._by_id = {table.id: table for table in tables if table.fault is None}
        self._referencing = _referencing(tables)
        self._tables = {(t.schema.lower(), t.name.lower()): t for t in tables}
        self._views = _by_name(views)
        self._hidden = tuple(hidden)
        self._note(functions)
        self._version += 1

    def add_temporary(self, table: Table) -> None:
        """Note a connection's temporary table, or that its storage has changed."""
        self._temporary[table.id] = (
            self._new_versions(table),
            self._is_buffered(table),
        )

    def remove_temporary(self, number: int) -> None:
        """Forget the temporary table with that id."""
        self._temporary.pop(number, None)

    def _of_temporary(self, table: Table) -> tuple[TableVersions, bool]:
        try:
            return self._temporary[table.id]
        except KeyError:
            raise errors.ProgrammingError(
                f"the temporary table {table.name} is gone", sqlstate="42P01"
            ) from None

    def _present(self, found: Mapping[int, _Found], table: Table) -> _Found:
        try:
            return found[table.id]
        except KeyError:
            pass
        if self.named(table.schema, table.name) is not None:
            raise errors.SerializationError(
                f"the definition of {table.qualified_name} was changed meanwhile; run "
                "the transaction again",
                table=table.qualified_name,
            )
        raise errors.ProgrammingError(
            f"table {table.qualified_name} was dropped meanwhile", sqlstate="42P01"
        )

    def _known_or_new(self, table: Table) -> TableVersions:
        known = self._versions.get(table.id)
        if known is not None and known.table.fault == table.fault:
            # A number may lose its history, and never gets one.
            known.table = replace(known.table, history=table.history)
            return known
        found = self._new_versions(table, self._cache, self._engine.shared)
        # Its versions are in the log, as for a table that recovery could not bring
        # back.
        found.is_behind = known is not None or table.fault is not None
        if known is not None:
            found.since = known.since
        return found

    def _new_versions(
        self,
        table: Table,
        cache: Cache | None = None,
        shared: SharedSequencer | None = None,
    ) -> TableVersions:
        columnar = [self._engine.columnar(column.type) for column in table.columns]
        arrow_mismatch_columns = frozenset(
            i for i, alike in enumerate(columnar) if not alike
        )
        return TableVersions(
            table,
            self.policy,
            cache,
            shared,
            arrow_mismatch_columns=arrow_mismatch_columns,
        )

    def _is_buffered(self, table: Table) -> bool:
        # The values of a key are compared here; a keyless table's key is the whole row.
        # Those of a reference are made of the parent's, too.
        keys = {i for key in (table.primary_key, *table.unique) for i in key}
        references = {i for key in table.foreign_keys for i in key.columns}
        engine = self._engine
        return all(
            (kind_of(column.type) is not None and engine.round_trips(column.type))
            or (
                engine.keeps(column.type)
                and not column.is_opaque
                and (column.is_named or position not in references)
                and (
                    not (table.is_keyless or position in keys)
                    or column.is_named
                    or engine.compares(column.type)
                )
            )
            for position, column in enumerate(table.columns)
        )


def _by_name(views: Iterable[View]) -> dict[tuple[str, str], View]:
    return {(v.table.schema.lower(), v.table.name.lower()): v for v in views}


def _referencing(
    tables: Sequence[Table],
) -> dict[int, list[tuple[Table, ForeignKey]]]:
    """The constraints that reference each table, by its id."""
    ids = {(table.schema, table.name): table.id for table in tables}
    found: dict[int, list[tuple[Table, ForeignKey]]] = {}
    for child in tables:
        for key in child.foreign_keys:
            if key.parent in ids:
                found.setdefault(ids[key.parent], []).append((child, key))
    return found
