"""The slots of replicas: up to where each of them has the log durably.

Argument
--------
*A slot keeps the log.* No entry behind the cts of a slot is pruned (:func:`prunable`), by no process and no
recovery. It is made at the sts of a snapshot that holds λ, beyond which no process prunes:
whichever comes first, the log has all that is behind the slot.

*Not for ever.* A replica that has said nothing for as long as it asked for is given up: a pruner deletes
the slot in the engine transaction that prunes beyond it. If it speaks again, :func:`move`
finds no row, and a new slot begins at the sts of then.

*One replication for each.* ``holder`` is an epoch of the transaction ids of the process that has the slot, 0
if it was given back; of a process that died no living one has the epoch.

*For replicas only* are the entries up to ``folded``: a process that opens the database needs none of them.

A process that dies has done all or nothing of any of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tique_backends.session import Session

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS tique.slots (name TEXT PRIMARY KEY, cts BIGINT NOT NULL, "
    "expires BIGINT NOT NULL, holder BIGINT NOT NULL, folded BIGINT NOT NULL)"
)

FURTHEST = "SELECT min(cts), coalesce(max(folded), 0) FROM tique.slots"
"""A query for what all replicas have (NULL: there are none), and what only they need."""

COVERED = "SELECT coalesce(max(cts), 0) FROM tique.slots"
"""A query for the last timestamp that a replica has durably."""


def claim(
    session: Session,
    name: str,
    newest: int,
    expires: int,
    holder: int,
    others: Collection[int],
) -> int:
    """Take a slot, or make it at ``newest``; its cts. IN_USE if one of the ``others`` has it."""

    def take() -> int:
        found = session.execute(
            "SELECT cts, holder FROM tique.slots WHERE name = $1", [name]
        ).fetch_all()
        if not found:
            made = [name, newest, expires, holder]
            session.change("INSERT INTO tique.slots VALUES ($1, $2, $3, $4, 0)", made)
            return newest
        ((cts, before),) = found
        taking = f"UPDATE tique.slots SET holder = {holder}, expires = {expires}"
        which = f"{taking} WHERE name = $1 AND holder = {before}"
        if before in others or not session.change(which, [name]):
            raise EngineError(
                ErrorKind.IN_USE,
                f"another process replicates by the slot {name!r}: stop it first",
            )
        return int(cts)

    return session.transact(take)


def move(session: Session, name: str, holder: int, cts: int, expires: int) -> bool:
    """Note what a replica has durably; False if the slot is gone, or another's."""
    moving = f"UPDATE tique.slots SET cts = {cts}, expires = {expires}"
    which = f"{moving} WHERE name = $1 AND holder = {holder}"
    return session.transact(lambda: session.change(which, [name]) > 0)


def release(session: Session, name: str, holder: int, *, drops: bool = False) -> None:
    """Give a slot back, for the next replication of its replica, or for good."""
    doing = "DELETE FROM tique.slots" if drops else "UPDATE tique.slots SET holder = 0"
    which = f"{doing} WHERE name = $1 AND holder = {holder}"
    session.transact(lambda: session.change(which, [name]))


def listed(session: Session) -> dict[str, int]:
    """Up to where each replica has the log, by its slot's name."""
    rows = session.execute("SELECT name, cts FROM tique.slots ORDER BY name")
    return {name: int(cts) for name, cts in rows.fetch_all()}


def prunable(session: Session, until: int, clock: Callable[[], int]) -> int:
    """Up to where the log may be pruned, in the engine transaction that does it."""
    if not session.execute("SELECT 1 FROM tique.slots LIMIT 1").fetch_all():
        return until
    session.change(f"DELETE FROM tique.slots WHERE expires < {clock()}")
    session.change(f"UPDATE tique.slots SET folded = {until} WHERE folded < {until}")
    ((least, _),) = session.execute(FURTHEST).fetch_all()
    return until if least is None else min(until, int(least))
