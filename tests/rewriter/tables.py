"""The tables of the rewriter's tests, as a catalog and as DDL with some rows."""

from __future__ import annotations

from tique_rewriter.safety.hidden_calls import HiddenCalls
from tique_rewriter.schema import Attached, Column, Generated, Table, View

ACCOUNT = Table(
    "main",
    "account",
    (
        Column("id", "INTEGER", not_null=True),
        Column("Owner", "VARCHAR"),
        Column("balance", "DECIMAL(12,2)", default="0.00"),
        Column("open", "BOOLEAN"),
    ),
    (0,),
)
STOCK = Table(
    "main",
    "stock",
    (
        Column("warehouse", "INTEGER", not_null=True),
        Column("item", "INTEGER", not_null=True),
        Column("quantity", "INTEGER"),
        Column("note", "VARCHAR"),
    ),
    (0, 1),
)
EVENT = Table(
    "main", "event", (Column("account", "INTEGER"), Column("what", "VARCHAR"))
)
OTHER = Table(
    "other",
    "account",
    (Column("id", "INTEGER", not_null=True), Column("name", "VARCHAR")),
    (0,),
)
SPACED = Table(
    "main",
    "T x",
    (Column("the id", "BIGINT", not_null=True), Column("é", "VARCHAR")),
    (0,),
)
MEMBER = Table(
    "main",
    "member",
    (
        Column("id", "INTEGER", not_null=True),
        Column("email", "VARCHAR"),
        Column("team", "INTEGER"),
        Column("seat", "INTEGER", default="1"),
    ),
    (0,),
    unique=((1,), (2, 3)),
)
PRICED = Table(
    "main",
    "priced",
    (Column("id", "INTEGER", not_null=True), Column("net", "INTEGER")),
    (0,),
    generated=(Generated("gross", "INTEGER", "CAST((net * 2) AS INTEGER)", 1),),
)

SETUP = """
CREATE SCHEMA other;
CREATE TABLE account (id INTEGER PRIMARY KEY, "Owner" VARCHAR,
                      balance DECIMAL(12,2) DEFAULT 0.00, open BOOLEAN);
CREATE TABLE stock (warehouse INTEGER, item INTEGER, quantity INTEGER, note VARCHAR,
                    PRIMARY KEY (warehouse, item));
CREATE TABLE event (account INTEGER, what VARCHAR);
CREATE TABLE other.account (id INTEGER PRIMARY KEY, name VARCHAR);
CREATE TABLE "T x" ("the id" BIGINT PRIMARY KEY, "é" VARCHAR);
CREATE TABLE member (id INTEGER PRIMARY KEY, email VARCHAR UNIQUE, team INTEGER,
                     seat INTEGER DEFAULT 1, UNIQUE (team, seat));
CREATE TABLE priced (id INTEGER PRIMARY KEY, gross INTEGER AS (net * 2), net INTEGER);
INSERT INTO account VALUES (1, 'ada', 10.50, true), (2, 'bob', 20, false),
                           (3, 'cyd', NULL, true), (4, NULL, -4.25, NULL);
INSERT INTO stock VALUES (1, 1, 5, 'x'), (1, 2, 7, NULL), (2, 1, 1, 'y'),
                         (2, 3, NULL, 'z'), (4, 1, 9, 'w');
INSERT INTO event VALUES (1, 'in'), (1, 'in'), (2, 'out'), (9, 'lost'), (NULL, '?');
INSERT INTO other.account VALUES (1, 'eins'), (2, 'zwei'), (7, 'sieben');
INSERT INTO "T x" VALUES (1, 'a'), (2, 'b');
"""


class Tables:
    """A catalog of the tables above."""

    version = 1
    default_schema = "main"
    database = "shop"
    all = (ACCOUNT, STOCK, EVENT, OTHER, SPACED, MEMBER, PRICED)
    all_views: tuple[View, ...] = ()
    functions: tuple[tuple[str | None, str], ...] = ()
    unsafe_functions: tuple[str, ...] = ()
    hidden_calls = HiddenCalls(())

    def __init__(self) -> None:
        self.tables = {(t.schema.lower(), t.name.lower()): t for t in self.all}
        self.views = {
            (v.table.schema.lower(), v.table.name.lower()): v for v in self.all_views
        }

    def find(self, schema: str | None, name: str) -> Table | None:
        schema = self.default_schema if schema is None else schema
        return self.tables.get((schema.lower(), name.lower()))

    named = find

    def may_call(self, schema: str | None, name: str) -> bool:
        return (schema, name) in self.functions

    @property
    def has_unsafe_functions(self) -> bool:
        return bool(self.unsafe_functions)

    def is_unsafe(self, name: str) -> bool:
        return name.lower() in self.unsafe_functions

    def attached(self, name: str) -> Attached | None:
        found = Attached(
            "far", frozenset({("main", "town"), ("s", "q")}), frozenset({("main", "v")})
        )
        return found if name.lower() == "far" else None

    def view(self, schema: str | None, name: str) -> View | None:
        schema = self.default_schema if schema is None else schema
        return self.views.get((schema.lower(), name.lower()))
