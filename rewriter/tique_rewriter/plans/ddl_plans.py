"""Plans of DDL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.plans.plan import Plan

if TYPE_CHECKING:
    from tique_rewriter.schema import Table


@dataclass(frozen=True)
class CreateTable(Plan):
    """CREATE TABLE: the definition, and the application's text for the engine.

    The text has no FOREIGN KEY constraints.
    """

    table: Table
    text: str
    if_not_exists: bool
    replaces: bool = False
    """Whether a table of that name goes, with all that belongs to it."""


@dataclass(frozen=True)
class DropTable(Plan):
    """DROP TABLE of managed tables."""

    tables: tuple[Table, ...]
    missing: tuple[str, ...]
    """Names under IF EXISTS that are not there."""
    kind: str = "TABLE"
    """Or MATERIALIZED VIEW."""
    cascade: bool = False
    """Whether FOREIGN KEY constraints of other tables that reference them go too."""


@dataclass(frozen=True)
class CreateIndex(Plan):
    """CREATE INDEX on a managed table: an index of the storage table.

    One that ``is_computed`` has expressions or a condition, which may fail for a row.
    One that ``is_unique`` is a key of the table from then on. ``unless`` is such a one's
    name if IF NOT EXISTS says that it may be there, and ``name`` is it in any case.
    """

    table: Table
    text: str
    is_computed: bool = False
    is_unique: bool = False
    unless: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class DropIndex(Plan):
    """DROP INDEX, passed to the engine as it stands.

    ``names`` are those of the indexes, each behind its schema if that is given.
    """

    text: str
    names: tuple[tuple[str | None, str], ...]


@dataclass(frozen=True)
class DefineViews(Plan):
    """CREATE VIEW and DROP VIEW, which the engine runs as they stand.

    ``names`` are the views' schemas and names.
    """

    text: str
    names: tuple[tuple[str, str], ...]
    creates: bool


@dataclass(frozen=True)
class CreateMaterialized(Plan):
    """CREATE MATERIALIZED VIEW: its schema and name, and the text without WITH DATA.

    Without ``has_rows`` it cannot be read before it is refreshed.
    """

    name: tuple[str, str]
    text: str
    if_not_exists: bool
    has_rows: bool


@dataclass(frozen=True)
class RefreshMaterialized(Plan):
    """REFRESH MATERIALIZED VIEW, which the engine runs as it stands."""

    view: Table
    text: str
    has_rows: bool


@dataclass(frozen=True)
class CreateTemporaryView(Plan):
    """CREATE TEMPORARY VIEW; ``layout`` is the text after its name."""

    name: str
    layout: str
    if_not_exists: bool
    replaces: bool


@dataclass(frozen=True)
class DropTemporaryViews(Plan):
    """DROP VIEW of temporary views."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class DefineObjects(Plan):
    """CREATE, ALTER and DROP of objects that are no tables, as they stand.

    ``dropped_schemas`` go with all of the tables in them. Columns of the type with the
    name ``changed_type`` or with it in them have other values or another type afterwards.
    """

    text: str
    dropped_schemas: tuple[str, ...] = ()
    changed_type: str | None = None


@dataclass(frozen=True)
class RenameSchema(Plan):
    """ALTER SCHEMA … RENAME TO, which the engine runs as it stands; both ``names``."""

    text: str
    names: tuple[str, str]


@dataclass(frozen=True)
class DefineMacro(DefineObjects):
    """CREATE MACRO of one expression, as it stands; its name is folded."""

    name: str = ""
    expression: str = ""


@dataclass(frozen=True)
class Grant(Plan):
    """GRANT and REVOKE of privileges, as they stand."""

    text: str


@dataclass(frozen=True)
class Tidy(Plan):
    """A statement that changes how storage is kept, as it stands.

    The engine runs one that ``is_alone`` in no transaction.
    """

    text: str
    is_alone: bool
