"""The marks ``notimpl`` and ``never``: features known not to work on an engine.

And ``written_for``: a body in the SQL of some engines, which says nothing of others and
does not run there.

The first two take the engines' names, the error that must be raised and the reason. A marked
test has to fail with exactly that error; passing is a failure, so that a mark goes
when its gap does.
"""

from __future__ import annotations

import pytest

from tests.plugins.engine import ENGINES, Engine

MARKS = {
    "notimpl": "tique does not do this on these engines yet",
    "never": "these engines can never do this",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "written_for(engines, *, reason): the body is in these engines' SQL"
    )
    for name, meaning in MARKS.items():
        config.addinivalue_line(
            "markers", f"{name}(engines, *, raises, reason): {meaning}"
        )


# Before a run is chosen among the engines of a case: these are none of them.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    known = {engine.name for engine in ENGINES}
    foreign = [item for item in items if not _is_written_for_its_engine(item, known)]
    if foreign:
        config.hook.pytest_deselected(items=foreign)
        left_out = set(foreign)
        items[:] = [item for item in items if item not in left_out]
    for item in items:
        for name in MARKS:
            for mark in item.iter_markers(name):
                _apply(item, _read(item, mark, known))


def _is_written_for_its_engine(item: pytest.Item, known: set[str]) -> bool:
    callspec = getattr(item, "callspec", None)
    engine = None
    if callspec is not None:
        engine = callspec.params.get("engine", callspec.params.get("shared_engine"))
    for mark in item.iter_markers("written_for"):
        engines = set(mark.args[0])
        if not engines <= known or mark.kwargs.keys() != {"reason"}:
            raise pytest.UsageError(
                f"{item.nodeid}: mark 'written_for' takes a list of engines' names "
                "and reason="
            )
        if engine is not None and engine.name not in engines:
            return False
    return True


def _read(
    item: pytest.Item, mark: pytest.Mark, known: set[str]
) -> tuple[set[str], pytest.MarkDecorator]:
    def refuse(what: str) -> pytest.UsageError:
        return pytest.UsageError(f"{item.nodeid}: mark {mark.name!r} {what}")

    if len(mark.args) != 1 or isinstance(mark.args[0], str):
        raise refuse("takes one list of engines' names")
    engines = set(mark.args[0])
    if not engines <= known:
        raise refuse(f"names unknown engines: {sorted(engines - known)}")
    if mark.kwargs.keys() != {"raises", "reason"} or not all(mark.kwargs.values()):
        raise refuse("needs raises= and reason=, and nothing else")
    reason = f"{mark.name}: {mark.kwargs['reason']}"
    return engines, pytest.mark.xfail(
        raises=mark.kwargs["raises"], reason=reason, strict=True
    )


def _apply(
    item: pytest.Item, expectation: tuple[set[str], pytest.MarkDecorator]
) -> None:
    engines, xfail = expectation
    callspec = getattr(item, "callspec", None)
    engine = None
    if callspec is not None:
        engine = callspec.params.get("engine", callspec.params.get("shared_engine"))
    if engine is None:
        raise pytest.UsageError(
            f"{item.nodeid}: marked for engines but takes no engine fixture"
        )
    assert issubclass(engine, Engine)
    if engine.name in engines:
        item.add_marker(xfail)
