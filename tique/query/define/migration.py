"""DDL inside a transaction: it and the writes become visible together, or not at all.

Argument
--------
*One engine transaction (P5).* The first DDL of a transaction that is more than a statement
begins an engine transaction on the connection's session, which is *held* until COMMIT or
ROLLBACK: every statement after it joins it. DDL changes storage tables, cache tables and
tique's own tables there. Writes are buffered or staged as ever; at COMMIT they go into the
same engine transaction, in the log entry that makes the transaction committed, or in the
cache tables beside it. So the engine has all of it or nothing, on whichever line the process
dies. Numbers of tables are counted outside of it: no opening of the database waits for it.

*A catalog of its own.* The transaction's statements are planned and run by a catalog that is
read in the engine transaction. No other connection knows of it until COMMIT. Tables that the
transaction has not changed share their versions with the others' catalog.

*What it reads (P1).* Its session sees the engine's state as of the engine transaction's
beginning, perhaps, and must find there what the snapshot has. So before that all versions
with cts ≤ sts are drained to the cache tables, and from then on until the end nothing is
folded: the checkpointer is paused, and no other process has the checkpointer's lease, of which each
statement makes sure. Commits of other transactions go on; they are not in the snapshot.

*Tables that it changes* are folded before (:meth:`Migration.settle`), as for any ALTER; own
writes to one are moved to storage in the engine transaction (:meth:`Migration.absorb`), so
that the engine changes and checks all rows. Nothing may be committed to such a table since the
snapshot, nor to one whose rows were checked for a constraint (P9): these are
*held*. This process's commits to them are refused meanwhile (run again, 40001), and the
transaction is refused at COMMIT if another process's was not.

*Materialized views* are filled by the engine, from storage, in the engine transaction. Storage is
what the snapshot sees if no version is in it and not in storage, and nothing newer is in
storage: the transaction's own snapshot holds λ back until the folds are off
(:meth:`Migration.expect_in_storage`). A view that has other rows has another number,
like an altered table, and older snapshots are refused like for one that was made with rows.
Nor does one that has read it hold up the refresh: its next query of the view is refused.

*COMMIT* is alone like other DDL (:mod:`tique.query.define.schema_changes`): behind a barrier, with
every commit before it published here. The writes are certified (P3); then the engine
transaction is committed, the catalog is read again, and the writes are published at the barrier's
timestamp. Older snapshots see neither new tables' rows nor, of tables that the
transaction made with rows or writes, the definition: they are refused
(:attr:`~tique.store.versions.TableVersions.since`). If COMMIT fails, the log decides
(:meth:`~tique.commit.committer.Committer.commit_held`).

*A statement that fails* may have ended the engine transaction, on every engine. So everything is
rolled back at once, unless the engine can go back to a savepoint in it, and all but ROLLBACK
and ROLLBACK TO is refused (25P02), as PostgreSQL does (:mod:`tique.query.define.migration_savepoints`).

*If the process dies* the engine rolls back; its locks go with it. A connection that is
garbage-collected is ended by the checkpointer's thread, which waits for no pause.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, contextmanager, suppress
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from tique import errors
from tique.commit.certification import MemoryCertifier
from tique.commit.referential import ReferentialCertifier
from tique.query.define.altering import Alterations
from tique.query.define.ddl import DDL
from tique.query.define.migration_savepoints import Mark, kept
from tique.query.define.schema_changes import (
    LOCK_TIMEOUT,
    SchemaChanges,
    expect_writable,
)
from tique.query.write.foreign_keys import check_deferred
from tique.writes.tickets import serialization_error
from tique_backends.catalog import histories
from tique_backends.errors import EngineError
from tique_backends.names import key_equality
from tique_backends.records import CommitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from tique.query.base import Outcome
    from tique.query.define.migration_savepoints import State
    from tique.query.transaction.ddl_transaction import DDLTransaction, Savepoint
    from tique.query.transaction.transaction import Transaction
    from tique.writes.tickets import Ticket
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

_PATIENCE = 2.0
"""Seconds that COMMIT waits for open transactions that use a changed table, and the first
DDL for those of other processes."""


class Migration(SchemaChanges):
    """The schema changes of one transaction.

    Parameters
    ----------
    changes
        Those of the database.
    transaction
        The transaction, which runs by this catalog from now on.
    """

    def __init__(self, changes: SchemaChanges, transaction: DDLTransaction) -> None:
        super().__init__(
            changes.engine,
            changes.catalog.clone(),
            changes.timeline,
            changes.committer,
            changes.checkpointer,
            changes.transactions,
            changes.retention,
        )
        self._lasting = changes.catalog
        self._transaction = transaction
        self._has_begun = False
        """Whether the engine transaction has."""
        self._pause = ExitStack()
        self._folds: object = None
        self._held: dict[int, Table] = {}
        self._absorbing: set[int] = set()
        """Ids of tables to whose storage own writes are moved, or may be."""
        self._filled: set[int] = set()
        """Ids of tables with the transaction's own rows in storage."""
        self.has_failed = False
        """Whether a statement has: nothing goes on before a rollback."""
        self._is_open = True
        self._usual = transaction.ddl, transaction.alterations
        self._first: State | None = None
        """The transaction when the engine transaction began, if it had savepoints."""
        self._marks = 0

    # Its beginning and its end

    def open(self) -> None:
        """Keep others from folding and from running DDL, and take over the transaction.

        Raises
        ------
        OperationalError
            They went on for too long (SQLSTATE 55P03), or the transaction is read-only.
        """
        transaction = self._transaction
        expect_writable(transaction)
        self.timeline.expect_owner()
        with ExitStack() as opening:
            opening.enter_context(self.checkpointer.paused(LOCK_TIMEOUT))
            opening.enter_context(self.none_held())
            # The snapshot is as new as it may be; from here on it is the only one.
            if not transaction.renew():
                transaction.refresh()
            self._fold()
            self._folds = self.timeline.folds()
            self._pause = opening.pop_all()
        transaction.catalog = self.catalog
        transaction.ddl = DDL(self)
        transaction.alterations = Alterations(self)
        transaction.migration = self

    def _fold(self) -> None:
        """Fold what is in the snapshot, so that tables can be changed later.

        Other processes need a moment until they no longer hold up the fold.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            with suppress(EngineError):
                self.checkpointer.fold_all_stable()
            oldest = [v.oldest for v in self.catalog.all_versions() if v.oldest]
            is_folded = min(oldest, default=inf) > self._transaction.sts
            if is_folded or not self.timeline.is_shared or time.monotonic() > deadline:
                return
            time.sleep(_PATIENCE / 100)

    def close(self) -> None:
        """Roll back what was not committed, and let the others go on; idempotent."""
        session = self._transaction.session
        self._is_open = False
        with self._pause:
            self._lasting.held = frozenset()
            if self._has_begun:
                self._has_begun = False
                with suppress(EngineError):
                    session.end_hold()

    def run(
        self,
        work: Callable[[DDLTransaction, Sequence[Any]], Outcome],
        transaction: DDLTransaction,
        bound: Sequence[Any],
        *,
        defines: bool,
    ) -> Outcome:
        """Run a statement; if it fails, everything is rolled back."""
        self.expect_sound()
        try:
            outcome = work(transaction, bound)
            if defines:
                self._note_definition()
            self._expect_undisturbed()
        except BaseException:
            self.has_failed = True
            if not self._has_marks() or transaction.session.is_lost:
                self.close()
            raise
        return outcome

    # Savepoints

    def mark(self) -> Mark | None:
        """Set a savepoint in the engine transaction, if that has begun."""
        self.expect_sound()
        if not self._has_begun:
            return None
        self._marks += 1
        if not self.engine.capabilities.nests_transactions:
            return Mark(self._marks, None)
        state = kept(
            self._transaction, self.catalog, self._held, self._absorbing, self._filled
        )
        mark = Mark(self._marks, state)
        self._transaction.session.execute(f"SAVEPOINT {mark.name}").close()
        return mark

    def _has_marks(self) -> bool:
        """Whether the engine can go back to a savepoint."""
        return self._has_begun and any(
            savepoint.mark is not None and savepoint.mark.state is not None
            for savepoint in self._transaction.savepoints
        )

    def release(self, savepoint: Savepoint) -> None:
        """Drop a savepoint."""
        self.expect_sound()
        if savepoint.mark is not None and savepoint.mark.state is not None:
            text = f"RELEASE SAVEPOINT {savepoint.mark.name}"
            self._transaction.session.execute(text).close()

    def rollback_to(self, savepoint: Savepoint) -> None:
        """Undo the DDL after a savepoint, and what it has done with the writes.

        If that is all of the DDL, the transaction is one without.

        Raises
        ------
        NotSupportedError
            The engine cannot: it has no savepoints of its own.
        OperationalError
            Nor is there anything to go back to after a statement that failed (25P02).
        """
        transaction, mark = self._transaction, savepoint.mark
        if mark is None:
            self._leave()
        elif mark.state is not None:
            self._go_back(mark, mark.state)
        else:
            self.expect_sound()
            if savepoint.sequence < transaction.defined_at:
                raise errors.NotSupportedError(
                    f"ROLLBACK TO {savepoint.name} is not supported: the transaction has "
                    "run DDL before that savepoint and after it, and the engine has no "
                    "savepoints; roll back all of it, or to one before its first DDL"
                )

    def _go_back(self, mark: Mark, state: State) -> None:
        transaction = self._transaction
        if not self._is_open:
            self.expect_sound()
        transaction.session.execute(f"ROLLBACK TO SAVEPOINT {mark.name}").close()
        transaction.session.forget_plans()
        assert state.catalog is not None
        self.catalog.go_back(state.catalog)
        self._held = dict(state.held)
        self._absorbing, self._filled = set(state.absorbing), set(state.filled)
        self._lasting.held = frozenset(self._held)
        state.restore(transaction)
        self.has_failed = False

    def _leave(self) -> None:
        """Roll the engine transaction back; the transaction goes on without it."""
        transaction = self._transaction
        before = {} if self._first is None else self._first.writes
        undoes = self.engine.capabilities.undoes_temporary_tables
        if not undoes and any(each.has_stage for each in before.values()):
            self.expect_sound()
            raise errors.NotSupportedError(
                "ROLLBACK TO a savepoint before DDL is not supported by this engine after "
                "large writes: it would lose them; roll back all of the transaction"
            )
        self.close()
        if self._first is not None:
            self._first.restore(transaction)
        transaction.defined_at = 0
        transaction.catalog = self._lasting
        transaction.ddl, transaction.alterations = self._usual
        transaction.migration = None

    def _note_definition(self) -> None:
        """Note that a statement has changed definitions."""
        transaction = self._transaction
        # A savepoint before it has another number.
        transaction.sequence += 2
        transaction.visible_sequence = transaction.defined_at = transaction.sequence
        if self._has_begun:
            transaction.session.forget_plans()
        # Writes to tables that are gone.
        for number, writes in list(transaction.writes.items()):
            if not writes.table.is_temporary and number not in self.catalog.by_id():
                writes.discard(transaction.session)
                del transaction.writes[number]

    def expect_sound(self) -> None:
        """Refuse to go on after a statement that failed.

        Raises
        ------
        OperationalError
            One has (SQLSTATE 25P02).
        """
        if self.has_failed:
            left = (
                "roll back, at least to a savepoint"
                if self._has_marks()
                else "everything was undone; roll back, or to a savepoint before that DDL"
            )
            raise errors.OperationalError(
                "a statement of this transaction, which has run DDL, has failed: "
                + left,
                sqlstate="25P02",
            )

    def _expect_undisturbed(self) -> None:
        if not self.timeline.is_undisturbed(self._folds):
            raise errors.SerializationError(
                "another process went on with its checkpoints while this transaction, "
                "which has run DDL, was open; run it again"
            )

    # Schema changes

    @override
    def expect_possible(self, transaction: Transaction) -> None:
        expect_writable(transaction)

    @override
    def run_text(self, transaction: Transaction, text: str) -> None:
        self.transact(
            transaction.session, lambda: transaction.session.execute(text).close()
        )

    @contextmanager
    @override
    def alone(
        self, settled: Collection[Table] = (), mine: Transaction | None = None
    ) -> Iterator[None]:
        yield

    @override
    def transact(
        self,
        session: Session,
        body: Callable[[], _Outcome],
        since: Mapping[int, float] = MappingProxyType({}),
    ) -> _Outcome:
        if not self._has_begun:
            self._begin()
        outcome = self._done(session, body)
        self.catalog.reload(session, since)
        sts = self._transaction.sts
        self._filled.update([n for n, oldest in since.items() if oldest == sts])
        return outcome

    def _begin(self) -> None:
        """Begin the engine transaction."""
        transaction, session = self._transaction, self._transaction.session
        try:
            for versions in self.catalog.all_versions():
                versions.drain(session, transaction.sts)
            if transaction.savepoints:
                self._first = kept(transaction, None, {}, set(), set())
            session.hold(self.engine.session)
        except BaseException:
            # An engine transaction may have begun, and failed.
            with suppress(EngineError):
                session.end_hold()
            raise
        self._has_begun = True

    def _hold(self, table: Table) -> None:
        """Have nothing committed to a table since the snapshot, until the end."""
        versions = self._lasting.find_versions(table.id)
        if versions is None:
            # No other transaction knows it.
            return
        self._held[table.id] = table
        self._lasting.held = frozenset(self._held)
        self._expect_unchanged(table)

    def _expect_unchanged(self, table: Table) -> None:
        versions = self._lasting.find_versions(table.id)
        if versions is None or versions.last_cts > self._transaction.sts:
            raise errors.SerializationError(
                f"{table.qualified_name} was written to after the transaction that "
                "changes its definition, or checks its rows, began; run that again",
                table=table.qualified_name,
            )

    @override
    def gather(self, table: Table, mine: Transaction) -> int:
        self._hold(table)
        writes = mine.writes.get(table.id)
        if writes and table.id not in self._absorbing:
            raise errors.NotSupportedError(
                f"this transaction has written to {table.qualified_name}, whose rows would "
                "have to be checked for this; commit first",
                sqlstate="25001",
            )
        return mine.sts

    @override
    def settle(
        self, table: Table, mine: Transaction | None, until: float = inf
    ) -> None:
        self._absorbing.add(table.id)
        self._hold(table)
        if self.catalog.versions(table).is_empty:
            return
        if not self._has_begun:
            super().settle(table, mine, self.timeline.position().sts)
            with self.committer.paused(LOCK_TIMEOUT), self.timeline.alone():
                super().settle(table, mine)
            return
        raise errors.OperationalError(
            f"cannot change {table.qualified_name} in this transaction any more: it has "
            "recent versions that an open snapshot needs; change it by the "
            "transaction's first statement, or when older transactions have ended",
            sqlstate="55006",
        )

    @override
    def absorb(self, table: Table, mine: Transaction) -> float:
        writes = mine.writes.get(table.id)
        if not writes:
            return super().absorb(table, mine)
        check_deferred(mine)
        session = mine.session
        writes.switch_to_stage(session)
        if not self.engine.capabilities.alters_changed_tables:
            self._expect_new_rows(table, session)
        cts = max(mine.sts, 1)
        session.append_staged(table, cts)
        self.engine.fold(session, table, cts)
        writes.discard(session)
        del mine.writes[table.id]
        return mine.sts

    def _expect_new_rows(self, table: Table, session: Session) -> None:
        """Refuse staged rows that take the place of rows in storage."""
        forms = self.engine.forms
        stage = forms.stage(table)
        which = "_v._deleted"
        if not table.is_keyless:
            same = key_equality(table, table.primary_key, "_s.", "_v.")
            which = f"EXISTS (SELECT 1 FROM {forms.plain(table)} AS _s WHERE {same})"
        query = f"SELECT 1 FROM {stage} AS _v WHERE {which} LIMIT 1"
        if session.execute(query).fetch_all():
            raise errors.NotSupportedError(
                f"this transaction has changed rows of {table.qualified_name}: this release "
                "of the engine cannot alter the table in the same transaction; commit "
                "first",
                sqlstate="25001",
            )

    def expect_in_storage(self, table: Table) -> None:
        """Refuse a table of which storage has not what the transaction sees.

        Raises
        ------
        NotSupportedError
            The transaction has written to it (SQLSTATE 25001).
        OperationalError
            An older snapshot needs its recent versions (SQLSTATE 55006).
        """
        transaction = self._transaction
        if transaction.writes.get(table.id):
            raise errors.NotSupportedError(
                f"this transaction has written to {table.qualified_name}, which the "
                "materialized view reads; commit first",
                sqlstate="25001",
            )
        versions = transaction.versions(table)
        oldest = versions.oldest
        if not versions.is_empty and (oldest is None or oldest <= transaction.sts):
            raise errors.OperationalError(
                f"cannot read {table.qualified_name} for a materialized view: storage "
                "lacks recent versions that an older snapshot needs, or refuses them (the "
                "status says so); end the transactions that were open before the last "
                "write to the table, and try again",
                sqlstate="55006",
            )

    # COMMIT

    def commit(self) -> int:
        """Commit all of it, and return the cts.

        Raises
        ------
        SerializationError
            Another transaction committed one of its keys first, or to a table that it
            changes.
        OperationalError
            A statement had failed; or another transaction uses a table that it changes.
        OutcomeUnknown
            The outcome cannot be known.
        """
        self.expect_sound()
        transaction = self._transaction
        if not self._has_begun:
            self._begin()
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                self.refuse_users(self._changed(), transaction)
                break
            except errors.OperationalError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PATIENCE / 100)
        with self.committer.paused(LOCK_TIMEOUT):
            cts = self.committer.commit_held(transaction, self._write, self._reload)
        self.close()
        return cts

    def _changed(self) -> list[Table]:
        """The tables as others know them, which will be gone or be others.

        Readers of a materialized view do not hold up its refresh.
        """
        return [
            table
            for table in self._lasting
            if not (self.catalog.is_current(table) or self._is_refreshed(table))
        ]

    def _is_refreshed(self, table: Table) -> bool:
        return table.is_materialized and table == self.catalog.named(
            table.schema, table.name
        )

    def _write(self, ticket: Ticket) -> dict[int, int]:
        """Certify the writes; bring them into the engine transaction, with their record."""
        transaction, session = self._transaction, self._transaction.session
        self.refuse_users(self._changed(), transaction)
        self._expect_undisturbed()
        for table in self._held.values():
            self._expect_unchanged(table)
        self._certify(ticket, session.aside)
        staged: dict[int, int] = {}
        for writes in ticket.writes:
            if writes.is_staged:
                number = writes.table.id
                if self._lasting.find_versions(number) is not None:
                    self.catalog.versions(writes.table).drain(session)
                staged[number] = session.append_staged(writes.table, ticket.cts)
        known = {table.id for table in self._lasting}
        made = {table.id: 0 for table in self.catalog if table.id not in known}
        if made:
            histories.begin(session, made, ticket.cts)
        record = CommitRecord(
            ticket.cts,
            transaction.txid,
            {
                writes.table.id: [(w.row, w.deleted) for _, w in writes.buffered()]
                for writes in ticket.writes
                if not writes.is_staged
            },
            made | staged,
            defines=self.timeline.is_shared,
        )
        session.log([record])
        return staged

    def _since(self, ticket: Ticket) -> dict[int, float]:
        """Tables that others do not know, and the oldest snapshots that may see them."""
        own = {writes.table.id for writes in ticket.writes} | self._filled
        return {
            versions.table.id: ticket.cts
            if versions.table.id in own
            else versions.since
            for versions in self.catalog.all_versions()
            if self._lasting.find_versions(versions.table.id) is None
        }

    def _reload(self, ticket: Ticket) -> None:
        """Read the catalog that all connections share, whatever became of COMMIT."""
        with closing(self.engine.session()) as witness:
            self._lasting.reload(witness, self._since(ticket))

    def _certify(self, ticket: Ticket, session: Session) -> None:
        """Refuse writes to rows that another transaction has written since (P3)."""
        forms = self.engine.forms
        catalog, lasting = self.catalog, self._lasting
        certifier = self._transaction.certifier
        is_in_memory = certifier.name == MemoryCertifier.name
        for writes in ticket.writes:
            table = writes.table
            if lasting.find_versions(table.id) is None:
                continue
            if writes.is_staged:
                # They, and what they reference, are known in the engine transaction only.
                parents = map(catalog.parent, table.foreign_keys)
                children = [child for child, _ in catalog.referencing(table)]
                for each in (table, *parents, *children):
                    if lasting.find_versions(each.id) is not None:
                        self._expect_unchanged(each)
                continue
            conflict = certifier.conflict(writes, session)
            if conflict is not None:
                raise serialization_error(conflict)
        if self._transaction.is_validated:
            # Their rows may be others in the engine transaction by now.
            for table in self._transaction.seen.definitions.values():
                if lasting.find_versions(table.id) is not None:
                    self._expect_unchanged(table)
        # All others are held, or go: nothing that is asked meets a lock of its own.
        same = [table for table in lasting if catalog.is_current(table)]
        references = ticket.references.among({table.id for table in same})
        if references:
            found = ReferentialCertifier(
                lasting.referenced_by(same), forms, in_memory=is_in_memory
            )
            conflict = found.conflict(references, session)
            if conflict is not None:
                raise serialization_error(conflict)
