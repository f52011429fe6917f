"""The snapshot in plain Python, against which every form is held."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tique_backends.names import storage_name
from tique_backends.records import Versions

if TYPE_CHECKING:
    import random

    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


@dataclass
class Model:
    """A table's storage rows, committed versions and staged rows.

    Entries of ``cache`` are (cts, row, deleted), of ``stage`` (sequence, row, deleted).
    """

    table: Table
    storage: list[Row] = field(default_factory=list)
    cache: list[tuple[int, Row, bool]] = field(default_factory=list)
    stage: list[tuple[int, Row, bool]] = field(default_factory=list)

    def key(self, row: Row) -> Row:
        return tuple(row[i] for i in self.table.primary_key)

    def snapshot(self, sts: int, staged: int | None = None) -> Counter[Row]:
        """The rows that are seen, with their multiplicities."""
        visible = sorted((e for e in self.cache if e[0] <= sts), key=lambda e: e[0])
        own = sorted(
            (e for e in self.stage if e[0] <= (staged or 0)), key=lambda e: e[0]
        )
        if self.table.is_keyless:
            rows = Counter(self.storage)
            rows.update(row for _, row, deleted in visible + own if not deleted)
            rows.subtract(row for _, row, deleted in visible + own if deleted)
            return +rows
        by_key = {self.key(row): row for row in self.storage}
        for _, row, deleted in visible + own:
            by_key.pop(self.key(row), None)
            if not deleted:
                by_key[self.key(row)] = row
        return Counter(by_key.values())

    def newest(self, until: int) -> dict[Row, Row | None]:
        """The newest version up to ``until`` of every key that has one."""
        return {
            self.key(row): None if deleted else row
            for _, row, deleted in sorted(self.cache, key=lambda e: e[0])
            if _ <= until
        }

    def fold(self, until: int) -> int:
        """Move versions up to ``until`` to storage; the number of versions."""
        self.storage = list(self.snapshot(until).elements())
        before = len(self.cache)
        self.cache = [entry for entry in self.cache if entry[0] > until]
        return before - len(self.cache)

    def fill_storage(self, session: Session) -> None:
        """Put the storage rows into the engine's table."""
        if not self.storage:
            return
        width = len(self.table.columns)
        rows = ", ".join(
            "(" + ", ".join(f"${start + i + 1}" for i in range(width)) + ")"
            for start in range(0, len(self.storage) * width, width)
        )
        session.execute(
            f"INSERT INTO {storage_name(self.table)} VALUES {rows}",
            [value for row in self.storage for value in row],
        )

    def fill(self, session: Session, *, stage: bool = False) -> None:
        """Put all of it into the engine's tables."""
        self.fill_storage(session)
        append(session.append, self.table, self.cache)
        if stage:
            session.create_stage(self.table)
            append(session.stage, self.table, self.stage)


def append(method: Any, table: Table, entries: list[tuple[int, Row, bool]]) -> None:
    if entries:
        stamps, rows, deleted = zip(*entries, strict=True)
        method(Versions(table, rows, stamps, deleted))


def keyed_model(table: Table, number: random.Random) -> Model:
    """Random keys, versions and tombstones of (a INTEGER, b VARCHAR, v, w)."""
    model = Model(table)

    def row() -> Row:
        key = (number.randrange(6), number.choice(["x", "it's", "x "]))
        return (
            *key,
            number.choice([None, 1, -2, 3]),
            number.choice([None, "\\", "w'"]),
        )

    stored = {model.key(r): r for r in (row() for _ in range(12))}
    model.storage = list(stored.values())
    for cts in range(1, 15):
        changed = {model.key(r): r for r in (row() for _ in range(number.randrange(4)))}
        model.cache += [(cts, r, number.random() < 0.3) for r in changed.values()]
    for sequence in range(1, 9):
        changed = {model.key(r): r for r in (row() for _ in range(number.randrange(3)))}
        model.stage += [(sequence, r, number.random() < 0.3) for r in changed.values()]
    return model


def bag_model(table: Table, number: random.Random) -> Model:
    """Rows of (a INTEGER, b VARCHAR) with duplicates and NULLs.

    A tombstone stands for a row that was there.
    """
    model = Model(table)

    def row() -> Row:
        return (number.choice([None, 1, 2]), number.choice([None, "", "it's"]))

    model.storage = [row() for _ in range(15)]
    for target, first, last in ((model.cache, 1, 12), (model.stage, 1, 8)):
        for stamp in range(first, last):
            for _ in range(number.randrange(4)):
                rows = model.snapshot(99, 99)
                if number.random() < 0.5 and rows:
                    gone = number.choice(sorted(rows, key=repr))
                    target.append((stamp, gone, True))
                else:
                    target.append((stamp, row(), False))
    return model
