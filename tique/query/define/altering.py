"""ALTER TABLE: a storage table changes, and all that belongs to it follows.

Argument
--------
*Nothing has the old shape afterwards.* The change is made alone
(:mod:`tique.query.define.schema_changes`). First every version of the table is folded, which is a
checkpoint step as any other; it waits until all open snapshots see them (λ). From
then on storage is what each of these snapshots sees, and it stays so as long as they are
open: what is committed later lies in the cache table and is not folded below them. So
an older transaction of this process reads the right rows, by the new definition (P1). Only
rows that came with the table, which no version shows to be newer, stay out of the reach of
snapshots that are older than these: the new number is since then too, as the old one was.

*Another number.* In one engine transaction the storage table is changed, its cache table is
dropped and made anew, and the table gets another number, by which the log, the index of
versions and the write sets know it. Entries of the old number are ignored by recovery, as
those of a dropped table are: all of them were folded. A statement of another process that
was planned before finds that the old number is gone when it reads, drains or commits (P9),
unless memory has all that it reads. Transactions of other processes that are older than the
change are refused by the new number, too (:mod:`tique.timeline.following`). If the process
dies, the engine has all of it or nothing.

*FOREIGN KEY constraints* are kept by names: those of this table and of tables that reference
it are written anew in the same transaction. A constraint that is new, or of columns that
changed their types, is checked for the rows of all commits, which nothing follows
before the change is finished. A transaction that has written to a table by the definition
before is refused at commit: both tables' definitions say which constraints there are.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from tique import errors
from tique._translation import concerning
from tique.query.define.unique_indexes import unchanged
from tique.query.write.referencing import expect_comparable
from tique.store.rows import key_of
from tique_backends.errors import speaking_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tique.query.define.schema_changes import SchemaChanges
    from tique.query.transaction.transaction import Transaction
    from tique_backends.session import Session
    from tique_rewriter.kinds.define.alter import AlterTable
    from tique_rewriter.schema import ForeignKey, Table


class Alterations:
    """Alters the tables of one database.

    Parameters
    ----------
    changes
        Runs each change alone.
    """

    def __init__(self, changes: SchemaChanges) -> None:
        self._changes = changes
        self._engine = changes.engine
        self._catalog = changes.catalog

    def alter(
        self,
        transaction: Transaction,
        plan: AlterTable,
        expect: Callable[[], None] = lambda: None,
    ) -> None:
        """Alter a table, unless ``expect`` raises when no other schema change runs.

        Raises
        ------
        SerializationError
            The table was changed meanwhile, or written to after the transaction began.
        OperationalError
            Another transaction uses it, or still needs its recent versions (SQLSTATE
            55006); other tables' constraints need what is dropped (2BP01).
        ForeignKeyViolation
            Rows do not satisfy a new FOREIGN KEY constraint.
        """
        changes, before = self._changes, plan.before
        changes.expect_possible(transaction)
        session = transaction.session
        is_remade = bool(plan.changes or plan.statement)
        with changes.alone([before] if is_remade else (), transaction):
            changes.expect_current([before])
            expect()
            self._expect_free_name(session, plan)
            parents = [self._catalog.parent(key) for key in _added(plan)]
            changes.refuse_users([before, *parents], transaction)
            if is_remade:
                changes.settle(before, transaction)
            sts = 0
            if plan.new_keys or plan.retyped:
                # Rows are checked: all of them have to be where the engine can ask.
                children = [child for child, _ in self._catalog.referencing(before)]
                sts, *_ = [
                    changes.gather(each, transaction)
                    for each in (before, *parents, *children)
                ]
            since: dict[int, float] = {}

            def change() -> None:
                since.clear()
                oldest = changes.absorb(before, transaction) if is_remade else 0
                after = self._change(session, plan, sts)
                if is_remade:
                    since[after.id] = oldest

            changes.transact(session, change, since)

    def _expect_free_name(self, session: Session, plan: AlterTable) -> None:
        """Refuse a new name that another table has, in whichever case."""
        schema, name = plan.after.schema.lower(), plan.after.name.lower()
        if (schema, name) == (plan.before.schema.lower(), plan.before.name.lower()):
            return
        for other, taken in self._engine.user_tables(session):
            if (other.lower(), taken.lower()) == (schema, name):
                raise errors.ProgrammingError(
                    f"table {other}.{taken} exists already", sqlstate="42P07"
                )

    def _change(self, session: Session, plan: AlterTable, sts: int) -> Table:
        """Change the table with all that belongs to it, in an engine transaction.

        Returns the table as it is then.
        """
        engine, before = self._engine, plan.before
        after = before
        if plan.changes or plan.statement:
            history = self._changes.history(before)
            kept = self._catalog.by_id()[before.id].history
            goes_on = kept is not None and _has_same_columns(plan)
            if goes_on:
                history = kept
            engine.unmanage(session, before, keeps_history=goes_on)
            table = engine.forms.plain(before)
            others = [other for other in self._catalog if other.id != before.id]
            same = (
                unchanged(engine, session, others) if plan.statement else nullcontext()
            )
            with same, speaking_of(plan.after, constraint=plan.adds):
                session.execute(plan.statement or f"ALTER TABLE {table} {plan.changes}")
            described = engine.describe(session, plan.after.schema, plan.after.name)
            _expect_same_columns(described, plan.after)
            engine.check_definition(session, described)
            after = engine.manage(
                session,
                replace(described, history=history),
                before=before if goes_on else None,
            )
        after = replace(after, foreign_keys=plan.after.foreign_keys)
        known = {(table.schema, table.name): table for table in self._catalog}
        del known[before.schema, before.name]
        known[after.schema, after.name] = after
        own = [key for key in after.foreign_keys if self._is_there(after, key, plan)]
        if len(own) < len(after.foreign_keys):
            after = replace(after, foreign_keys=tuple(own))
            known[after.schema, after.name] = after
        changed = plan.retyped
        if after.foreign_keys or before.foreign_keys:
            engine.keep_foreign_keys(session, after, known)
        for key in after.foreign_keys:
            parent = known[key.parent]
            is_own = parent is after
            if key.name in plan.new_keys or changed & {
                *key.columns,
                *(key.key if is_own else ()),
            }:
                self._check(session, after, parent, key, sts)
        for child, keys in self._children(plan, after):
            engine.keep_foreign_keys(session, replace(child, foreign_keys=keys), known)
            for key in keys:
                if key.parent == (after.schema, after.name) and changed & set(key.key):
                    self._check(session, child, after, key, sts)
        return after

    def _is_there(self, after: Table, key: ForeignKey, plan: AlterTable) -> bool:
        """Whether the key is there that a constraint of the table itself references."""
        if key.parent != (after.schema, after.name):
            return True
        if key.key in (after.primary_key, *after.unique):
            return True
        if not plan.cascade:
            raise _still_needed(after, key, after)
        return False

    def _children(
        self, plan: AlterTable, after: Table
    ) -> Iterator[tuple[Table, tuple[ForeignKey, ...]]]:
        """Other tables that reference this one, each with its constraints afterwards."""
        before = plan.before
        place = {old: i for i, old in enumerate(plan.origins) if old is not None}
        keys = (after.primary_key, *after.unique)
        children = {c.id: c for c, _ in self._catalog.referencing(before)}
        for child in children.values():
            if child.id == before.id:
                continue
            left = []
            for key in child.foreign_keys:
                if key.parent == (before.schema, before.name):
                    key = replace(
                        key,
                        parent=(after.schema, after.name),
                        key=tuple([place.get(i, -1) for i in key.key]),
                    )
                    if key.key not in keys:
                        if not plan.cascade:
                            raise _still_needed(after, key, child)
                        continue
                left.append(key)
            yield child, tuple(left)

    def _check(
        self, session: Session, child: Table, parent: Table, key: ForeignKey, sts: int
    ) -> None:
        """Check a constraint for all rows."""
        expect_comparable(child, parent, key)
        query = self._engine.forms.orphans(child, parent, key, sts, staged=(None, None))
        found = session.execute(self._engine.forms.first_of(query)).fetch_all()
        if found:
            values = key_of(key.columns, found[0])
            raise errors.ForeignKeyViolation(
                f"{child.qualified_name} has a row whose FOREIGN KEY {key.name} "
                f"references a key that {parent.qualified_name} does not have",
                constraint=key.name,
                table=child.qualified_name,
                key=values,
                diag=concerning(child, constraint_name=key.name),
            )


def _has_same_columns(plan: AlterTable) -> bool:
    """Whether the images of the table's rows are as before."""
    before, after = (
        [(c.name, c.type) for c in t.columns] for t in (plan.before, plan.after)
    )
    return before == after and plan.before.primary_key == plan.after.primary_key


def _added(plan: AlterTable) -> Iterator[ForeignKey]:
    """New constraints that reference other tables."""
    after = plan.after
    for key in after.foreign_keys:
        if key.name in plan.new_keys and key.parent != (after.schema, after.name):
            yield key


def _expect_same_columns(described: Table, expected: Table) -> None:
    """Refuse a change that the engine has understood otherwise."""
    names = [column.name.lower() for column in described.columns]
    if names != [column.name.lower() for column in expected.columns]:
        raise errors.NotSupportedError(
            f"this form of ALTER TABLE is not supported: {described.qualified_name} "
            f"would have the columns {', '.join(names)}"
        )


def _still_needed(parent: Table, key: ForeignKey, child: Table) -> errors.Error:
    return errors.OperationalError(
        f"a key of {parent.qualified_name} is still needed: the FOREIGN KEY {key.name} of "
        f"{child.qualified_name} references it; drop that constraint first",
        sqlstate="2BP01",
    )
