"""Statements that an engine accepts, by category, natively and then through tique.

``corpus/common.sql`` is for all engines that have it, ``corpus/ENGINE.sql`` for one. They have about as many
statements of a category as the engine's manual gives it room, and each is a form of its
own. A paragraph is a *case*: one statement, or several that build on each other, with
``@`` in names of what the case itself makes. Every case must be accepted by the bare
engine; the share of cases that tique refuses (``NotSupportedError``) is what is measured.
Any other error, and any difference in the number of rows, is a fault.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import tique

_NUMBERED = re.compile(r"(?<=[A-Za-z_])@")
FOLDER = Path(__file__).parent / "corpus"

WORLD = (
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(30), price DECIMAL(8,2), "
    "kind VARCHAR(10), made DATE, active BOOLEAN)",
    "CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, amount INTEGER, "
    "moment TIMESTAMP, note VARCHAR(100))",
    "CREATE TABLE person (id INTEGER PRIMARY KEY, boss INTEGER, name VARCHAR(30), "
    "age INTEGER)",
    "CREATE TABLE event (moment TIMESTAMP, what VARCHAR(20), n INTEGER)",
    "INSERT INTO item VALUES (1, 'hammer', 12.50, 'tool', DATE '2024-01-01', true), "
    "(2, 'doll', 7, 'toy', DATE '2024-02-01', true), (3, 'saw', NULL, 'tool', NULL, NULL), "
    "(4, 'atlas', 30, 'book', DATE '2023-01-01', false)",
    "INSERT INTO sale VALUES (1, 1, 2, TIMESTAMP '2024-03-01 10:00:00', 'a'), "
    "(2, 1, 1, TIMESTAMP '2024-03-02 10:00:00', NULL), (3, 2, 5, NULL, 'b')",
    "INSERT INTO person VALUES (1, NULL, 'ann', 50), (2, 1, 'bob', 40), (3, 2, 'cy', 30), "
    "(5, 1, 'di', 20)",
    "INSERT INTO event VALUES (TIMESTAMP '2024-01-01 00:00:00', 'a', 1), (NULL, 'b', NULL)",
)

QUERIES = (
    *("SELECT: the list, FROM, WHERE", "Joins", "Subqueries", "Samples", "WITH"),
    *("Grouping, windows, order", "Set operations and VALUES"),
    *("Table functions and files", "PIVOT and UNPIVOT", "Functions and operators"),
)
CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "COPY")

NATIVE = {
    "duckdb": (),
    "postgresql": (
        "CREATE TYPE colour_of_corpus AS ENUM ('red')",
        "CREATE FUNCTION twice_of_corpus (a integer) RETURNS integer LANGUAGE sql "
        "IMMUTABLE AS 'SELECT a * 2'",
    ),
    "monetdb": (),
}
"""What exists before tique comes."""


@dataclass(frozen=True)
class Case:
    """Statements of one category, the last of which is the one that it is about."""

    category: str
    number: int
    statements: tuple[str, ...]
    is_common: bool
    """Whether an engine that does not have it leaves it out."""

    @property
    def text(self) -> str:
        return "; ".join(self.statements)


def cases(engine):
    """An engine's cases, in order."""
    found = []
    for name in ("common", engine):
        category = ""
        for paragraph in (FOLDER / f"{name}.sql").read_text().split("\n\n"):
            text = paragraph.strip()
            if text.startswith("--# "):
                category = text.removeprefix("--# ")
                continue
            number = len(found) + 1
            text = _NUMBERED.sub(f"_{number}", text)
            statements = tuple(text.split(";\n"))
            found.append(Case(category, number, statements, name == "common"))
    return found


@dataclass
class Report:
    """The cases by their outcome."""

    accepted: Counter = field(default_factory=Counter)
    refused: list = field(default_factory=list)
    faults: list = field(default_factory=list)
    unknown: list = field(default_factory=list)
    """Cases that the bare engine does not accept either."""

    @property
    def total(self):
        return self.accepted.total() + len(self.refused) + len(self.faults)

    @property
    def share(self):
        return len(self.refused) / max(1, self.total)

    def share_of(self, categories):
        """The share among the cases of some categories."""
        refused = sum(case.category in categories for case, _ in self.refused)
        count = sum(self.accepted[category] for category in categories)
        return refused / (count + refused)

    def lines(self):
        """The report as text."""
        refused = Counter(case.category for case, _ in self.refused)
        categories = dict.fromkeys([*self.accepted, *refused])
        yield f"{'category':45} {'cases':>6} {'refused':>8}"
        for category in categories:
            count = self.accepted[category] + refused[category]
            yield f"{category:45} {count:6} {refused[category]:8}"
        yield f"{'all':45} {self.total:6} {len(self.refused):8}  ({self.share:.1%})"
        for name in ("refused", "faults", "unknown"):
            for case, reason in getattr(self, name):
                yield f"{name}: {case.text}\n    {reason}"


def accepted(execute, case):
    """The reason for which the bare engine does not accept a case, and its rows."""
    rows = []
    for statement in case.statements:
        try:
            rows.append(execute(statement))
        except Exception as error:
            return f"{type(error).__name__}: {error}".split("\n")[0], rows
    return None, rows


def run(engine, chosen=None):
    """Run the cases of an engine, on a database that is empty."""
    report = Report()
    chosen = cases(engine.name) if chosen is None else chosen
    native = engine.native()
    for statement in (*NATIVE[engine.name], *WORLD):
        native.execute(statement)
    expected = {}
    for case in chosen:
        if in_transaction(case):
            native.execute(BEGIN[engine.name])
        reason, rows = accepted(lambda sql: _count(native.execute(sql)), case)
        if in_transaction(case) or reason is not None:
            with suppress(engine.driver.Error):
                native.execute("ROLLBACK")
        if reason is None:
            expected[case] = rows
        elif not case.is_common:
            report.unknown.append((case, reason))
    engine.begin_again()
    native = engine.native()
    for statement in NATIVE[engine.name]:
        native.execute(statement)
    connection = engine.connect(checkpoint="manual")
    for statement in WORLD:
        connection.execute(statement)
    connection.commit()
    for case, rows in expected.items():
        _through_tique(connection, case, rows, report)
    return report


BEGIN = {
    "duckdb": "BEGIN",
    "postgresql": "BEGIN",
    "monetdb": "START TRANSACTION",
}
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "TRUNCATE")


def in_transaction(case):
    """Whether a case changes the tables of others."""
    return case.statements[0].startswith(_CHANGES)


_OTHERWISE = re.compile(
    r"SAMPLE|duckdb_|pg_\w+|information_schema|glob|sys\.(?!item)|nextval"
)
"""What may have another number of rows: samples, and what shows all objects."""


def _count(cursor):
    return len(cursor.fetchall()) if cursor.description else None


def _through_tique(connection, case, rows, report):
    for statement, expected in zip(case.statements, rows, strict=True):
        try:
            count = _count(connection.execute(statement))
        except tique.NotSupportedError as error:
            report.refused.append((case, str(error).split("\n")[0]))
            break
        except tique.Error as error:
            # The parser is not the engine's: it takes what it does not know for wrong.
            is_refusal = str(error).startswith("syntax error near")
            found = report.refused if is_refusal else report.faults
            found.append((case, f"{type(error).__name__}: {error}"))
            break
        is_query = statement.startswith(("SELECT", "FROM", "VALUES", "TABLE", "("))
        if is_query and count != expected and not _OTHERWISE.search(statement):
            report.faults.append((case, f"{count} rows, natively {expected}"))
            break
    else:
        report.accepted[case.category] += 1
    try:
        connection.rollback()
    except tique.Error as error:
        report.faults.append((case, f"rollback: {error}"))
