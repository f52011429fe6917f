"""P6: a long SERIALIZABLE transaction is committed at last, whatever short ones do."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import tique

MOST_ATTEMPTS = 4
"""It has a turn at the tables from its second loss in a row on; a busy machine may end one."""


def test_it_is_not_starved(engine):
    long = engine.connect(isolation_level="SERIALIZABLE")
    long.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    long.execute("CREATE TABLE report (id INTEGER PRIMARY KEY, total INTEGER)")
    long.execute("INSERT INTO t VALUES (0, 0), (1, 0), (2, 0), (3, 0)")
    long.commit()
    others = [engine.connect() for _ in range(2)]
    done, counts = threading.Event(), [0, 0]

    def write(number):
        connection = others[number]
        while not done.is_set():
            try:
                connection.execute("UPDATE t SET n = n + 1 WHERE id = %s", (number,))
                connection.commit()
                counts[number] += 1
            except tique.SerializationError:
                connection.rollback()

    attempts = []
    with ThreadPoolExecutor(2) as pool:
        working = [pool.submit(write, number) for number in range(2)]
        try:
            while not all(counts):
                time.sleep(0.01)
            for report in range(3):
                attempts.append(0)
                while attempts[-1] < 20:
                    attempts[-1] += 1
                    try:
                        ((total,),) = long.execute("SELECT sum(n) FROM t").fetchall()
                        time.sleep(0.05)
                        long.execute(
                            "INSERT INTO report VALUES (%s, %s)", (report, total)
                        )
                        long.commit()
                        break
                    except tique.SerializationError:
                        long.rollback()
        finally:
            done.set()
        for each in working:
            each.result()
    assert max(attempts) <= MOST_ATTEMPTS
    assert max(attempts) > 1
