"""The tables of the PostgreSQL dialect's tests, as a catalog and as DDL with some rows."""

from __future__ import annotations

from tests.rewriter.tables import Tables
from tique_rewriter.schema import Column, Generated, Table

ACCOUNT = Table(
    "public",
    "account",
    (
        Column("id", "integer", not_null=True),
        Column("Owner", "character varying(20)"),
        Column("balance", "numeric(12,2)", default="0.00"),
        Column("open", "boolean"),
    ),
    (0,),
)
STOCK = Table(
    "public",
    "stock",
    (
        Column("warehouse", "integer", not_null=True),
        Column("item", "integer", not_null=True),
        Column("quantity", "integer"),
        Column("note", "text"),
    ),
    (0, 1),
)
EVENT = Table("public", "event", (Column("account", "integer"), Column("what", "text")))
OTHER = Table(
    "other",
    "account",
    (Column("id", "integer", not_null=True), Column("name", "text")),
    (0,),
)
SPACED = Table(
    "public",
    "T x",
    (Column("the id", "bigint", not_null=True), Column("é", "text")),
    (0,),
)
MEMBER = Table(
    "public",
    "member",
    (
        Column("id", "integer", not_null=True),
        Column("email", "text"),
        Column("team", "integer"),
        Column("seat", "integer", default="1"),
    ),
    (0,),
    unique=((1,), (2, 3)),
    key_names=(("member_pkey", (0,)), ("member_email_key", (1,)), ("Seats", (2, 3))),
)
NUMBERED = Table(
    "public",
    "numbered",
    (
        Column("k", "integer", not_null=True),
        Column("n", "integer", default="nextval('q')", is_always=True),
    ),
    (0,),
)
DOCUMENT = Table(
    "public",
    "document",
    (
        Column("id", "integer", not_null=True),
        Column("data", "jsonb"),
        Column("tags", "text[]"),
        Column("during", "int4range"),
    ),
    (0,),
)
PRICED = Table(
    "public",
    "priced",
    (Column("id", "integer", not_null=True), Column("net", "integer")),
    (0,),
    generated=(Generated("gross", "integer", "(net * 2)", 1),),
)
TALLY = Table(
    "public",
    "tally",
    (Column("warehouse", "integer"), Column("items", "bigint")),
    is_materialized=True,
)

SETUP = """
CREATE SCHEMA other;
CREATE TABLE account (id INTEGER PRIMARY KEY, "Owner" VARCHAR(20),
                      balance NUMERIC(12,2) DEFAULT 0.00, open BOOLEAN);
CREATE TABLE stock (warehouse INTEGER, item INTEGER, quantity INTEGER, note TEXT,
                    PRIMARY KEY (warehouse, item));
CREATE TABLE event (account INTEGER, what TEXT);
CREATE TABLE other.account (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE "T x" ("the id" BIGINT PRIMARY KEY, "é" TEXT);
CREATE TABLE member (id INTEGER PRIMARY KEY, email TEXT UNIQUE, team INTEGER,
                     seat INTEGER DEFAULT 1, CONSTRAINT "Seats" UNIQUE (team, seat));
CREATE MATERIALIZED VIEW tally AS
    SELECT warehouse, count(*) AS items FROM stock GROUP BY warehouse;
CREATE FUNCTION twice(a INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT a * 2';
CREATE FUNCTION other."Known"(a INTEGER) RETURNS INTEGER LANGUAGE sql AS 'SELECT a';
CREATE SEQUENCE q;
CREATE TABLE numbered (k INTEGER PRIMARY KEY, n INTEGER GENERATED ALWAYS AS IDENTITY);
CREATE TABLE document (id INTEGER PRIMARY KEY, data JSONB, tags TEXT[],
                       during INT4RANGE);
CREATE TABLE priced (id INTEGER PRIMARY KEY,
                     gross INTEGER GENERATED ALWAYS AS (net * 2) STORED, net INTEGER);
INSERT INTO account VALUES (1, 'ada', 10.50, true), (2, 'bob', 20, false),
                           (3, 'it''s', NULL, true), (4, NULL, -4.25, NULL);
INSERT INTO stock VALUES (1, 1, 5, 'x'), (1, 2, 7, NULL), (2, 1, 1, 'y'),
                         (2, 3, NULL, 'z'), (4, 1, 9, 'w');
INSERT INTO event VALUES (1, 'in'), (1, 'in'), (2, 'out'), (9, 'lost'), (NULL, '?');
INSERT INTO other.account VALUES (1, 'eins'), (2, 'zwei'), (7, 'sieben');
INSERT INTO "T x" VALUES (1, 'a'), (2, 'b');
INSERT INTO member VALUES (1, 'a@x', 1, 1), (2, NULL, 1, 2), (3, 'c@x', NULL, 1);
INSERT INTO document VALUES
    (1, '{"a": 1, "b": {"c": [10, 20]}, "tag": "x"}', '{red,green}', '[1,5)'),
    (2, '{"a": 2, "list": [1, 2, 3]}', '{blue}', '[3,9)'),
    (3, '[1, "two", null]', '{}', 'empty'),
    (4, NULL, NULL, NULL);
"""


class PostgreSQLTables(Tables):
    """A catalog of the tables above."""

    default_schema = "public"
    all = (
        ACCOUNT,
        STOCK,
        EVENT,
        OTHER,
        SPACED,
        MEMBER,
        NUMBERED,
        DOCUMENT,
        PRICED,
        TALLY,
    )
    functions = ((None, "twice"), ("public", "twice"), ("other", "Known"))
