"""Every type's values, to the last digit, on every way that they can take (P1, P4, P8, P9).

Each literal of a type is written once natively, which says what its text and its value in
Python are, and then through tique on every *way*: as a literal, as a value that the engine
converts, as a default, by UPDATE, in rows that are staged, by ``ON CONFLICT``, as a
parameter, in an Arrow table; and as a key, a unique value, a row without a key, a foreign
key. After each *stage* all must be as it was natively: in the transaction, after the
commit, replayed from the log, changed, folded, and read without tique.
"""

from __future__ import annotations

from contextlib import suppress

import duckdb
import pytest

import tique
from tests.differential import extremes, kinds
from tests.differential.extremes import EXTREMES
from tests.effort import effort
from tests.staging import stage_above

EVERYWHERE = sorted({name for known in EXTREMES.values() for name in known})
MOST_DEFAULTS = effort(3, 1000)
TYPES = [
    pytest.param(
        name,
        marks=pytest.mark.written_for(
            [engine for engine, known in EXTREMES.items() if name in known],
            reason="the others have no such type",
        ),
    )
    for name in EVERYWHERE
]


def setup(engine):
    return kinds.SETUP[engine.name] + extremes.SETUP[engine.name]


class Natively:
    """What the bare engine makes of a type's literals."""

    def __init__(self, engine, kind):
        self.native = native = engine.native()
        for sql in setup(engine):
            native.execute(sql)
        native.execute(f"CREATE TABLE bare (n INTEGER, x {kind.name})")
        self.literals = []
        for literal in kind.literals:
            number = len(self.literals)
            try:
                native.execute(f"INSERT INTO bare VALUES ({number}, {literal})")
            except engine.driver.Error:
                continue
            self.literals.append(literal)
        self.texts = self._column(f"CAST(x AS {engine.text})")
        self.values = self._column("x")
        self.are_shown = len(self.values) == len(self.texts)
        self.keys = self._different(engine, kind) if kind.keyable else []
        self.defaults = self._same_as_defaults(engine, kind)
        self.arrow = None
        if engine.name == "duckdb":
            self.arrow = native.sql("SELECT n, x FROM bare ORDER BY n").to_arrow_table()
            self.arrow_survives = self._survive_arrow(kind)
        native.execute("DROP TABLE bare")

    def _column(self, what):
        found = {}
        for number in range(len(self.literals)):
            query = f"SELECT {what} FROM bare WHERE n = {number}"
            # Python cannot hold all of them: then their text has to do.
            with suppress(Exception):
                found[number] = repr(self.native.execute(query).fetchone()[0])
        return found

    def _different(self, engine, kind):
        """The literals that are different keys."""
        self.native.execute(f"CREATE TABLE keyed (x {kind.name} PRIMARY KEY)")
        found = []
        for number, literal in enumerate(self.literals):
            try:
                self.native.execute(f"INSERT INTO keyed VALUES ({literal})")
            except engine.driver.Error:
                continue
            found.append(number)
        self.native.execute("DROP TABLE keyed")
        return found

    def _survive_arrow(self, kind):
        """The values that the engine itself reads again from its own Arrow."""
        self.native.execute(f"CREATE TABLE arrow (n INTEGER, x {kind.name})")
        for number in range(self.arrow.num_rows):
            with suppress(duckdb.Error):
                row = self.arrow.slice(number, 1)
                self.native.from_arrow(row).insert_into("arrow")
        rows = self.native.execute("SELECT n, CAST(x AS VARCHAR) FROM arrow").fetchall()
        found = [n for n, text in rows if repr(text) == self.texts[n]]
        self.native.execute("DROP TABLE arrow")
        return found

    def _same_as_defaults(self, engine, kind):
        """Those that the engine keeps in a DEFAULT as they are: MonetDB not all."""
        found = []
        for number, literal in enumerate(self.literals[:MOST_DEFAULTS]):
            self.native.execute(
                f"CREATE TABLE made (n INTEGER, x {kind.name} DEFAULT {literal})"
            )
            self.native.execute("INSERT INTO made (n) VALUES (1)")
            query = f"SELECT CAST(x AS {engine.text}) FROM made"
            if repr(self.native.execute(query).fetchone()[0]) == self.texts[number]:
                found.append(number)
            self.native.execute("DROP TABLE made")
        return found


class Trial:
    """One type's tables through tique, and what is not as it was natively."""

    def __init__(self, engine, kind):
        self.engine, self.kind = engine, kind
        self.expected = Natively(engine, kind)
        self.differences = []
        self.places = []
        self.connection = engine.connect(checkpoint="manual")

    def create(self):
        name, literals = self.kind.name, self.expected.literals
        execute = self.connection.execute
        execute(f"CREATE TABLE v (n INTEGER PRIMARY KEY, x {name}, m INTEGER)")
        if self.kind.has_equality:
            execute(f"CREATE TABLE bag (n INTEGER, x {name}, m INTEGER)")
        execute(f"CREATE TABLE staged (n INTEGER PRIMARY KEY, x {name}, m INTEGER)")
        for number in self.expected.defaults:
            execute(
                f"CREATE TABLE d{number} (n INTEGER PRIMARY KEY, "
                f"x {name} DEFAULT {literals[number]}, m INTEGER)"
            )
        if self.expected.keys:
            execute(f"CREATE TABLE k (x {name} PRIMARY KEY, n INTEGER, m INTEGER)")
            execute(
                f"CREATE TABLE u (n INTEGER PRIMARY KEY, x {name} UNIQUE, m INTEGER)"
            )
            execute(
                "CREATE TABLE c (n INTEGER PRIMARY KEY, m INTEGER, "
                f"x {name} REFERENCES k (x))"
            )
        self.connection.commit()

    def fill(self):
        execute = self.connection.execute
        for number, literal in enumerate(self.expected.literals):
            execute(f"INSERT INTO v VALUES ({number}, {literal}, 0)")
            execute(f"INSERT INTO v (n) VALUES ({100 + number})")
            execute(f"UPDATE v SET x = {literal} WHERE n = {100 + number}")
            execute(f"INSERT INTO v SELECT {200 + number}, {literal}, 0")
            if self.kind.has_equality:
                execute(f"INSERT INTO bag VALUES ({number}, {literal}, 0)")
                execute(f"INSERT INTO bag SELECT {100 + number}, {literal}, 0")
            if number in self.expected.defaults:
                execute(f"INSERT INTO d{number} (n) VALUES ({number})")
        self.note("v", 0, 100, 200)
        if self.kind.has_equality:
            self.note("bag", 0, 100)
        for number in self.expected.defaults:
            self.places.append((f"d{number}", {number: number}))
        for number in self.expected.keys:
            literal = self.expected.literals[number]
            execute(f"INSERT INTO k VALUES ({literal}, {number}, 0)")
            execute(f"INSERT INTO u VALUES ({number}, {literal}, 0)")
            execute(f"INSERT INTO c VALUES ({number}, 0, {literal})")
        for table in ("k", "u", "c") if self.expected.keys else ():
            self.places.append((table, {n: n for n in self.expected.keys}))

    def note(self, table, *offsets):
        everything = range(len(self.expected.literals))
        self.places.append(
            (table, {offset + n: n for offset in offsets for n in everything})
        )

    def fill_staged(self, monkeypatch):
        """Rows that stay in the engine."""
        with monkeypatch.context() as patched:
            stage_above(0, patched.setattr)
            for number, literal in enumerate(self.expected.literals):
                self.connection.execute(
                    f"INSERT INTO staged SELECT {number}, {literal}, 0"
                )
                self.connection.execute(
                    f"INSERT INTO staged SELECT {100 + number}, NULL, 0"
                )
                self.connection.execute(
                    f"UPDATE staged SET x = {literal} WHERE n = {100 + number}"
                )
        self.note("staged", 0, 100)

    def upsert(self):
        for number, literal in enumerate(self.expected.literals):
            for row in (f"{300 + number}, NULL", f"{300 + number}, {literal}"):
                self.connection.execute(
                    f"INSERT INTO v (n, x) VALUES ({row}) "
                    "ON CONFLICT (n) DO UPDATE SET x = EXCLUDED.x"
                )
        self.note("v", 300)

    def returning(self, stage):
        shown = "x" if self.expected.are_shown else "NULL"
        for number, literal in enumerate(self.expected.literals):
            found = self.connection.execute(
                f"INSERT INTO v VALUES ({500 + number}, {literal}, 0) "
                f"RETURNING {shown}, CAST(x AS {self.engine.text})"
            ).fetchall()
            self.compare(stage, "returning", number, found[0])
        self.note("v", 500)

    def append(self):
        """Insert what Arrow has of the bare engine's rows."""
        for number in self.expected.arrow_survives:
            row = self.expected.arrow.slice(number, 1)
            row = row.set_column(0, "n", [[400 + number]])
            self.connection.cursor().append("v", row)
        self.places.append(("v", {400 + n: n for n in self.expected.arrow_survives}))

    # -- looking

    def compare(self, stage, place, number, found):
        value, text = self.expected.values.get(number), self.expected.texts[number]
        if not self.expected.are_shown:
            value = repr(found[0])
        if (repr(found[0]), repr(found[1])) != (value, text):
            self.differences.append((stage, place, found, (value, text)))

    def look(self, stage, *, native=None, thoroughly=False):
        execute = self.connection.execute if native is None else native.execute
        for table, numbers in self.places:
            found = self.content(execute, table)
            for n, number in numbers.items():
                if n not in found:
                    self.differences.append((stage, table, n, "missing"))
                    continue
                self.compare(stage, table, number, found[n])
                if table == "v" and thoroughly and self.expected.are_shown:
                    # By key: where the driver answers from memory.
                    query = f"SELECT x FROM v WHERE n = {n}"
                    value = execute(query).fetchone()[0]
                    if repr(value) != self.expected.values[number]:
                        self.differences.append((stage, "v by key", value, n))
        if thoroughly:
            self.look_by_value(stage)
            self.look_at_arrow(stage)

    def content(self, execute, table):
        shown = "x" if self.expected.are_shown else "NULL"
        query = f"SELECT n, {shown}, CAST(x AS {self.engine.text}) FROM {table}"
        return {n: values for n, *values in execute(query).fetchall()}

    def look_by_value(self, stage):
        """A key finds its row, and no second one can be made."""
        for number in self.expected.keys:
            literal = self.expected.literals[number]
            for table in ("k", "u"):
                rows = self.connection.execute(
                    f"SELECT n FROM {table} WHERE x = {literal}"
                ).fetchall()
                if rows != [(number,)]:
                    self.differences.append((stage, f"{table} by value", rows, number))
                row = f"{literal}, 99" if table == "k" else f"99, {literal}"
                names = "x, n" if table == "k" else "n, x"
                with pytest.raises(tique.IntegrityError):
                    self.connection.execute(
                        f"INSERT INTO {table} ({names}) VALUES ({row})"
                    )

    def look_at_arrow(self, stage):
        expected = self.expected.arrow
        if expected is None:
            return
        found = self.connection.execute(
            f"SELECT n, x FROM v WHERE n < {expected.num_rows} ORDER BY n"
        ).fetch_arrow_table()
        if not found.equals(expected) and repr(found) != repr(expected):
            self.differences.append((stage, "arrow", found, expected))

    def change(self):
        """New versions of all rows, with the same values."""
        for table in {table for table, _ in self.places}:
            self.connection.execute(f"UPDATE {table} SET m = 1, x = x")
            self.connection.execute(f"UPDATE {table} SET m = 2 WHERE n > 0")


@pytest.mark.slow
@pytest.mark.one_duckdb
@pytest.mark.parametrize("type_name", TYPES)
def test_round_trip(engine, type_name, monkeypatch):
    """P4, P8, P9: a value is what it is natively, wherever it has been."""
    trial = Trial(engine, EXTREMES[engine.name][type_name])
    assert trial.expected.literals
    trial.create()
    trial.fill()
    trial.look("own", thoroughly=True)
    trial.connection.execute("SAVEPOINT s")
    trial.connection.execute("DELETE FROM v")
    trial.connection.execute("ROLLBACK TO s")
    trial.connection.commit()
    trial.connection.commit()
    trial.upsert()
    trial.returning("returning")
    if trial.expected.arrow is not None:
        trial.append()
    trial.fill_staged(monkeypatch)
    trial.look("own again")
    trial.connection.commit()
    trial.connection.close()
    trial.connection = engine.connect(checkpoint="manual")
    trial.look("replayed", thoroughly=True)
    trial.connection.commit()
    trial.change()
    trial.look("changed")
    trial.connection.commit()
    trial.connection.checkpoint()
    trial.look("folded", thoroughly=True)
    trial.connection.commit()
    trial.change()
    trial.connection.commit()
    trial.connection.checkpoint()
    trial.connection.close()
    native = engine.native()
    trial.look("storage", native=native)
    assert not trial.differences, "\n".join(map(str, trial.differences[:40]))
