"""High-water marks: beyond which keys a storage table has no rows.

Numbers that only grow (of orders, of events) are the most common keys of new rows.
That such a key is free is known without a question to the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.values import kind_of

if TYPE_CHECKING:
    from tique.store.policy import CachePolicy
    from tique.store.rows import Key
    from tique_rewriter.schema import Table

_UNKNOWN = object()


class HighWaterMarks:
    """The marks of one storage table.

    A mark is the greatest value of one key column among the rows with one
    prefix of the key; a key beyond it is free without a question to the engine.
    A mark may be too high, after deletes, but never too low: folds raise it.

    Parameters
    ----------
    table
        A table with a primary key.
    policy
        Says how many marks there may be.
    """

    def __init__(self, table: Table, policy: CachePolicy) -> None:
        self._most = policy.marks
        kinds = [kind_of(table.columns[i].type) for i in table.primary_key]
        self._positions = [
            n
            for n, kind in enumerate(kinds)
            if n >= len(kinds) - 2 and kind is not None and kind.family == "integer"
        ]
        self._marks: dict[Key, int | None] = {}
        self._missed: dict[Key, None] = {}

    def excludes(self, key: Key) -> bool:
        """Whether storage certainly has no row under the key."""
        for n in self._positions:
            mark = self._marks.get(key[:n], _UNKNOWN)
            if mark is not _UNKNOWN and (mark is None or key[n] > mark):
                return True
        return False

    def to_read(self, key: Key) -> Key | None:
        """Note a new key; return the prefix whose mark is worth reading, if any."""
        if not self._most:
            return None
        for n in reversed(self._positions):
            prefix = key[:n]
            if prefix in self._marks:
                continue
            if prefix in self._missed:
                self._missed.pop(prefix, None)
                return prefix
            if len(self._missed) >= self._most:
                self._missed.clear()
            self._missed[prefix] = None
        return None

    def put(self, prefix: Key, mark: int | None) -> None:
        """Remember a mark; None: there are no rows with that prefix."""
        if len(self._marks) >= self._most:
            self._marks.clear()
        self._marks[prefix] = mark

    def raise_to(self, key: Key) -> bool:
        """Note that a fold stored a row under the key; whether a mark was there."""
        is_marked = False
        if not self._marks:
            return False
        for n in self._positions:
            mark = self._marks.get(key[:n], _UNKNOWN)
            if mark is not _UNKNOWN:
                is_marked = True
                if mark is None or key[n] > mark:
                    self._marks[key[:n]] = key[n]
        return is_marked

    def clear(self) -> None:
        """Forget all marks."""
        self._marks.clear()
