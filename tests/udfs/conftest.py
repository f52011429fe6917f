"""Both sequencers, for test bodies that must hold for either."""

from collections.abc import Iterator

import pytest

from tique_udfs import Sequencer, _python, _python_locks, build, open_sequencer

FEW = {
    "SNAPSHOT_CAPACITY": 6,
    "CLIENT_CAPACITY": 4,
    "FENCE_CAPACITY": 3,
    "KEY_CAPACITY": 8,
    "LOCKER_CAPACITY": 3,
    "LOCK_CAPACITY": 5,
}
"""Small tables, so that they get full."""


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


@pytest.fixture(scope="session")
def small_builds(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("small"))


@pytest.fixture
def small(small_builds: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Let either sequencer have small tables when it is opened; how small they are."""
    flags = [f"-DTIQUE_{name}={number}" for name, number in FEW.items()]
    monkeypatch.setenv("TIQUE_CACHE_DIR", small_builds)
    monkeypatch.setattr(build, "_FLAGS", (*build._FLAGS, *flags))
    for name, number in FEW.items():
        for module in (_python, _python_locks):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, number)
    return FEW


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sequencer]:
    monkeypatch.setenv("TIQUE_SEQUENCER", "c")
    opened = open_sequencer("test")
    yield opened
    opened.close()
