"""The lines of ``anomalies.txt``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tique import IsolationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS = tuple(level.value for level in IsolationLevel)

_LEVELS = {
    "any": LEVELS,
    "one snapshot": ("SNAPSHOT", "SERIALIZABLE"),
    "weaker": ("SNAPSHOT", "READ COMMITTED"),
    **{level: (level,) for level in LEVELS},
}
"""Words for levels in the file."""

_PREVENTED, _OCCURRING = "must not occur", "occurs"
_BY_ROW = f"{_PREVENTED}, where conflicts are by row"
_COLUMNS = re.compile(" {2,}")


class Anomaly(NamedTuple):
    """A history at a level."""

    name: str
    level: str
    history: str


def _sections() -> Iterator[tuple[str, Anomaly]]:
    section = ""
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line in (_PREVENTED, _BY_ROW, _OCCURRING):
            section = line
        elif line and not line.startswith("#"):
            name, levels, history = _COLUMNS.split(line)
            for level in _LEVELS[levels]:
                yield section, Anomaly(name, level, history)


PREVENTED = [anomaly for section, anomaly in _sections() if section == _PREVENTED]
"""The anomalies that the levels prevent."""

PREVENTED_BY_ROW = [anomaly for section, anomaly in _sections() if section == _BY_ROW]
"""Others that ``conflicts="row"`` prevents."""

OCCURRING = [anomaly for section, anomaly in _sections() if section == _OCCURRING]
"""The anomalies that they allow, and that do happen."""
