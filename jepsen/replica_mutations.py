"""The same of a replica, in the process that has it (:mod:`jepsen.mutations`)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tique.connection.routing.router import Router
from tique.replica.source import Source
from tique.timeline.replica import ReplicaTimeline
from tique_backends.catalog import replicas
from tique_backends.sharing import SharedSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable

_LONG = 0.3
"""Seconds between the halves of a commit."""
_TWICE = 10
"""So many timestamps are applied again."""


def _tears_a_commit() -> None:
    """P1: an epoch ends amid a commit, and the next one has the rest."""
    genuine = ReplicaTimeline.publish

    def publish(timeline: Any, commits: Any, sts: int, asked: float) -> None:
        if not commits or len(commits[-1].writes) < 2:
            genuine(timeline, commits, sts, asked)
            return
        *whole, last = commits
        cts, writes = last.cts, last.writes
        tables = list(writes)
        first = last._replace(writes={tables[0]: writes[tables[0]]})
        genuine(timeline, [*whole, first], cts, timeline.state.asked)
        time.sleep(_LONG)
        rest = {number: writes[number] for number in tables[1:]}
        for versions, rows in timeline._catalog.lacking(cts, rest):
            versions.publish(cts, rows)
        genuine(timeline, [], sts, asked)

    setattr(ReplicaTimeline, "publish", publish)  # noqa: B010


def _applies_what_was_aborted() -> None:
    """P5, P6: a timestamp that is fenced counts, as its entry is in the log."""

    def counts(*_: Any) -> bool:
        """Say that it counts."""
        return True

    setattr(SharedSnapshot, "counts", counts)  # noqa: B010


def _applies_twice() -> None:
    """P4: storage has more than the position says, and the next process goes on there."""
    genuine, open_, tell = replicas.note, ReplicaTimeline.open, Source.note_durable

    def note(session: Any, **values: int) -> None:
        if values.get("position", 0) > _TWICE:
            values["position"] -= _TWICE
        genuine(session, **values)

    def opened(timeline: Any, session: Any) -> Any:
        found = open_(timeline, session)
        for versions in timeline._catalog.all_versions():
            position = timeline.state.durable
            versions.folded_until = min(versions.folded_until, position)
        return found

    def note_durable(source: Any, position: int) -> None:
        tell(source, max(0, position - _TWICE))

    replicas.note = note
    setattr(ReplicaTimeline, "open", opened)  # noqa: B010
    setattr(Source, "note_durable", note_durable)  # noqa: B010


def _ignores_own_commits() -> None:
    """P2: a query is routed to a replica that lacks its connection's last commit."""
    setattr(Router, "see", lambda *_: None)  # noqa: B010


REPLICA: dict[str, Callable[[], None]] = {
    "tears-a-commit": _tears_a_commit,
    "applies-what-was-aborted": _applies_what_was_aborted,
    "applies-twice": _applies_twice,
    "ignores-own-commits": _ignores_own_commits,
}
"""Mutations of replicas by name, which the workload ``replica`` finds."""
