"""A process's client of the sequencer, where tables are distributed.

The sequencer and the log are the coordinator's: the commit of buffered writes is what it is on one
server. What else writes shards is argued in :mod:`tique_backends.postgresql.citus.moves`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.errors import EngineError, ErrorKind, may_have_run
from tique_backends.postgresql.citus.moves import PATIENCE, settle, settle_in
from tique_backends.postgresql.guests import GuestSequencer
from tique_backends.postgresql.sequencer import PostgreSQLSequencer
from tique_backends.postgresql.sessions.session import PostgreSQLSession
from tique_backends.sharing import FencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Sequence

    from tique_backends.postgresql.citus.moves import Moves, State
    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_PAUSE = 0.05
_FENCED = "SELECT cts FROM tique.fences WHERE cts = ANY (CAST($1 AS BIGINT[]))"
_VOID = (
    "SELECT cts FROM tique.fences WHERE NOT is_swept "
    "AND settled <= pg_snapshot_xmin(pg_current_snapshot()) ORDER BY cts LIMIT 4096"
)


class CitusSequencer(PostgreSQLSequencer):
    """The functions of schema ``tique``, on the coordinator."""

    def __init__(
        self, presence: Presence, placed: Container[int], moves: Moves
    ) -> None:
        super().__init__(presence)
        self._placed = placed
        self._moves = moves
        self._apart: set[int] = set()
        """The timestamps of bulk commits whose versions are there, and their logs perhaps."""

    @override
    def join(self, lease: float) -> None:
        super().join(lease)
        self._moves.client = self._client

    @override
    def fill(
        self,
        session: Session,
        table: Table,
        until: int,
        write: Callable[[int], object],
    ) -> None:
        if table.id not in self._placed:
            super().fill(session, table, until, write)
            return
        assert isinstance(session, PostgreSQLSession)

        def step(state: State, _: int) -> int:
            write(max(state))
            return 0

        self._moves.drain(session, table, until, step)

    @override
    def part(self, session: Session, cts: int, tables: Collection[Table]) -> None:
        if not any(table.id in self._placed for table in tables):
            return
        assert isinstance(session, PostgreSQLSession)
        self._apart.add(cts)
        try:
            self.commit(session)
        except EngineError as error:
            if not may_have_run(error):
                # Nothing of it was committed, or will be, on any node.
                self._apart.discard(cts)
            raise
        settle_in(session)
        session.begin()

    @override
    def abort(self, stamps: Sequence[int]) -> None:
        left = self._apart.intersection(stamps)
        if left:
            # Nobody else has them to finish, so none of these can be committed.
            self._clear(sorted(left))
            self._apart -= left
        super().abort(stamps)

    @override
    def finish(self, stamps: Sequence[int]) -> int:
        sts = super().finish(stamps)
        self._apart.difference_update(stamps)
        return sts

    @override
    def _disown(self) -> Sequence[int]:
        stamps = super()._disown()
        # sts passes them when nothing is left of these.
        self._clear([cts for (cts,) in self._ask(_FENCED, [list(stamps)])])
        return stamps

    @override
    def _sweep(self) -> bool:
        stamps = [cts for (cts,) in self._ask(_VOID)]
        self._clear(stamps)
        return self._persist("SELECT tique.guest_sweep($1)", [stamps]) == [(True,)]

    def _clear(self, stamps: Sequence[int]) -> None:
        """Delete versions of timestamps that count for nothing, on all shards."""
        if stamps:
            # What could still come of them is over first: also on a connection that was lost.
            self._presence.await_lost()
            settle(self._ask)
            self._ask("SELECT tique.guest_clear_shards($1)", [list(stamps)])
            settle(self._ask)


class CitusGuestSequencer(CitusSequencer, GuestSequencer):
    """The functions that a guest may call.

    Folds and fences of distributed tables are the owner's processes' alone: one of them has to
    be connected.
    """

    @override
    def fill(
        self,
        session: Session,
        table: Table,
        until: int,
        write: Callable[[int], object],
    ) -> None:
        self.drain(table, until)

    @override
    def drain(self, table: Table, until: int, session: Session | None = None) -> None:
        if table.id not in self._placed:
            GuestSequencer.drain(self, table, until, session)
            return
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            token = self._value(
                "SELECT tique.guest_move($1, $2, $3)", [self._client, table.id, until]
            )
            if token == 0:
                return
            if token > 0:
                self._ask("SELECT tique.guest_move_rows($1, $2)", [table.id, token])
                asked = [table.id, token]
                while time.monotonic() < deadline:
                    if self._ask("SELECT tique.guest_moved($1, $2)", asked) == [
                        (True,)
                    ]:
                        return
                    time.sleep(_PAUSE)
            time.sleep(_PAUSE)
        raise EngineError(
            ErrorKind.OPERATIONAL,
            f"the recent versions of {table.qualified_name} do not get to all of its nodes: "
            "one is down, or a move was left, which a process of the role that owns schema "
            "tique has to finish",
            "08006",
        )

    @override
    def may_checkpoint(self, seconds: float) -> bool:
        return False

    @override
    def _fence(self) -> None:
        """Leave it to a process of the owner's."""

    @override
    def _clear(self, stamps: Sequence[int]) -> None:
        # The owner's process that fences them does it.
        self.leave()
        raise FencedError(
            ErrorKind.OPERATIONAL,
            "a commit was not finished, whose rows have to be taken back; connect again",
        )
