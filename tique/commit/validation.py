"""Validation: whether what a transaction saw is so still, just before its commit.

A SERIALIZABLE transaction reads the snapshot at its begin, as any. If at its commit
everything that it saw (:mod:`tique.writes.seen`) is as it saw it, it is as if it had run
at that moment, after all commits before it and before all later ones.

Argument
--------
*Strict serializability.* Transactions that commit are put in the order of their commit
timestamps. Each is validated against the state that all before it leave: the
published versions, and the rows of tickets before it in its batch. So its statements would have
answered the same there. A commit that was acknowledged before another transaction began
has the smaller timestamp (P2), so that the order respects real time. A transaction without
writes is in this order at its snapshot: that is the state after some of the commits, the
acknowledged ones among them. It needs no validation, no commit has to wait for it, and there is nothing that
a snapshot which is chosen with more care would save it from.

*Exact, and sound where it is not.* Two states are compared, at the snapshot and now:
what came between and was taken back does not count. A row bears on a predicate if the old
or the new image of it satisfies that; it is in the way if it came, went, or has another value
in a column that was looked at, which those of the conditions are. A condition that cannot be
evaluated counts as true.

*Which rows have changed* memory says where it has all versions; then old images are there too, or
in storage, which has no version that is later than a registered snapshot. For tables of
which memory does not have all (bulk commits, no primary key) the engine compares both states:
one query over the versions since the snapshot, as precision locking would have it, if it were
evaluated by the database. That is the reference, which ``certifier="query"`` asks for all tables.
It does not know rows of the batch: a ticket for which they may matter waits for the next one.

*A snapshot that the engine keeps* may have been passed by folds. Then old images are not
known: a change of a row that was seen is told by its key and compared with what was seen; any commit to a table of which
a predicate was seen is in the way.

Only the leader of a group commit calls this, with every earlier commit published.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tique import errors
from tique._translation import concerning
from tique.commit.certification import KEYS_PER_QUERY, differing
from tique.store.rows import columns_to_read, lacks, merged
from tique.writes.predicates import Predicate, SeenPredicate
from tique.writes.seen import is_same_row
from tique_backends.changes import seen_changes
from tique_backends.forms import together
from tique_backends.records import MISSING
from tique_rewriter.plans.plan import Comparison, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from tique.commit.batch_rows import BatchRows
    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique.writes.seen import Seen
    from tique.writes.tickets import Committing
    from tique_backends.forms import Forms
    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer


_MANY = 100
"""From so many changed keys on those of a predicate are looked up in an index."""


class BehindBatchError(Exception):
    """The engine would have to be asked about rows of the batch, which it does not have."""


class Change(NamedTuple):
    """What was seen and is no longer so: of a row with a key, or of a predicate.

    ``columns`` are the names of those that differ, where that is known. Without a
    predicate and a key the table's definition is another.
    """

    table: Table
    winner: int
    predicate: SeenPredicate | None = None
    key: Key | None = None
    columns: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What has changed, as :class:`~tique.commit.figures.ValidationFigures` has it."""
        if self.predicate is not None:
            return "predicate" if self.predicate.predicate.conditions else "table"
        return "definition" if self.key is None else "row"


def validation_error(change: Change) -> errors.SerializationError:
    """The error of a transaction that saw what is no longer so."""
    table, predicate = change.table, change.predicate
    what = f"the definition of {table.qualified_name}"
    if predicate is not None:
        where = predicate.predicate.text()
        what = f"rows of {table.qualified_name}{f' WHERE {where}' if where else ''}"
    elif change.key is not None:
        what = f"a row of {table.qualified_name}"
    shown = f" ({', '.join(change.columns)})" if change.columns else ""
    return errors.SerializationError(
        f"this transaction has read {what}, and another one has changed that{shown} "
        f"since its snapshot, at cts {change.winner}; run the transaction again",
        table=table.qualified_name,
        key=change.key,
        columns=change.columns,
        winner=change.winner,
        diag=concerning(table),
    )


class Validation:
    """Compares what transactions saw with the newest state.

    Parameters
    ----------
    catalog
        The managed tables.
    forms
        The engine's SQL.
    sequencer
        This process's own.
    batch
        The rows of the tickets before in the batch.
    in_memory
        Whether memory is asked where it has all versions.
    """

    def __init__(
        self,
        catalog: ManagedCatalog,
        forms: Forms,
        sequencer: Sequencer,
        batch: BatchRows,
        *,
        in_memory: bool,
    ) -> None:
        self._catalog = catalog
        self._forms = forms
        self._sequencer = sequencer
        self._batch = batch
        self._in_memory = in_memory

    def change(self, transaction: Committing, session: Session) -> Change | None:
        """The first change of what a transaction saw; None: all is as it was.

        Raises
        ------
        BehindBatchError
            That cannot be known before the batch is committed.
        """
        seen, sts = transaction.seen, transaction.sts
        passed: set[int] = set()
        while True:
            found = self._change(seen, sts, passed, session)
            # Last: what a fold has dropped since the look was not seen by it.
            now = {i for i, t in seen.definitions.items() if self._is_passed(t, sts)}
            if found is not None or now == passed:
                return found
            passed = now

    @property
    def has_batch(self) -> bool:
        """Whether there are tickets before in the batch."""
        return bool(self._batch)

    def first_changes(
        self, transaction: Committing, session: Session
    ) -> set[int] | None:
        """The commits that were the first to change each of the rows that were seen.

        Of published ones their timestamps; a change that was taken back later counts.
        None: memory does not know them.
        """
        seen, sts = transaction.seen, transaction.sts
        found: list[int | None] = []
        tables = {}
        for number, table in seen.definitions.items():
            if not self._is_defined(table, sts) or not self._is_known(table):
                return None
            if self._versions(table).last_cts > sts:
                tables[number] = table
        for number, key in seen.own:
            if number in tables:
                found.append(self._first(tables[number], key, sts, lambda _: True))
        for (number, key), (row, columns) in seen.rows.items():
            if number in tables:
                is_other = partial(_is_other, row, columns)
                found.append(self._first(tables[number], key, sts, is_other))
        for predicate in seen.predicates:
            table = predicate.table
            if table.id in tables:
                rows = _Rows(table, predicate)
                keys = rows.matching(self._versions(table).changed_since(sts))
                for key, old in self._old_rows(table, keys, rows.columns, sts, session):
                    found.append(
                        self._first(table, key, sts, partial(rows.differ, old))
                    )
        # Last: what a fold has dropped since the look was not seen by it.
        if any(self._is_passed(table, sts) for table in tables.values()):
            return None
        return {cts for cts in found if cts is not None}

    def _first(
        self, table: Table, key: Key, sts: int, is_other: Callable[[Row | None], bool]
    ) -> int | None:
        later = self._versions(table).later(key, sts)
        return next((cts for cts, row, _ in later if is_other(row)), None)

    def _is_passed(self, table: Table, sts: int) -> bool:
        versions = self._catalog.find_versions(table.id)
        return versions is not None and versions.folded_until > sts

    def _change(
        self, seen: Seen, sts: int, passed: Collection[int], session: Session
    ) -> Change | None:
        tables = {}
        for number, table in seen.definitions.items():
            if not self._is_defined(table, sts):
                return Change(table, self._sequencer.sts())
            if self._batch.writes_to(table) or self._versions(table).last_cts > sts:
                tables[number] = table
        if not tables:
            return None
        for number, key in seen.own:
            if number in tables:
                found = self._own_change(tables[number], key, sts)
                if found is not None:
                    return found
        return self._changed_row(seen, sts, tables, passed, session) or (
            self._changed_predicate(seen, sts, tables, passed, session)
        )

    def _changed_row(
        self,
        seen: Seen,
        sts: int,
        tables: Mapping[int, Table],
        passed: Collection[int],
        session: Session,
    ) -> Change | None:
        known = {
            number: (self._versions(table).last_commit, self._batch.keys(table))
            for number, table in tables.items()
            if number not in passed and self._is_known(table)
        }
        asked: dict[int, list[Key]] = {}
        for (number, key), (row, columns) in seen.rows.items():
            if number in known:
                last_commit, written = known[number]
                if last_commit(key) <= sts and key not in written:
                    # As most rows are.
                    continue
            if number not in tables:
                continue
            table = tables[number]
            if self._is_known(table):
                found = self._row_change(table, key, row, columns, sts, session)
                if found is not None:
                    return found
            elif number in passed:
                return Change(table, self._winner(table), key=key)
            else:
                asked.setdefault(number, []).append(key)
        for number, keys in asked.items():
            found = self._asked_row(tables[number], keys, seen, sts, session)
            if found is not None:
                return found
        return None

    def _changed_predicate(
        self,
        seen: Seen,
        sts: int,
        tables: Mapping[int, Table],
        passed: Collection[int],
        session: Session,
    ) -> Change | None:
        changed: dict[int, set[Key]] = {}
        for predicate in seen.predicates:
            table = predicate.table
            if table.id not in tables:
                continue
            if table.id in passed:
                return Change(table, self._winner(table), predicate)
            if not self._is_known(table):
                found = self._asked(table, predicate, sts, session)
            else:
                versions = self._versions(table)
                if table.id not in changed:
                    changed[table.id] = versions.changed_since(sts)
                rows = _Rows(table, predicate)
                keys = {
                    *rows.among(changed[table.id], versions),
                    *rows.matching(self._batch.keys(table)),
                }
                found = self._predicate_change(table, rows, keys, sts, session)
            if found is not None:
                return found
        return None

    def _is_defined(self, table: Table, sts: int) -> bool:
        """Whether a table is still there, as it was."""
        catalog = self._catalog
        return (
            table.id in catalog.by_id()
            and catalog.is_current(table)
            and self._versions(table).since <= sts
        )

    def _versions(self, table: Table) -> TableVersions:
        return self._catalog.versions(table)

    def _is_known(self, table: Table) -> bool:
        """Whether memory has all versions of a table."""
        return (
            self._in_memory
            and not table.is_keyless
            and self._versions(table).is_complete
            and self._catalog.buffers(table)
        )

    def _winner(self, table: Table, key: Key | None = None) -> int:
        """The timestamp of the commit that is in the way, as far as it is known."""
        if self._batch.writes_to(table):
            return self._sequencer.cts()
        versions = self._versions(table)
        return versions.last_cts if key is None else versions.last_commit(key)

    def _own_change(self, table: Table, key: Key, sts: int) -> Change | None:
        """Whether a row that the transaction had changed was changed by another one."""
        versions = self._versions(table)
        is_same = not self._batch.has(table, key) and (
            versions.last_commit(key) <= sts
            if versions.is_complete
            else versions.last_cts <= sts
        )
        # Last: what a fold has dropped meanwhile is said here before it is.
        if is_same and versions.judges_since <= sts:
            return None
        return Change(table, self._winner(table, key), key=key)

    def _row_change(
        self,
        table: Table,
        key: Key,
        row: Row | None,
        columns: Collection[int],
        sts: int,
        session: Session,
    ) -> Change | None:
        versions, batch = self._versions(table), self._batch
        states = []
        if versions.last_commit(key) > sts or versions.judges_since > sts:
            newest = versions.newest(key)
            if newest is None or versions.folded_until > sts:
                states.append(self._newest(table, key, columns, session))
            else:
                # A gap in it is no change.
                states.append(newest[1])
        if batch.has(table, key):
            states.append(batch.newest(table, key))
        for new in states:
            if not is_same_row(new, row, columns):
                names = differing(table, new, row)
                return Change(table, self._winner(table, key), None, key, names)
        return None

    def _newest(
        self, table: Table, key: Key, columns: Collection[int], session: Session
    ) -> Row | None:
        """The newest published row, with these columns."""
        newest = self._versions(table).newest(key)
        if newest is not None and (newest[1] is None or MISSING not in newest[1]):
            return newest[1]
        stored = session.read_row(table, key, columns_to_read(table, sorted(columns)))
        if newest is None or newest[1] is None or stored is None:
            return stored
        return merged(newest[1], stored)

    def _asked_row(
        self, table: Table, keys: Sequence[Key], seen: Seen, sts: int, session: Session
    ) -> Change | None:
        """The engine's answer about rows by their keys: which have versions, and what these are."""
        if self._batch.writes_to(table):
            raise BehindBatchError
        self._versions(table).drain(session)
        for start in range(0, len(keys), KEYS_PER_QUERY):
            part = keys[start : start + KEYS_PER_QUERY]
            sql = self._forms.conflicts(table, table.primary_key, len(part))
            given = [value for key in part for value in (*key, sts)]
            for number, winner in session.execute(sql, given).fetch_all():
                key = part[number]
                conditions = [
                    Comparison(i, "=", Literal(value))
                    for i, value in zip(table.primary_key, key, strict=True)
                ]
                _, columns = seen.rows[table.id, key]
                looked_at = columns.union(table.primary_key)
                of_key = SeenPredicate(Predicate(table, conditions), (), looked_at)
                if self._asked(table, of_key, sts, session) is not None:
                    return Change(table, winner, key=key)
        return None

    def _predicate_change(
        self,
        table: Table,
        rows: _Rows,
        keys: Iterable[Key],
        sts: int,
        session: Session,
    ) -> Change | None:
        versions, batch = self._versions(table), self._batch
        for key, old in self._old_rows(table, keys, rows.columns, sts, session):
            newest = versions.newest(key)
            states = [old if newest is None else newest[1]]
            if batch.has(table, key):
                states.append(batch.newest(table, key))
            for new in states:
                if rows.differ(old, new):
                    names = differing(table, new, old)
                    winner = self._winner(table, key)
                    return Change(table, winner, rows.seen, key, names)
        return None

    def _old_rows(
        self,
        table: Table,
        keys: Iterable[Key],
        columns: Collection[int],
        sts: int,
        session: Session,
    ) -> Iterable[tuple[Key, Row | None]]:
        """Rows of a snapshot, with these columns."""
        versions = self._versions(table)
        needed = columns_to_read(table, sorted(columns))
        found: dict[Key, Row | None] = {}
        wanted: list[Key] = []
        for key in keys:
            version = versions.newest_visible(key, sts)
            row = None if version is None else version[1]
            if version is None or (row is not None and MISSING in row):
                known, stored = versions.storage_row(key, needed)
                if not known:
                    wanted.append(key)
                elif row is None:
                    row = stored
                elif stored is not None:
                    row = merged(row, stored)
            found[key] = row
        if wanted:
            stored_rows = session.read_rows(table, wanted, needed)
            for key in wanted:
                row, stored = found[key], stored_rows.get(key)
                if stored is not None:
                    found[key] = stored if row is None else merged(row, stored)
        return found.items()

    def _asked(
        self, table: Table, predicate: SeenPredicate, sts: int, session: Session
    ) -> Change | None:
        """The engine's answer."""
        if self._batch.writes_to(table):
            raise BehindBatchError
        versions, forms = self._versions(table), self._forms
        versions.drain(session)
        until = self._sequencer.sts()
        states = [
            (cts, together(forms.scan(table, cts, staged=None))) for cts in (sts, until)
        ]
        conditions = [*predicate.predicate.bound(predicate.parameters)]
        sql = seen_changes(forms, table, (conditions, predicate.columns), *states)
        if session.execute(sql).fetch_all():
            return Change(table, versions.last_cts, predicate)
        return None


def _is_other(seen: Row | None, columns: Collection[int], new: Row | None) -> bool:
    return not is_same_row(new, seen, columns)


class _Rows:
    """Tells rows that satisfy a predicate, as far as the driver can say."""

    def __init__(self, table: Table, seen: SeenPredicate) -> None:
        self.seen = seen
        everything = range(len(table.columns))
        self.columns = everything if seen.columns is None else seen.columns
        bound = dict(zip(*seen.group(table.primary_key), strict=True))
        self._positions = tuple([i for i in table.primary_key if i in bound])
        self._values = tuple([bound[i] for i in self._positions])
        self._places = [table.primary_key.index(i) for i in self._positions]

    def among(self, changed: set[Key], versions: TableVersions) -> Iterable[Key]:
        """Those keys of versions that a row which satisfies it can have."""
        if self._places and len(changed) > _MANY:
            return changed.intersection(
                versions.matching(self._positions, self._values)
            )
        return self.matching(changed)

    def matching(self, keys: Iterable[Key]) -> Iterable[Key]:
        """Those of some keys that a row which satisfies it can have."""
        values = list(self._values)
        return [key for key in keys if [key[place] for place in self._places] == values]

    def differ(self, old: Row | None, new: Row | None) -> bool:
        """Whether a row that satisfies it came, went, or has changed."""
        if is_same_row(new, old, self.columns):
            return False
        if new is not None and old is not None:
            new = merged(new, old)
        return self._has(old) or self._has(new)

    def _has(self, row: Row | None) -> bool:
        predicate, parameters, _ = self.seen
        return row is not None and (
            lacks(row, predicate.columns) or predicate.is_true(row, parameters)
        )
