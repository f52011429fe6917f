"""The file of entries: each a query and what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tests.replica.subset import world
from tique_rewriter.replica import Refusal

FILE = Path(__file__).with_name("entries.sql")
SAME, ASKS, REFUSED = "-->", "--?", "--!"
"""DuckDB answers as PostgreSQL does, has an error where PostgreSQL answers, or is not asked."""


@dataclass(frozen=True)
class Entry:
    """A query, and the comments before it, as they are."""

    head: str
    sql: str
    mark: str = ""
    outcome: str = ""

    @property
    def text(self) -> str:
        """The entry as the file has it."""
        return f"{self.head}{self.sql}\n{self.mark} {self.outcome}\n"

    def now(self) -> Entry:
        """The entry with what becomes of the query now."""
        try:
            sql = world.translated(self.sql).sql
        except Refusal as refusal:
            return replace(self, mark=REFUSED, outcome=str(refusal))
        mark = self.mark if self.mark in (SAME, ASKS) else SAME
        return replace(self, mark=mark, outcome=sql)


def read() -> list[Entry]:
    """Return all entries."""
    found = []
    head = ""
    for part in FILE.read_text().strip().split("\n\n"):
        lines = part.split("\n")
        while lines and (lines[0].startswith("--#") or lines[0].startswith("-- ")):
            head += lines.pop(0) + "\n"
        if not lines:
            head += "\n"
            continue
        mark = outcome = ""
        if lines[-1][:3] in (SAME, ASKS, REFUSED):
            mark, _, outcome = lines.pop().partition(" ")
        found.append(Entry(head, "\n".join(lines), mark, outcome))
        head = ""
    return found


def write(entries: list[Entry]) -> None:
    """Write the file anew."""
    FILE.write_text("\n".join(entry.text for entry in entries))
