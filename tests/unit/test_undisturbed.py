"""P6: work that Ctrl-C does not cut short, with real signals at any moment."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from tests.effort import effort, patience
from tique_backends.concurrency.undisturbed import undisturbed

pytestmark = pytest.mark.engine_free


@pytest.fixture
def interruptions():
    """Has SIGINT raise so many times, and then no more."""
    before = signal.getsignal(signal.SIGINT)
    left = []

    def handle(*_):
        if left:
            left.pop()
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
    yield left
    left.clear()
    signal.signal(signal.SIGINT, before)


def send(times, chance):
    for _ in range(times):
        time.sleep(chance.uniform(0, 0.0004))
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("times", [1, 2])
def test_all_of_it_or_nothing(interruptions, times):
    chance = random.Random(times)
    begun, done, hit = [], [], 0

    def work():
        begun.append(None)
        time.sleep(0.0002)
        done.append(None)

    def attempt():
        nonlocal hit
        try:
            interruptions.extend([None] * times)
            undisturbed(work, 10)
        except KeyboardInterrupt:
            hit += 1
            if times == 1:
                assert len(begun) == len(done)

    for _ in range(effort(400, 5000)):
        sender = threading.Thread(target=send, args=(times, chance))
        sender.start()
        with suppress(KeyboardInterrupt):
            attempt()
        interruptions.clear()
        sender.join()
        # It goes on to its end with any outcome for its caller.
        while len(begun) > len(done):
            time.sleep(0.001)
    assert hit > 20
    assert len(done) > 20


def test_its_error_is_raised():
    def work():
        raise KeyError(1)

    with pytest.raises(KeyError):
        undisturbed(work, 1)


def test_the_wait_is_bounded(interruptions):
    """The server hangs: Ctrl-C ends it all the same, and the next call works."""
    hanging = threading.Event()
    interruptions.append(None)
    timer = threading.Timer(0.1, send, (1, random.Random(0)))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        undisturbed(hanging.wait, 0.5)
    assert 0.5 < time.monotonic() - started < patience(5)
    done = []
    undisturbed(lambda: done.append(None), 1)
    hanging.set()
    assert done


FORKING = """
import os, sys
from tique_backends.concurrency.undisturbed import undisturbed
done = []
undisturbed(lambda: done.append(1), 1)
child = os.fork()
if not child:
    undisturbed(lambda: done.append(2), 1)
    os._exit(len(done))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_after_a_fork():
    child = subprocess.run(
        [sys.executable, "-c", FORKING],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert child.stdout.strip() == "2"
