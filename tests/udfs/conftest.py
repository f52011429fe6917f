"""Both sequencers, for test bodies that must hold for either."""

from collections.abc import Iterator

import pytest

from tique_udfs import Sequencer, open_sequencer


@pytest.fixture(params=["c", "python"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIQUE_SEQUENCER", request.param)
    return request.param


@pytest.fixture
def sequencer(kind: str) -> Iterator[Sequencer]:
    opened = open_sequencer("test")
    assert opened.kind == kind
    yield opened
    opened.close()


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sequencer]:
    monkeypatch.setenv("TIQUE_SEQUENCER", "c")
    opened = open_sequencer("test")
    yield opened
    opened.close()
