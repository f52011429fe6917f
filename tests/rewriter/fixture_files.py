"""Reads the fixture files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "fixtures"
MONETDB_FOLDER = FOLDER / "monetdb"
POSTGRESQL_FOLDER = FOLDER / "postgresql"
_EXPECTED = "--= "


@dataclass(frozen=True)
class Case:
    """A statement and the lines that are expected of it."""

    file: str
    line: int
    sql: str
    expected: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line}"


def read_cases(*names: str, folder: Path = FOLDER) -> list[Case]:
    """The cases of a folder's fixture files of these names, or of all."""
    paths = [folder / f"{n}.sql" for n in names] or sorted(folder.glob("*.sql"))
    return [case for path in paths for case in _cases(path)]


def _cases(path: Path) -> Iterator[Case]:
    statement: list[str] = []
    expected: list[str] = []
    start = 0
    for number, line in enumerate([*path.read_text().splitlines(), ""], start=1):
        if line.startswith(_EXPECTED):
            expected.append(line.removeprefix(_EXPECTED))
            continue
        if expected:
            yield Case(path.stem, start, "\n".join(statement), tuple(expected))
            statement, expected = [], []
        if statement or (line and not line.startswith("--#")):
            start = start if statement else number
            statement.append(line)
    if statement != [] and any(statement):
        raise ValueError(f"{path.name}:{start}: a statement without expectations")
