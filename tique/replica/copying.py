"""Which tables a replica has, and copies of those that it has not yet.

Argument
--------
*By number.* ALTER gives a table of the source another number. So a table whose number is known
is the same with the same columns, one that is new is copied, and what the source has no more, or
the replica is not to have any more, is dropped here.

*In one engine transaction* all of a change is done: what is gone is dropped, the new tables are there,
managed, with their rows as of one snapshot of the source, noted as folded up to it, and
``ready_at`` is that snapshot; if no other table is kept, so is the position. A process that is killed in
it leaves the replica as it was. No fold runs meanwhile, and readers go on: they see the change when the
catalog is read again, and only snapshots that are not older see a new table. A transaction that has used
one that is gone gets 40001, or 42P01.

*A row that the replica cannot hold* undoes all of it; it is done again without that table.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

from tique import errors
from tique.checkpoint.replica import UnheldError, blaming
from tique.replica.columns import Copied
from tique_backends.catalog import replicas
from tique_backends.catalog.replicas import Stop
from tique_backends.names import quote
from tique_rewriter.schema import History

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tique.database.database import Database
    from tique.replica.source import SourceSnapshot
    from tique.timeline.replica import ReplicaState
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

Progress: TypeAlias = "Callable[[str, int, int], None]"

PATIENCE = 60.0
"""Seconds that a copy waits for a fold to end."""


@dataclass(frozen=True)
class Choice:
    """Which tables of a source are replicated, and how (:func:`tique.replicate`)."""

    tables: Sequence[str] | None = None
    schemas: Mapping[str, str] = field(default_factory=dict)
    history: str | None = None
    progress: Progress | None = None

    def of(self, tables: Sequence[Table], *, all_there: bool) -> dict[str, Table]:
        """Those of the source's tables that are replicated, by name in the replica.

        Raises
        ------
        NotSupportedError
            Two of them would have one name.
        ProgrammingError
            One that is named is not there (SQLSTATE 42P01), and they have to be ``all_there``.
        """
        there = {name for t in tables for name in (t.qualified_name, t.name)}
        missing = [name for name in self.tables or () if name not in there]
        if all_there and missing:
            raise errors.ProgrammingError(
                f"the source has no table {', '.join(missing)} under tique's management",
                sqlstate="42P01",
            )
        found: dict[str, Table] = {}
        for table in tables:
            names = {table.qualified_name, table.name}
            if self.tables is None or not names.isdisjoint(self.tables):
                schema = self.schemas.get(table.schema, table.schema)
                name = f"{schema}.{table.name}"
                same = [n for n in found if n.lower() == name.lower()]
                if same:
                    raise errors.NotSupportedError(
                        f"{found[same[0]].qualified_name} and {table.qualified_name} "
                        f"would both be {name} in the replica, where names differ in "
                        "more than case: leave one out by tables=, or see schemas="
                    )
                found[name] = table
        return found


class _Change:
    """What a replica has to do to have the chosen tables, which are by their names here.

    It has those that are ``kept``; ``new`` ones are to copy, its own that are ``gone`` to drop.
    ``stopped`` are those of the source that it cannot have. ``known`` are its numbers by the
    source's, and ``before`` those that have stopped.
    """

    def __init__(
        self,
        database: Database,
        state: ReplicaState,
        chosen: Mapping[str, Table],
        known: Mapping[int, int],
        before: Mapping[str, Stop],
    ) -> None:
        self._engine, self._state = database.engine, state
        self.gone = {table.id: table for table in database.catalog}
        self.kept: list[Copied] = []
        self.new: list[Copied] = []
        self.stopped: dict[str, Stop] = {}
        for name, table in chosen.items():
            if name in before and before[name].source_id == table.id:
                self.stopped[name] = before[name]
                continue
            try:
                copied = Copied(table, name, self._engine)
            except UnheldError as error:
                self.stopped[name] = Stop(table.id, f"{error} is not supported")
                continue
            copied.number = known.get(table.id, 0)
            mine = self.gone.get(copied.number)
            if mine is not None and mine.qualified_name == name:
                self.kept.append(copied)
                del self.gone[mine.id]
            else:
                self.new.append(copied)

    def make(self, session: Session, snapshot: SourceSnapshot, choice: Choice) -> None:
        """Make it, but for tables that turn out to have a row that the replica cannot hold."""
        while True:
            try:
                session.transact(lambda: self._make(session, snapshot, choice))
                return
            except UnheldError as refused:
                (copied,) = (c for c in self.new if c.source is refused.table)
                self.new.remove(copied)
                stop = Stop(copied.source.id, str(refused))
                self.stopped[copied.qualified_name] = stop

    def _make(self, session: Session, snapshot: SourceSnapshot, choice: Choice) -> None:
        engine, sts = self._engine, snapshot.sts
        for table in self.gone.values():
            replicas.remove(engine, session, table)
        history = None if choice.history is None else History(sts, choice.history)
        for copied in self.new:
            session.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(copied.schema)}")
            session.execute(copied.create())
            described = engine.describe(session, copied.schema, copied.name)
            table = engine.manage(session, replace(described, history=history))
            with blaming(copied.source):
                _fill(session, copied, snapshot, choice.progress)
            replicas.add(session, table, copied.source.id, sts)
            copied.number, copied.since = table.id, sts
        replicas.note(session, ready_at=sts)
        if not self.kept:
            replicas.note(session, position=sts)
        replicas.note_stops(session, self.stopped)
        self._state.redefines = True


def bring(
    database: Database, choice: Choice, snapshot: SourceSnapshot, *, anew: bool
) -> dict[int, Copied]:
    """Give a replica the chosen tables of its source, and return them by the source's number.

    With ``anew`` it keeps none that it has. The first copy is all that was asked for, or
    nothing: NotSupportedError if it cannot have a table.
    """
    state, catalog, sts = database.replica, database.catalog, snapshot.sts
    assert state is not None
    chosen = choice.of(snapshot.tables, all_there=anew)
    with (
        database.checkpointer.paused(PATIENCE),
        closing(database.engine.session()) as session,
    ):
        known = {} if anew else replicas.sources(session)
        change = _Change(database, state, chosen, known, {} if anew else state.stopped)
        if change.stopped and not state.applied:
            named = "; ".join(f"{n}: {stop.why}" for n, stop in change.stopped.items())
            raise errors.NotSupportedError(
                f"{named}: leave such tables out by tables=, or change them"
            )
        if change.new or change.gone or change.stopped != state.stopped:
            try:
                change.make(session, snapshot, choice)
                state.is_torn = True
                state.stored_ready_at = sts
                catalog.reload(session, {copied.number: sts for copied in change.new})
                for versions in catalog.all_versions():
                    if versions.table.id in {copied.number for copied in change.new}:
                        versions.folded_until = sts
                state.stopped = change.stopped
                if not change.kept:
                    state.durable = sts
                if state.applied < state.ready_at:
                    # Else readers go on: what is newer than their snapshots is not for these.
                    state.ready_at = sts
                state.is_torn = False
            finally:
                state.redefines = False
    return {copied.source.id: copied for copied in (*change.kept, *change.new)}


def _fill(
    session: Session,
    copied: Copied,
    snapshot: SourceSnapshot,
    progress: Progress | None,
) -> None:
    """Bring all rows of a table."""
    source, rows = copied.source, 0
    total = snapshot.count(source) if progress is not None else 0
    for batch in snapshot.rows(source):
        with session.arrow_relation(batch, "tique_copied") as relation:
            assert relation is not None
            session.change(copied.insert(relation))
        rows += batch.num_rows
        if progress is not None:
            progress(source.qualified_name, rows, max(rows, total))
    if progress is not None:
        progress(source.qualified_name, rows, rows)
