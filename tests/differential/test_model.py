"""Random histories against a model of snapshot isolation in a few lines (P1, P3, P8).

The model keeps the committed states, one per commit; a transaction works on a copy of
the state that it began with. A commit succeeds if and only if no other transaction
committed one of the keys (or UNIQUE values) that it leaves written since its snapshot.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import tique
from tests.effort import effort
from tests.portable import numbers

KEYS = st.integers(1, 6)
VALUES = st.one_of(st.none(), st.integers(0, 7))
WHO = st.integers(0, 2)
BULK = range(1000, 3100)


class Session:
    """A connection and its rows according to the model."""

    def __init__(self, connection):
        self.connection = connection
        self.reset()

    def reset(self):
        self.began = None
        self.rows = {}
        self.written = []
        self.savepoints = []


class Model(RuleBasedStateMachine):
    """``t``: id, v, and u, which is UNIQUE; rows are ``{id: (v, u)}``."""

    engine = None
    certifier = ""

    @initialize()
    def open(self):
        self.engine.begin_again()
        self.sessions = [
            Session(self.engine.connect(checkpoint="manual", certifier=self.certifier))
            for _ in range(3)
        ]
        first = self.sessions[0].connection
        first.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, u INTEGER UNIQUE)"
        )
        first.commit()
        self.states = [{}]
        self.commits = []

    def teardown(self):
        self.engine.close()

    def session(self, who):
        """The session, in a transaction."""
        session = self.sessions[who]
        if session.began is None:
            session.began = len(self.commits)
            session.rows = dict(self.states[-1])
        return session

    def change(self, session, after, query, parameters=()):
        """Run a change that should lead to ``after``, or to a violation if None."""
        before = session.rows
        if after is None:
            with pytest.raises(tique.IntegrityError):
                session.connection.execute(query, parameters)
            return
        values = [u for _, u in after.values() if u is not None]
        if len(set(values)) < len(values):
            with pytest.raises(tique.IntegrityError):
                session.connection.execute(query, parameters)
            return
        count = session.connection.execute(query, parameters).rowcount
        touched = {k for k in before.keys() | after if before.get(k) != after.get(k)}
        assert count >= 0
        session.rows = after
        session.written.append(touched)

    @rule(who=WHO, key=KEYS, v=VALUES, u=VALUES)
    def insert(self, who, key, v, u):
        session = self.session(who)
        after = None if key in session.rows else session.rows | {key: (v, u)}
        query = "INSERT INTO t VALUES (%s, %s, %s)"
        self.change(session, after, query, (key, v, u))
        self.note(session, after, {key}, {u})

    @rule(who=WHO, key=KEYS, v=VALUES)
    def update(self, who, key, v):
        session = self.session(who)
        hit = {key} & session.rows.keys()
        after = session.rows | {k: (v, session.rows[k][1]) for k in hit}
        self.change(session, after, "UPDATE t SET v = %s WHERE id = %s", (v, key))
        self.note(session, after, hit, {after[k][1] for k in hit})

    @rule(who=WHO, key=KEYS, u=VALUES)
    def update_unique(self, who, key, u):
        session = self.session(who)
        hit = {key} & session.rows.keys()
        after = session.rows | {k: (session.rows[k][0], u) for k in hit}
        self.change(session, after, "UPDATE t SET u = %s WHERE id = %s", (u, key))
        self.note(session, after, hit, {u} if hit else set())

    @rule(who=WHO, v=st.integers(0, 7))
    def update_by_scan(self, who, v):
        session = self.session(who)
        hit = {k for k, row in session.rows.items() if row[0] == v}
        after = session.rows | {k: (v + 1, session.rows[k][1]) for k in hit}
        self.change(session, after, "UPDATE t SET v = v + 1 WHERE v = %s", (v,))
        self.note(session, after, hit, {after[k][1] for k in hit})

    @rule(who=WHO)
    def shift_keys(self, who):
        session = self.session(who)
        small = {k for k in session.rows if k < 1000}
        after = {k: row for k, row in session.rows.items() if k not in small}
        after |= {7 - k: session.rows[k] for k in small}
        self.change(session, after, "UPDATE t SET id = 7 - id WHERE id < 1000")
        self.note(
            session,
            after,
            small | {7 - k for k in small},
            {after[7 - k][1] for k in small},
        )

    @rule(who=WHO, key=KEYS)
    def delete(self, who, key):
        session = self.session(who)
        hit = {key} & session.rows.keys()
        after = {k: row for k, row in session.rows.items() if k != key}
        self.change(session, after, "DELETE FROM t WHERE id = %s", (key,))
        self.note(session, after, hit, set())

    @rule(who=WHO, v=st.integers(0, 7))
    def delete_by_scan(self, who, v):
        session = self.session(who)
        hit = {k for k, row in session.rows.items() if row[0] == v}
        after = {k: row for k, row in session.rows.items() if k not in hit}
        self.change(session, after, "DELETE FROM t WHERE v = %s", (v,))
        self.note(session, after, hit, set())

    @precondition(lambda self: all(max(s, default=0) < 1000 for s in self.states[-1:]))
    @rule(who=WHO, v=VALUES)
    def bulk(self, who, v):
        """Switches the session's writes from the driver's buffer to the engine."""
        session = self.session(who)
        taken = set(BULK) & session.rows.keys()
        after = None if taken else session.rows | dict.fromkeys(BULK, (None, None))
        query = f"INSERT INTO t (id) SELECT number + 1000 FROM {numbers(2100)}"
        self.change(session, after, query)
        self.note(session, after, set(BULK), set())
        if after is not None:
            gone = {k: row for k, row in after.items() if k not in BULK}
            self.change(session, gone, "DELETE FROM t WHERE id >= 1000")
            self.note(session, gone, set(BULK), set())
            after = {k: (v, u) for k, (_, u) in gone.items()}
            self.change(session, after, "UPDATE t SET v = %s", (v,))
            self.note(session, after, set(after), {u for _, u in after.values()})

    @rule(who=WHO)
    def begin_again(self, who):
        self.rollback(who)
        self.session(who)

    def note(self, session, after, keys, values):
        """Remember the write set of the statement that led to ``after``."""
        if session.rows is after:
            session.written[-1] = (frozenset(keys), frozenset(values - {None}), after)

    @rule(who=WHO, key=KEYS)
    def read(self, who, key):
        session = self.session(who)
        query = "SELECT v, u FROM t WHERE id = %s"
        row = session.connection.execute(query, (key,)).fetchone()
        assert row == session.rows.get(key)

    @rule(who=WHO)
    def read_all(self, who):
        session = self.session(who)
        rows = session.connection.execute("SELECT id, v, u FROM t").fetchall()
        assert sorted((k, (v, u)) for k, v, u in rows) == sorted(session.rows.items())

    @rule(who=WHO, u=st.integers(0, 7))
    def read_joined(self, who, u):
        session = self.session(who)
        found = session.connection.execute(
            "SELECT a.id, b.id FROM t a LEFT JOIN t b ON b.u = a.v WHERE a.u = %s", (u,)
        ).fetchall()
        expected = [
            (a, b)
            for a, (v, mine) in session.rows.items()
            if mine == u
            for b in [
                k for k, row in session.rows.items() if v is not None and row[1] == v
            ]
            or [None]
        ]
        assert found == expected

    @rule(who=WHO)
    def savepoint(self, who):
        session = self.session(who)
        name = f"s{len(session.savepoints)}"
        session.connection.execute(f"SAVEPOINT {name}")
        session.savepoints.append((session.rows, len(session.written)))

    @precondition(lambda self: any(s.savepoints for s in self.sessions))
    @rule(data=st.data())
    def rollback_to(self, data):
        session = data.draw(st.sampled_from([s for s in self.sessions if s.savepoints]))
        number = data.draw(st.integers(0, len(session.savepoints) - 1))
        session.connection.execute(f"ROLLBACK TO s{number}")
        session.rows, written = session.savepoints[number]
        del session.savepoints[number + 1 :]
        del session.written[written:]

    @rule(who=WHO)
    def rollback(self, who):
        self.sessions[who].connection.rollback()
        self.sessions[who].reset()

    @rule(who=WHO)
    def commit(self, who):
        session = self.sessions[who]
        if session.began is None:
            session.connection.commit()
            return
        keys = set().union(*(w[0] for w in session.written))
        # Of its writes, the UNIQUE values that it leaves in its rows count.
        values = {session.rows[k][1] for k in keys if k in session.rows} - {None}
        lost = any(
            keys & their_keys or values & their_values
            for their_keys, their_values in self.commits[session.began :]
        )
        if lost:
            with pytest.raises(tique.SerializationError):
                session.connection.commit()
        else:
            session.connection.commit()
            if keys:
                after = dict(self.states[-1])
                for key in keys:
                    after.pop(key, None)
                after |= {k: session.rows[k] for k in keys if k in session.rows}
                self.states.append(after)
                self.commits.append((keys, values))
        session.reset()

    @rule()
    def checkpoint(self):
        self.sessions[0].connection.checkpoint()

    @rule()
    def reopen(self):
        if all(session.began is None for session in self.sessions):
            self.engine.close()
            for session in self.sessions:
                session.connection = self.engine.connect(
                    checkpoint="manual", certifier=self.certifier
                )


@pytest.mark.slow
@pytest.mark.parametrize("certifier", ["memory", "query"])
def test_histories(engine, certifier):
    machine = type("Machine", (Model,), {"engine": engine, "certifier": certifier})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=effort(10, 100),
            stateful_step_count=40,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
