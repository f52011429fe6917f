"""Distributed writes of tique's own: how each comes to be on all shards, or on none.

Citus' COMMIT prepares the transaction on every node, commits it on the coordinator, and lets
the nodes commit. If a node dies before the last step COMMIT says yes all the same; the node
shows the old rows until its part, which its disk has, is committed: by
``recover_prepared_transactions()`` when it is back. So what COMMIT says proves nothing, and a
row of the coordinator's that tells of the write (the log, ``folded``, ``drained``) must not be
committed with it: readers would believe it.

*A move* (a drain, or a fold, of one table) takes four steps:

1. The *intent*, a row of ``tique.moves`` with a random token, is committed durably on the
   coordinator, under the lock of the table's row in ``tique.tables``. There is one intent a table.
2. An engine transaction writes the shards. It holds the same row's lock, on the coordinator,
   and finds the very intent there. It changes nothing of the coordinator's.
3. :func:`settle` waits until no node has a transaction prepared that it had when that was asked
   for first: then all nodes have committed what the coordinator has, and rolled back the rest.
4. The intent goes, and ``folded`` or ``drained`` comes, in one transaction of the coordinator's.

*Readers* need no lock. A shard's cache table and its rows are on one node, and one task reads
both with one snapshot: of a move the shard has all or nothing. Before a fold's step 4 each
snapshot that is open covers its versions (λ), and no process has dropped them from its memory or
reads behind ``folded``: a shard that was folded has them in storage, another one in its cache
table, or the statement brings them itself; each way is right. What a drain has brought no process
relies on before step 4: it drains the same itself first, which waits.

*A move that is left*, whatever died: the next move of the table finds the intent. It waits for a
client that is there still, though not for ever; then it makes the intent its own, with another
token, under the lock (a process that was stopped goes on to find that), and step 3 is its first. After that nothing is
prepared any more, and each shard has the move or has not. A fold is done again from step 2: where
it was done nothing is left in the cache table, and nothing happens; elsewhere it happens now.
(``folded`` may be lost by a crash of the coordinator, which commits it without waiting for the
disk: this is the same case. An intent waits.) What a drain has brought is deleted, and the intent
with it: the log has it. A process that finds its own intent gone begins again.

*An error* of step 2 before or in COMMIT has rolled everything back, or will; the intent is
withdrawn. If the connection is lost it stays, and if a node is: where one node alone was written
to, Citus may let it commit first, and it may die then.

*A bulk commit* is two transactions: its versions first, under a timestamp that is not finished
and which no snapshot covers; then, settled, the log's row. If the process dies between them its
timestamp is fenced (:mod:`tique_backends.sharing`): a distributed deletion, settled before the
fence counts. Until then no snapshot passes the timestamp: if a node is down, all commits wait
for it. The engine transaction that writes the versions holds the fencer's lock, too.

*DDL* and adoption are Citus' own distributed transactions, with the log's row in them, which
only tells that definitions have changed. A node that has its part prepared only has its shards
locked exclusively: readers wait for it, and see no old rows. Nothing else is written then (an
engine transaction with DDL takes no bulk writes), and the tables' versions were folded before.

*Ordinary roles* do a drain by functions with the owner's rights, which trust no step that is not
seen (``shards.sql``): the last one looks for as many versions on the shards as the log has. Others
do not wait for theirs. Folds and fences are the owner's processes' alone.

*Waiting.* Step 3 takes two requests if all nodes answer. A node that is down holds up the moves
of all tables, for :data:`PATIENCE` each, then they fail with 08006 and are tried again by whatever
needs them. Commits of small writes, which are the log's alone, go on.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tique_backends.errors import (
    EngineError,
    ErrorKind,
    NodeLostError,
    may_have_run,
)
from tique_backends.postgresql.folding import AT_LEISURE

if TYPE_CHECKING:
    from tique_backends.postgresql.sessions.session import PostgreSQLSession
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS tique.moves (id BIGINT PRIMARY KEY, token BIGINT NOT NULL, "
    "client BIGINT NOT NULL, until BIGINT NOT NULL, folds BOOLEAN NOT NULL)"
)

PATIENCE = 5.0
"""Seconds that a node may take to answer, and to commit what is prepared."""

_PAUSE = 0.05
_MAY_RECOVER = (
    "SELECT has_function_privilege('recover_prepared_transactions()', 'EXECUTE')"
)
_PREPARED = (
    "SELECT nodename, nodeport, success, result FROM run_command_on_all_nodes("
    "'SELECT coalesce(string_agg(gid, '' ''), '''') FROM pg_catalog.pg_prepared_xacts "
    "WHERE database = current_database() AND gid LIKE ''citus\\_%''') "
    "JOIN pg_catalog.pg_dist_node USING (nodeid)"
)
_UNREACHABLE = "08006"


class Intent(NamedTuple):
    """A move that may be under way, or left: a fold or a drain up to a cts."""

    token: int
    client: int
    until: int
    folds: bool


class State(NamedTuple):
    """How far a table's versions are in storage, and in its cache table."""

    folded: int
    drained: int


Step = Callable[["State", int], int]
"""Writes shards, behind a state and up to a cts; returns how many rows."""


def settle(ask: Callable[[str], list[Row]]) -> None:
    """Wait until every node has committed, or rolled back, what it has prepared by now.

    ``ask`` asks the coordinator, in no engine transaction.

    Raises
    ------
    EngineError
        OPERATIONAL, with SQLSTATE 08006, if a node does not answer, or does not come to it.
    """
    deadline = time.monotonic() + PATIENCE
    waiting: set[str] | None = None
    while True:
        prepared, trouble = _prepared(ask)
        if not trouble:
            waiting = prepared if waiting is None else waiting & prepared
            if not waiting:
                return
            trouble = f"prepared are {', '.join(sorted(waiting))}"
        if time.monotonic() > deadline:
            raise EngineError(
                ErrorKind.OPERATIONAL,
                f"a distributed transaction is not over on all nodes: {trouble}; it goes on "
                "when they are back",
                _UNREACHABLE,
            )
        ((may_recover,),) = ask(_MAY_RECOVER)
        if may_recover:
            with suppress(NodeLostError):
                ask("SELECT recover_prepared_transactions()")
        time.sleep(_PAUSE)


def settle_in(session: PostgreSQLSession) -> None:
    """The same in a session."""
    settle(lambda sql: session.execute(sql).fetch_all())


def _prepared(ask: Callable[[str], list[Row]]) -> tuple[set[str], str]:
    """What the nodes have prepared, and what is wrong with one."""
    try:
        found = ask(_PREPARED)
    except EngineError as error:
        # Of a node that ends amid the question.
        if (
            not isinstance(error, NodeLostError)
            and error.kind is not ErrorKind.INTERNAL
        ):
            raise
        return set(), f"a node does not answer: {error}"
    silent = [
        f"{name}:{port} does not answer" for name, port, there, _ in found if not there
    ]
    gids = {
        f"{gid} on {n}:{p}"
        for n, p, there, ids in found
        if there
        for gid in ids.split()
    }
    return gids, "; ".join(silent)


class Moves:
    """The moves of one process.

    Parameters
    ----------
    fold
        Folds a table, in the session's engine transaction.
    undo
        Deletes what a drain has brought, likewise.
    """

    def __init__(
        self,
        fold: Callable[[PostgreSQLSession, Table, State, int], int],
        undo: Callable[[PostgreSQLSession, Table, State, int], int],
    ) -> None:
        self._fold = fold
        self._undo = undo
        self._live: set[int] = set()
        """The tokens of moves that threads of this process have under way."""
        self.client = 0
        """The process's, once it has one: others wait for it."""

    def fold(
        self, session: PostgreSQLSession, table: Table, until: int, since: int
    ) -> int | None:
        """Fold a table; return how many versions went, or None if it is not folded ``since``.

        ``session`` is in no engine transaction, as in all methods.
        """
        self.complete(session, table)
        intent = self._begin(
            session, table, until, lambda state: state.folded == since, folds=True
        )
        if intent is None:
            return None
        step = partial(self._fold, session, table)
        done, is_mine = self._carry_out(session, table, intent, step)
        return done if is_mine else None

    def drain(
        self, session: PostgreSQLSession, table: Table, until: int, write: Step
    ) -> None:
        """Fill a cache table up to a cts, by ``write``, if it is not filled so far."""
        while True:
            self.complete(session, table)
            intent = self._begin(
                session, table, until, lambda state: max(state) < until, folds=False
            )
            if intent is None:
                return
            if self._carry_out(session, table, intent, write)[1]:
                return

    def complete(self, session: PostgreSQLSession, table: Table) -> None:
        """Finish a move of a table that is left, or wait for one that is under way."""
        deadline = time.monotonic() + 2 * PATIENCE
        while (intent := _intent(session, table)) is not None:
            if time.monotonic() < deadline and self._is_live(session, intent):
                time.sleep(_PAUSE)
                continue
            mine = self._take_over(session, table, intent)
            if mine is None:
                continue
            self._live.add(mine.token)
            try:
                settle_in(session)
                step = self._fold if mine.folds else self._undo
                _write(session, table, mine, partial(step, session, table))
                settle_in(session)
                _end(session, table, mine, "folded" if mine.folds else "")
            finally:
                self._live.discard(mine.token)

    def _take_over(
        self, session: PostgreSQLSession, table: Table, intent: Intent
    ) -> Intent | None:
        """Make a move that is left this process's; None if it is over."""
        mine = intent._replace(token=secrets.randbits(62), client=self.client)

        def take() -> Intent | None:
            # Its step 2 is not under way, and does not come any more.
            _lock(session, table)
            taken = session.change(
                "UPDATE tique.moves SET token = $1, client = $2 WHERE id = $3 AND token = $4",
                [mine.token, mine.client, table.id, intent.token],
            )
            return mine if taken else None

        return session.transact(take)

    def _begin(
        self,
        session: PostgreSQLSession,
        table: Table,
        until: int,
        is_wanted: Callable[[State], bool],
        *,
        folds: bool,
    ) -> Intent | None:
        """Step 1; None if it is not wanted in the state that the table is in."""
        intent = Intent(secrets.randbits(62), self.client, until, folds)

        def begin() -> tuple[bool, bool]:
            state = _lock(session, table)
            is_free = _intent(session, table) is None
            is_useful = is_wanted(state)
            if is_free and is_useful:
                session.change(
                    "INSERT INTO tique.moves VALUES ($1, $2, $3, $4, $5)",
                    [table.id, *intent],
                )
            return is_free, is_useful

        while True:
            is_free, is_useful = session.transact(begin)
            if is_free:
                return intent if is_useful else None
            self.complete(session, table)

    def _carry_out(
        self, session: PostgreSQLSession, table: Table, intent: Intent, step: Step
    ) -> tuple[int, bool]:
        """Steps 2 to 4: how many rows, and whether the intent was still there."""
        self._live.add(intent.token)
        try:
            try:
                rows = _write(session, table, intent, step)
            except EngineError as error:
                if not may_have_run(error):
                    # Nothing of it was committed, or will be, on any node.
                    _end(session, table, intent, "")
                raise
            settle_in(session)
            progress = "folded" if intent.folds else "drained"
            return rows, _end(session, table, intent, progress)
        finally:
            self._live.discard(intent.token)

    def _is_live(self, session: PostgreSQLSession, intent: Intent) -> bool:
        # In recovery this process is no client yet, and those of before went with the server.
        if intent.client == self.client or not self.client:
            return intent.token in self._live
        # Nothing waits for a guest, whose drain can be taken back at any time.
        found = session.execute(
            "SELECT 1 FROM tique.clients WHERE client = $1 "
            "AND NOT tique.guest_is(to_regrole(quote_ident(role)))",
            [intent.client],
        ).fetch_all()
        return bool(found)


def _write(session: PostgreSQLSession, table: Table, intent: Intent, step: Step) -> int:
    """Step 2, if the intent is still there."""

    def change() -> int:
        session.execute(f"SELECT {AT_LEISURE}").close()
        state = _lock(session, table)
        return step(state, intent.until) if _intent(session, table) == intent else 0

    return session.transact(change)


def _end(
    session: PostgreSQLSession, table: Table, intent: Intent, progress: str
) -> bool:
    """Step 4: take the intent away, and note the progress; False if it is gone."""

    def end() -> bool:
        session.execute(f"SELECT {AT_LEISURE}").close()
        _lock(session, table)
        is_gone = session.change(
            "DELETE FROM tique.moves WHERE id = $1 AND token = $2",
            [table.id, intent.token],
        )
        if is_gone and progress:
            session.change(
                f'UPDATE tique."tables" SET {progress} = greatest({progress}, $2) '
                "WHERE id = $1",
                [table.id, intent.until],
            )
        return is_gone > 0

    return session.transact(end)


def _lock(session: PostgreSQLSession, table: Table) -> State:
    found = session.execute(
        f'SELECT folded, drained FROM tique."tables" WHERE id = {table.id} FOR UPDATE'
    ).fetch_all()
    if not found:
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"table {table.qualified_name} was dropped meanwhile",
            "42P01",
        )
    return State(*map(int, found[0]))


def _intent(session: PostgreSQLSession, table: Table) -> Intent | None:
    found = session.execute(
        f"SELECT token, client, until, folds FROM tique.moves WHERE id = {table.id}"
    ).fetch_all()
    return Intent(*found[0]) if found else None
