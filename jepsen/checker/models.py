"""Consistency models, and the anomalies that each of them proscribes.

The names and the implications are Elle's (``elle.consistency-model``). A cycle's name
says which edges it needs: ``-process`` the order of one client's transactions,
``-realtime`` that one ended before the other began.
"""

from __future__ import annotations

from enum import StrEnum


class Model(StrEnum):
    """A consistency model."""

    READ_COMMITTED = "read-committed"
    STRONG_READ_COMMITTED = "strong-read-committed"
    SNAPSHOT_ISOLATION = "snapshot-isolation"
    STRONG_SESSION_SNAPSHOT_ISOLATION = "strong-session-snapshot-isolation"
    STRONG_SNAPSHOT_ISOLATION = "strong-snapshot-isolation"
    SERIALIZABLE = "serializable"
    STRICT_SERIALIZABLE = "strict-serializable"


_READ_COMMITTED_CYCLES = frozenset({"G0", "G1c"})
_SNAPSHOT_CYCLES = _READ_COMMITTED_CYCLES | {"G-single-item", "G-nonadjacent-item"}


def _with(suffix: str, names: frozenset[str]) -> frozenset[str]:
    return frozenset(f"{name}{suffix}" for name in names)


# A constraint holds at every level.
_READ_COMMITTED = frozenset(
    {
        "G0",
        "G1a",
        "G1b",
        "G1c",
        "dirty-update",
        "duplicate-elements",
        "duplicate-key",
        "future-read",
        "incompatible-order",
        "orphan",
    }
)
# With the order in real time, in which acknowledged writes are not lost.
_STRONG_READ_COMMITTED = (
    _READ_COMMITTED
    | _with("-process", _READ_COMMITTED_CYCLES)
    | _with("-realtime", _READ_COMMITTED_CYCLES)
    | {"lost-append", "lost-row"}
)
_SNAPSHOT_ISOLATION = (
    _READ_COMMITTED
    | _SNAPSHOT_CYCLES
    | {
        "changed-past",
        "contradictory-rows",
        "duplicate-dequeue",
        "impossible-count",
        "internal",
        "long-fork",
        "lost-update",
        "moved-snapshot",
        "overdrawn",
        "phantom",
        "unexpected-accounts",
        "wrong-total",
    }
)
_STRONG_SESSION = _SNAPSHOT_ISOLATION | _with("-process", _SNAPSHOT_CYCLES)

# Without the order in real time a transaction may begin in the past, and the writes
# that it misses need not be lost.
_STRONG = (
    _STRONG_SESSION
    | _STRONG_READ_COMMITTED
    | _with("-realtime", _SNAPSHOT_CYCLES)
    | {
        "count-out-of-bounds",
        "free-row-skipped",
        "locked-row-changed",
        "lost-change",
        "lost-element",
        "stale-read",
        "two-owners",
    }
)
_SERIALIZABLE = _SNAPSHOT_ISOLATION | {"G2-item", "no-serial-order", "write-skew"}

PROSCRIBED: dict[Model, frozenset[str]] = {
    Model.READ_COMMITTED: _READ_COMMITTED,
    Model.STRONG_READ_COMMITTED: _STRONG_READ_COMMITTED,
    Model.SNAPSHOT_ISOLATION: _SNAPSHOT_ISOLATION,
    Model.STRONG_SESSION_SNAPSHOT_ISOLATION: _STRONG_SESSION,
    Model.STRONG_SNAPSHOT_ISOLATION: _STRONG,
    Model.SERIALIZABLE: _SERIALIZABLE,
    Model.STRICT_SERIALIZABLE: _STRONG
    | _SERIALIZABLE
    | {"G2-item-process", "G2-item-realtime", "no-serial-order-realtime"},
}
