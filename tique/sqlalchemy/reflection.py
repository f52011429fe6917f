"""Reflection from an engine's catalog, which shows the application's tables alone.

A dialect says what there is by a few methods, each of which reads one schema in one query; here
it is put into the form that an ``Inspector`` wants. FOREIGN KEYs are tique's own, and the
driver tells them.
"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy
from sqlalchemy.engine import ObjectKind, ObjectScope
from sqlalchemy.engine import reflection as sa_reflection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.reflection import ReflectionDefaults
from sqlalchemy.exc import NoSuchTableError

try:
    from sqlalchemy.engine.default import _BackendsMultiReflection
except ImportError as error:
    raise ImportError(
        "tique's dialects need SQLAlchemy 2.1; installed is "
        f"{sqlalchemy.__version__}; run: pip install 'tique[sqlalchemy]'"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from sqlalchemy.engine import Connection

    Place = tuple[str | None, str]
    Columns = list[tuple[str, list[str]]]
    """Names of keys or indexes, and of the columns of each."""


class Key(Enum):
    """A kind of key."""

    PRIMARY_KEY = "PRIMARY KEY"
    UNIQUE = "UNIQUE"


class Relation(NamedTuple):
    """A table or view of one schema."""

    name: str
    kind: ObjectKind
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
        # As SQLAlchemy's own dialect: a name along the search path is without a schema.
        elsewhere = (
            key.referred_schema == schema or key.referred_schema != default_schema
        )
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


def _multi(
    doc: str,
    read: Callable[[CatalogReflection, Connection, str | None], Mapping[str, Any]],
    default: Callable[[], Any],
) -> Callable[..., Iterable[tuple[Place, Any]]]:
    """A method that reads something of all tables of a schema, as an Inspector asks."""

    def get_multi(
        self: CatalogReflection,
        connection: Connection,
        *,
        schema: str | None,
        filter_names: Collection[str] | None,
        scope: ObjectScope,
        kind: ObjectKind,
        **kw: Any,
    ) -> Iterable[tuple[Place, Any]]:
        wanted = filter_names, scope, kind
        found = read(self, connection, schema)
        return self.of_tables(connection, schema, wanted, found, default)

    get_multi.__doc__ = doc
    return get_multi


class CatalogReflection(_BackendsMultiReflection, DefaultDialect):
    """A dialect's reflection, by what its subclass reads from the engine's catalog."""

    def initialize(self, connection: Connection) -> None:
        """Ask the database what it is; PostgreSQL's dialect would ask for more."""
        DefaultDialect.initialize(self, connection)

    # What a subclass reads

    def schemas(self, connection: Connection) -> list[str]:
        """The application's schemas."""
        raise NotImplementedError

    def sequences(self, connection: Connection, schema: str) -> list[str]:
        """The sequences of a schema."""
        raise NotImplementedError

    def relations(self, connection: Connection, schema: str) -> list[Relation]:
        """All tables and views of a schema."""
        raise NotImplementedError

    def columns(self, connection: Connection, schema: str) -> Mapping[str, list[Any]]:
        """Their columns, in their order."""
        raise NotImplementedError

    def keys(
        self, connection: Connection, schema: str, kind: Key
    ) -> Mapping[str, Columns]:
        """The keys of each table that has some."""
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

    def _keys(
        self, connection: Connection, schema: str | None, kind: Key
    ) -> Iterable[tuple[str, Columns]]:
        return self.keys(connection, self._schema(schema), kind).items()

    def _names(
        self, connection: Connection, schema: str | None, kind: ObjectKind
    ) -> list[str]:
        return [
            relation.name
            for relation in self.relations(connection, self._schema(schema))
            if relation.kind in kind
        ]

    @sa_reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """Names of the application's schemas."""
        return self.schemas(connection)

    def has_schema(self, connection: Connection, schema: str, **kw: Any) -> bool:
        """Whether there is a schema of that name."""
        return schema in self.get_schema_names(connection, **kw)

    @sa_reflection.cache
    def get_sequence_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Names of a schema's sequences."""
        return self.sequences(connection, self._schema(schema))

    def has_sequence(
        self,
        connection: Connection,
        sequence_name: str,
        schema: str | None = None,
        **kw: Any,
    ) -> bool:
        """Whether there is a sequence of that name."""
        return sequence_name in self.get_sequence_names(connection, schema, **kw)

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

    def get_temp_table_names(self, connection: Connection, **kw: Any) -> list[str]:
        """None: those of tique are in no catalog."""
        return []

    get_temp_view_names = get_temp_table_names

    def get_materialized_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """None: the engine has no materialized views."""
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
    ) -> Iterable[tuple[Place, bool]]:
        """Whether there are tables or views of these names."""
        found = {r.name for r in self.relations(connection, self._schema(schema))}
        return [((schema, name), name in found) for name in table_names]

    def of_tables(
        self,
        connection: Connection,
        schema: str | None,
        wanted: tuple[Collection[str] | None, ObjectScope, ObjectKind],
        found: Mapping[str, Any],
        default: Callable[[], Any],
    ) -> Iterable[tuple[Place, Any]]:
        """The part that was read of the tables and views that are wanted."""
        names, scope, kind = wanted
        for relation in self.relations(connection, self._schema(schema)):
            if (
                relation.kind in kind
                and ObjectScope.DEFAULT in scope
                and (not names or relation.name in names)
            ):
                yield (schema, relation.name), found.get(relation.name) or default()

    get_multi_columns = _multi(
        "Columns of tables and views.",
        lambda self, connection, schema: self.columns(connection, self._schema(schema)),
        ReflectionDefaults.columns,
    )
    get_multi_pk_constraint = _multi(
        "PRIMARY KEYs.",
        lambda self, connection, schema: {
            table: {"name": name, "constrained_columns": columns}
            for table, [(name, columns)] in self._keys(
                connection, schema, Key.PRIMARY_KEY
            )
        },
        ReflectionDefaults.pk_constraint,
    )
    get_multi_unique_constraints = _multi(
        "UNIQUE constraints.",
        lambda self, connection, schema: {
            table: [{"name": name, "column_names": columns} for name, columns in keys]
            for table, keys in self._keys(connection, schema, Key.UNIQUE)
        },
        ReflectionDefaults.unique_constraints,
    )
    get_multi_check_constraints = _multi(
        "CHECK constraints.",
        lambda self, connection, schema: self.checks(connection, self._schema(schema)),
        ReflectionDefaults.check_constraints,
    )
    get_multi_indexes = _multi(
        "Indexes.",
        lambda self, connection, schema: self.indexes(connection, self._schema(schema)),
        ReflectionDefaults.indexes,
    )
    get_multi_foreign_keys = _multi(
        "FOREIGN KEYs.",
        lambda self, connection, schema: foreign_keys(
            connection, schema, self.default_schema_name
        ),
        ReflectionDefaults.foreign_keys,
    )
    get_multi_table_comment = _multi(
        "Comments on tables and views.",
        lambda self, connection, schema: {
            relation.name: {"text": relation.comment}
            for relation in self.relations(connection, self._schema(schema))
        },
        ReflectionDefaults.table_comment,
    )
    get_multi_table_options = _multi(
        "Options of tables: there are none.",
        lambda *_: {},
        ReflectionDefaults.table_options,
    )


def grouped(rows: Iterable[Any]) -> dict[str, list[Any]]:
    """Rows by their first value, the name of the table, without it."""
    found: dict[str, list[Any]] = defaultdict(list)
    for name, *rest in rows:
        found[name].append(rest)
    return found


def asked(
    connection: Connection, query: str, **parameters: Any
) -> sqlalchemy.Result[Any]:
    """The rows of a query about the catalog."""
    return connection.execute(sqlalchemy.text(query), parameters)
