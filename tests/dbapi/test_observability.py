"""OpenTelemetry's spans and metrics, and what they must not have in them (P11)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import tique
from tique import _observer
from tique.observability import instrument, uninstrument

SECRET = "s3cr3t"


class Telemetry:
    def __init__(self):
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider(metric_readers=[self.reader])

    def spans(self, name=None):
        """The finished spans of that name, and forget all."""
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        return [span for span in found if name in (None, span.name)]

    def points(self):
        return points(self.reader)

    def value(self, name, **labels):
        return value(self.points(), name, **labels)


def points(reader):
    """The points of a collection, by the metric's name."""
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def value(points, name, **labels):
    (found,) = (
        point.value
        for point in points[name]
        if labels.items() <= point.attributes.items()
    )
    return found


@pytest.fixture
def telemetry():
    telemetry = Telemetry()
    instrument(tracer_provider=telemetry.tracers, meter_provider=telemetry.meters)
    yield telemetry
    uninstrument()
    telemetry.tracers.shutdown()
    telemetry.meters.shutdown()


@pytest.fixture
def conn(engine):
    with engine.connect(checkpoint="manual") as conn:
        conn.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(20))")
        conn.commit()
        yield conn


def test_a_transaction(telemetry, engine, conn):
    telemetry.spans()
    conn.execute("INSERT INTO t VALUES (%s, %s)", (1, SECRET))
    conn.execute("SELECT v FROM t WHERE id = 1").fetchall()
    txid = conn.txid
    conn.commit()
    found = telemetry.spans()
    kinds = [
        span.attributes["tique.statement.kind"]
        for span in found
        if span.name == "tique.statement"
    ]
    assert kinds == ["InsertRows", "PointSelect"]
    (commit,) = (span for span in found if span.name == "tique.commit")
    assert commit.attributes == {"db.system.name": engine.name, "tique.txid": txid}
    (group,) = (span for span in found if span.name == "tique.group_commit")
    assert group.attributes["tique.transactions"] == 1
    assert group.parent.span_id == commit.context.span_id
    assert commit.start_time <= group.start_time <= group.end_time
    phases = [
        span
        for span in found
        if span.parent is not None and span.parent.span_id == group.context.span_id
    ]
    assert [p.name for p in phases] == [
        "tique.certify",
        "tique.append",
        "tique.publish",
    ]
    assert phases[0].start_time == group.start_time
    assert phases[0].end_time == phases[1].start_time
    assert phases[1].end_time == phases[2].start_time
    assert phases[2].end_time == group.end_time
    assert SECRET not in "".join(span.to_json() for span in found)


def test_an_error_is_its_class_and_sqlstate(telemetry, conn):
    conn.execute("INSERT INTO t VALUES (%s, %s)", (1, SECRET))
    conn.commit()
    telemetry.spans()
    with pytest.raises(tique.IntegrityError) as raised:
        conn.execute("INSERT INTO t VALUES (1, %s)", (SECRET,))
    (span,) = telemetry.spans("tique.statement")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == type(raised.value).__name__
    assert span.attributes["db.response.status_code"] == raised.value.sqlstate
    assert span.status.description is None
    assert not span.events


def test_an_error_of_the_engine_is_told_as_the_application_gets_it(telemetry, conn):
    conn.execute("INSERT INTO t VALUES (1, %s)", (SECRET,))
    telemetry.spans()
    with pytest.raises(tique.Error) as raised:
        conn.execute("SELECT CAST(v AS INTEGER) FROM t").fetchall()
    (span,) = telemetry.spans("tique.statement")
    assert span.attributes["error.type"] == type(raised.value).__name__
    assert SECRET not in span.to_json()


def test_a_conflict(telemetry, engine, conn):
    conn.execute("INSERT INTO t VALUES (1, 'a')")
    conn.commit()
    with engine.connect() as other:
        for each in (conn, other):
            each.execute("SELECT v FROM t WHERE id = 1").fetchall()
            each.execute("UPDATE t SET v = 'b' WHERE id = 1")
        conn.commit()
        telemetry.spans()
        with pytest.raises(tique.SerializationError):
            other.commit()
        (commit,) = telemetry.spans("tique.commit")
        assert commit.attributes["error.type"] == "SerializationError"
        assert commit.attributes["db.response.status_code"] == "40001"
        assert telemetry.value("tique.conflicts") == 1


def test_a_checkpoint(telemetry, conn):
    conn.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    conn.commit()
    telemetry.spans()
    conn.checkpoint()
    (span,) = telemetry.spans("tique.checkpoint")
    assert span.attributes["tique.versions"] == 2


def test_metrics(telemetry, engine, conn):
    """They are the status' numbers; each collection has those of its own moment."""
    table = f"{engine.schema}.t"
    before = conn.status().commits.committed
    for number in (1, 2, 3):
        conn.execute("INSERT INTO t VALUES (%s, %s)", (number, SECRET))
        conn.commit()
        # On servers the process follows its own commit when it begins again.
        conn.execute("SELECT * FROM t").fetchall()
        conn.rollback()
        assert telemetry.value("tique.cached_versions", table=table) == number
        assert telemetry.value("tique.commits") == before + number
    points = telemetry.points()
    assert SECRET not in str(points)
    (phase,) = (
        point
        for point in points["tique.commit_phase"]
        if point.attributes["phase"] == "append"
    )
    status = conn.status()
    appended = {each.name: each for each in status.commits.phases}["append"]
    assert 3 <= phase.count <= appended.count
    assert 0 < phase.sum <= appended.seconds + 1e-9
    assert phase.explicit_bounds == tuple(bound for bound, _ in appended.buckets)
    (sts,) = points["tique.sts"]
    assert sts.attributes["db.namespace"] == status.database
    conn.checkpoint()
    assert telemetry.value("tique.cached_versions", table=table) == 0


@pytest.mark.usefixtures("telemetry")
def test_two_collections_at_the_same_time(conn):
    """One that has begun in the midst of another gets all metrics."""

    def collect(name):
        return [found.value for found in _observer.observer._observe(name, None)]

    for number in (1, 2):
        conn.execute("INSERT INTO t VALUES (%s, 'a')", (number,))
        conn.commit()
        assert collect("commits") == [conn.status().commits.committed]
    assert collect("sts")


def test_a_database_that_is_closed_has_no_metrics(telemetry, engine):
    with engine.connect():
        assert "tique.sts" in telemetry.points()
    engine.let_go()
    assert "tique.sts" not in telemetry.points()


def test_the_end_of_it(telemetry, conn):
    uninstrument()
    telemetry.spans()
    conn.execute("INSERT INTO t VALUES (1, 'a')")
    conn.commit()
    conn.checkpoint()
    assert not telemetry.spans()
    assert "tique.sts" not in telemetry.points()


@pytest.mark.usefixtures("telemetry")
@pytest.mark.engine_free
def test_twice_is_refused():
    with pytest.raises(tique.InterfaceError, match="uninstrument"):
        instrument()


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.one_duckdb
@pytest.mark.duckdb
def test_nothing_is_imported_that_was_not_asked_for():
    done = run(
        "import sys, tique, tique.observability\n"
        "with tique.connect('duckdb:///:memory:') as conn:\n"
        "    conn.execute('CREATE TABLE t (id INTEGER)')\n"
        "    conn.execute('INSERT INTO t VALUES (1)')\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
        "tique.observability.instrument()\n"
        "print('opentelemetry.trace' in sys.modules)\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])\n"
    )
    assert (done.stdout, done.stderr) == ("[]\nTrue\n[]\n", "")


@pytest.mark.engine_free
def test_the_extra_is_named():
    done = run(
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from tique.observability import instrument\n"
        "try:\n"
        "    instrument()\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    assert done.stdout.startswith("InterfaceError"), done.stderr
    assert "pip install 'tique[otel]'" in done.stdout
