"""The code blocks of a page, and what comments in front of them say about them.

A page runs from top to bottom, in one folder and one namespace. A comment in front of a
block says what differs from that:

``<!-- not run: REASON -->``
    It is parsed and not run.
``<!-- refused: TEXT -->``
    Each of its statements is an error whose message contains the text, or whose class
    it names. Its output is the message.
``<!-- engine: postgresql, monetdb -->``
    It runs on these engines, in a run of the page for each.
``<!-- page: postgresql -->``
    At the top: what runs all blocks that do not say their engine; else DuckDB.
``<!-- setup`` … ``-->``
    Python that runs at this place and is not shown; ``URL`` is the database's.

A ``text`` block below another one is its output, in which ``…`` stands for anything; in
a ``console`` block the lines without ``$`` are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}

ENGINES = ("duckdb", "postgresql", "monetdb")
RUNNABLE = {"python", "sql", "console"}
PARSED = RUNNABLE | {"toml", "json", "yaml"}

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<information>[^`]*)$")
_COMMENT = re.compile(r"^ *<!-- (?P<name>[a-z ]+): (?P<value>.*) -->$")
_SETUP = re.compile(r"^<!-- setup(?:: (?P<engines>.*))?$")
_URL = re.compile(r"\b(duckdb|postgresql|monetdb)(?:\+\w+)?:(?=/|$)")


class BlockError(Exception):
    """A page whose blocks cannot be understood."""


@dataclass(frozen=True)
class Block:
    """A code block, or a setup that is not shown."""

    page: str
    line: int
    language: str
    text: str
    engines: tuple[str, ...] = ("duckdb",)
    not_run: str | None = None
    refused: str | None = None
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether a test executes it."""
        return self.language in RUNNABLE and self.not_run is None


@dataclass
class _Reader:
    page: str
    default: tuple[str, ...] = ("duckdb",)
    marks: dict[str, str] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    is_adjacent: bool = False
    """Whether only blank lines are between the last block and here."""

    def comment(self, name: str, value: str, number: int) -> None:
        if name == "page":
            self.default = self.engines(value, number)
        elif name in ("not run", "refused", "engine"):
            self.marks[name] = value
        else:
            raise BlockError(f"{self.page}:{number}: unknown comment {name!r}")

    def engines(self, names: str, number: int) -> tuple[str, ...]:
        found = tuple(name.strip() for name in names.split(","))
        if not set(found) <= set(ENGINES):
            raise BlockError(f"{self.page}:{number}: unknown engine in {names!r}")
        return found

    def setup(self, engines: str | None, text: str, number: int) -> None:
        where = self.engines(engines, number) if engines else self.default
        self.blocks.append(Block(self.page, number, "python", text, where))

    def block(self, language: str, text: str, number: int) -> None:
        if language == "text" and not self.marks:
            last = self.blocks[-1] if self.blocks else None
            if last is None or not self.is_adjacent or not last.runs:
                raise BlockError(
                    f"{self.page}:{number}: no block above of which this is the output; "
                    "say '<!-- not run: REASON -->'"
                )
            self.blocks[-1] = Block(**{**vars(last), "output": text})
            return
        if language not in PARSED and "not run" not in self.marks:
            raise BlockError(
                f"{self.page}:{number}: a block in {language or 'no language'!r}, which "
                "no test understands; say '<!-- not run: REASON -->'"
            )
        if "engine" in self.marks:
            engines = self.engines(self.marks["engine"], number)
        else:
            named = _URL.search(text)
            engines = (named[1],) if named else self.default
        self.blocks.append(
            Block(
                self.page,
                number,
                language,
                text,
                engines,
                self.marks.get("not run"),
                self.marks.get("refused"),
            )
        )
        self.marks = {}


def blocks(page: str, text: str) -> list[Block]:
    """The blocks of a page, in order."""
    reader = _Reader(page)
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            inner = _until(lines, f"{fence['indent']}{fence['ticks']}", page, number)
            body = [each.removeprefix(fence["indent"]) for each in inner]
            words = fence["information"].split()
            reader.block(words[0] if words else "", "\n".join(body) + "\n", number)
            reader.is_adjacent = True
        elif setup := _SETUP.match(line):
            body = _until(lines, "-->", page, number)
            reader.setup(setup["engines"], "\n".join(body) + "\n", number)
            reader.is_adjacent = False
        elif comment := _COMMENT.match(line):
            reader.comment(comment["name"], comment["value"], number)
        elif line.strip():
            reader.is_adjacent = False
            if reader.marks:
                raise BlockError(f"{page}:{number}: a comment that no block follows")
    return reader.blocks


def _until(
    lines: Iterator[tuple[int, str]], end: str, page: str, number: int
) -> list[str]:
    found = []
    for _, line in lines:
        if line.rstrip() == end:
            return found
        found.append(line)
    raise BlockError(f"{page}:{number}: a block without an end")
