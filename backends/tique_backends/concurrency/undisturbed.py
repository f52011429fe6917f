"""Calls that a signal handler does not cut short.

Python runs signal handlers in the main thread, between any two of its instructions, and
a handler's exception (KeyboardInterrupt) ends the call that runs there: the outcome of
a call to a server is not known then, and a structure in memory is left half changed. So
the main thread has such work done by another thread, and waits for it.

Argument
--------
``claim`` is taken once: by the thread that does the work, which then does all of it, or
by the main thread when it is interrupted first, and then none of it is done. An
interrupted main thread raises only when the work has ended, or after ``patience``: that
wait is bounded if the server hangs (P6). Interruptions that follow the first one while
it waits have no further effect. If one comes before it waits, the work still goes on to
its end; the caller cannot rely on having seen that.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_Outcome = TypeVar("_Outcome")

_PATIENCE = 20.0


class _Call(Generic[_Outcome]):
    """Work of another thread, and how it ended."""

    def __init__(self, work: Callable[[], _Outcome]) -> None:
        self._work = work
        self._claim = threading.Lock()
        self._under_way = threading.Lock()
        self._under_way.acquire()
        self._is_over = False
        self._outcome: _Outcome | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        if self._claim.acquire(blocking=False):
            try:
                self._outcome = self._work()
            except BaseException as error:
                self._error = error
            finally:
                self._is_over = True
                self._under_way.release()

    def wait(self) -> None:
        self._under_way.acquire()

    def outcome(self) -> _Outcome:
        """Return the work's result, when it is over, or raise its exception."""
        if self._error is not None:
            raise self._error
        return cast("_Outcome", self._outcome)

    def give_up(self, patience: float) -> bool:
        """Take the work back, or wait for its end, whatever is raised meanwhile.

        Returns False if it has not ended in time.
        """
        deadline = time.monotonic() + patience
        # Locks that were taken at the moment of an interruption tell nothing any more.
        while not self._is_over and not self._claim.acquire(blocking=False):
            # An exception here says the same as the one that is raised already.
            with suppress(BaseException):
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._under_way.acquire(timeout=left)
        return True


class _Helper:
    """The thread that works for the main thread; it ends with the process."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call[Any]] = SimpleQueue()
        threading.Thread(
            target=self._run, name="tique-undisturbed", daemon=True
        ).start()

    def _run(self) -> None:
        while True:
            self.calls.get().run()


_helper: _Helper | None = None


def _forget_helper() -> None:
    """Let the next call make a new helper: this one is busy, or was not forked."""
    global _helper
    _helper = None


os.register_at_fork(after_in_child=_forget_helper)


def undisturbed(
    work: Callable[[], _Outcome],
    patience: float = _PATIENCE,
    stop: Callable[[], None] | None = None,
) -> _Outcome:
    """Do work of which a signal handler of this process interrupts nothing.

    Parameters
    ----------
    work
        The function to call. It keeps results that must not get lost by itself, before
        it returns: an interrupted caller gets no outcome. It must not need a lock that
        only its holder can take again.
    patience
        Seconds that an interrupted caller waits for its end.
    stop
        Called when the caller is interrupted, to have the work fail soon; by another
        thread, as it may need this one's helper, and locks that the work has.

    Returns
    -------
    object
        The work's result.

    Raises
    ------
    BaseException
        The work's exception; or else a signal handler's, when the work is done, was not
        begun, or has taken too long.
    """
    global _helper
    if threading.current_thread() is not threading.main_thread():
        return work()
    call = _Call(work)
    try:
        if _helper is None:
            _helper = _Helper()
        _helper.calls.put(call)
        call.wait()
    except BaseException:
        stopper = None if stop is None else _started(stop)
        if not call.give_up(patience):
            _forget_helper()
        if stopper is not None:
            # It must not meet the caller's next work.
            stopper.join(patience)
        raise
    return call.outcome()


def _started(stop: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        with suppress(Exception):
            stop()

    thread = threading.Thread(target=run, name="tique-stopping", daemon=True)
    thread.start()
    return thread
