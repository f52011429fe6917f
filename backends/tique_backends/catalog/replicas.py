"""What a replica knows of its source; the tables are there in replicas alone.

``tique.replica`` has one row: the source, the position up to which all of its commits are in
storage, and ``ready_at``: tables may be copies of a later state, and until the position
reaches that the replica is no state of the source. ``tique.replicated`` has the source's
number of each table.

Each function runs statements of the engine transaction that is open: a crash leaves all of
that or nothing. Asked only of an embedded engine, DuckDB, in whose SQL they are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from tique_backends.names import storage_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_NOT_COPIED = 1 << 62
"""``ready_at`` of a replica that has no tables yet."""

_SCHEMA = (
    "CREATE TABLE tique.replica (source TEXT NOT NULL, slot TEXT NOT NULL, "
    "position BIGINT NOT NULL, ready_at BIGINT NOT NULL, stopped TEXT NOT NULL)",
    "CREATE TABLE tique.replicated (id BIGINT NOT NULL, source_id BIGINT NOT NULL)",
)


class Stop(NamedTuple):
    """Why a table is not replicated any more; ``source_id`` is its number there."""

    source_id: int
    why: str


class ReplicaRecord(NamedTuple):
    """The row of ``tique.replica``; ``stopped`` is by the name of the table."""

    source: str
    slot: str
    position: int
    ready_at: int
    stopped: Mapping[str, Stop]


def read(session: Session) -> ReplicaRecord | None:
    """What is known of the source; None if the database is no replica."""
    there = session.execute(
        "SELECT 1 FROM information_schema.tables "
        "WHERE table_schema = 'tique' AND table_name = 'replica'"
    ).fetch_all()
    if not there:
        return None
    ((source, slot, position, ready_at, stopped),) = session.execute(
        "SELECT source, slot, position, ready_at, stopped FROM tique.replica"
    ).fetch_all()
    stops = {name: Stop(*stop) for name, stop in json.loads(stopped).items()}
    return ReplicaRecord(source, slot, position, ready_at, stops)


def positions(session: Session) -> tuple[int, int]:
    """The position of what is in storage, and ``ready_at``."""
    ((position, ready_at),) = session.execute(
        "SELECT position, ready_at FROM tique.replica"
    ).fetch_all()
    return position, ready_at


def create(session: Session, source: str, slot: str) -> None:
    """Make an empty database a replica that has nothing yet."""
    for statement in _SCHEMA:
        session.execute(statement)
    session.execute(
        f"INSERT INTO tique.replica VALUES ($1, $2, 0, {_NOT_COPIED}, '{{}}')",
        [source, slot],
    )


def note(session: Session, **values: int) -> None:
    """Note a new position, or ``ready_at``."""
    changes = ", ".join(f"{name} = {value}" for name, value in values.items())
    session.execute(f"UPDATE tique.replica SET {changes}")


def note_stops(session: Session, stopped: Mapping[str, Stop]) -> None:
    """Note the tables that are not replicated any more."""
    session.execute("UPDATE tique.replica SET stopped = $1", [json.dumps(stopped)])


def sources(session: Session) -> dict[int, int]:
    """The replica's number of each replicated table, by the source's."""
    rows = session.execute("SELECT source_id, id FROM tique.replicated").fetch_all()
    return dict(rows)


def add(session: Session, table: Table, source_id: int, sts: int) -> None:
    """Note that a managed table is a copy as of ``sts``."""
    session.execute(f"INSERT INTO tique.replicated VALUES ({table.id}, {source_id})")
    session.execute(f'UPDATE tique."tables" SET folded = {sts} WHERE id = {table.id}')


def remove(engine: Engine, session: Session, table: Table) -> None:
    """Drop a table of the replica, with everything of it."""
    engine.unmanage(session, table)
    session.execute(f"DROP TABLE IF EXISTS {storage_name(table)}")
    session.execute(f"DELETE FROM tique.replicated WHERE id = {table.id}")


def record(session: Session, commits: Sequence[tuple[int, int, int]]) -> None:
    """Record commits (cts, txid, time), in their order; those that are recorded stay so."""
    session.execute(
        "INSERT INTO tique.outcomes SELECT c[1], c[2], c[3] "
        "FROM (SELECT unnest(from_json($1, '[[\"BIGINT\"]]')) AS c) AS _c "
        "WHERE c[1] > (SELECT coalesce(max(cts), 0) FROM tique.outcomes)",
        [json.dumps(commits)],
    )
