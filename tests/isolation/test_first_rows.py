"""SERIALIZABLE: the first rows of an order are what a queue's taker sees (P1).

Where memory has the rows of a group, ``min()`` and ``ORDER BY … LIMIT`` have seen it up to
the last row of the result, or all of it if there were fewer. What changes the result is in
the way in any case; what comes behind the last row is not.
"""

from __future__ import annotations

from contextlib import closing

import pytest

import tique
from tests.effort import effort
from tests.plugins.engine import ENGINES, label

QUERIES = {
    "min": "SELECT min(id) FROM q WHERE g = 1",
    "max": "SELECT max(id) FROM q WHERE g = 1",
    "first": "SELECT id FROM q WHERE g = 1 ORDER BY id LIMIT 1",
    "first, by a column": "SELECT min(v) FROM q WHERE g = 1",
    "last, by a column": "SELECT max(v) FROM q WHERE g = 1",
    "last": "SELECT id, v FROM q WHERE g = 1 ORDER BY id DESC LIMIT 1",
    "two": "SELECT id, v FROM q WHERE g = 1 ORDER BY id LIMIT 2",
    "more than there are": "SELECT id FROM q WHERE g = 1 ORDER BY id LIMIT 9",
    "as many as there are": "SELECT id FROM q WHERE g = 1 ORDER BY id LIMIT 4",
    "filtered": "SELECT id FROM q WHERE g = 1 AND v > 25 ORDER BY id LIMIT 1",
    "filtered min": "SELECT min(id) FROM q WHERE g = 1 AND v > 25",
    "of a part": "SELECT id FROM q WHERE g = 1 AND id > 3 ORDER BY id LIMIT 1",
    "of nothing": "SELECT id FROM q WHERE g = 7 ORDER BY id LIMIT 1",
    "min of nothing": "SELECT min(id) FROM q WHERE g = 7",
    "of NULL": "SELECT min(w) FROM q WHERE g = 1",
    "with others' values": "SELECT w FROM q WHERE g = 1 ORDER BY id LIMIT 1",
    "by two columns": "SELECT v, id FROM q WHERE g = 1 ORDER BY v, id LIMIT 2",
    "behind some": "SELECT id FROM q WHERE g = 1 ORDER BY id LIMIT 1 OFFSET 1",
    "distinct": "SELECT DISTINCT id FROM q WHERE g = 1 ORDER BY id LIMIT 2",
}
EFFECTS = (
    "INSERT INTO q VALUES (1, 1, 5, NULL)",
    "INSERT INTO q VALUES (1, 3, 35, NULL)",
    "INSERT INTO q VALUES (1, 9, 45, 1)",
    "INSERT INTO q VALUES (1, 9, 1, NULL)",
    "INSERT INTO q VALUES (7, 1, 1, 1)",
    "INSERT INTO q VALUES (2, 0, 0, 0)",
    "DELETE FROM q WHERE g = 1 AND id = 2",
    "DELETE FROM q WHERE g = 1 AND id = 4",
    "DELETE FROM q WHERE g = 1 AND id = 8",
    "DELETE FROM q WHERE g = 1",
    "UPDATE q SET v = 50 WHERE g = 1 AND id = 2",
    "UPDATE q SET v = 1 WHERE g = 1 AND id = 8",
    "UPDATE q SET v = NULL WHERE g = 1 AND id = 2",
    "UPDATE q SET w = 0 WHERE g = 1 AND id = 2",
    "UPDATE q SET w = 0 WHERE g = 1 AND id = 6",
    "UPDATE q SET id = 5 WHERE g = 1 AND id = 2",
    "UPDATE q SET id = 1 WHERE g = 1 AND id = 8",
    "UPDATE q SET g = 2 WHERE g = 1 AND id = 2",
    "UPDATE q SET g = 7 WHERE g = 1 AND id = 8",
)
BEHIND = {
    "min": EFFECTS[2:3],
    "first": EFFECTS[2:4],
    "two": EFFECTS[2:4],
    "filtered": EFFECTS[2:3],
}
"""What is behind the last row of these."""

OWN = {
    "": [],
    "an own row before": ["INSERT INTO q VALUES (1, 0, 9, NULL)"],
    "an own row behind": ["INSERT INTO q VALUES (1, 7, 41, NULL)"],
    "an own row in between": ["INSERT INTO q VALUES (1, 3, 39, NULL)"],
    "a row that it has deleted": ["DELETE FROM q WHERE g = 1 AND id = 2"],
    "a row that it has changed": ["UPDATE q SET v = 7 WHERE g = 1 AND id = 4"],
    "a row that was taken back": [
        "SAVEPOINT s",
        "INSERT INTO q VALUES (1, 0, 9, NULL)",
        "{query}",
        "ROLLBACK TO s",
    ],
}


@pytest.fixture(scope="module", params=ENGINES, ids=label)
def engine(request, tmp_path_factory):
    with request.param.lasting(tmp_path_factory) as opened:
        with opened.connect(checkpoint="manual") as connection:
            connection.execute(
                "CREATE TABLE q (g INTEGER, id INTEGER, v INTEGER, w INTEGER, "
                "PRIMARY KEY (g, id))"
            )
            connection.execute("CREATE TABLE dot (id INTEGER PRIMARY KEY)")
        yield opened


@pytest.fixture
def keeper(engine):
    with closing(engine.connect(checkpoint="manual")) as opened:
        yield opened


def fill(keeper):
    keeper.execute("DELETE FROM q")
    keeper.execute("DELETE FROM dot")
    keeper.execute(
        "INSERT INTO q VALUES (1, 2, 20, NULL), (1, 6, 30, NULL), (2, 5, 1, 1)"
    )
    keeper.commit()
    keeper.checkpoint()
    keeper.execute("INSERT INTO q VALUES (1, 4, 40, NULL), (1, 8, 30, NULL)")
    keeper.commit()


def ask(connection, query):
    return connection.execute(query).fetchall()


def trial(engine, keeper, query, own, effect):
    """Whether a transaction is refused, and whether what it has seen is another now."""
    fill(keeper)
    with closing(
        engine.connect(checkpoint="manual", isolation_level="SERIALIZABLE")
    ) as reader:
        for _ in range(3):
            # The group comes into memory, and is looked for there.
            ask(reader, query)
            reader.commit()
        for sql in own:
            reader.execute(sql.format(query=query))
        before = ask(reader, query)
        reader.execute("INSERT INTO dot VALUES (1)")
        keeper.execute(effect)
        keeper.commit()
        try:
            reader.commit()
        except tique.SerializationError:
            return True, None
        # Its own rows are there, too, as they were when it asked.
        after = ask(keeper, query)
        keeper.rollback()
        return False, after != before


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("own", effort(["", "an own row before"], [*OWN]))
def test_what_changes_the_result_is_in_the_way(engine, keeper, query, own):
    wrong = [
        effect
        for effect in EFFECTS
        if trial(engine, keeper, query, OWN[own], effect) == (False, True)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", BEHIND)
def test_what_is_behind_is_not(engine, keeper, name):
    refused = [
        effect
        for effect in BEHIND[name]
        if trial(engine, keeper, QUERIES[name], [], effect)[0]
    ]
    assert refused == []
