"""CREATE and DROP of tables and indexes, adoption and detaching.

Each is a schema change (:mod:`tique.query.define.schema_changes`).
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from tique import errors
from tique.query.define.unique_indexes import unchanged
from tique_backends.catalog.foreign_keys import adding, dropping

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tique.query.define.new_tables import NewTable
    from tique.query.define.schema_changes import SchemaChanges
    from tique.query.transaction.transaction import Transaction
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_FOLD_PATIENCE = 2.0


class DDL:
    """Changes the schema of one database.

    Parameters
    ----------
    changes
        Runs each change alone.
    """

    def __init__(self, changes: SchemaChanges) -> None:
        self.changes = changes
        self._engine = changes.engine
        self._catalog = changes.catalog
        self._timeline = changes.timeline
        self._checkpointer = changes.checkpointer
        self.is_detached = False
        """Whether all tables were detached, and tique's schema is gone."""

    def create_table(
        self,
        transaction: Transaction,
        made: NewTable,
        *,
        if_not_exists: bool = False,
        replaces: bool = False,
    ) -> int:
        """Create an abstract table: the storage table and its cache table.

        Returns
        -------
        int
            The number of rows that a query gave it; -1 without one.
        """
        self.changes.expect_possible(transaction)
        session = transaction.session
        engine, table = self._engine, made.table
        with self.changes.alone():
            before = self._catalog.find(table.schema, table.name)
            is_view = self._catalog.view(table.schema, table.name) is not None
            if before is not None or is_view:
                if if_not_exists:
                    return -1
                if before is None or not replaces:
                    raise errors.ProgrammingError(
                        f"table {table.qualified_name} exists already", sqlstate="42P07"
                    )
                self.changes.refuse_users([before], transaction)
                self._freed([before], cascade=False)
            elif (table.schema.lower(), table.name.lower()) in {
                (schema.lower(), name.lower())
                for schema, name in engine.user_tables(session)
            }:
                raise errors.ProgrammingError(
                    f"table {table.qualified_name} exists in the database but is not "
                    "under tique's management; take it in with 'tique adopt'",
                    sqlstate="42P07",
                )
            since: dict[int, float] = {}

            def create() -> int:
                since.clear()
                history = self.changes.history(before)
                new, count = made.create(
                    session, engine, self._parents, before, history
                )
                if not made.is_empty:
                    since[new.id] = transaction.sts
                return count

            return self.changes.transact(session, create, since)

    def _parents(self, child: Table) -> dict[tuple[str, str], Table]:
        """The tables that a table references, by name, as they are now."""
        found = {}
        for key in child.foreign_keys:
            itself = (child.schema, child.name)
            parent = child if key.parent == itself else self._catalog.parent(key)
            if key.key not in (parent.primary_key, *parent.unique):
                raise errors.ProgrammingError(
                    f"{parent.qualified_name}, which the FOREIGN KEY {key.name} "
                    "references, has another definition by now; try again",
                    sqlstate="42830",
                )
            found[key.parent] = parent
        return found

    def _freed(
        self, tables: Collection[Table], *, cascade: bool
    ) -> list[tuple[Table, dict[tuple[str, str], Table]]]:
        """Other tables that reference some of these, without these constraints.

        Raises
        ------
        OperationalError
            Without ``cascade`` (SQLSTATE 2BP01).
        """
        gone = {(table.schema, table.name) for table in tables}
        freed = []
        for child in self._catalog:
            if (child.schema, child.name) in gone:
                continue
            left = tuple([k for k in child.foreign_keys if k.parent not in gone])
            for key in child.foreign_keys:
                if key.parent in gone and not cascade:
                    raise errors.OperationalError(
                        f"{'.'.join(key.parent)} is still needed: the FOREIGN KEY "
                        f"{key.name} of {child.qualified_name} references it; that "
                        "table has to go too, or the constraint (DROP TABLE … CASCADE)",
                        sqlstate="2BP01",
                    )
            if len(left) == len(child.foreign_keys):
                continue
            child = replace(child, foreign_keys=left)
            freed.append((child, self._parents(child)))
        return freed

    def drop_tables(
        self,
        transaction: Transaction,
        tables: Sequence[Table],
        *,
        kind: str = "TABLE",
        cascade: bool = False,
    ) -> None:
        """Drop abstract tables with everything that belongs to them.

        ``kind`` is what the engine calls them. FOREIGN KEY constraints of other tables that reference them go too if
        ``cascade``; else there must be none.
        """
        session = transaction.session

        def drop() -> None:
            self.release(session, tables, cascade=cascade)
            for table in tables:
                plain = self._engine.forms.plain(table)
                # A table that was changed without tique may be gone.
                unless = "" if table.fault is None else "IF EXISTS "
                too = " CASCADE" if cascade else ""
                session.execute(f"DROP {kind} {unless}{plain}{too}")

        def used() -> Sequence[Table]:
            self.changes.expect_current(tables)
            return tables

        self.changes.change(transaction, drop, used)

    def release(
        self, session: Session, tables: Sequence[Table], *, cascade: bool = True
    ) -> None:
        """Let tables go that are about to be dropped, in an engine transaction."""
        for child, parents in self._freed(tables, cascade=cascade):
            self._engine.keep_foreign_keys(session, child, parents)
        for table in tables:
            self._engine.unmanage(session, table)

    def define(self, transaction: Transaction, table: Table | None, text: str) -> None:
        """Run DDL that concerns the storage table only (an index that is not unique).

        A new index has to fit the recent versions of its table too, which storage gets
        later.
        """
        self.changes.expect_possible(transaction)
        session = transaction.session
        engine = self._engine
        with self.changes.alone():
            if table is not None:
                self.changes.expect_current([table])
                self.changes.refuse_users([table], transaction)
                self.changes.gather(table, transaction)

            def change() -> None:
                with unchanged(engine, session, self._catalog):
                    session.execute(text)
                if table is not None:
                    described = engine.describe(session, table.schema, table.name)
                    engine.check_definition(session, described)
                    engine.check_versions(session, table)

            self.changes.transact(session, change)

    def adopt(self, names: Sequence[str] | None = None) -> list[str]:
        """Take existing tables under management without moving a row.

        Parameters
        ----------
        names
            ``table`` or ``schema.table``; None takes every table that is not managed.

        Returns
        -------
        list of str
            The adopted tables' qualified names.

        Raises
        ------
        NotSupportedError
            If a table has a feature whose guarantees tique cannot keep; none of the
            tables is adopted then.
        ProgrammingError
            If a table does not exist or is managed already.
        """
        engine = self._engine
        session = engine.session()

        def take_in() -> list[str]:
            wanted = (
                [
                    (schema, name)
                    for schema, name in engine.user_tables(session)
                    if self._catalog.named(schema, name) is None
                ]
                if names is None
                else [self._split(name) for name in names]
            )
            found = {}
            for schema, name in wanted:
                if self._catalog.find(schema, name) is not None:
                    raise errors.ProgrammingError(
                        f"table {schema}.{name} is under tique's management already"
                    )
                table = engine.describe(session, schema, name)
                engine.check_definition(session, table)
                found[table.schema, table.name] = table
            self._take_foreign_keys(session, found)
            for place, table in found.items():
                table = replace(table, history=self.changes.history())
                managed = engine.manage(session, table)
                found[place] = replace(managed, foreign_keys=table.foreign_keys)
            known = {(table.schema, table.name): table for table in self._catalog}
            for table in found.values():
                if table.foreign_keys:
                    engine.keep_foreign_keys(session, table, known | found)
            return [table.qualified_name for table in found.values()]

        with closing(session), self.changes.alone():
            return self.changes.transact(session, take_in)

    def _take_foreign_keys(
        self, session: Session, tables: dict[tuple[str, str], Table]
    ) -> None:
        """Take the engine's FOREIGN KEY constraints from tables to be adopted.

        In the engine transaction that adopts them. The rows satisfy the constraints: the
        engine kept them until now.
        """
        engine = self._engine
        known = {(table.schema, table.name): table for table in self._catalog}
        known |= tables
        for name, table in list(tables.items()):
            for other in engine.referencing_tables(session, table):
                if tuple(other) not in tables:
                    raise errors.NotSupportedError(
                        f"table {table.qualified_name} is referenced by another table's "
                        f"FOREIGN KEY constraint ({'.'.join(other)}); adopt that table "
                        "with it"
                    )
            keys = []
            for declared in engine.declared_foreign_keys(session, table):
                parent = known.get(declared.parent)
                key = None if parent is None else declared.resolved(table, parent)
                if key is None:
                    why = (
                        "; adopt that table with it"
                        if parent is None
                        else ", and no PRIMARY KEY or UNIQUE key of it in which NULLs differ"
                    )
                    raise errors.NotSupportedError(
                        f"table {table.qualified_name} has a FOREIGN KEY constraint "
                        f"({declared.name}) that references {'.'.join(declared.parent)}{why}"
                    )
                keys.append(key)
            tables[name] = replace(table, foreign_keys=tuple(keys))
        for table in tables.values():
            for statement in dropping(table):
                session.execute(statement)

    def _give_foreign_keys_back(
        self, session: Session, tables: Collection[Table]
    ) -> None:
        """Give the engine the FOREIGN KEY constraints of tables that are released.

        It checks them again, and can refuse none: they hold in the committed state, and
        everything was folded.
        """
        for table in tables:
            if table.fault is None:
                for statement in adding(table, self._parents(table)):
                    session.execute(statement)

    def detach(self, names: Sequence[str] | None = None) -> list[str]:
        """Fold everything and release the tables; with the last, drop tique's schema.

        Parameters
        ----------
        names
            As for :func:`adopt`; None detaches all tables and removes every trace.

        Raises
        ------
        OperationalError
            If an open transaction's snapshot still needs versions of a table.
        """
        engine = self._engine
        tables = list(self._catalog)
        if names is not None:
            tables = [self._managed(name) for name in names]
        self._fold_all(tables)
        with closing(engine.session()) as session, self.changes.alone():
            self.changes.refuse_users(tables, None)
            self._expect_foreign_keys_together(tables)
            for table in tables:
                obstacle = self._checkpointer.obstacles.error(table)
                if obstacle is not None:
                    raise errors.OperationalError(
                        f"cannot detach {table.qualified_name}: its recent versions "
                        f"cannot be folded ({obstacle}); change or delete the rows "
                        "that storage does not take, or drop the table",
                        sqlstate="55000",
                    )
                if not self._catalog.versions(table).is_empty:
                    raise errors.OperationalError(
                        f"cannot detach {table.qualified_name}: an open snapshot "
                        "needs its recent versions, or transactions keep writing "
                        "to it; end all transactions first",
                        sqlstate="55006",
                    )

            def release() -> None:
                for table in tables:
                    engine.unmanage(session, table)
                self._give_foreign_keys_back(session, tables)

            def release_all() -> None:
                self._timeline.expect_alone(session)
                release()
                # Uninstalling drops the functions that this calls.
                self._timeline.close()
                engine.uninstall(session)

            if names is None:
                session.transact(release_all)
                self.is_detached = True
                self._catalog.load([])
                engine.compact(session, force=True)
            else:
                self.changes.transact(session, release)
        return [table.qualified_name for table in tables]

    def _expect_foreign_keys_together(self, tables: Collection[Table]) -> None:
        """Refuse to release a table without those that it references, or the reverse."""
        released = {(table.schema, table.name) for table in tables}
        for child in self._catalog:
            is_released = (child.schema, child.name) in released
            for key in child.foreign_keys:
                if is_released and not self._engine.capabilities.alters_foreign_keys:
                    raise errors.NotSupportedError(
                        f"cannot detach {child.qualified_name}: its FOREIGN KEY "
                        f"{key.name} cannot be added to a table that the engine has "
                        "already; copy the rows into a table without it, and drop this one"
                    )
                if is_released != (key.parent in released):
                    raise errors.OperationalError(
                        f"{'.'.join(key.parent)} and {child.qualified_name} can be "
                        f"detached together only: the FOREIGN KEY {key.name} links them",
                        sqlstate="2BP01",
                    )

    def _fold_all(self, tables: Collection[Table]) -> None:
        """Fold; where other processes have yet to follow, wait a little for them."""
        deadline = time.monotonic() + _FOLD_PATIENCE
        while True:
            self._checkpointer.checkpoint(thorough=True)
            if (
                not self._timeline.is_shared
                or all(self._catalog.versions(table).is_empty for table in tables)
                or time.monotonic() > deadline
            ):
                return
            time.sleep(_FOLD_PATIENCE / 20)

    def _split(self, name: str) -> tuple[str, str]:
        schema, _, table = name.rpartition(".")
        return schema or self._catalog.default_schema, table

    def _managed(self, name: str) -> Table:
        schema, _, bare = name.rpartition(".")
        table = self._catalog.named(schema or None, bare)
        if table is None:
            raise errors.ProgrammingError(
                f"table {name} is not under tique's management"
            )
        return table
