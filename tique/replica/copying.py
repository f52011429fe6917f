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
from tique.checkpoint.replica import RefusedError, blaming
from tique.replica.columns import Copied, UnheldError
from tique.timeline.replica import ReplicaTimeline
from tique_backends.catalog import replicas
from tique_backends.catalog.replicas import Stop
from tique_backends.names import quote
from tique_rewriter.schema import History

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tique.database.database import Database
    from tique.replica.source import SourceSnapshot
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

    def of(self, tables: Iterable[Table]) -> dict[str, Table]:
        """Those of the source's tables that are replicated, by name in the replica.

        Raises
        ------
        NotSupportedError
            Two of them would have one name.
        """
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

    def expect_possible(self, tables: Sequence[Table]) -> None:
        """Refuse names of tables that the source has not (SQLSTATE 42P01)."""
        there = {name for t in tables for name in (t.qualified_name, t.name)}
        missing = [name for name in self.tables or () if name not in there]
        if missing:
            raise errors.ProgrammingError(
                f"the source has no table {', '.join(missing)} under tique's management",
                sqlstate="42P01",
            )


@dataclass
class Change:
    """What a replica has to do to have the tables of its source.

    It has those that are ``kept``, by the source's number; ``new`` ones are to copy, its own
    that are ``gone`` to drop. ``stopped`` are those of the source that it cannot have.
    """

    kept: dict[int, Copied]
    new: list[Copied]
    gone: Sequence[Table]
    stopped: dict[str, Stop]


def compared(database: Database, tables: Mapping[str, Table], *, anew: bool) -> Change:
    """Compare a replica with tables of its source, by their names here; anew: copy all."""
    assert database.replica is not None
    stopped = database.replica.stopped
    with closing(database.engine.session()) as session:
        known = replicas.sources(session)
    here = {table.id: table for table in database.catalog}
    change = Change({}, [], [], {})
    for name, table in tables.items():
        stop = stopped.get(name)
        if stop is not None and stop.source_id == table.id and not anew:
            change.stopped[name] = stop
            continue
        try:
            copied = Copied(table, name, database.engine)
        except UnheldError as error:
            change.stopped[name] = Stop(table.id, f"{error} is not supported")
            continue
        mine = here.get(known.get(table.id, 0))
        if anew or mine is None or mine.qualified_name != name:
            change.new.append(copied)
        else:
            change.kept[table.id] = copied
            copied.number = mine.id
            del here[mine.id]
    change.gone = [*here.values()]
    return change


def copy(
    database: Database,
    change: Change,
    snapshot: SourceSnapshot,
    history: str | None,
    progress: Progress | None,
) -> None:
    """Make a change; then it keeps all tables, and the catalog has been read again."""
    timeline = database.timeline
    assert isinstance(timeline, ReplicaTimeline)
    state, engine, sts = timeline.state, database.engine, snapshot.sts
    made: dict[int, Copied] = {}

    def fill() -> None:
        made.clear()
        for table in change.gone:
            replicas.remove(engine, session, table)
        for copied in change.new:
            session.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(copied.schema)}")
            session.execute(copied.create())
            described = engine.describe(session, copied.schema, copied.name)
            kept = None if history is None else History(sts, history)
            table = engine.manage(session, replace(described, history=kept))
            with blaming(copied.source):
                _fill(session, copied, snapshot, progress)
            replicas.add(session, table, copied.source.id, sts)
            made[table.id] = copied
        position = state.durable if change.kept else sts
        replicas.note(session, ready_at=sts, position=position)
        replicas.note_stops(session, change.stopped)

    with database.checkpointer.paused(PATIENCE), closing(engine.session()) as session:
        # A table may have stopped since it was looked at.
        names = {copied.qualified_name for copied in change.kept.values()}
        change.stopped.update((n, s) for n, s in state.stopped.items() if n in names)
        while True:
            try:
                session.transact(fill)
                break
            except RefusedError as refused:
                (copied,) = (c for c in change.new if c.source is refused.table)
                change.new.remove(copied)
                stop = Stop(copied.source.id, str(refused))
                change.stopped[copied.qualified_name] = stop
        state.is_torn = True
        database.catalog.reload(session, dict.fromkeys(made, sts))
        for versions in database.catalog.all_versions():
            if versions.table.id in made:
                versions.folded_until = sts
        state.stopped = change.stopped
        if not change.kept:
            state.durable = sts
        if state.applied < state.ready_at:
            # Else readers go on: what is newer than their snapshots is not for these.
            state.ready_at = sts
        state.is_torn = False
    for number, copied in made.items():
        copied.number = number
        change.kept[copied.source.id] = copied


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
