"""P1: values are the same in a replica, in every type that it takes; others are refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from uuid import UUID

import pytest

import tique
from tests.replica.test_replication import caught_up, rows
from tique.checkpoint.replica import ReplicaCheckpointer
from tique_backends.errors import EngineError, ErrorKind

COLUMNS = {
    "a": ("SMALLINT", [-32767, 32767]),
    "b": ("INTEGER", [-5, 5]),
    "c": ("BIGINT", [-(2**62), 2**62]),
    "d": ("NUMERIC(12,2)", [Decimal("-1.10"), Decimal("9999999999.99")]),
    "e": ("NUMERIC(38,0)", [Decimal(-1), Decimal(10**37)]),
    "f": ("REAL", [1.5, -0.25]),
    "g": ("DOUBLE PRECISION", [0.1, -1e300]),
    "h": ("BOOLEAN", [True, False]),
    "i": ("VARCHAR(10)", ["é'\"", ""]),
    "j": ("DATE", [date(1, 1, 1), date(9999, 12, 31)]),
    "k": ("TIMESTAMP", [datetime(2020, 2, 29, 1, 2, 3, 456789), datetime(1, 1, 1)]),
    "l": ("TIME", [time(0, 0, 0), time(23, 59, 59)]),
    "m": ("UUID", [UUID(int=1), UUID(int=2**128 - 1)]),
    "n": (
        "TIMESTAMP WITH TIME ZONE",
        [
            datetime(2020, 1, 1, 12, tzinfo=UTC),
            datetime(1950, 7, 1, 1, 2, 3, 400000, tzinfo=UTC),
        ],
    ),
}


def fill(source, keys):
    names = ", ".join(COLUMNS)
    places = ", ".join(["%s"] * (len(COLUMNS) + 1))
    for number, key in enumerate(keys):
        values = [values[number % 2] for _, values in COLUMNS.values()]
        source.execute(
            f"INSERT INTO kinds (id, {names}) VALUES ({places})", [key, *values]
        )
    source.execute("INSERT INTO kinds (id) VALUES (%s)", [keys[-1] + 1])
    source.commit()


def same(found):
    """Moments in one time zone."""
    return [
        tuple(
            v.astimezone(UTC) if isinstance(v, datetime) and v.tzinfo else v
            for v in row
        )
        for row in found
    ]


@pytest.mark.slow
def test_every_type(shared_engine, source, replicate, reading):
    """Copied, published and folded, NULL too."""
    layout = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    source.execute(f"CREATE TABLE kinds (id INTEGER PRIMARY KEY, {layout})")
    source.commit()
    fill(source, [1, 2])
    replication = replicate()
    fill(source, [11, 12])
    source.execute("UPDATE kinds SET i = 'x' WHERE id = 1")
    source.execute("UPDATE kinds SET n = NULL WHERE id = 2")
    caught_up(replication, source)
    expected = same(rows(source, "SELECT * FROM kinds ORDER BY id"))
    copy, query = reading(), f"SELECT * FROM {shared_engine.schema}.kinds ORDER BY id"
    assert same(rows(copy, query)) == expected
    one = f"SELECT * FROM {shared_engine.schema}.kinds WHERE id = 11"
    assert same(rows(copy, one)) == [row for row in expected if row[0] == 11]
    replication.fold()
    assert same(rows(copy, query)) == expected
    assert not replication.status().stopped


@pytest.mark.written_for(["postgresql"], reason="MonetDB has neither arrays nor NaN")
def test_types_that_are_refused(source, replicate):
    """By name, before anything is copied; a key has no type whose values may differ."""
    source.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, v INTEGER[])")
    source.execute("CREATE TABLE timed (at TIMESTAMPTZ PRIMARY KEY)")
    source.commit()
    with pytest.raises(
        tique.NotSupportedError, match=r"public.odd: column v.*public.timed"
    ) as e:
        replicate()
    assert "tables=" in str(e.value)
    replicate(tables=["account"])


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="MonetDB has neither arrays nor NaN")
def test_a_row_that_the_replica_cannot_hold(source, replicate, reading, target):
    """P4: its table stops by name, the others go on, durably."""
    source.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, v NUMERIC(5,2))")
    source.execute("INSERT INTO odd VALUES (1, 1)")
    source.commit()
    replication = replicate()
    source.execute("INSERT INTO odd VALUES (2, 'NaN')")
    source.execute("UPDATE account SET balance = 77 WHERE id = 1")
    caught_up(replication, source)
    copy = reading()
    assert rows(copy, "SELECT balance FROM public.account WHERE id = 1") == [(77,)]
    with pytest.raises(tique.ProgrammingError):
        copy.execute("SELECT * FROM public.odd")
    copy.rollback()
    assert "column v" in replication.status().stopped["public.odd"]
    replication.stop()
    copy.close()
    replication = replicate()
    assert [*replication.status().stopped] == ["public.odd"]
    # Another number: it is tried again.
    source.execute("DELETE FROM odd WHERE id = 2")
    source.commit()
    source.execute("ALTER TABLE odd ADD COLUMN w INTEGER")
    caught_up(replication, source)
    assert rows(reading(), "SELECT * FROM public.odd") == [(1, 1, None)]
    assert not replication.status().stopped


@pytest.mark.written_for(["postgresql"], reason="MonetDB has no NaN")
def test_a_table_that_cannot_be_stopped_at_once(source, replicate, monkeypatch):
    """P4, P6: the replica's disk is full for a moment; then it goes on."""
    source.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, v NUMERIC(5,2))")
    source.commit()
    replication = replicate()
    genuine, refused = ReplicaCheckpointer.stop_table, []

    def stop_table(*arguments):
        if not refused:
            refused.append(arguments)
            raise EngineError(ErrorKind.FULL, "no space")
        genuine(*arguments)

    monkeypatch.setattr(ReplicaCheckpointer, "stop_table", stop_table)
    source.execute("INSERT INTO odd VALUES (2, 'NaN')")
    source.execute("UPDATE account SET balance = 77 WHERE id = 1")
    caught_up(replication, source)
    assert refused
    assert "column v" in replication.status().stopped["public.odd"]


@pytest.mark.written_for(["postgresql"], reason="MonetDB has no NaN")
def test_a_row_that_cannot_be_copied(source, replicate):
    """P4: neither at the beginning."""
    source.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, v NUMERIC(5,2))")
    source.execute("INSERT INTO odd VALUES (1, 'NaN')")
    source.commit()
    replication = replicate()
    assert [*replication.status().stopped] == ["public.odd"]


def test_padded_text(source, replicate, reading, shared_engine):
    """PostgreSQL fills CHAR up with blanks: so has the replica, copied, published and folded."""
    if shared_engine.name != "postgresql":
        pytest.skip("MonetDB does not fill CHAR up with blanks")
    source.execute("CREATE TABLE kinds (id CHAR(3) PRIMARY KEY, o CHAR(4))")
    source.execute("INSERT INTO kinds VALUES ('a', 'ab'), ('b', 'wxyz')")
    source.commit()
    replication = replicate()
    source.execute("INSERT INTO kinds VALUES ('c', ''), ('d', NULL)")
    source.execute("UPDATE kinds SET o = 'x' WHERE id = 'b'")
    caught_up(replication, source)
    expected = [("a  ", "ab  "), ("b  ", "x   "), ("c  ", "    "), ("d  ", None)]
    copy, query = reading(), f"SELECT * FROM {shared_engine.schema}.kinds ORDER BY id"
    assert rows(source, "SELECT * FROM kinds ORDER BY id") == expected
    assert rows(copy, query) == expected
    replication.fold()
    assert rows(copy, query) == expected
