"""P1, P5: a table with a retention can be read as it was at every version of it.

A model in Python keeps every committed state. Folds come at random moments, beside
snapshots that hold a part of the versions back.
"""

from __future__ import annotations

import random
from contextlib import closing

import pytest

from tests.effort import effort
from tests.staging import stage_above
from tique_backends.forms import together
from tique_backends.names import column_list, history_name

pytestmark = pytest.mark.fresh_tables

CREATIONS = (
    "CREATE TABLE t (id INTEGER, part VARCHAR(5), v INTEGER, note VARCHAR(20) NOT NULL, "
    "PRIMARY KEY (id, part))",
    "CREATE TABLE u (v INTEGER, note VARCHAR(20))",
)


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
