"""P1, P2: a process that follows misses no commit that its snapshot covers."""

from __future__ import annotations

import threading

import psycopg


def test_the_log_is_read_after_sts(database):
    """A commit that ends while the statement is under way is in both or in neither."""
    connection = database.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.commit()
    native = psycopg.connect(database.place, autocommit=True)
    ((client,),) = native.execute("SELECT client FROM tique.clients").fetchall()
    ((before,),) = native.execute("SELECT tique.sts()").fetchall()
    answers = []

    def follow():
        answers.extend(
            native.execute(
                "SELECT f.sts, f.stamps FROM (SELECT pg_sleep(1) OFFSET 0) AS _s, "
                f"LATERAL tique.follow({client} + 0 * length(_s::text), {before}) AS f"
            ).fetchall()
        )

    thread = threading.Thread(target=follow)
    thread.start()
    for number in range(20):
        connection.execute("INSERT INTO t VALUES (%s)", (number,))
        connection.commit()
    thread.join()
    native.close()
    ((sts, stamps),) = answers
    assert sts == before + 20
    assert stamps == list(range(before + 1, sts + 1))
