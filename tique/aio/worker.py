"""The thread that makes the calls of one asynchronous connection, in their order.

No engine has a driver that waits without a thread, and a statement of tique's is more than
one of the engine's. So each connection has a thread. Calls are queued; the thread makes one
after the other; the event loop waits for futures and is never held up.

Argument
--------
*Who has a call.* It is QUEUED, RUNNING, ENDED or WITHDRAWN; its lock guards the changes, which
go one way: the thread takes it (RUNNING) and ends it, a cancelled task withdraws one that is
QUEUED. So a call is made at most once, and one that was withdrawn is never made.

*A task is cancelled*

* before its call began: the call is withdrawn, and nothing has happened;
* while it runs: it is *forsaken*. A thread of its own (the request may ask the server by another
  connection) asks the engine to stop, and again, as a request between two of the engine's
  statements is lost. The task waits for the end of the call, so that the connection is free
  when CancelledError arrives. More cancels of the task meanwhile change nothing;
* after it ended, before the task went on: the statement has taken effect, and the
  application does not learn it.

*No request stops another call.* It is sent under the call's lock, and only if that call has not
ended; the thread ends a call under the same lock before it takes the next.

*The transaction has failed then* (25P02 for all but ROLLBACK [TO], as in PostgreSQL),
in the second case and the third: whether the statement has taken effect, the application does
not know, and what comes after must not be committed without it, nor with it done twice. The
thread says so before it takes the next call, or at a task's turn in the queue; by the
transaction's number, so that the next transaction is not meant. In autocommit
the statement is done or not done. A COMMIT is too: ``outcome(txid)`` tells.

*Calls that end something* (rollback, close, leaving a block) are neither withdrawn nor
stopped: what they end would stay. A cancelled task waits for them, too.

*Every wait is bounded (P6).* A call that does not end ``PATIENCE`` seconds after the cancel keeps
the thread, and the connection is given up: further calls are refused (08006), and the
thread closes it when the call ends.

*Close.* It is queued like any call; calls before it are made, later ones are refused at once
(the flag and the queue change together, under a lock). The thread ends behind it. If the
connection is garbage-collected instead, the thread gets an end of the queue, and lets go of
the connection, whose finalizer does the rest. At the interpreter's end the thread, a daemon,
is parked as any other (:mod:`tique.database.process`).

*If the event loop is closed* before a call ends, its outcome goes nowhere, and the thread goes on.
A forked process has no thread: the connection refuses before anything is queued, and to
close it does nothing.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from enum import Enum, auto
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique.connection.connection import Connection

PATIENCE = 30.0
"""Seconds that a cancelled task waits for the end of its call."""

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 0.5
"""Seconds between requests to stop a call."""

_Result = TypeVar("_Result")


class _State(Enum):
    QUEUED = auto()
    RUNNING = auto()
    ENDED = auto()
    WITHDRAWN = auto()


class _Call(Generic[_Result]):
    """One call, and the future that tells the task its outcome.

    ``ends`` says that it ends something: it is neither withdrawn nor stopped.
    """

    def __init__(self, work: Callable[[], _Result], *, ends: bool = False) -> None:
        self.ends = ends
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._state = _State.QUEUED
        self._is_forsaken = False
        self.future: asyncio.Future[_Result] = self._loop.create_future()
        self.txid: int | None = None
        """The transaction that was open at its end."""

    def make(self, worker: Worker) -> None:
        """Make it, unless it was withdrawn; in the connection's thread."""
        with self._lock:
            if self._state is _State.WITHDRAWN:
                return
            self._state = _State.RUNNING
        result: Any = None
        error: BaseException | None = None
        try:
            result = self._work()
        except BaseException as raised:
            error = raised
        if worker.connection is not None:
            self.txid = worker.connection.txid
        with self._lock:
            self._state = _State.ENDED
            is_forsaken = self._is_forsaken
        if is_forsaken:
            result = error = None
            if not self.ends:
                worker.fail(self.txid)
        # Its outcome goes nowhere if the loop is closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(_settle, self.future, result, error)
        # A traceback refers to this frame.
        del result, error

    def forsake(self) -> _State:
        """Note that the task was cancelled; the state that comes of it.

        Unless it is over, ``future`` is another one, which is done at its end.
        """
        with self._lock:
            if self._state is _State.QUEUED and not self.ends:
                self._state = _State.WITHDRAWN
            elif self._state is not _State.ENDED:
                self.future = self._loop.create_future()
                self._is_forsaken = True
            return self._state

    def stop(self, connection: Connection[Any]) -> None:
        """Ask for its end until it has ended; in a thread of its own."""
        pause = _FIRST_PAUSE
        while True:
            with self._lock:
                if self._state is _State.ENDED:
                    return
                with suppress(errors.Error):
                    connection.cancel()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _settle(
    future: asyncio.Future[Any], result: Any, error: BaseException | None
) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


async def _is_done_in_time(future: asyncio.Future[Any]) -> bool:
    """Wait for a future, whatever cancels the task; at most ``PATIENCE`` seconds."""
    deadline = time.monotonic() + PATIENCE
    while not future.done() and (left := deadline - time.monotonic()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait((future,), timeout=left)
    return future.done()


class Worker:
    """A thread, and the connection that it has."""

    def __init__(self) -> None:
        self.connection: Connection[Any] | None = None
        self._calls: SimpleQueue[_Call[Any] | None] = SimpleQueue()
        self._mutex = threading.Lock()
        self._refusal: Callable[[], errors.Error] | None = None
        threading.Thread(target=self._serve, name="tique-async", daemon=True).start()

    def _serve(self) -> None:
        while True:
            call = self._calls.get()
            if call is None:
                return
            call.make(self)
            del call

    # In the event loop

    @property
    def is_closed(self) -> bool:
        """Whether calls are refused."""
        return self._refusal is not None

    @property
    def is_given_up(self) -> bool:
        """Whether a call did not end."""
        return self._refusal is _given_up

    async def run(self, work: Callable[[], _Result], *, ends: bool = False) -> _Result:
        """Have the thread do something, and return its outcome.

        Parameters
        ----------
        work
            What to do with the connection.
        ends
            Whether it ends something, and is done even if the task is cancelled.
        """
        call = _Call(work, ends=ends)
        self._put(call)
        try:
            return await call.future
        except asyncio.CancelledError:
            await self._forsake(call)
            raise

    async def _forsake(self, call: _Call[Any]) -> None:
        state = call.forsake()
        if state is _State.WITHDRAWN:
            return
        if state is _State.ENDED:
            if call.txid is not None and not call.ends:
                with suppress(errors.Error):
                    self._put(_Call(lambda: self.fail(call.txid), ends=True))
            return
        if self.connection is not None and not call.ends:
            threading.Thread(
                target=call.stop, args=(self.connection,), daemon=True
            ).start()
        if not await _is_done_in_time(call.future):
            closing = self._shut(_given_up)
            if closing is not None:
                closing.forsake()

    async def close(self) -> None:
        """Close the connection after the calls that are queued."""
        call = self._shut(_closed)
        if call is not None:
            try:
                await call.future
            except asyncio.CancelledError:
                await self._forsake(call)
                raise

    def dismiss(self) -> None:
        """Let the thread end, and leave the connection; from any thread."""
        self._calls.put(None)

    def terminate(self) -> None:
        """Refuse further calls, and let the thread end; take no lock, as a finalizer."""
        self._refusal = self._refusal or _closed
        self.dismiss()

    def _put(self, call: _Call[Any]) -> None:
        if self.connection is not None and self._refusal is None:
            # In a process that was forked there is no thread.
            self.connection._execution.check_usable()
        with self._mutex:
            if self._refusal is not None:
                raise self._refusal()
            self._calls.put(call)

    def _shut(self, refusal: Callable[[], errors.Error]) -> _Call[None] | None:
        """Refuse further calls, and close the connection after those that are queued."""
        if self.connection is not None and self.connection._execution.is_inherited:
            return None
        with self._mutex:
            if self._refusal is not None:
                return None
            self._refusal = refusal
            call = _Call(self._close, ends=True)
            self._calls.put(call)
            self._calls.put(None)
            return call

    # In the thread

    def open(self, connect: Callable[[], Connection[Any]]) -> None:
        """Make the connection."""
        self.connection = connect()

    def fail(self, txid: int | None) -> None:
        """Let a transaction fail, if it is still open."""
        if txid is not None and self.connection is not None:
            self.connection._execution.fail(txid)

    def _close(self) -> None:
        if self.connection is not None:
            self.connection.close()


def _closed() -> errors.Error:
    return errors.InterfaceError("the connection is closed", sqlstate="08003")


def _given_up() -> errors.Error:
    return errors.OperationalError(
        f"a cancelled call has not ended for {PATIENCE:g} s, and its connection was "
        "given up: connect again",
        sqlstate="08006",
    )
