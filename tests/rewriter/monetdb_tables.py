"""The tables of the MonetDB dialect's tests, as a catalog and as DDL with some rows."""

from __future__ import annotations

from tests.rewriter.tables import Tables
from tique_rewriter.schema import Column, Table

ACCOUNT = Table(
    "sys",
    "account",
    (
        Column("id", "INTEGER", not_null=True),
        Column("Owner", "VARCHAR(20)"),
        Column("balance", "DECIMAL(12,2)", default="0.00"),
        Column("open", "BOOLEAN"),
    ),
    (0,),
)
STOCK = Table(
    "sys",
    "stock",
    (
        Column("warehouse", "INTEGER", not_null=True),
        Column("item", "INTEGER", not_null=True),
        Column("quantity", "INTEGER"),
        Column("note", "CLOB"),
    ),
    (0, 1),
)
EVENT = Table(
    "sys", "event", (Column("account", "INTEGER"), Column("what", "VARCHAR(10)"))
)
OTHER = Table(
    "other",
    "account",
    (Column("id", "INTEGER", not_null=True), Column("name", "VARCHAR(10)")),
    (0,),
)
SPACED = Table(
    "sys",
    "T x",
    (Column("the id", "BIGINT", not_null=True), Column("é", "VARCHAR(5)")),
    (0,),
)

SETUP = (
    "CREATE SCHEMA other",
    """CREATE TABLE account (id INTEGER PRIMARY KEY, "Owner" VARCHAR(20),
                             balance DECIMAL(12,2) DEFAULT 0.00, "open" BOOLEAN)""",
    """CREATE TABLE stock (warehouse INTEGER, item INTEGER, quantity INTEGER, note CLOB,
                           PRIMARY KEY (warehouse, item))""",
    "CREATE TABLE event (account INTEGER, what VARCHAR(10))",
    "CREATE TABLE other.account (id INTEGER PRIMARY KEY, name VARCHAR(10))",
    'CREATE TABLE "T x" ("the id" BIGINT PRIMARY KEY, "é" VARCHAR(5))',
    """INSERT INTO account VALUES (1, 'ada', 10.50, true), (2, 'bob', 20, false),
                                  (3, 'it''s', NULL, true), (4, NULL, -4.25, NULL)""",
    """INSERT INTO stock VALUES (1, 1, 5, 'x'), (1, 2, 7, NULL), (2, 1, 1, 'y'),
                                (2, 3, NULL, 'z'), (4, 1, 9, 'w')""",
    """INSERT INTO event VALUES (1, 'in'), (1, 'in'), (2, 'out'), (9, 'lost'),
                                (NULL, '?')""",
    "INSERT INTO other.account VALUES (1, 'eins'), (2, 'zwei'), (7, 'sieben')",
    """INSERT INTO "T x" VALUES (1, 'a'), (2, 'b')""",
)


class MonetDBTables(Tables):
    """A catalog of the tables above."""

    default_schema = "sys"
    database = ""
    all = (ACCOUNT, STOCK, EVENT, OTHER, SPACED)
