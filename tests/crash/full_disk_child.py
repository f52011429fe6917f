"""A process whose files may not grow, for a time.

    python -m tests.crash.full_disk_child URL FOLDER WHAT ROOM

Prints a JSON object: the commits that were acknowledged, the errors, and what it found when
its files may grow again.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path

import tique

DDL = {
    "CREATE TABLE AS": "CREATE TABLE made AS SELECT i AS id, repeat('x', 999) || i AS v "
    "FROM range(3000) AS r(i)",
    "CREATE INDEX": "CREATE INDEX made ON t (n, v)",
    "CREATE UNIQUE INDEX": "CREATE UNIQUE INDEX made ON t (v)",
    "ADD COLUMN": "ALTER TABLE t ADD COLUMN made VARCHAR DEFAULT repeat('y', 2000)",
    "ALTER TYPE": "ALTER TABLE t ALTER COLUMN n TYPE VARCHAR USING repeat('z', 2000) || n",
}
FAILURES = 4


def limit(size):
    """Let no file be larger; the kernel refuses such a write with EFBIG."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


def fill(connection, acknowledged, refused):
    """Commit rows, one or many at a time, until some are refused."""
    number = 1000
    while len(refused) < FAILURES:
        count = 2500 if number % 7 == 0 else 1
        try:
            connection.execute(
                f"INSERT INTO t SELECT i, 0, repeat('x', 500) || i "
                f"FROM range({number}, {number + count}) AS r(i)"
            )
            acknowledged.append([number, count])
        except tique.Error as error:
            refused.append(f"{type(error).__name__}: {error}"[:300])
        number += count


def usable(connection, url):
    """The connection, or another one if it has to be opened anew; it works."""
    try:
        use(connection)
    except tique.Error as error:
        connection.close()
        connection = tique.connect(url, autocommit=True)
        use(connection)
        return connection, f"{type(error).__name__}: {error}"[:300]
    return connection, None


def use(connection):
    connection.execute("DELETE FROM t WHERE id = 0")
    connection.execute("INSERT INTO t (id, n) VALUES (0, 1)")
    connection.checkpoint()
    assert connection.execute("SELECT n FROM t WHERE id = 0").fetchone() is not None
    connection.execute("DELETE FROM t WHERE id = 0")


def main(url, folder, what, room):
    connection = tique.connect(url, autocommit=True, checkpoint_rows=500)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, v VARCHAR)")
    connection.execute(
        "INSERT INTO t SELECT i, i, repeat('v', 200) || i FROM range(1, 1000) AS r(i)"
    )
    connection.checkpoint()
    acknowledged, refused = [], []
    limit(max(path.stat().st_size for path in Path(folder).iterdir()) + int(room))
    if what == "commits":
        fill(connection, acknowledged, refused)
    else:
        try:
            connection.execute(DDL[what])
        except tique.Error as error:
            refused.append(f"{type(error).__name__}: {error}"[:300])
        else:
            acknowledged.append(what)
    limit(resource.RLIM_INFINITY)
    connection, again = usable(connection, url)
    (count,) = connection.execute("SELECT count(*) FROM t").fetchone()
    connection.close()
    print(
        json.dumps(
            {
                "acknowledged": acknowledged,
                "refused": refused,
                "again": again,
                "count": count,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
