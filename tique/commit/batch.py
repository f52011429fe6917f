"""Certification of a group commit's batch: by earlier commits, then by one another.

Each ticket's write set is certified against the commits before the batch
(:mod:`tique.commit.certification`), then its references are
(:mod:`tique.commit.referential`). A ticket without a conflict *claims* its keys: those that
it writes, those that it references (shared) and those of rows that it gives up
(exclusive). A later ticket of the batch that claims one of these in a mode that does not
agree is in conflict with it. So all certified tickets can be appended in one step.

A transaction that began blindly (:mod:`tique.query.write.blind`) loses if definitions were followed
since it was planned: those of its plan are no longer the newest.

Only the leader of a group commit calls this, with every earlier commit published: no
commit can slip between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tique import errors
from tique.commit.batch_rows import BatchRows
from tique.commit.certification import ComputedKeys, written_keys
from tique.commit.mergeable import Merger
from tique.commit.referential import ReferentialCertifier
from tique.commit.validation import BehindBatchError, Validation, validation_error
from tique.store.rows import key_of
from tique.writes.tickets import Conflict, serialization_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique.commit.certification import Certifier
    from tique.commit.figures import CommitCounts
    from tique.commit.protocols.optimistic import Optimistic
    from tique.commit.validation import Change
    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.writes.table import TableWrites, Write
    from tique.writes.tickets import Ticket
    from tique_backends.forms import Forms
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer

_REFUSALS_AS_A_WHOLE = 3
"""So often two processes' groups may refuse each other; then their tickets go apart."""

_Claim: TypeAlias = "tuple[int, tuple[int, ...], Key]"
"""A table's id, the positions of a key in it, and the key's values."""


class _Claims(NamedTuple):
    """The keys of a batch: those written, and those of references in either mode."""

    written: set[_Claim]
    shared: set[_Claim]
    exclusive: set[_Claim]


class BatchCertifier:
    """Certifies the batches of one database's group commits.

    Parameters
    ----------
    catalog
        The managed tables.
    forms
        The engine's SQL.
    sequencer
        This process's own.
    certifier
        Finds conflicts of write sets.
    protocol
        Says what keeps a SERIALIZABLE transaction from being committed.
    counts
        Counts validations.
    are_apart
        Whether some tickets of a batch may be committed without the others: then none is
        computed on the rows of another one of its batch (:mod:`tique.commit.mergeable`).
    """

    def __init__(
        self,
        catalog: ManagedCatalog,
        forms: Forms,
        sequencer: Sequencer,
        certifier: Certifier,
        protocol: Optimistic,
        counts: CommitCounts,
        *,
        are_apart: bool,
    ) -> None:
        self._catalog = catalog
        self._sequencer = sequencer
        self._certifier = certifier
        self._protocol = protocol
        self._counts = counts
        self._are_apart = are_apart
        self._forms = forms
        self._in_memory = certifier.name == "memory"
        self._computed = ComputedKeys(catalog, forms)
        self._referential = ReferentialCertifier(
            catalog, forms, in_memory=self._in_memory
        )

    def certify(
        self, batch: list[Ticket], session: Session
    ) -> tuple[list[Ticket], list[Ticket]]:
        """Find the tickets without a conflict, in the batch or before.

        Returns
        -------
        certified : list of Ticket
        later : list of Ticket
            Those that are to be certified again when these are committed.

        The others are settled.
        """
        claimed = _Claims(set(), set(), set())
        rows = BatchRows(self._catalog)
        validation = Validation(
            self._catalog,
            self._forms,
            self._sequencer,
            rows,
            in_memory=self._in_memory,
        )
        merger = Merger(self._catalog, self._sequencer, rows, validation)
        certified: list[Ticket] = []
        later: list[Ticket] = []
        for ticket in batch:
            try:
                self.undo(ticket)
                if ticket.is_validated:
                    change = self._validate(ticket, validation, session)
                    if change is not None:
                        ticket.settle(validation_error(change))
                        continue
                overtaken = merger.overtaken(ticket, session)
                ticket.depends_on_batch = merger.depends_on_batch(ticket, overtaken)
                if ticket.depends_on_batch and (
                    self._are_apart or ticket.refusals >= _REFUSALS_AS_A_WHOLE
                ):
                    later.append(ticket)
                    continue
                within = merger.merge(ticket, overtaken)
                conflict = self._conflict(ticket, session)
                if conflict is None and len(batch) > 1:
                    conflict = self._claim(ticket, claimed, within, merger, session)
                    if conflict is None:
                        rows.note(ticket)
            except BehindBatchError:
                later.append(ticket)
                continue
            except (errors.ProgrammingError, errors.SerializationError) as gone:
                # Another process has dropped a table, or changed its definition.
                ticket.settle(gone)
                continue
            if conflict is None:
                certified.append(ticket)
            else:
                ticket.settle(serialization_error(conflict))
        return certified, later

    def undo(self, ticket: Ticket) -> None:
        """Give a ticket its own rows back, in place of those that were computed again."""
        for writes, key, write in ticket.merged:
            writes.rows[key] = write
        ticket.merged.clear()

    def computed_hashes(self, ticket: Ticket, session: Session) -> list[bytes]:
        """The hashes of a ticket's values in unique indexes on expressions.

        None for a bulk commit, which other processes do not certify.
        """
        if ticket.is_bulk:
            return []
        return [
            value
            for writes in ticket.writes
            for value in self._computed.hashes(writes, session)
        ]

    def _validate(
        self, ticket: Ticket, validation: Validation, session: Session
    ) -> Change | None:
        """Find what a ticket's transaction saw and is no longer so."""
        counts, seen = self._counts, ticket.transaction.seen
        change = self._protocol.validate(ticket, validation, session)
        counts.validations += 1
        counts.spared += ticket.place is not None
        for predicate in seen.predicates:
            if not predicate.predicate.conditions:
                counts.whole_tables[predicate.table.qualified_name] += 1
        if change is not None:
            counts.refused[change.kind] += 1
        return change

    def _conflict(self, ticket: Ticket, session: Session) -> Conflict | None:
        certifier = self._certifier
        if ticket.transaction.planned_at not in (None, self._catalog.version):
            raise errors.SerializationError(
                "definitions have changed since the statement was planned; run it again"
            )
        for writes in ticket.writes:
            self._expect_current(writes.table)
            conflict = certifier.conflict(writes, session)
            if conflict is not None:
                return conflict
        if ticket.is_bulk:
            sts = self._sequencer.sts()
            return self._referential.bulk_conflict(ticket.writes, sts, session)
        if ticket.references:
            return self._referential.conflict(ticket.references, session)
        return None

    def _expect_current(self, table: Table) -> None:
        """Refuse rows that were checked by a definition since replaced (P9)."""
        catalog = self._catalog
        if catalog.held and table.id in catalog.held:
            raise errors.SerializationError(
                f"an open transaction changes the definition of {table.qualified_name}; "
                "run the transaction again when that one has ended",
                table=table.qualified_name,
            )
        if not catalog.is_current(table) and catalog.by_id().get(table.id) is not None:
            raise errors.SerializationError(
                f"the definition of {table.qualified_name} was changed while the "
                "transaction was writing to it; run the transaction again"
            )

    def _claim(
        self,
        ticket: Ticket,
        claimed: _Claims,
        within: set[tuple[int, Key]],
        merger: Merger,
        session: Session,
    ) -> Conflict | None:
        """Claim a ticket's keys for it, unless one has been claimed.

        Rows ``within`` are computed on those of the batch that claimed them.
        """
        claims = set()
        for writes in ticket.writes:
            table = writes.table
            for claim, values, write in self._written(writes, session):
                if claim in claimed.written and not (
                    within and self._is_within(table, write, within)
                ):
                    columns: tuple[str, ...] = ()
                    if table.primary_key and claim[1] == table.primary_key:
                        columns = merger.changed_columns(table, values)
                    return Conflict(table, values, self._sequencer.cts(), columns)
                claims.add(claim)
        references = ticket.references
        for claim, held in references.shared.items():
            if claim in claimed.exclusive:
                return Conflict(held.table, held.values, self._sequencer.cts())
        for claim, held in references.exclusive.items():
            if claim in claimed.shared or claim in claimed.exclusive:
                return Conflict(held.table, held.values, self._sequencer.cts())
        claimed.written.update(claims)
        claimed.shared.update(references.shared)
        claimed.exclusive.update(references.exclusive)
        return None

    def _written(
        self, writes: TableWrites, session: Session
    ) -> Iterator[tuple[_Claim, Key, Write]]:
        """The claims of a write set, with the values of each and their write."""
        table = writes.table
        for positions, entries in written_keys(writes):
            for values, write in entries:
                yield (table.id, positions, values), values, write
        for key in table.computed_keys:
            for write, value, _ in self._computed.values(writes, key, session):
                # No other key has no columns.
                claim = table.id, (), (key.name, value)
                yield claim, key_of(key.columns, write.row), write

    @staticmethod
    def _is_within(table: Table, write: Write, within: set[tuple[int, Key]]) -> bool:
        return (table.id, key_of(table.primary_key, write.row)) in within
