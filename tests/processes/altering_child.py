"""A process that counts in a table which another process alters all the time.

    python -m tests.processes.altering_child URL ROW

Says ``counting`` when it has begun, and ``counted`` with the number of acknowledged
increments when its standard input is closed. Two reads of one transaction must agree.
"""

from __future__ import annotations

import sys
import threading

import tique
from tests.processes.bank_child import say

_SUM = "SELECT sum(v), count(*) FROM counter"


def main(url, row):
    ending = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ending.set())).start()
    connection = tique.connect(url)
    counted = 0
    while not ending.is_set():
        try:
            before = connection.execute(_SUM).fetchall()
            connection.execute("UPDATE counter SET v = v + 1 WHERE id = %s", (row,))
            connection.execute("UPDATE counter SET v = v - 1 WHERE id = %s", (row,))
            if connection.execute(_SUM).fetchall() != before:
                say("unexpected", "two reads of one snapshot differ")
            connection.execute("UPDATE counter SET v = v + 1 WHERE id = %s", (row,))
            connection.commit()
        except tique.OperationalError:
            connection.rollback()
        except Exception as error:
            say("unexpected", type(error).__name__, str(error).replace("\n", " "))
            connection.rollback()
        else:
            counted += 1
            if counted == 1:
                say("counting")
    say("counted", counted)
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
