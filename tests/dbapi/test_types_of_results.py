"""The types of a result's columns are the same wherever its rows are (P1, P8).

Their lengths and precisions are what ``CREATE TABLE … AS`` makes of a query.
"""

from __future__ import annotations

from itertools import count

import pytest

pytestmark = pytest.mark.fresh_tables

# Of the rows of the first ones all is known in memory.
PLAIN = "n DECIMAL(9, 2), s VARCHAR(5)", "1.5, 'a'"
MORE = {
    "duckdb": (", t TIMESTAMP_MS, l DECIMAL(4, 1)[]", ", '2020-01-01', [1.5]"),
    "monetdb": (
        ", t TIMESTAMP(3), l INTERVAL SECOND",
        ", '2020-01-01 01:02:03.004', INTERVAL '5' SECOND",
    ),
    "postgresql": (
        ", t TIMESTAMP(3), l DECIMAL(4, 1)[], c CHAR(4), b BIT(3), v BIT VARYING(5), "
        "z TIMESTAMPTZ(1), y INTERVAL YEAR TO MONTH, i INTERVAL SECOND(2)",
        ", '2020-01-01 01:02:03.004', '{1.5}', 'ab', '101', '10', "
        "'2020-01-01 01:02:03.4', '2 years', '5.67 seconds'",
    ),
}
# The number makes another statement of each: the driver knows the types of one that it had.
QUERIES = (
    "SELECT {0} AS z, item.* FROM item",
    "SELECT {0} AS z, item.* FROM item WHERE id = 1",
    "SELECT {0} AS z, item.* FROM item WHERE n >= 1.5 ORDER BY n",
    "SELECT {0} AS z, a.* FROM item AS a JOIN item AS b ON a.id = b.id",
)


@pytest.fixture(params=["plain", "more"])
def made(engine, request):
    """A connection, with a table, and values for its columns but the key."""
    more = MORE[engine.name] if request.param == "more" else ("", "")
    columns, values = map("".join, zip(PLAIN, more, strict=True))
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE item (id INTEGER PRIMARY KEY, {columns})")
    return connection, values


def _types(connection, query):
    return [column[:2] for column in connection.execute(query).description]


def test_wherever_the_rows_are(made):
    """Nowhere, in the buffer, in memory, in storage, beside newer ones, staged."""
    connection, values = made
    numbers = count()

    def types():
        at = next(numbers)
        return [_types(connection, query.format(at)) for query in QUERIES]

    expected = types()

    def check():
        assert types() == expected

    connection.execute("INSERT INTO item SELECT 1, " + values)
    check()
    connection.commit()
    check()
    connection.checkpoint()
    check()
    connection.execute(f"INSERT INTO item VALUES (2, {values}), (3, {values})")
    connection.execute("UPDATE item SET n = n + 1 WHERE id = 1")
    connection.commit()
    check()
    names = [
        column[0] for column in connection.execute("SELECT * FROM item").description
    ]
    others = ", ".join(f"a.{name}" for name in names[1:])
    connection.execute(
        f"INSERT INTO item SELECT a.id * 100 + b.id * 10 + c.id, {others} "
        "FROM item AS a, item AS b, item AS c"
    )
    check()
    connection.commit()
    check()


def test_of_a_table_that_a_query_makes(engine, made):
    """P9: the columns of CREATE TABLE … AS are those of the query's table."""
    connection, values = made
    connection.execute(f"INSERT INTO item VALUES (1, {values})")
    connection.commit()
    connection.execute("CREATE TABLE other AS SELECT * FROM item WITH DATA")
    connection.close()
    item, other = "SELECT * FROM item", "SELECT * FROM other"
    native = engine.native()
    first, second = (
        [
            (name, kind, precision, scale)
            for name, kind, _, _, precision, scale, _ in native.execute(
                query
            ).description
        ]
        for query in (item, other)
    )
    assert first == second
