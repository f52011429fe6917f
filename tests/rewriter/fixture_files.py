"""Reads the fixture files.

Those in ``common/`` are of every dialect: ``main.`` in what is expected there stands for the
schema that the dialect's test tables are in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "fixtures"
MONETDB_FOLDER = FOLDER / "monetdb"
POSTGRESQL_FOLDER = FOLDER / "postgresql"
_COMMON_FOLDER = FOLDER / "common"
_MAIN = "main."
_SCHEMAS = {MONETDB_FOLDER: "sys.", POSTGRESQL_FOLDER: "public."}
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
    """The cases of a dialect's fixture files of these names, or of all."""
    if names:
        return [case for n in names for case in _cases(folder / f"{n}.sql")]
    cases = [case for path in sorted(folder.glob("*.sql")) for case in _cases(path)]
    schema = _SCHEMAS.get(folder, _MAIN)
    for path in sorted(_COMMON_FOLDER.glob("*.sql")):
        for case in _cases(path):
            expected = tuple(line.replace(_MAIN, schema) for line in case.expected)
            name = f"common/{case.file}"
            cases.append(replace(case, file=name, expected=expected))
    return cases


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
