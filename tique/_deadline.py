"""The time that a statement may take: ``statement_timeout``, for all of it (P12).

*Invariant.* When the time is over, the engine's statement that runs for the application is
stopped, or the next one does not begin, once; and every wait for a row lock fails. So the
application's statement fails, and what undoes it, or a commit that has begun, is not
stopped (:attr:`tique_backends.session.Session.expires`).

A thread waits beside each statement that has a limit. It takes no lock of the connection's,
and ends with the statement; one that is late finds the time of the next statement, and
no time that is over.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique._execution import Execution

_AGAIN = 0.05
_CANCELLED = "57014"


def _overdue() -> errors.OperationalError:
    return errors.OperationalError(
        "canceling statement due to statement timeout", sqlstate=_CANCELLED
    )


@contextmanager
def limited(execution: Execution, seconds: float) -> Iterator[None]:
    """Let the statement in this block take so many seconds.

    Raises
    ------
    OperationalError
        It took longer (SQLSTATE 57014).
    """
    done = threading.Event()
    session = execution.session
    expires = session.expires = time.monotonic() + seconds

    def watch() -> None:
        if done.wait(seconds):
            return
        session.expire(expires)
        while True:
            txid = execution.txid
            if txid is not None:
                execution.database.locks.cancel(txid)
                execution.database.uncommitted.interrupt(txid)
            if done.wait(_AGAIN):
                return

    threading.Thread(target=watch, daemon=True, name="tique-deadline").start()
    try:
        yield
    except errors.SerializationError:
        if time.monotonic() < expires:
            raise
        raise _overdue() from None
    except errors.OperationalError as error:
        if error.sqlstate != _CANCELLED or time.monotonic() < expires:
            raise
        raise _overdue() from error
    finally:
        done.set()
        session.expires = None
