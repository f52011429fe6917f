"""P5, P12: detaching a database leaves all of tique's in it, or nothing, at every moment.

As for a statement of DDL: before a call of the engine, or when its reply is lost.
"""

from __future__ import annotations

import random
from contextlib import closing

import pytest

import tique
from tests.crash.definitions import BASE, use
from tests.crash.interrupting import many, moments
from tests.effort import effort


class Detaching:
    """A database that is detached as a whole, and adopted, again and again."""

    def __init__(self, engine, interrupt, *, is_open):
        self.engine, self.interrupt, self.is_open = engine, interrupt, is_open
        self.counted = 0
        with engine.connect(autocommit=True) as connection:
            for statement in BASE:
                connection.execute(statement)

    def attempt(self, point=0, when="before", how=None):
        """Detach it, beside an open connection or none; the error."""
        self.keeper = self.engine.connect(autocommit=True, checkpoint="manual")
        self.keeper.execute("UPDATE side SET n = n + 1 WHERE id = 1")
        self.counted += 1
        if not self.is_open:
            self.keeper.close()
        self.interrupt.arm(point, when, how)
        try:
            tique.detach(self.engine.url)
        except (tique.Error, KeyboardInterrupt) as error:
            return error
        finally:
            self.interrupt.disarm()

    def judge(self, failure):
        """The engine has all of it, or nothing; and everything goes on."""
        is_usable = self.is_open and self.goes_on()
        is_managed = self.is_managed()
        if failure is None:
            assert not is_managed
        elif not isinstance(failure, tique.OutcomeUnknown | KeyboardInterrupt):
            assert is_managed, f"its error says otherwise: {failure!r}"
        if self.is_open and not isinstance(failure, tique.OutcomeUnknown):
            assert is_usable == is_managed, repr(failure)
        if is_managed:
            with self.engine.connect(autocommit=True) as connection:
                use(connection, "t")
            tique.detach(self.engine.url)
        assert not self.is_managed()
        with closing(self.engine.native()) as native:
            counted = native.execute("SELECT n FROM side").fetchall()
            assert counted == [(self.counted,)]
            assert native.execute("SELECT count(*) FROM t").fetchall() == [(3,)]
        tique.adopt(self.engine.url)

    def is_managed(self):
        with closing(self.engine.native()) as native:
            try:
                native.execute("SELECT version FROM tique.format").fetchall()
            except self.engine.driver.Error:
                return False
            return True

    def goes_on(self):
        """Whether the connection that was open can be used, perhaps when it is opened anew."""
        try:
            for attempt in (1, 2):
                try:
                    use(self.keeper, "t")
                except tique.ProgrammingError as error:
                    if "unknown table" not in str(error):
                        raise
                    return False
                except tique.OperationalError as error:
                    if attempt == 2 or not error.sqlstate.startswith("08"):
                        if "was detached" not in str(error):
                            raise
                        return False
                    self.keeper.close()
                    self.keeper = self.engine.connect(
                        autocommit=True, checkpoint="manual"
                    )
                else:
                    return True
        finally:
            self.keeper.close()


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(effort(300, 850))
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_detaching_everything(engine, interrupt, is_open):
    scene = Detaching(engine, interrupt, is_open=is_open)
    scene.judge(scene.attempt())
    calls = list(interrupt.seen)
    every = moments(calls, engine)
    ending = [
        each
        for each in every
        if any(word in calls[each[0] - 1] for word in ("COMMIT", "DROP "))
    ]
    chance = random.Random(engine.name)
    some = [*chance.sample(ending, min(4, len(ending))), *chance.sample(every, 2)]
    for point, when, how in effort(some, many(calls, engine)):
        try:
            scene.judge(scene.attempt(point, when, how))
        except BaseException as error:
            error.add_note(
                f"{how.__name__} {when} call {point}: {calls[point - 1][:200]}"
            )
            raise
