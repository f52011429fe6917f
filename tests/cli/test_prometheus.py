"""What Prometheus reads of a database, and a status that is shown again."""

from __future__ import annotations

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
