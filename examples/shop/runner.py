"""Clients that work at the same time, and what they got done."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from random import Random
from statistics import quantiles
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from examples.shop.audit import faults
from examples.shop.database import open_engine, upgrade
from examples.shop.models import Customer
from examples.shop.work import MIX, fill
from tique.sqlalchemy import retrying
from tique.sqlalchemy.retry import is_conflict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from examples.shop.work import Done, Known

ATTEMPTS = 100


@dataclass
class Tally:
    """One kind of transaction."""

    latencies: list[float] = field(default_factory=list)
    """Seconds of each that was committed, with all its attempts."""
    conflicts: int = 0
    """Attempts that lost."""
    idle: int = 0
    """Transactions that found nothing to do."""
    refused: int = 0
    """Transactions that a constraint refused."""


@dataclass
class Report:
    """What a run did, and what was wrong in the end."""

    tallies: dict[str, Tally]
    seconds: float
    faults: list[str]

    @property
    def committed(self) -> int:
        """Transactions that changed or read something."""
        return sum(len(tally.latencies) for tally in self.tallies.values())

    def lines(self) -> Iterable[str]:
        """A table."""
        yield (
            f"{'transaction':<12}{'committed':>10}{'per s':>8}{'conflicts':>10}"
            f"{'idle':>7}{'refused':>8}{'p50 ms':>8}{'p99 ms':>8}"
        )
        everything = Tally()
        for tally in self.tallies.values():
            everything.latencies += tally.latencies
            everything.conflicts += tally.conflicts
            everything.idle += tally.idle
            everything.refused += tally.refused
        for name, tally in [*self.tallies.items(), ("all", everything)]:
            done = len(tally.latencies)
            cuts = quantiles(tally.latencies, n=100) if done > 1 else [0.0] * 99
            yield (
                f"{name:<12}{done:>10}{done / self.seconds:>8.1f}{tally.conflicts:>10}"
                f"{tally.idle:>7}{tally.refused:>8}"
                f"{cuts[49] * 1000:>8.1f}{cuts[98] * 1000:>8.1f}"
            )


def run(url: str, *, threads: int = 8, seconds: float = 30.0, seed: int = 1) -> Report:
    """Make a shop in an empty database, let clients work in it, and look at it.

    Raises
    ------
    ValueError
        If the database has a shop with customers already.
    """
    engine = open_engine(url, threads)
    sessions = sessionmaker(engine)
    try:
        upgrade(engine)
        with sessions() as session:
            if session.scalar(select(func.count()).select_from(Customer)):
                raise ValueError("there are customers already: give an empty database")
        known = retrying(sessions)(fill)
        tallies = {name: Tally() for name in MIX}
        errors: list[BaseException] = []
        begun = time.monotonic()
        clients = [
            threading.Thread(
                target=_client,
                args=(
                    sessions, known, tallies, errors, begun + seconds,
                    Random(f"{seed} {number}"),  # noqa: S311 - not for secrets
                ),
            )
            for number in range(threads)
        ]  # fmt: skip
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        elapsed = time.monotonic() - begun
        if errors:
            raise errors[0]
        with sessions() as session:
            return Report(tallies, elapsed, faults(session, known))
    finally:
        engine.dispose()


def _client(
    sessions: sessionmaker[Session],
    known: Known,
    tallies: dict[str, Tally],
    errors: list[BaseException],
    end: float,
    chance: Random,
) -> None:
    names = list(MIX)
    weights = [weight for weight, _ in MIX.values()]
    try:
        while True:
            (name,) = chance.choices(names, weights)
            _transact(sessions, known, name, tallies[name], chance)
            if time.monotonic() > end or errors:
                break
    except BaseException as error:
        errors.append(error)


def _transact(
    sessions: sessionmaker[Session],
    known: Known,
    name: str,
    tally: Tally,
    chance: Random,
) -> None:
    attempts = 0

    def work(session: Session) -> Done | None:
        nonlocal attempts
        attempts += 1
        return MIX[name][1](session, chance, known)

    begun = time.monotonic()
    try:
        done = retrying(sessions, attempts=ATTEMPTS)(work)
    except IntegrityError:
        # A customer or an order went while something was being made of it.
        done = None
        tally.refused += 1
    except DBAPIError as error:
        if not is_conflict(error):
            raise
        raise AssertionError(f"{name}: lost {attempts} times") from error
    else:
        if done is None:
            tally.idle += 1
        else:
            known.note(done)
            tally.latencies.append(time.monotonic() - begun)
    tally.conflicts += attempts - 1
