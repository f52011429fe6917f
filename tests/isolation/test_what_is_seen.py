"""SERIALIZABLE: what each kind of statement sees, and what that leaves to others (P1).

A transaction reads the rows of class 1 and their values in some way, another one commits a
change of the table, and the first, which has written elsewhere, commits or is refused. It has
to be refused for each of ``HITS``, and must not be for any of ``MISSES``.

Precision that may not be had, and why, is in ``WHOLE``: there rows of other classes are in
the way, and of course rows of this one.
"""

from __future__ import annotations

from contextlib import closing

import pytest

import tique
from tests.plugins.engine import ENGINES, label
from tests.portable import numbers
from tique.query.write import changes

HITS = {
    "a row comes": "INSERT INTO item VALUES (9, 1, 5, 0, 109)",
    "a row goes": "DELETE FROM item WHERE id = 2",
    "a row that comes by its class": "UPDATE item SET class = 1 WHERE id = 3",
    "a row that goes by its class": "UPDATE item SET class = 3 WHERE id = 1",
    "rows come in bulk": "INSERT INTO item SELECT number + 100, 1, number, 0, NULL "
    f"FROM {numbers(60)}",
    "rows change in bulk": "INSERT INTO item SELECT number + 100, 2, 0, 0, NULL "
    f"FROM {numbers(60)}; UPDATE item SET class = 3 - class",
}
"""Of a row that a count looks at, too."""

VALUE = {
    "a value": "UPDATE item SET v = 11 WHERE id = 1",
    "a value, computed": "UPDATE item SET v = v + 1 WHERE id = 2",
    "a value in bulk": "INSERT INTO item SELECT number + 100, 2, 0, 0, NULL "
    f"FROM {numbers(60)}; UPDATE item SET v = v + 1",
}
"""Where values are looked at."""

MISSES = {
    "another column": "UPDATE item SET w = 5 WHERE class = 1",
    "the same value": "UPDATE item SET v = 10 WHERE id = 1",
    "there and back": "UPDATE item SET class = 3; COMMIT; "
    "UPDATE item SET class = 1 WHERE id < 3; UPDATE item SET class = 2 WHERE id > 2",
    "a row that came and went": "INSERT INTO item VALUES (9, 1, 5, 0, 109); COMMIT; "
    "DELETE FROM item WHERE id = 9",
    "a row that went and came": "DELETE FROM item WHERE id = 2; COMMIT; "
    "INSERT INTO item VALUES (2, 1, 20, 7, 107)",
}
"""Of rows that were seen."""

OUTSIDE = {
    "outside: a row comes": "INSERT INTO item VALUES (9, 2, 5, 0, 109)",
    "outside: a row goes": "DELETE FROM item WHERE id = 4",
    "outside: a value": "UPDATE item SET v = 7 WHERE id = 3",
    "outside: another class": "UPDATE item SET class = 3 WHERE id = 4",
    "outside: in bulk": "INSERT INTO item SELECT number + 100, 2, number, 0, NULL "
    f"FROM {numbers(60)}",
}
"""Of others."""

COUNTS = {
    "count": "SELECT count(*) FROM item WHERE class = 1",
    "a parameter": ("SELECT count(*) FROM item WHERE class = %s", [1]),
    "IN with literals": "SELECT count(*) FROM item WHERE class IN (1, 5)",
    "BETWEEN": "SELECT count(*) FROM item WHERE class BETWEEN 0 AND 1",
    "keys": "SELECT id FROM item WHERE class = 1 ORDER BY id",
    "EXISTS": "SELECT id FROM dot WHERE EXISTS (SELECT 1 FROM item WHERE class = 1)",
    "a count in a condition": "UPDATE dot SET n = 1 WHERE "
    "(SELECT count(*) FROM item WHERE class = 1) = 2",
    "DELETE by a count": "DELETE FROM dot WHERE id = "
    "(SELECT count(*) FROM item WHERE class = 1)",
}
"""Statements that look at no value."""

READS = {
    "query": "SELECT id, v FROM item WHERE class = 1",
    "parameters": ("SELECT id, v FROM item WHERE class = %s AND v < %s", [1, 1000]),
    "named parameters": (
        "SELECT v FROM item WHERE class = %(class)s",
        {"class": 1},
    ),
    "sum": "SELECT sum(v) FROM item WHERE class = 1",
    "max": "SELECT max(v), min(v) FROM item WHERE class = 1",
    "GROUP BY": "SELECT class, sum(v) FROM item WHERE class = 1 GROUP BY class",
    "HAVING": "SELECT class FROM item WHERE class = 1 GROUP BY class HAVING sum(v) > 5",
    "ORDER BY": "SELECT id FROM item WHERE class = 1 ORDER BY v DESC",
    "LIMIT": "SELECT id FROM item WHERE class = 1 ORDER BY v LIMIT 2",
    "DISTINCT": "SELECT DISTINCT v FROM item WHERE class = 1",
    "window": "SELECT id, sum(v) OVER (ORDER BY id) FROM item WHERE class = 1",
    "derived table": "SELECT sum(v) FROM (SELECT v FROM item WHERE class = 1) AS s",
    "CTE": "WITH one AS (SELECT v FROM item WHERE class = 1) SELECT sum(v) FROM one",
    "UNION": "SELECT v FROM item WHERE class = 1 UNION SELECT n FROM dot",
    "EXCEPT": "SELECT n FROM dot EXCEPT SELECT v FROM item WHERE class = 1",
    "INTERSECT": "SELECT n FROM dot INTERSECT SELECT v FROM item WHERE class = 1",
    "scalar subquery": "SELECT id, (SELECT sum(v) FROM item WHERE class = 1) FROM dot",
    "IN": "SELECT id FROM dot WHERE n IN (SELECT v FROM item WHERE class = 1)",
    "NOT IN": "SELECT id FROM dot WHERE n NOT IN (SELECT v FROM item WHERE class = 1)",
    "join": "SELECT n, v FROM dot JOIN item ON dot.id < item.id WHERE item.class = 1",
    "join's ON": "SELECT n, v FROM dot JOIN item ON dot.id < item.id AND class = 1",
    "comma join": "SELECT n, v FROM dot, item WHERE dot.id < item.id AND class = 1",
    "self-join": "SELECT a.v, b.v FROM item AS a JOIN item AS b ON a.id = b.id "
    "WHERE a.class = 1 AND b.class = 1",
    "view": "SELECT sum(v) FROM first_class",
    "RETURNING": "UPDATE item SET w = 1 WHERE class = 1 RETURNING v",
    "INSERT … SELECT": "INSERT INTO copied SELECT id, v FROM item WHERE class = 1",
    "INSERT of a subquery": "INSERT INTO copied "
    "VALUES (1, (SELECT sum(v) FROM item WHERE class = 1))",
    "ON CONFLICT": "INSERT INTO copied SELECT 0, CAST(sum(v) AS INTEGER) FROM item "
    "WHERE class = 1 ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v",
    "UPDATE by a subquery": "UPDATE dot SET n = (SELECT sum(v) FROM item WHERE class = 1)",
    "UPDATE … FROM": "UPDATE dot SET n = item.v FROM item "
    "WHERE dot.id = item.id AND item.class = 1",
    "DELETE by a subquery": "DELETE FROM dot "
    "WHERE n IN (SELECT v FROM item WHERE class = 1)",
    "MERGE": "MERGE INTO dot USING (SELECT id, v FROM item WHERE class = 1) AS s "
    "ON dot.id = s.id WHEN MATCHED THEN UPDATE SET n = s.v "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)",
    "UPDATE by values": "UPDATE item SET w = v WHERE class = 1",
}
"""Statements that look at values."""

WHOLE = {
    "left join": "SELECT dot.n, item.v FROM dot LEFT JOIN item "
    "ON dot.id = item.id AND item.class = 1",
    "correlated": "SELECT (SELECT sum(v) FROM item WHERE class = dot.id) FROM dot "
    "WHERE dot.id = 1",
    "FILTER": "SELECT sum(CASE WHEN class = 1 THEN v END) FROM item",
    "expression": "SELECT sum(v) FROM item WHERE abs(class - 1) = 0",
    "all rows": "SELECT sum(CASE class WHEN 1 THEN v ELSE 0 END) FROM item",
}
"""Conditions that are not of a row of the table alone, or not known to the driver."""

SCHEMA = (
    "CREATE TABLE item (id INTEGER PRIMARY KEY, class INTEGER, v INTEGER, w INTEGER, "
    "code INTEGER UNIQUE)",
    "CREATE TABLE dot (id INTEGER PRIMARY KEY, n INTEGER)",
    "CREATE TABLE copied (id INTEGER PRIMARY KEY, v INTEGER)",
    "CREATE VIEW first_class AS SELECT v FROM item WHERE class = 1",
)
ELSEWHERE = "INSERT INTO copied VALUES (1000, 0)"


@pytest.fixture
def small_buffer(monkeypatch):
    """So many rows that are staged need not be many."""
    monkeypatch.setattr(changes, "BUFFERED_ROWS", 50)


class Trial:
    """One transaction that reads, and another that commits, again and again."""

    def __init__(self, engine):
        self.engine = engine
        self.keeper = self.connect()
        self.keeper.isolation_level = "SNAPSHOT"
        self.writer = self.connect()

    @staticmethod
    def create(engine):
        connection = engine.connect(checkpoint="manual")
        for sql in SCHEMA:
            connection.execute(sql)
            connection.commit()

    def connect(self, **options):
        return self.engine.connect(
            checkpoint="manual", isolation_level="SERIALIZABLE", **options
        )

    def close(self):
        self.writer.close()
        self.keeper.close()

    def fill(self):
        run(
            self.keeper,
            "DELETE FROM item; DELETE FROM dot; DELETE FROM copied; "
            "INSERT INTO item VALUES (1, 1, 10, 0, 101), (3, 2, 100, 0, 103); "
            "INSERT INTO dot VALUES (1, 10), (2, 30), (3, 40); "
            "INSERT INTO copied VALUES (0, 0); COMMIT",
        )
        self.keeper.checkpoint()
        run(
            self.keeper,
            "INSERT INTO item VALUES (2, 1, 20, 0, 102), (4, 2, 200, 0, 104); COMMIT",
        )

    def is_refused(self, read, effect, **options):
        """Whether a transaction that has read is, after the effect."""
        self.fill()
        # Closed, as the next one of a connection that lost has a turn.
        with self.connect(**options) as reader:
            reader.execute("SELECT n FROM dot WHERE id = 1").fetchall()
            read(reader)
            run(self.writer, effect)
            self.writer.commit()
            # Where several processes may commit, one may know of its own commits only
            # when it has read on; a change that a later one takes back counts until then.
            self.keeper.execute("SELECT count(*) FROM item").fetchall()
            self.keeper.rollback()
            reader.execute(ELSEWHERE)
            try:
                reader.commit()
            except tique.SerializationError:
                return True
            return False


def run(connection, statements):
    for sql in statements.split("; "):
        if sql == "CHECKPOINT":
            connection.commit()
            connection.checkpoint()
        else:
            connection.execute(sql)


@pytest.fixture(scope="module", params=ENGINES, ids=label)
def engine(request, tmp_path_factory):
    with request.param.lasting(tmp_path_factory) as opened:
        Trial.create(opened)
        yield opened


@pytest.fixture
def trial(engine, small_buffer):
    with closing(Trial(engine)) as opened:
        yield opened


def executed(statement):
    """A function that runs a statement, with parameters if it has any, and fetches."""
    sql, parameters = (statement, None) if isinstance(statement, str) else statement

    def read(connection):
        cursor = connection.execute(sql, parameters)
        if cursor.description is not None:
            cursor.fetchall()

    return read


def judge(trial, read, hits, misses):
    """See for which effects the transaction is refused."""
    refused = {
        name for name, sql in {**hits, **misses}.items() if trial.is_refused(read, sql)
    }
    assert (hits.keys() - refused, refused - hits.keys()) == (set(), set())


def cases(statements):
    return pytest.mark.parametrize(
        "statement", statements.values(), ids=statements.keys()
    )


@pytest.mark.slow
@cases(COUNTS)
def test_a_count(trial, statement):
    judge(trial, executed(statement), HITS, {**VALUE, **MISSES, **OUTSIDE})


@pytest.mark.slow
@cases(READS)
def test_values(trial, statement):
    misses = {**MISSES, **OUTSIDE}
    if isinstance(statement, str) and statement.startswith("UPDATE item"):
        # Its own writes meet those of others to the same rows.
        misses = OUTSIDE
    judge(trial, executed(statement), {**HITS, **VALUE}, misses)


@pytest.mark.slow
@cases(WHOLE)
def test_whole_tables(trial, statement):
    judge(trial, executed(statement), {**HITS, **VALUE}, MISSES)


QUERY = "SELECT id, v FROM item WHERE class = 1"


def fetches_nothing(connection):
    connection.execute(QUERY)


def fetches_one_row(connection):
    assert connection.execute(f"{QUERY} ORDER BY id").fetchone() == (1, 10)


def fetches_of_a_named_cursor(connection):
    with connection.cursor("named") as cursor:
        cursor.itersize = 1
        assert cursor.execute(f"{QUERY} ORDER BY id").fetchone() == (1, 10)


def streams(connection):
    rows = connection.cursor().stream(f"{QUERY} ORDER BY id")
    assert next(rows) == (1, 10)
    rows.close()


def fetches_columns(connection):
    assert connection.execute(QUERY).fetch_arrow_table().num_rows == 2


def changes_many_times(connection):
    connection.cursor().executemany(
        "UPDATE dot SET n = (SELECT sum(v) FROM item WHERE class = %s) WHERE id = %s",
        [(1, 1), (7, 2)],
    )


def is_taken_back(connection):
    connection.execute("SAVEPOINT s")
    connection.execute("INSERT INTO copied SELECT id, v FROM item WHERE class = 1")
    connection.execute("ROLLBACK TO s")


def is_taken_back_in_a_block(connection):
    with connection.transaction(force_rollback=True):
        connection.execute(QUERY).fetchall()


def fails(connection):
    with pytest.raises(tique.IntegrityError):
        connection.execute(
            "INSERT INTO copied SELECT id - id, v FROM item WHERE class = 1"
        )


def reads_in_pieces(connection):
    for key in (1, 2):
        connection.execute("SELECT v FROM item WHERE id = %s", (key,)).fetchall()
    connection.execute("SELECT count(*) FROM item WHERE class = 1").fetchall()


def reads_in_bulk(connection):
    """Its own rows are staged, so that the engine joins them."""
    connection.execute(
        f"INSERT INTO item SELECT number + 2000, 7, number, 0, NULL FROM {numbers(60)}"
    )
    connection.execute(QUERY).fetchall()


def writes_in_bulk(connection):
    connection.execute(
        "INSERT INTO copied SELECT number + 2000, v FROM item, "
        f"{numbers(60)} WHERE item.class = 1 AND v = 10 + number - number"
    )
    connection.execute(QUERY)


def prepares(connection):
    connection.execute("PREPARE one AS SELECT id, v FROM item WHERE class = $1")
    connection.execute("EXECUTE one(1)").fetchall()
    connection.execute("DEALLOCATE one")


def copies(connection):
    with connection.cursor().copy(f"COPY ({QUERY}) TO STDOUT") as copy:
        assert len(b"".join(copy).splitlines()) == 2


def recurses(connection):
    connection.execute(
        "WITH RECURSIVE r (n) AS (SELECT v FROM item WHERE class = 1 UNION ALL "
        "SELECT n + 10 FROM r WHERE n < 50) SELECT count(*), sum(n) FROM r"
    ).fetchall()


def changes_in_with(connection):
    connection.execute(
        "WITH made AS (INSERT INTO copied SELECT id, v FROM item WHERE class = 1 "
        "RETURNING v) SELECT sum(v) FROM made"
    ).fetchall()


DUCKDB = pytest.mark.written_for(["duckdb"], reason="DuckDB's own")
POSTGRESQL = pytest.mark.written_for(["postgresql"], reason="PostgreSQL's own")
WITH_CHANGES = pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB has no changes in WITH"
)
RECURSIVE = pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB writes recursion otherwise"
)
PREPARED = pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB's PREPARE has no names"
)
WAYS = [
    fetches_nothing,
    fetches_one_row,
    fetches_of_a_named_cursor,
    streams,
    fetches_columns,
    changes_many_times,
    is_taken_back,
    is_taken_back_in_a_block,
    fails,
    reads_in_pieces,
    reads_in_bulk,
    writes_in_bulk,
    pytest.param(prepares, marks=PREPARED),
    pytest.param(copies, marks=POSTGRESQL),
    pytest.param(changes_in_with, marks=WITH_CHANGES),
    pytest.param(recurses, marks=RECURSIVE),
]


@pytest.mark.slow
@pytest.mark.parametrize("read", WAYS, ids=lambda read: read.__name__)
def test_ways_to_read(trial, read):
    """P8: what a savepoint or a failed statement takes back was seen."""
    judge(trial, read, {**HITS, **VALUE}, {**MISSES, **OUTSIDE})


@pytest.mark.slow
@DUCKDB
def test_a_file(trial, tmp_path):
    def read(connection):
        connection.execute(f"COPY ({QUERY}) TO '{tmp_path}/rows.csv'")

    judge(trial, read, {**HITS, **VALUE}, {**MISSES, **OUTSIDE})


def test_without_a_write_nothing_is_refused(trial):
    """Read-only transactions are at their beginning in the order, and see a prefix of it."""
    with trial.connect() as reader:
        for sql in {**HITS, **VALUE}.values():
            trial.fill()
            before = reader.execute(f"{QUERY} ORDER BY id").fetchall()
            run(trial.writer, sql)
            trial.writer.commit()
            assert reader.execute(f"{QUERY} ORDER BY id").fetchall() == before
            reader.commit()


def test_autocommit_is_not_refused_for_itself(trial):
    """Each statement is a transaction, which sees the newest state."""
    trial.writer.autocommit = True
    for sql in {**HITS, **VALUE}.values():
        trial.fill()
        run(trial.writer, sql)
        trial.writer.execute(QUERY).fetchall()


@pytest.mark.parametrize("lock", ["FOR UPDATE", "FOR SHARE"])
def test_locked_rows(trial, lock):
    """Rows that come are seen to be there, whatever is locked."""

    def read(connection):
        connection.execute(f"{QUERY} {lock}").fetchall()

    names = ("a row comes", "a row that comes by its class")
    judge(trial, read, {name: HITS[name] for name in names}, OUTSIDE)


def folded(effects):
    """With a checkpoint behind each."""
    return {name: f"{sql}; CHECKPOINT" for name, sql in effects.items()}


def test_a_held_snapshot(trial):
    """P7: one that the engine keeps for the transaction, while all is folded."""

    def read(connection):
        executed(QUERY)(connection)
        with connection._execution.guarded():
            connection._execution.transaction.hold()

    judge(trial, read, folded({**HITS, **VALUE}), {})
    elsewhere = {"elsewhere": "UPDATE dot SET n = 7 WHERE id = 3; CHECKPOINT"}
    judge(trial, read, {}, elsewhere)


def test_folds_meanwhile(trial):
    """P7."""
    misses = folded({**MISSES, **OUTSIDE})
    judge(trial, executed(QUERY), folded({**HITS, **VALUE}), misses)


def test_others_at_a_weaker_level(trial):
    """What they commit counts, although they see to nothing themselves."""
    for level in ("SNAPSHOT", "READ COMMITTED"):
        trial.writer.isolation_level = level
        judge(trial, executed(QUERY), {**HITS, **VALUE}, OUTSIDE)


def test_a_migration_that_has_read(trial):
    """P5: a transaction with DDL, in an engine transaction that is held."""

    def read(connection):
        executed(QUERY)(connection)
        connection.execute("CREATE TABLE made (id INTEGER PRIMARY KEY)")

    assert trial.is_refused(read, VALUE["a value"], transactional_ddl=True)
