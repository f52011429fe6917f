"""Ways to break tique's promises on purpose, so that the suite shows that it sees it.

Each changes classes of tique in a client's process, and nothing on disk. The package that
is installed has neither this module nor a switch for it.

A mutation resembles a mistake in the protocol, not a random change: each leaves out one
step of the argument that a module of tique begins with.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jepsen.replica_mutations import REPLICA
from jepsen.serializable_mutations import SERIALIZABLE, SHARED_SERIALIZABLE
from tique.checkpoint.uncommitted import UncommittedFold
from tique.commit import shared as shared_commit
from tique.commit.batch import BatchCertifier
from tique.commit.certification import MemoryCertifier, QueryCertifier
from tique.commit.committer import Committer
from tique.commit.locks import Locks
from tique.commit.mergeable import Merger
from tique.database.long_snapshots import LongSnapshots
from tique.history.pruning import Pruning
from tique.query.read.locking import LockingSelectStatement
from tique.query.transaction import contested, rereading
from tique.query.transaction.held import Held
from tique.query.transaction.transaction import Transaction
from tique.query.write.change import UpdateStatement
from tique.store.stored import StoredRows
from tique.store.versions import TableVersions
from tique.timeline.following import Follower
from tique.timeline.local import Timeline
from tique.timeline.shared import SharedTimeline
from tique.writes.tickets import serialization_error
from tique_backends.duckdb.engine import DuckDBEngine
from tique_backends.forms import Forms
from tique_backends.servers.row_locks import RowsLockedError
from tique_backends.servers.server_engine import ServerEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_END_OF_TIME = 1 << 62
_STALE = 3
"""So many commits a stale snapshot lacks."""
_LONG = 0.002
"""Seconds between the halves of a step that should be atomic."""
_FOLD = 0.5
"""The same where a fold has to come in between."""


def _reads_latest() -> None:
    """P1: a statement sees commits that came after its transaction began."""
    genuine = TableVersions.newest_visible

    def newest_visible(versions: Any, key: Any, sts: int) -> Any:
        return genuine(versions, key, _END_OF_TIME)

    _replace(TableVersions, newest_visible)


def _stale_snapshot() -> None:
    """P2: a transaction does not see the commits that were acknowledged last."""
    genuine = Timeline.begin

    def begin(timeline: Any, **how: Any) -> tuple[int, int]:
        txid, sts = genuine(timeline, **how)
        return txid, max(sts - _STALE, 0)

    _replace(Timeline, begin)


def _no_certification() -> None:
    """P3: the second committer wins too."""

    def conflict(*_: Any) -> None:
        """Say that there is none."""

    _replace(MemoryCertifier, conflict)
    _replace(QueryCertifier, conflict)
    for name in ("_staged_conflict", "_claim"):
        _replace(BatchCertifier, conflict, name)
    # The write sets that the server is told.
    shared_commit._write_sets = lambda tickets, hashes: [[] for _ in tickets]


def _misses_last_commit() -> None:
    """P3: certification does not look at the newest commit."""
    genuine = BatchCertifier._conflict

    def _conflict(certifier: Any, *arguments: Any) -> Any:
        found = genuine(certifier, *arguments)
        last = certifier._sequencer.sts()
        return None if found is not None and found.winner >= last else found

    _replace(BatchCertifier, _conflict)


def _merges_what_was_seen() -> None:
    """P3: an update is computed again although its transaction has seen what changed."""

    def _sees_the_same(*_: Any) -> bool:
        """Say that it has seen nothing."""
        return True

    _replace(Merger, _sees_the_same)


def _merges_without_condition() -> None:
    """P3, P9: an update is computed again although its WHERE is no longer true."""
    genuine = UpdateStatement._merged

    def _merged(statement: Any, *arguments: Any) -> Any:
        compared, statement._compared = statement._compared, []
        try:
            return genuine(statement, *arguments)
        finally:
            statement._compared = compared

    _replace(UpdateStatement, _merged)


def _keeps_what_was_overtaken() -> None:
    """P3: at READ COMMITTED a statement that was overtaken passes for one that has run again."""
    genuine = rereading._has_newest

    def _has_newest(transaction: Any, wanted: Any) -> bool:
        if not genuine(transaction, wanted):
            transaction.refresh()
            for number, key in wanted.keys | wanted.merged:
                rows = transaction.writes[number].rows if number >= 0 else {}
                if key in rows:
                    rows[key] = rows[key]._replace(sts=transaction.sts, merge=None)
        return True

    _replace(rereading, _has_newest)


def _moves_past_what_was_seen() -> None:
    """P1: a snapshot is moved forward although what was seen has changed."""

    def has_seen_the_same(*_: Any) -> bool:
        """Say that it is the same."""
        return True

    _replace(contested, has_seen_the_same)


def _takes_locked_rows() -> None:
    """SKIP LOCKED gives rows that another transaction has locked."""

    def _take_all(*_: Any) -> bool:
        """Say that it has them."""
        return True

    _replace(LockingSelectStatement, _take_all)


def _locks_outlive_their_owners() -> None:
    """P6: a transaction that has ended keeps its row locks."""
    genuine = Locks.release

    def release(locks: Any, owner: int, *, after: int | None = None) -> None:
        if after is not None:
            genuine(locks, owner, after=after)

    _replace(Locks, release)


def _passes_locked_rows() -> None:
    """A commit does not wait for those that have locked its rows."""

    def enter(locks: Any, transaction: Any, *_: Any, **__: Any) -> None:
        locks._committing[transaction.txid] = transaction

    _replace(Locks, enter)
    # PostgreSQL is told which locks to look for; MonetDB's sequencer takes them from the keys.
    shared_commit._rows = lambda *_: []
    genuine = SharedTimeline.take

    def take(timeline: Any, ask: Any, keep: Any) -> None:
        def ask_again() -> Any:
            found = ask()
            if isinstance(found, list):
                certify, sts = timeline._shared.certify, timeline._sequencer.sts()
                return [
                    certify(sts, [[]], [0])[0]
                    if isinstance(each, RowsLockedError)
                    else each
                    for each in found
                ]
            return found

        genuine(timeline, ask_again, keep)

    _replace(SharedTimeline, take)


def _early_sts() -> None:
    """P2: sts covers a commit before its versions are there."""

    def _publish(committer: Any, certified: Any, staged: Any) -> None:
        for ticket in certified:
            committer._sequencer.finish(ticket.cts)
        time.sleep(_LONG)
        for ticket in certified:
            for writes in ticket.writes:
                versions = committer._catalog.versions(writes.table)
                if writes.is_staged:
                    count = staged[writes.table.id]
                    versions.publish_bulk(ticket.cts, count, count)
                else:
                    found = [(k, w.row, w.deleted) for k, w in writes.buffered()]
                    versions.publish(ticket.cts, found)

    _replace(Committer, _publish)
    genuine_follow, genuine_publish = Follower.follow, Follower._publish

    def follow(follower: Any, snapshot: Any) -> None:
        late: list[Any] = []
        follower._publish = lambda *commit: late.append(commit)
        genuine_follow(follower, snapshot)
        time.sleep(_LONG)
        for commit in late:
            genuine_publish(follower, *commit)

    _replace(Follower, follow)


def _orphans() -> None:
    """P4, P5: versions of a transaction that was told it is aborted stay there."""
    genuine = BatchCertifier._conflict

    def _conflict(certifier: Any, ticket: Any, session: Any) -> None:
        found = genuine(certifier, ticket, session)
        if found is not None:
            ticket.settle(serialization_error(found))

    _replace(BatchCertifier, _conflict)


def _folds_at_sts() -> None:
    """P7: a checkpoint folds versions that open snapshots must not see."""

    def stable(timeline: Any) -> int:
        return int(timeline._sequencer.sts())

    _replace(Timeline, stable)
    _replace(SharedTimeline, stable)


def _forgets_before_the_fold() -> None:
    """P7: the index drops versions before the engine has committed their fold."""
    genuine = TableVersions.changes

    def changes(versions: Any, until: int) -> Any:
        found = genuine(versions, until)
        versions.folded(until)
        time.sleep(_LONG)
        return found

    _replace(TableVersions, changes)


def _early_epoch() -> None:
    """P7: the epoch is raised first, so that a read amid a fold is remembered."""
    genuine = TableVersions.changes

    def changes(versions: Any, until: int) -> Any:
        with versions.lock:
            versions.epoch += 1
        return genuine(versions, until)

    @contextmanager
    def _changing_storage(versions: Any) -> Iterator[None]:
        with versions.lock:
            yield

    _replace(TableVersions, changes)
    _replace(TableVersions, _changing_storage)


def _storage_first() -> None:
    """P1: the index is asked for versions after the row was read from storage."""
    genuine = Transaction.row

    def row(transaction: Any, table: Any, key: Any, needed: Any = None) -> Any:
        versions = transaction.versions(table)
        if table.id in transaction.writes or not versions.is_complete:
            return genuine(transaction, table, key, needed)
        stored = transaction._stored_row(table, key, None, versions)
        time.sleep(_LONG)
        if versions.newest_visible(key, transaction.sts) is None:
            return stored
        return genuine(transaction, table, key, needed)

    _replace(Transaction, row)


def _stale_ranges() -> None:
    """P7: ranges of storage in memory answer with rows that a fold has replaced."""

    def replace(stored: Any, rows: Any, **_: Any) -> None:
        stored.put(rows.items())

    _replace(StoredRows, replace)


def _outlives_folds() -> None:
    """P7: a remembered row stays as it is when another process folds a newer one."""
    genuine_note, genuine_replace = SharedTimeline.note_folds, StoredRows.replace
    noting = threading.local()

    def note_folds(timeline: Any) -> None:
        noting.is_on = True
        try:
            genuine_note(timeline)
        finally:
            noting.is_on = False

    def replace(stored: Any, rows: Any, **options: Any) -> None:
        if not getattr(noting, "is_on", False):
            genuine_replace(stored, rows, **options)

    _replace(SharedTimeline, note_folds)
    _replace(StoredRows, replace)


def _survives_folds() -> None:
    """P1: an uncommitted fold goes on while another changes storage, and does not look."""
    genuine = UncommittedFold._bring

    @contextmanager
    def suspended(_: Any) -> Iterator[None]:
        yield

    def _bring(fold: Any, held: Any, table: Any, sts: int) -> None:
        held.folded[table.id] = fold._catalog.versions(table).folded_until
        genuine(fold, held, table, sts)

    _replace(UncommittedFold, suspended)
    _replace(UncommittedFold, _bring)


def _answers_older_snapshots() -> None:
    """P1: an uncommitted fold answers snapshots that are older than what it has."""
    genuine = UncommittedFold._bring

    def _bring(fold: Any, held: Any, table: Any, sts: int) -> None:
        if table.id not in held.marks or held.marks[table.id].mark <= sts:
            genuine(fold, held, table, sts)

    _replace(UncommittedFold, _bring)


def _marks_what_is_not_written() -> None:
    """P1: an uncommitted fold passes for newer than what was written."""
    genuine = UncommittedFold._bring

    def _bring(fold: Any, held: Any, table: Any, sts: int) -> None:
        if table.id not in held.marks:
            genuine(fold, held, table, sts)

    _replace(UncommittedFold, _bring)


def _takes_newer_versions() -> None:
    """P1: an uncommitted fold has all that is in the index."""
    genuine = TableVersions.changes_between

    def changes_between(versions: Any, after: int, until: int) -> Any:
        return genuine(versions, after, until) and genuine(
            versions, after, _END_OF_TIME
        )

    _replace(TableVersions, changes_between)


def _lacks_a_version() -> None:
    """P1: of several versions that are written at once, one is left out."""
    genuine = TableVersions.changes_between

    def changes_between(versions: Any, after: int, until: int) -> Any:
        found = genuine(versions, after, until)
        return dict(list(found.items())[1:]) if found and len(found) > 1 else found

    _replace(TableVersions, changes_between)


def _folds_beside_others() -> None:
    """P1, P7: an uncommitted fold takes no lease, and does not see that others fold."""
    genuine = UncommittedFold._bring

    def keep_folds_off(_: Any) -> int:
        return 1

    def are_folds_off(_: Any, __: int) -> bool:
        """Say that they are."""
        return True

    def _bring(fold: Any, held: Any, table: Any, sts: int) -> None:
        held.folded[table.id] = fold._catalog.versions(table).folded_until
        genuine(fold, held, table, sts)

    _replace(SharedTimeline, keep_folds_off)
    _replace(SharedTimeline, are_folds_off)
    _replace(UncommittedFold, _bring)


def _marks_outlive_their_transaction() -> None:
    """P1: an uncommitted fold that begins anew passes for having what the last one had."""
    genuine_end, genuine_opened = UncommittedFold._end, UncommittedFold._opened
    marks: dict[int, Any] = {}

    def _end(fold: Any, held: Any) -> None:
        if held is not None:
            marks.update(held.marks)
        genuine_end(fold, held)

    def _opened(fold: Any, query: Any) -> Any:
        held = genuine_opened(fold, query)
        if not held.has_begun:
            held.marks.update(marks)
        return held

    _replace(UncommittedFold, _end)
    _replace(UncommittedFold, _opened)


def _misses_later_bulk_commits() -> None:
    """P1: an uncommitted fold takes its cache tables for those of now."""
    genuine = UncommittedFold._bring

    def _bring(fold: Any, held: Any, table: Any, sts: int) -> None:
        if table.id in held.drained:
            held.drained[table.id] = max(held.drained[table.id], sts)
        genuine(fold, held, table, sts)

    _replace(UncommittedFold, _bring)


def _begins_undrained() -> None:
    """P1: an uncommitted fold reads cache tables that lack what memory has."""
    genuine = UncommittedFold._begin

    def _begin(fold: Any, held: Any, asking: Any, sts: int) -> None:
        drain = TableVersions.drain
        TableVersions.drain = lambda *_: None  # type: ignore[method-assign]
        try:
            genuine(fold, held, asking, sts)
        finally:
            TableVersions.drain = drain  # type: ignore[method-assign]

    _replace(UncommittedFold, _begin)


def _takes_newer_bulk_commits() -> None:
    """P1: an uncommitted fold has all that is in the cache table."""
    for kind in (DuckDBEngine, ServerEngine):
        _replace(kind, _overwriting_all(kind.overwrite_cached), "overwrite_cached")


def _overwriting_all(genuine: Callable[..., int]) -> Callable[..., int]:
    def overwrite_cached(
        engine: Any, session: Any, table: Any, after: int, _: int
    ) -> int:
        return genuine(engine, session, table, after, _END_OF_TIME)

    return overwrite_cached


def _lacks_bulk_commits() -> None:
    """P1: an uncommitted fold takes the index of recent versions for complete."""
    genuine = TableVersions.changes_between

    def changes_between(versions: Any, after: int, until: int) -> Any:
        bulk, versions.bulk = versions.bulk, ()
        try:
            return genuine(versions, after, until)
        finally:
            versions.bulk = bulk

    _replace(TableVersions, changes_between)


def _believes_blind_answers() -> None:
    """P2: a transaction that has not asked for a snapshot tells what its old one shows."""
    _replace(Transaction, property(lambda _: True), "has_merging_rows_only")


def _leaves_lambda_early() -> None:
    """P1: λ passes a snapshot before the engine has it."""
    genuine = Held.__init__

    def __init__(held: Any, transaction: Any) -> None:
        if transaction.has_one_snapshot:
            transaction.timeline.end(transaction.txid)
            time.sleep(_FOLD)
        genuine(held, transaction)

    _replace(Held, __init__)


def _hands_over_undrained() -> None:
    """P1: the engine is handed a snapshot without the versions that only memory has."""
    genuine = Held.__init__
    drain = TableVersions.drain
    local = threading.local()

    def __init__(held: Any, transaction: Any) -> None:
        local.is_handing_over = True
        try:
            genuine(held, transaction)
        finally:
            local.is_handing_over = False

    def draining(versions: Any, session: Any, sts: Any = None) -> None:
        if not getattr(local, "is_handing_over", False):
            drain(versions, session, sts)

    _replace(Held, __init__)
    _replace(TableVersions, draining, "drain")
    _replace(LongSnapshots, _told_only, "_tend")


def _told_only(_: Any, transaction: Any) -> None:
    transaction.is_long = True


def _reads_memory_for_long() -> None:
    """P1: a snapshot that λ has passed is read from the index of recent versions."""
    _replace(Held, lambda held, table, newest: newest, "versions")


def _lives_too_long() -> None:
    """P1: a before-image is read at the version that ended it."""
    genuine = Forms._past_versions

    def _past_versions(
        forms: Any, table: Any, sts: int, folded: int, *, flat: bool
    ) -> str:
        text = genuine(forms, table, sts, folded, flat=flat)
        return text.replace(f"_until > {sts}", f"_until >= {sts}")

    _replace(Forms, _past_versions)


def _images_of_the_last_fold() -> None:
    """P1: a fold leaves no image of the versions that it passes over."""
    genuine, known = Forms.before_images, TableVersions.images

    def before_images(
        forms: Any, table: Any, after: int, until: int, **how: Any
    ) -> str:
        text = genuine(forms, table, after, until, **how)
        return text.replace("WHERE _until IS NOT NULL", "WHERE FALSE")

    def images(versions: Any, *asked: Any) -> Any:
        return replace(known(versions, *asked), until=())

    _replace(Forms, before_images)
    _replace(TableVersions, images)


def _prunes_by_lambda() -> None:
    """P1: no snapshot needs an image, and so it goes."""

    def prune(pruning: Any, session: Any, tables: Any) -> int:
        return sum(
            pruning._engine.prune_history(session, table, _END_OF_TIME, ())
            for table in tables
            if table.history is not None
        )

    _replace(Pruning, prune)


def _misses_bulk_commits() -> None:
    """P1: memory takes itself for complete though rows are in the cache table alone."""

    def publish_bulk(*_: Any, **__: Any) -> None:
        """Note nothing."""

    _replace(TableVersions, publish_bulk)


def _replace(owner: object, function: Any, name: str = "") -> None:
    setattr(owner, name or function.__name__, function)


PROTOCOL: dict[str, Callable[[], None]] = {
    "reads-latest": _reads_latest,
    "stale-snapshot": _stale_snapshot,
    "no-certification": _no_certification,
    "misses-last-commit": _misses_last_commit,
    "merges-what-was-seen": _merges_what_was_seen,
    "merges-without-condition": _merges_without_condition,
    "keeps-what-was-overtaken": _keeps_what_was_overtaken,
    "moves-past-what-was-seen": _moves_past_what_was_seen,
    "takes-locked-rows": _takes_locked_rows,
    "locks-outlive-their-owners": _locks_outlive_their_owners,
    "passes-locked-rows": _passes_locked_rows,
    "early-sts": _early_sts,
    "orphans": _orphans,
    "folds-at-sts": _folds_at_sts,
    "leaves-lambda-early": _leaves_lambda_early,
    "hands-over-undrained": _hands_over_undrained,
    "reads-memory-for-long": _reads_memory_for_long,
    "lives-too-long": _lives_too_long,
    "images-of-the-last-fold": _images_of_the_last_fold,
    "prunes-by-lambda": _prunes_by_lambda,
    "misses-bulk-commits": _misses_bulk_commits,
}
"""Mutations of the commit protocol by name, which a short random workload finds."""

STORE: dict[str, Callable[[], None]] = {
    "forgets-before-the-fold": _forgets_before_the_fold,
    "early-epoch": _early_epoch,
    "storage-first": _storage_first,
    "stale-ranges": _stale_ranges,
    "outlives-folds": _outlives_folds,
}
"""Mutations of the store's invariants by name: a schedule of its own finds each."""

UNCOMMITTED: dict[str, Callable[[], None]] = {
    "answers-older-snapshots": _answers_older_snapshots,
    "marks-what-is-not-written": _marks_what_is_not_written,
    "takes-newer-versions": _takes_newer_versions,
    "lacks-a-version": _lacks_a_version,
    "marks-outlive-their-transaction": _marks_outlive_their_transaction,
}
"""Mutations of uncommitted folds by name: a schedule of its own finds each, on every engine."""

SHARED_UNCOMMITTED: dict[str, Callable[[], None]] = {
    "folds-beside-others": _folds_beside_others,
}
"""The same beside another process of a server."""

DUCKDB_UNCOMMITTED: dict[str, Callable[[], None]] = {
    "survives-folds": _survives_folds,
}
"""The same on DuckDB, where a fold waits for no locks."""

BULK_UNCOMMITTED: dict[str, Callable[[], None]] = {
    "misses-later-bulk-commits": _misses_later_bulk_commits,
    "begins-undrained": _begins_undrained,
    "takes-newer-bulk-commits": _takes_newer_bulk_commits,
    "lacks-bulk-commits": _lacks_bulk_commits,
}
"""The same of bulk commits, on every engine."""

BLIND: dict[str, Callable[[], None]] = {
    "believes-blind-answers": _believes_blind_answers,
}
"""Mutations of updates that begin without a snapshot of now: a schedule finds each."""

MUTATIONS = {
    **PROTOCOL,
    **SERIALIZABLE,
    **SHARED_SERIALIZABLE,
    **STORE,
    **UNCOMMITTED,
    **SHARED_UNCOMMITTED,
    **BLIND,
    **BULK_UNCOMMITTED,
    **DUCKDB_UNCOMMITTED,
    **REPLICA,
}
"""All by name; each is called once, in a process that has no connection yet."""
