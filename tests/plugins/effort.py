"""How many statements the engine runs for a piece of work (P2)."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import pytest

from tique.timeline.shared import SharedTimeline

if TYPE_CHECKING:
    from collections.abc import Callable

    import tique


@pytest.fixture
def statements(
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[tique.Connection, Callable[[], object]], int]:
    """Count them; those that keep the process's lease wait meanwhile.

    Take this fixture before the one that connects: no lease is renewed before then.
    """
    counting = Lock()
    beat = SharedTimeline._beat

    def beat_later(timeline: SharedTimeline) -> None:
        with counting:
            beat(timeline)

    def statements(connection: tique.Connection, work: Callable[[], object]) -> int:
        with counting:
            before = connection.info.engine_statements
            work()
            return connection.info.engine_statements - before

    monkeypatch.setattr(SharedTimeline, "_beat", beat_later)
    return statements
