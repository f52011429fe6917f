"""Reflection from an engine's catalog, which shows the application's tables alone.

A dialect says what there is by a few methods, each of which reads one schema in one query; here
it is put into the form that an ``Inspector`` wants. FOREIGN KEYs are tique's own, and the
driver tells them.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy.engine import ObjectKind, ObjectScope
from sqlalchemy.engine import reflection as sa_reflection
from sqlalchemy.engine.default import DefaultDialect, _BackendsMultiReflection
from sqlalchemy.engine.reflection import ReflectionDefaults
from sqlalchemy.exc import NoSuchTableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from sqlalchemy.engine import Connection

    Key = tuple[str | None, str]


class Relation(NamedTuple):
    """A table or view of one schema."""

    name: str
    kind: ObjectKind
    is_temporary: bool = False
    comment: str | None = None
    definition: str | None = None


def foreign_keys(
    connection: Connection, schema: str | None, default_schema: str | None
) -> Mapping[str, list[dict[str, Any]]]:
    """The FOREIGN KEYs of a schema's tables, by the name of the table."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    driver: Any = connection.connection.dbapi_connection
    for key in driver.foreign_keys():
        if key.schema != (schema or default_schema):
            continue
        elsewhere = schema is not None or key.referred_schema != default_schema
        options = {}
        if key.on_update != "NO ACTION":
            options["onupdate"] = key.on_update
        if key.on_delete != "NO ACTION":
            options["ondelete"] = key.on_delete
        if key.is_deferred:
            options |= {"deferrable": True, "initially": "DEFERRED"}
        found[key.table].append(
            {
                "name": key.name,
                "constrained_columns": list(key.columns),
                "referred_schema": key.referred_schema if elsewhere else None,
                "referred_table": key.referred_table,
                "referred_columns": list(key.referred_columns),
                "options": options,
            }
        )
    return found


class CatalogReflection(_BackendsMultiReflection, DefaultDialect):
    """A dialect's reflection, by what its subclass reads from the engine's catalog."""

    # What a subclass reads

    def relations(self, connection: Connection, schema: str) -> list[Relation]:
        """All tables and views of a schema."""
        raise NotImplementedError

    def columns(self, connection: Connection, schema: str) -> Mapping[str, list[Any]]:
        """Their columns, in their order."""
        raise NotImplementedError

    def primary_keys(
        self, connection: Connection, schema: str
    ) -> Mapping[str, dict[str, Any]]:
        """The PRIMARY KEY of each table that has one."""
        raise NotImplementedError

    def uniques(self, connection: Connection, schema: str) -> Mapping[str, list[Any]]:
        """The UNIQUE constraints of each table that has some."""
        raise NotImplementedError

    def checks(self, connection: Connection, schema: str) -> Mapping[str, list[Any]]:
        """The CHECK constraints of each table that has some."""
        raise NotImplementedError

    def indexes(self, connection: Connection, schema: str) -> Mapping[str, list[Any]]:
        """The indexes of each table that has some."""
        raise NotImplementedError

    # What an Inspector asks for

    def _schema(self, schema: str | None) -> str:
        found = schema or self.default_schema_name
        assert found is not None
        return found

    def _names(
        self, connection: Connection, schema: str | None, kind: ObjectKind
    ) -> list[str]:
        return [
            relation.name
            for relation in self.relations(connection, self._schema(schema))
            if relation.kind in kind and not relation.is_temporary
        ]

    @sa_reflection.cache
    def get_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Names of a schema's tables."""
        return self._names(connection, schema, ObjectKind.TABLE)

    @sa_reflection.cache
    def get_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Names of a schema's views."""
        return self._names(connection, schema, ObjectKind.VIEW)

    @sa_reflection.cache
    def get_temp_table_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Names of the connection's temporary tables."""
        return [
            relation.name
            for relation in self.relations(connection, self._schema(schema))
            if relation.is_temporary
        ]

    @sa_reflection.cache
    def get_view_definition(
        self,
        connection: Connection,
        view_name: str,
        schema: str | None = None,
        **kw: Any,
    ) -> str:
        """The text of a view."""
        for relation in self.relations(connection, self._schema(schema)):
            if relation.name == view_name and relation.definition is not None:
                return relation.definition
        raise NoSuchTableError(f"{schema}.{view_name}" if schema else view_name)

    def get_temp_view_names(self, connection: Connection, **kw: Any) -> list[str]:
        """None: tique has no temporary views."""
        return []

    def get_materialized_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """None: tique has no materialized views."""
        return []

    @sa_reflection.cache
    def has_table(
        self,
        connection: Connection,
        table_name: str,
        schema: str | None = None,
        **kw: Any,
    ) -> bool:
        """Whether there is a table or view of that name."""
        found = self.has_multi_table(connection, [table_name], schema)
        return dict(found)[schema, table_name]

    def has_multi_table(
        self,
        connection: Connection,
        table_names: Collection[str],
        schema: str | None = None,
        **kw: Any,
    ) -> Iterable[tuple[Key, bool]]:
        """Whether there are tables or views of these names."""
        found = {r.name for r in self.relations(connection, self._schema(schema))}
        return [((schema, name), name in found) for name in table_names]

    def _multi(
        self,
        connection: Connection,
        schema: str | None,
        wanted: tuple[Collection[str] | None, ObjectScope, ObjectKind],
        read: Callable[[Connection, str], Mapping[str, Any]],
        default: Callable[[], Any],
    ) -> Iterable[tuple[Key, Any]]:
        names, scope, kind = wanted
        whole = self._schema(schema)
        found = read(connection, whole)
        for relation in self.relations(connection, whole):
            is_in = (
                ObjectScope.TEMPORARY if relation.is_temporary else ObjectScope.DEFAULT
            )
            if (
                relation.kind in kind
                and is_in in scope
                and (not names or relation.name in names)
            ):
                yield (schema, relation.name), found.get(relation.name) or default()

    def get_multi_columns(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """Columns of tables and views."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection, schema, wanted, self.columns, ReflectionDefaults.columns
        )

    def get_multi_pk_constraint(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """PRIMARY KEYs."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection,
            schema,
            wanted,
            self.primary_keys,
            ReflectionDefaults.pk_constraint,
        )

    def get_multi_unique_constraints(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """UNIQUE constraints."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection,
            schema,
            wanted,
            self.uniques,
            ReflectionDefaults.unique_constraints,
        )

    def get_multi_check_constraints(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """CHECK constraints."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection,
            schema,
            wanted,
            self.checks,
            ReflectionDefaults.check_constraints,
        )

    def get_multi_indexes(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """Indexes."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection, schema, wanted, self.indexes, ReflectionDefaults.indexes
        )

    def get_multi_foreign_keys(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """FOREIGN KEYs."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection,
            schema,
            wanted,
            lambda connection, _: foreign_keys(
                connection, schema, self.default_schema_name
            ),
            ReflectionDefaults.foreign_keys,
        )

    def get_multi_table_comment(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """Comments on tables and views."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection,
            schema,
            wanted,
            lambda connection, whole: {
                r.name: {"text": r.comment} for r in self.relations(connection, whole)
            },
            ReflectionDefaults.table_comment,
        )

    def get_multi_table_options(
        self,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Key, Any]]:
        """Options of tables: there are none."""
        wanted = filter_names, scope, kind
        return self._multi(
            connection,
            schema,
            wanted,
            lambda *_: {},
            ReflectionDefaults.table_options,
        )


def grouped(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Rows by their first value, the name of the table, without it."""
    found: dict[str, list[Any]] = defaultdict(list)
    for name, *rest in rows:
        found[name].append(rest)
    return found
