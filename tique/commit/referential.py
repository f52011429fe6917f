"""Certification of FOREIGN KEY constraints: shared and exclusive keys (P9).

A statement has checked its references against its snapshot and the transaction's own
writes (:mod:`tique.query.write.foreign_keys`). The commits of other transactions
since then are left:

* a key that is held in shared mode: has its row been deleted, or given another key?
  Versions in which only other columns changed are passed over;
* a key that is given up: is there a newer row that references it?

The one that commits second finds the versions of the one that committed first, so
nothing is recorded for this besides the versions themselves. As for the write set, this
is asked by the leader of a group commit, when every earlier commit has been published;
and the versions are there, because the transaction's snapshot keeps λ at or below the
``sts`` of each held key. Commits of other processes that are not followed yet are found
by the shared sequencer, which has both modes (:func:`key_hashes`). Within a batch
:mod:`tique.commit.batch` claims keys in these modes.

A commit in bulk has no list of keys: its tables are joined with the newest state of
those that they reference or that reference them, behind its barrier, which no other
commit passes. The constraints held in the state before, so that every orphan is one of
this transaction's, or of one that committed meanwhile.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from tique.commit.certification import canonical, expect_in_reach
from tique.store.rows import key_of
from tique.writes.tickets import Conflict
from tique_backends.records import MISSING
from tique_udfs import EXCLUSIVE_PREFIX, SHARED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique.writes.references import HeldKey, References
    from tique.writes.table import TableWrites
    from tique_backends.forms import Forms
    from tique_backends.session import Session
    from tique_rewriter.schema import ForeignKey, Table

_KEYS_PER_QUERY = 200

_EVERY_STAGED = 1 << 61
"""Later than every statement's number."""


def reference_hashes(references: References) -> Iterator[bytes]:
    """The held keys in hashes that tell the shared sequencer their modes."""
    for prefix, names in (
        (SHARED_PREFIX, references.shared),
        (SHARED_PREFIX, references.exclusive),
        (EXCLUSIVE_PREFIX, references.exclusive),
    ):
        for table_id, key, values in names:
            text = repr((table_id, key, [canonical(value) for value in values]))
            size = 16 - len(prefix)
            yield prefix + blake2b(text.encode(), digest_size=size).digest()


class ReferentialCertifier:
    """Finds committed transactions in the way of a transaction's references.

    Parameters
    ----------
    catalog
        The managed tables.
    forms
        The engine's SQL.
    in_memory
        Whether the index of versions is asked where it is complete.
    """

    def __init__(
        self, catalog: ManagedCatalog, forms: Forms, *, in_memory: bool
    ) -> None:
        self._catalog = catalog
        self._forms = forms
        self._in_memory = in_memory

    def conflict(self, references: References, session: Session) -> Conflict | None:
        """The first held key that another transaction's commit is in the way of."""
        found = self._conflict(references, session)
        if found is None and self._catalog.long_writers:
            for held in references.shared.values():
                expect_in_reach(self._catalog, held.table, held.sts, session)
            for held in references.exclusive.values():
                for child, _ in self._catalog.referencing(held.table):
                    expect_in_reach(self._catalog, child, held.sts, session)
        return found

    def _conflict(self, references: References, session: Session) -> Conflict | None:
        shared: dict[tuple[int, tuple[int, ...]], list[HeldKey]] = {}
        for held in references.shared.values():
            if self._is_indexed(held.table):
                winner = self._removed(held)
                if winner:
                    return Conflict(held.table, held.values, winner)
            else:
                shared.setdefault((held.table.id, held.key), []).append(held)
        for group in shared.values():
            found = self._removed_by_query(group, session)
            if found is not None:
                return found
        given_up: dict[tuple[int, tuple[int, ...]], list[HeldKey]] = {}
        for held in references.exclusive.values():
            given_up.setdefault((held.table.id, held.key), []).append(held)
        for group in given_up.values():
            for child, key in self._catalog.referencing(group[0].table):
                if key.key == group[0].key:
                    found = self._referenced(child, key, group, session)
                    if found is not None:
                        return found
        return None

    def bulk_conflict(
        self, writes: Sequence[TableWrites], sts: int, session: Session
    ) -> Conflict | None:
        """As :meth:`conflict`, for a commit in bulk behind ``sts``."""
        catalog = self._catalog
        own = {each.table.id: each for each in writes}
        asked: set[tuple[int, str]] = set()
        for each in writes:
            every = [(each.table, key) for key in each.table.foreign_keys]
            for child, key in [*every, *catalog.referencing(each.table)]:
                if (child.id, key.name) in asked:
                    continue
                asked.add((child.id, key.name))
                parent = catalog.parent(key)
                staged = []
                for table in (child, parent):
                    catalog.versions(table).drain(session)
                    written = own.get(table.id)
                    if written:
                        written.spill(session)
                    staged.append(_EVERY_STAGED if written else None)
                sql = self._forms.orphans(
                    child, parent, key, sts, staged=(staged[0], staged[1])
                )
                found = session.execute(self._forms.first_of(sql)).fetch_all()
                if found:
                    return Conflict(child, key_of(key.columns, found[0]), sts)
        return None

    def _is_indexed(self, table: Table) -> bool:
        return (
            self._in_memory
            and not table.is_keyless
            and self._catalog.versions(table).is_complete
        )

    def _removed(self, held: HeldKey) -> int:
        """The cts of a version that says that a shared key is gone; 0: there is none."""
        assert held.row is not None
        version = self._catalog.versions(held.table).newest(held.row)
        while version is not None and version[0] > held.sts:
            cts, row, version = version
            if row is None or any(
                row[i] != value and row[i] is not MISSING
                for i, value in zip(held.key, held.values, strict=True)
            ):
                return cts
        return 0

    def _removed_by_query(
        self, group: Sequence[HeldKey], session: Session
    ) -> Conflict | None:
        table, key = group[0].table, group[0].key
        self._catalog.versions(table).drain(session)
        for start in range(0, len(group), _KEYS_PER_QUERY):
            part = group[start : start + _KEYS_PER_QUERY]
            rows = [
                (held.values if held.row is None else held.row, held.values, held.sts)
                for held in part
            ]
            sql = self._forms.later_removals(table, key, rows)
            for number, cts in session.execute(sql).fetch_all():
                return Conflict(table, part[number].values, cts)
        return None

    def _referenced(
        self,
        child: Table,
        key: ForeignKey,
        group: Sequence[HeldKey],
        session: Session,
    ) -> Conflict | None:
        """A given-up key that a later version of the child references."""
        if self._is_indexed(child):
            for held in group:
                winner = self._new_reference(child, key, held)
                if winner:
                    return Conflict(held.table, held.values, winner)
            return None
        self._catalog.versions(child).drain(session)
        for start in range(0, len(group), _KEYS_PER_QUERY):
            part = group[start : start + _KEYS_PER_QUERY]
            rows = [(held.values, held.sts) for held in part]
            sql = self._forms.later_references(child, part[0].table, key, rows)
            for number, cts in session.execute(sql).fetch_all():
                return Conflict(part[0].table, part[number].values, cts)
        return None

    def _new_reference(self, child: Table, key: ForeignKey, held: HeldKey) -> int:
        versions = self._catalog.versions(child)
        value_at = dict(zip(key.columns, held.values, strict=True))
        # The index takes columns of the primary key first, in its order.
        positions = [i for i in child.primary_key if i in value_at]
        positions += [i for i in value_at if i not in child.primary_key]
        values = tuple([value_at[i] for i in positions])
        for row_key in versions.matching(tuple(positions), values):
            version = versions.newest(row_key)
            while version is not None and version[0] > held.sts:
                cts, row, version = version
                if row is not None and key_of(key.columns, row) == held.values:
                    return cts
        return 0
