"""P1, P5: a table with a retention can be read as it was at every version of it.

A model in Python keeps every committed state. Folds come at random moments, beside
snapshots that hold a part of the versions back.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise

import pytest

import tique
from tests.effort import effort
from tests.staging import stage_above
from tique.history.retention import Retention
from tique.query.define.history import drop_history, set_history
from tique_backends.forms import together
from tique_backends.names import column_list, history_name

pytestmark = pytest.mark.fresh_tables

CREATIONS = (
    "CREATE TABLE t (id INTEGER, part VARCHAR(5), v INTEGER, note VARCHAR(20) NOT NULL, "
    "PRIMARY KEY (id, part))",
    "CREATE TABLE u (v INTEGER, note VARCHAR(20))",
)


HOUR = 3600 * 10**6
"""In microseconds."""


def table_of(connection, name):
    return connection._database.catalog.find(None, name)


def version(connection):
    return connection._database.timeline.position().sts


def query(connection, sql):
    with closing(connection._database.engine.session()) as session:
        return session.execute(sql).fetch_all()


def as_of(connection, name, sts, **options):
    """The table as of a version, by the engine alone."""
    database, table = connection._database, table_of(connection, name)
    # A transaction that begins knows of every commit before.
    connection.execute(f"SELECT 1 FROM {name}").fetchall()
    connection.rollback()
    with closing(database.engine.session()) as session:
        database.catalog.versions(table).drain(session)
        parts = database.engine.forms.scan(
            table, sts, staged=None, past=True, **options
        )
        rows = session.execute(
            f"SELECT {column_list(table)} FROM {together(parts)} AS _r"
        ).fetch_all()
    return sorted(map(tuple, rows), key=repr)


def images(connection, name):
    table = table_of(connection, name)
    names = [f'"{column.name}"' for column in table.columns]
    return query(
        connection,
        f"SELECT {', '.join(names)}, _from, _until, _there FROM {history_name(table)}",
    )


def folded(connection, name):
    number = table_of(connection, name).id
    ((until,),) = query(
        connection, f'SELECT folded FROM tique."tables" WHERE id = {number}'
    )
    return until


class Model:
    """Tables ``t`` and ``u``, and what they had at every version."""

    def __init__(self, connection, chance):
        self.connection = connection
        self.chance = chance
        self.keyed = {}
        self.copies = []
        self.states = {}
        self.note()

    def note(self):
        keyed = sorted([(*k, *v) for k, v in self.keyed.items()], key=repr)
        self.states[version(self.connection)] = keyed, sorted(self.copies, key=repr)

    def commit(self):
        """A transaction of several statements."""
        for _ in range(self.chance.randint(1, 4)):
            self.chance.choice(
                [self.put, self.put, self.delete, self.many, self.copy, self.remove]
            )()
        self.connection.commit()
        self.note()

    def value(self):
        return self.chance.choice([None, *range(5)]), self.chance.choice("abc")

    def put(self):
        key = self.chance.randint(0, 6), self.chance.choice("xy")
        row = self.value()
        if key in self.keyed:
            sql = "UPDATE t SET v = %s, note = %s WHERE id = %s AND part = %s"
            self.connection.execute(sql, (*row, *key))
        else:
            sql = "INSERT INTO t VALUES (%s, %s, %s, %s)"
            self.connection.execute(sql, (*key, *row))
        self.keyed[key] = row

    def delete(self):
        key = self.chance.randint(0, 6), self.chance.choice("xy")
        sql = "DELETE FROM t WHERE id = %s AND part = %s"
        self.connection.execute(sql, key)
        self.keyed.pop(key, None)

    def many(self):
        """Staged: the commit is one in bulk."""
        number, (_, note) = self.chance.randint(0, 6), self.value()
        sql = "UPDATE t SET note = %s WHERE id >= %s"
        self.connection.execute(sql, (note, number))
        for key, (v, _) in self.keyed.items():
            if key[0] >= number:
                self.keyed[key] = v, note

    def copy(self):
        rows = [self.value()] * self.chance.randint(1, 3)
        for row in rows:
            self.connection.execute("INSERT INTO u VALUES (%s, %s)", row)
        self.copies += rows

    def remove(self):
        v = self.chance.randint(0, 4)
        self.connection.execute("DELETE FROM u WHERE v = %s", (v,))
        self.copies = [row for row in self.copies if row[0] != v]

    def check(self, since=0):
        """Every version is what it was."""
        ends = folded(self.connection, "t"), folded(self.connection, "u")
        for sts, (keyed, copies) in self.states.items():
            if sts >= since:
                assert as_of(self.connection, "t", sts) == keyed, sts
                assert as_of(self.connection, "u", sts) == copies, sts
                if sts < ends[0]:
                    assert as_of(self.connection, "t", sts, flat=True) == keyed, sts
                if sts < ends[1]:
                    assert as_of(self.connection, "u", sts, flat=True) == copies, sts


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort(3, 30)))
def test_every_version(engine, seed, monkeypatch):
    chance = random.Random(seed)
    stage_above(4, monkeypatch.setattr)
    options = {"history": "1 hour", "checkpoint": "manual"}
    connection = engine.connect(**options)
    for creation in CREATIONS:
        connection.execute(creation)
        connection.commit()
    model = Model(connection, chance)
    reader = engine.connect(**options)
    for _ in range(40):
        model.commit()
        moment = chance.random()
        if moment < 0.2:
            connection.checkpoint()
        elif moment < 0.4:
            reader.rollback()
            reader.execute("SELECT count(*) FROM t").fetchall()
    model.check()
    reader.rollback()
    connection.checkpoint()
    model.check()
    lives = [(row[:2], *row[-3:-1]) for row in images(connection, "t")]
    assert all(since < until for _, since, until in lives)
    engine.close()
    connection = model.connection = engine.connect(**options)
    model.check()
    model.commit()
    model.check()


@pytest.fixture
def connection(engine):
    opened = engine.connect(history="1 hour", checkpoint="manual", retention=0.0)
    for creation in CREATIONS:
        opened.execute(creation)
        opened.commit()
    return opened


def change(connection, sql):
    with closing(connection._database.engine.session()) as session:
        session.transact(lambda: session.change(sql))


class Clock:
    """Says when commits were made: the database's time goes on with them."""

    def __init__(self, connection):
        self.connection = connection
        self.now = int(time.time() * 1e6) - 20 * 24 * HOUR
        self.times = {}
        # Nothing was ever later.
        for name in ("moments", "outcomes", "log"):
            change(connection, f"UPDATE tique.{name} SET committed_at = {self.now}")

    def note(self, minutes=0):
        """The last commit was made so many minutes after the one before."""
        self.now += minutes * HOUR // 60
        sts = version(self.connection)
        if sts in self.times:
            # It has changed nothing.
            return
        self.times[sts] = self.now
        change(
            self.connection,
            f"UPDATE tique.log SET committed_at = {self.now} WHERE cts >= {sts}",
        )

    def in_reach(self, minutes, hours, days=0):
        """Versions that can be asked for."""
        first = self.now - minutes * HOUR // 60
        found = {s for s in self.times if self.times[s] >= first} | {self.at(first)}
        for step, term in ((HOUR, hours * HOUR), (24 * HOUR, 24 * days * HOUR)):
            place = first - first % step
            while place > self.now - term:
                found.add(self.at(place))
                place -= step
        return found - {-1}

    def at(self, place):
        return max((s for s, time in self.times.items() if time <= place), default=-1)


def put(connection, number, v):
    connection.execute("DELETE FROM t WHERE id = %s", (number,))
    connection.execute("INSERT INTO t VALUES (%s, 'x', %s, 'a')", (number, v))
    connection.commit()
    return version(connection)


@pytest.mark.slow
def test_a_table_that_gets_a_history(engine):
    """It begins with the version of that moment, and goes as it has come."""
    connection = engine.connect(checkpoint="manual")
    for creation in CREATIONS:
        connection.execute(creation)
        connection.commit()
    model = Model(connection, random.Random(1))
    for _ in range(5):
        model.commit()
    connection.checkpoint()
    model.commit()
    database = connection._database
    assert set_history(database.changes, Retention.parse("2 hours")) == [
        f"{engine.schema}.t",
        f"{engine.schema}.u",
    ]
    since = table_of(connection, "t").history.since
    assert since >= max(model.states)
    model.note()
    for _ in range(10):
        model.commit()
        connection.checkpoint()
    model.check(since)
    assert set_history(database.changes, Retention.parse("2  HOURS")) == []
    longer = Retention.parse("3 hours; daily for 3 days")
    assert set_history(database.changes, longer, ["t"]) == [f"{engine.schema}.t"]
    assert table_of(connection, "t").history.retention == longer.text
    assert table_of(connection, "u").history.retention == "2 hours"
    model.check(since)
    assert drop_history(database.changes, [f"{engine.schema}.t"]) == [
        f"{engine.schema}.t"
    ]
    assert table_of(connection, "t").history is None
    model.commit()
    connection.checkpoint()
    keyed, _ = model.states[version(connection)]
    assert sorted(connection.execute("SELECT * FROM t"), key=repr) == keyed
    engine.close()
    connection = engine.connect()
    assert table_of(connection, "t").history is None
    assert table_of(connection, "u").history.retention == "2 hours"


def test_tables_that_a_connection_finds(engine):
    """Without a history they get one; with one they keep it."""
    with closing(engine.connect()) as connection:
        for creation in CREATIONS:
            connection.execute(creation)
            connection.commit()
        put(connection, 1, 1)
        set_history(connection._database.changes, Retention.parse("2 hours"), ["u"])
    with closing(engine.connect(history="1 hour", checkpoint="manual")) as connection:
        assert table_of(connection, "t").history.retention == "1 hour"
        assert table_of(connection, "u").history.retention == "2 hours"
        put(connection, 1, 2)
        connection.checkpoint()
        since = table_of(connection, "t").history.since
        assert as_of(connection, "t", since) == [(1, "x", 1, "a")]


def test_a_table_that_is_in_use(engine):
    """P1: the reader goes on, and a word says why there is no history."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.commit()
    connection.execute("SELECT * FROM t").fetchall()
    changes = connection._database.changes
    with pytest.raises(tique.OperationalError, match="uses it") as refusal:
        set_history(changes, Retention.parse("1 hour"))
    assert refusal.value.sqlstate == "55006"
    connection.rollback()
    set_history(changes, Retention.parse("1 hour"))
    assert table_of(connection, "t").history is not None


@pytest.mark.parametrize("name", ["nowhere", "nowhere.t"])
def test_no_such_table(connection, name):
    with pytest.raises(tique.ProgrammingError, match="no table under") as refusal:
        set_history(connection._database.changes, Retention.parse("1 hour"), [name])
    assert refusal.value.sqlstate == "42P01"


def test_what_is_pruned(engine):
    """Every state of the first term stays, then those at full hours and days; no more."""
    retention = "1 hour; hourly for 12 hours; daily for 9 days"
    connection = engine.connect(history=retention, checkpoint="manual", retention=1e7)
    for creation in CREATIONS:
        connection.execute(creation)
        connection.commit()
    model, clock = Model(connection, random.Random(3)), Clock(connection)
    clock.note()
    for wait in (1500, 1500, 1500, 170, 50, 50, 50, 50, 35, 7, 7):
        for _ in range(6):
            model.commit()
            clock.note(model.chance.randint(0, 5))
            if model.chance.random() < 0.3:
                connection.checkpoint()
        clock.now += wait * HOUR // 60
    model.put()
    connection.commit()
    model.note()
    clock.note()
    connection.checkpoint()
    reach = clock.in_reach(60, 12, 9)
    assert 15 < len(reach) < 40 < len(clock.times) - 20
    model.states = {s: model.states[s] for s in reach}
    model.check()
    # Nothing else is left: each image has one of these states.
    lives = [row[-3:-1] for row in images(connection, "t")]
    assert all(any(since <= s < until for s in reach) for since, until in lives)
    assert all(until > min(reach) for *_, until, _ in images(connection, "u"))


def test_many_updates_of_few_rows(engine):
    """At most one image of a row for each point."""
    retention = "1 hour; hourly for 9 hours"
    connection = engine.connect(history=retention, checkpoint="manual", retention=1e7)
    connection.execute(CREATIONS[0])
    connection.commit()
    clock, rows = Clock(connection), range(20)
    for number in rows:
        put(connection, number, 0)
        clock.note()
    for _ in range(4):
        for _ in range(15):
            connection.execute("UPDATE t SET v = v + 1")
            connection.commit()
            clock.note(1)
            connection.checkpoint()
        clock.now += 45 * HOUR // 60
    assert len(images(connection, "t")) > 10 * len(rows)
    clock.now += 2 * HOUR
    put(connection, 0, 0)
    clock.note()
    connection.checkpoint()
    assert 3 * len(rows) < len(images(connection, "t")) <= 5 * len(rows) + 1


@pytest.mark.slow
@pytest.mark.every_engine
def test_many_changes_of_few_copies(engine):
    """Without a key it is at most what two neighbouring points differ by."""
    retention = "1 hour; hourly for 9 hours"
    connection = engine.connect(history=retention, checkpoint="manual", retention=1e7)
    for creation in CREATIONS:
        connection.execute(creation)
        connection.commit()
    model, clock = Model(connection, random.Random(5)), Clock(connection)
    clock.note()
    for _ in range(4):
        for _ in range(8):
            for _ in range(3):
                model.copy()
            model.remove()
            connection.commit()
            model.note()
            clock.note(1)
            connection.checkpoint()
        clock.now += 45 * HOUR // 60
    many = len(images(connection, "u"))
    clock.now += 2 * HOUR
    model.put()
    connection.commit()
    model.note()
    clock.note()
    connection.checkpoint()
    reach = clock.in_reach(60, 9)
    model.states = {s: model.states[s] for s in reach}
    model.check()
    copies = [Counter(model.states[s][1]) for s in sorted(reach)]
    differing = sum((b - a).total() + (a - b).total() for a, b in pairwise(copies))
    left = images(connection, "u")
    assert len(left) <= differing < many / 2
    assert all(begin is None for *_, begin, _, _ in left)
    connection.checkpoint()
    assert sorted(images(connection, "u"), key=repr) == sorted(left, key=repr)
    model.check()


def test_commit_records_and_moments(engine):
    """P4: they are kept as long as any first term; then the last one of an hour is."""
    retention = "2 hours; daily for 2 days"
    connection = engine.connect(history=retention, checkpoint="manual", retention=0.0)
    connection.execute(CREATIONS[0])
    connection.commit()
    times = {}
    for _ in range(5):
        for n in range(3):
            put(connection, n, n)
            times[version(connection)] = time.time()
        connection.checkpoint()
        older(connection, 1)
        times = {sts: at - 3600 for sts, at in times.items()}
    put(connection, 1, 1)
    connection.checkpoint()
    recorded = set(column(connection, "SELECT cts FROM tique.outcomes"))
    recorded.update(column(connection, "SELECT cts FROM tique.log"))
    assert {s for s, at in times.items() if time.time() - at < 7200} <= recorded
    assert min(times) not in recorded
    last = {int(at - 1e-6) // 3600: sts for sts, at in sorted(times.items())}
    moments = column(connection, "SELECT cts FROM tique.moments")
    assert {sts for sts in last.values() if sts not in recorded} <= set(moments)
    assert len(moments) < len(times)
    older(connection, 24 * 3)
    put(connection, 1, 2)
    connection.checkpoint()
    assert len(column(connection, "SELECT cts FROM tique.moments")) <= 1


def older(connection, hours):
    """Make commits older by full hours, which stay the same ones of a day."""
    for name in ("moments", "outcomes", "log"):
        change(
            connection,
            f"UPDATE tique.{name} SET committed_at = committed_at - {hours * HOUR}",
        )


def column(connection, sql):
    return [value for (value,) in query(connection, sql)]


def names_of(engine):
    """The tables of tique's schema, by an engine that tique has left."""
    if engine.name == "duckdb":
        sql = "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'tique'"
    elif engine.name == "monetdb":
        sql = "SELECT t.name FROM sys.tables AS t JOIN sys.schemas AS s ON s.id = t.schema_id WHERE s.name = 'tique'"
    else:
        sql = "SELECT tablename FROM pg_tables WHERE schemaname = 'tique'"
    with closing(engine.native()) as native:
        return {name for (name,) in native.execute(sql).fetchall()}


def test_what_ends_a_history(engine):
    """A change of columns does, another name does not; TRUNCATE is a change of rows."""
    options = {"history": "1 hour", "checkpoint": "manual"}
    connection = engine.connect(**options)
    connection.execute(CREATIONS[0])
    connection.commit()
    first = put(connection, 1, 1)
    second = put(connection, 1, 2)
    connection.execute("ALTER TABLE t RENAME TO other")
    connection.commit()
    connection.execute("ALTER TABLE other RENAME TO t")
    connection.commit()
    third = put(connection, 1, 3)
    connection.checkpoint()
    seen = [as_of(connection, "t", sts) for sts in (first, second, third)]
    assert seen == [[(1, "x", v, "a")] for v in (1, 2, 3)]
    connection.execute("TRUNCATE TABLE t")
    connection.commit()
    connection.checkpoint()
    assert as_of(connection, "t", third) == [(1, "x", 3, "a")]
    assert as_of(connection, "t", version(connection)) == []
    connection.execute("ALTER TABLE t ADD COLUMN more INTEGER")
    connection.commit()
    since = table_of(connection, "t").history.since
    assert since > third
    assert images(connection, "t") == []
    connection.execute("INSERT INTO t VALUES (2, 'y', 5, 'b', 6)")
    connection.commit()
    connection.checkpoint()
    assert as_of(connection, "t", since) == []
    assert as_of(connection, "t", version(connection)) == [(2, "y", 5, "b", 6)]
    connection.execute("DROP TABLE t")
    connection.commit()
    assert query(connection, "SELECT * FROM tique.history") == []
    engine.close()
    engine.let_go()
    assert not any("history_" in name for name in names_of(engine))


def test_a_table_of_a_transaction_with_ddl(engine):
    """P1: its rows are not there before the commit that makes it known."""
    options = {"history": "1 hour", "checkpoint": "manual"}
    connection, other = engine.connect(**options), engine.connect(**options)
    for creation in CREATIONS:
        connection.execute(creation)
        connection.commit()
    put(connection, 1, 1)
    connection.checkpoint()
    before = version(connection)
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE made (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO made VALUES (1)")
    connection.execute("INSERT INTO t VALUES (2, 'y', 5, 'b')")
    other.execute("INSERT INTO u VALUES (1, 'meanwhile')")
    other.commit()
    connection.commit()
    made = version(connection)
    assert before < table_of(connection, "made").history.since <= made
    connection.checkpoint()
    assert as_of(connection, "made", made) == [(1,)]
    connection.execute("INSERT INTO made VALUES (2)")
    connection.commit()
    connection.checkpoint()
    assert as_of(connection, "made", made) == [(1,)]
    assert as_of(connection, "t", before) == [(1, "x", 1, "a")]
    engine.close()
    engine.let_go()
    tique.detach(engine.url)
    assert names_of(engine) == set()
