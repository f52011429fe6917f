"""What Prometheus reads of a database, and a status that is shown again."""

from __future__ import annotations

import threading
from math import isfinite

import pytest
from prometheus_client.parser import text_string_to_metric_families

import tique


def read(text):
    """The samples, by name and labels; the parser refuses what is no exposition."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_an_applications_own_page(engine):
    """P11: it has names of tables, and no values."""
    with engine.connect(checkpoint="manual") as connection:
        connection.execute('CREATE TABLE "b ""c" (id INTEGER PRIMARY KEY, v INTEGER)')
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(20))")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (1, 'secret'), (2, 'secret')")
        connection.commit()
        connection.execute("SELECT * FROM t").fetchall()
        text = connection.status().prometheus()
        found = read(text)
        connection.rollback()
        connection.checkpoint()
        after = read(connection.status().prometheus())
    schema = engine.schema
    assert "secret" not in text
    assert found["tique_cached_versions", ("table", f"{schema}.t")] == 2
    assert found["tique_cached_versions", ("table", f'{schema}.b "c')] == 0
    assert found["tique_open_transactions",] == 1
    assert 0 <= found["tique_oldest_snapshot_age_seconds",] < 300
    assert found["tique_cts",] >= found["tique_lambda",]
    assert after["tique_cached_versions", ("table", f"{schema}.t")] == 0
    assert after["tique_checkpoint_rounds_total",] == 1
    assert after["tique_checkpoint_folded_versions_total",] == 2
    assert after["tique_checkpoint_failing",] == 0
    assert ("tique_cache_hits_total", ("cache", "rows")) in found
    assert all(map(isfinite, found.values()))


def test_conflicts_are_counted_by_table(engine):
    with engine.connect() as one, engine.connect() as other:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        one.execute("INSERT INTO t VALUES (1, 0)")
        one.commit()
        for connection in (one, other):
            (value,) = connection.execute("SELECT v FROM t WHERE id = 1").fetchone()
            connection.execute("UPDATE t SET v = %s WHERE id = 1", (value + 1,))
        one.commit()
        with pytest.raises(tique.SerializationError):
            other.commit()
        found = read(one.status().prometheus())
    assert found["tique_hot_key_conflicts", ("table", f"{engine.schema}.t")] == 1


def test_the_command(run, adopted):
    found = read(run("status", adopted, "--prometheus"))
    assert found["tique_processes",] == 1
    assert found["tique_cached_versions", ("table", "main.account")] == 0


def test_a_status_that_is_shown_again(run, adopted):
    shown = run("status", adopted, "--watch", "0.01", "--count", "3")
    assert shown.count("main.account") == 3


@pytest.mark.parametrize(
    "options",
    [
        ("--json", "--prometheus"),
        ("--watch", "1", "--json"),
        ("--watch", "0"),
        ("--count", "1"),
    ],
)
def test_wrong_usage(run, adopted, options):
    assert "Error" in run("status", adopted, *options, code=2)


def test_commits_conflicts_and_retries(engine):
    """Each is counted once; a phase has one entry for each group commit."""
    with engine.connect(checkpoint="manual") as one, engine.connect() as other:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        one.execute("INSERT INTO t VALUES (1, 0)")
        one.commit()
        before = one.status().commits
        for connection in (one, other):
            (value,) = connection.execute("SELECT v FROM t WHERE id = 1").fetchone()
            connection.execute("UPDATE t SET v = %s WHERE id = 1", (value + 1,))
        one.commit()
        with pytest.raises(tique.SerializationError):
            other.commit()
        other.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        other.commit()
        status = one.status()
        found = read(status.prometheus())
        one.checkpoint()
        lag = one.status().checkpoint.lag
    commits = status.commits
    assert commits.committed - before.committed == 2
    assert (commits.conflicts, commits.retries) == (1, 1)
    assert found["tique_commits_total",] == commits.committed
    assert found["tique_conflicts_total",] == found["tique_retries_total",] == 1
    appended = {p.name: p.count for p in commits.phases}["append"]
    assert appended - {p.name: p.count for p in before.phases}["append"] == 2
    name = "tique_commit_phase_seconds"
    for phase in commits.phases:
        labels = ("phase", phase.name)
        assert 0 < phase.count == found[f"{name}_count", labels]
        assert found[f"{name}_bucket", ("le", "+Inf"), labels] == phase.count
        assert 0 < phase.seconds == found[f"{name}_sum", labels]
        counts = [count for _, count in phase.buckets]
        assert counts == sorted(counts)
        assert counts[-1] <= phase.count
    assert found["tique_checkpoint_lag",] == status.checkpoint.lag >= 2
    assert lag == 0


def test_merges_are_counted(engine):
    with engine.connect() as one, engine.connect() as other:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        one.execute("INSERT INTO t VALUES (1, 0)")
        one.commit()
        for connection in (one, other):
            connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        one.commit()
        other.commit()
        commits = one.status().commits
    assert (commits.merges, commits.conflicts) == (1, 0)


def test_the_holder_of_the_oldest_snapshot(engine):
    with engine.connect() as one, engine.connect() as other:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        one.commit()
        reader = threading.Thread(
            target=lambda: one.execute("SELECT * FROM t").fetchall(), name='report "x"'
        )
        reader.start()
        reader.join()
        other.execute("SELECT * FROM t").fetchall()
        status = other.status()
        found = read(status.prometheus())
        numbers = one.info.number, other.info.number
        oldest, newest = status.transactions
    assert (oldest.connection, newest.connection) == numbers
    assert oldest.thread == 'report "x"'
    assert newest.thread == threading.current_thread().name
    labels = ("connection", f"{numbers[0]}"), ("thread", 'report "x"')
    assert found[("tique_oldest_snapshot_holder", *labels)] == 1
