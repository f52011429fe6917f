"""What a transaction's FOREIGN KEY constraints rest on, to be certified (P9).

A row that references a key holds that key in *shared mode*; a row that gives a key up,
deleted or changed, holds it exclusively (paper, section 2.3.4). Shared mode conflicts
with exclusive mode only, and neither with changes of the row's other columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Container

    from tique.store.rows import Key
    from tique_rewriter.schema import Table

_Name: TypeAlias = "tuple[int, tuple[int, ...], Key]"


class HeldKey(NamedTuple):
    """A key of a referenced table that a transaction holds.

    Attributes
    ----------
    table, key, values
        The referenced table, the columns of the key, and its values.
    row
        The primary key of the row that has it in the snapshot; None if the table has no
        primary key.
    sts
        The snapshot of the statement that looked.
    sequence
        The statement's number.
    """

    table: Table
    key: tuple[int, ...]
    values: Key
    row: Key | None
    sts: int
    sequence: int


class References:
    """The keys that a transaction holds; each as of the first statement that looked."""

    def __init__(self) -> None:
        self.shared: dict[_Name, HeldKey] = {}
        self.exclusive: dict[_Name, HeldKey] = {}

    def __len__(self) -> int:
        """The number of keys."""
        return len(self.shared) + len(self.exclusive)

    def share(self, held: HeldKey) -> None:
        """Hold a key that a new reference relies on."""
        self.shared.setdefault((held.table.id, held.key, held.values), held)

    def give_up(self, held: HeldKey) -> None:
        """Hold a key that a row no longer has."""
        self.exclusive.setdefault((held.table.id, held.key, held.values), held)

    def among(self, tables: Container[int]) -> References:
        """Those that hold keys of these tables, by id."""
        found = References()
        for names, left in (
            (self.shared, found.shared),
            (self.exclusive, found.exclusive),
        ):
            left.update((n, held) for n, held in names.items() if n[0] in tables)
        return found

    def after(self, sequence: int) -> References:
        """Those of statements after a number."""
        found = References()
        for names, left in (
            (self.shared, found.shared),
            (self.exclusive, found.exclusive),
        ):
            for name in reversed(names):
                if names[name].sequence <= sequence:
                    break
                left[name] = names[name]
        return found

    def rollback_to(self, sequence: int) -> None:
        """Forget what statements after ``sequence`` held."""
        for names in (self.shared, self.exclusive):
            # In the order of statements.
            while names:
                name, held = names.popitem()
                if held.sequence <= sequence:
                    names[name] = held
                    break
