"""When a transaction checks its deferrable constraints: what SET CONSTRAINTS said.

Argument
--------
*What is to be checked at commit stays so.* A check at once, by SET CONSTRAINTS … IMMEDIATE,
forgets nothing of :attr:`~tique.query.transaction.transaction.Transaction.deferred`: a rollback to a
savepoint may take back the row that made it pass, and then the check at commit finds the
orphan. Modes themselves are undone with the statements after them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_rewriter.schema import ForeignKey, Table

Name = tuple[str, str]
"""A constraint: its table's schema, and its own name."""


@dataclass(frozen=True)
class _Mode:
    sequence: int
    names: frozenset[Name] | None
    is_deferred: bool


class ConstraintModes:
    """The modes that one transaction has set, in their order."""

    def __init__(self) -> None:
        self._modes: list[_Mode] = []

    def set(
        self, sequence: int, names: frozenset[Name] | None, *, is_deferred: bool
    ) -> None:
        """Note the mode of some constraints, or of all of them."""
        self._modes.append(_Mode(sequence, names, is_deferred))

    def rollback_to(self, sequence: int) -> None:
        """Forget the modes that were set by statements after ``sequence``."""
        self._modes = [mode for mode in self._modes if mode.sequence <= sequence]

    def are_deferred(self, child: Table, key: ForeignKey) -> bool:
        """Whether references by this constraint are checked at commit, and not now."""
        if not key.is_deferred:
            return False
        for mode in reversed(self._modes):
            if mode.names is None or (child.schema, key.name) in mode.names:
                return mode.is_deferred
        return True


def named_constraints(
    tables: Iterable[Table], names: Iterable[Name], path: Sequence[str]
) -> frozenset[Name]:
    """The deferrable constraints of these names; a schema may be empty.

    Raises
    ------
    ProgrammingError
        There is none of a name (SQLSTATE 42704), or it is not deferrable (42809).
    """
    there: dict[Name, bool] = {}
    for table in tables:
        others = [name for name, _ in table.key_names]
        others += [check.name for check in table.checks if check.name is not None]
        for name in others:
            there.setdefault((table.schema, name), False)
        for key in table.foreign_keys:
            place = (table.schema, key.name)
            there[place] = there.get(place, False) or key.is_deferred
    found = set()
    for schema, name in names:
        schemas = [schema] if schema else path
        places = [(s, name) for s in schemas if (s, name) in there]
        if not places:
            raise errors.ProgrammingError(
                f'there is no constraint "{name}"', sqlstate="42704"
            )
        if not there[places[0]]:
            raise errors.ProgrammingError(
                f'constraint "{name}" is not deferrable', sqlstate="42809"
            )
        found.add(places[0])
    return frozenset(found)
