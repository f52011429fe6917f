"""Transactions that others overtake: they commit later, with an earlier snapshot."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager

import tique


@contextmanager
def held_up(engine):
    """Let no commit through; those that begin meanwhile have one snapshot."""
    with engine.connect() as connection:
        committer = connection._database.committer
        with committer.paused(10):
            yield committer


def together(engine, *statements):
    """Run statements in threads, in autocommit; what each raises, or its row count."""
    outcomes = [None] * len(statements)

    def run(number, sql, parameters):
        try:
            with closing(engine.connect(autocommit=True)) as connection:
                cursor = connection.cursor()
                if parameters and isinstance(parameters[0], tuple):
                    cursor.executemany(sql, parameters)
                else:
                    cursor.execute(sql, parameters)
                outcomes[number] = cursor.rowcount
        except tique.Error as error:
            outcomes[number] = type(error)

    threads = []
    with held_up(engine) as committer:
        for number, (sql, *parameters) in enumerate(statements):
            thread = threading.Thread(target=run, args=(number, sql, parameters))
            thread.start()
            threads.append(thread)
            while thread.is_alive() and len(committer._queue) < number + 1:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return outcomes


def committed_together(engine, connections):
    """Commit the transactions of connections in one batch; what each raises."""
    outcomes = [None] * len(connections)

    def commit(number):
        try:
            connections[number].commit()
        except tique.Error as error:
            outcomes[number] = type(error)
            connections[number].rollback()

    with held_up(engine) as committer:
        threads = [
            threading.Thread(target=commit, args=(number,))
            for number in range(len(connections))
        ]
        for number, thread in enumerate(threads):
            thread.start()
            while thread.is_alive() and len(committer._queue) < number + 1:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    return outcomes


def overtaken(engine, statements, others, *, patience=30.0, **options):
    """Run statements in a transaction, others in between; commit both.

    They are run some times before: what they read is in memory then. ``patience`` is the
    other's ``lock_timeout``.
    """
    with (
        engine.connect(**options) as first,
        engine.connect(autocommit=True, lock_timeout=patience) as second,
    ):
        for _ in range(4):
            first.rollback()
            for sql in statements:
                with first.cursor() as cursor:
                    cursor.execute(sql)
                    if cursor.description:
                        cursor.fetchall()
        for sql in others:
            second.execute(sql)
        first.commit()
