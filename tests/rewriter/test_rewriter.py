from __future__ import annotations

import pickle
import threading
import time

import pytest

from tests.rewriter.fixture_files import read_cases
from tests.rewriter.rendering import text
from tests.rewriter.tables import ACCOUNT, Tables
from tique_rewriter import (
    ParameterError,
    RewriteError,
    Rewriter,
    UnknownTable,
    UnsupportedSQL,
)
from tique_rewriter.kinds.session.session import Nothing
from tique_rewriter.plans.plan import (
    Coalesced,
    ColumnValue,
    Literal,
    Select,
    SiblingConstruct,
)
from tique_rewriter.schema import Column, Table


@pytest.fixture
def rewriter() -> Rewriter:
    return Rewriter(Tables())


def test_a_plan_is_made_once(rewriter: Rewriter):
    assert rewriter.plan("FROM account") is rewriter.plan("FROM account")


def test_a_change_of_the_catalog_makes_a_new_plan():
    tables = Tables()
    rewriter = Rewriter(tables)
    with pytest.raises(UnknownTable):
        rewriter.plan("FROM fresh")
    tables.tables["main", "fresh"] = Table("main", "fresh", (Column("a", "INT"),))
    tables.version += 1
    made = rewriter.plan("FROM fresh").plan
    assert [r.table.name for r in made.references] == ["fresh"]


@pytest.mark.parametrize(
    ("sql", "beside"),
    [
        ("SELECT id, sum(id) OVER (PARTITION BY id) FROM account", set()),
        ("SELECT sum(id) OVER w FROM account WINDOW w AS (ORDER BY id)", set()),
        ("SELECT id FROM account WHERE id IN (1, 2)", set()),
        ("SELECT dense_rank() OVER () FROM account", {SiblingConstruct.WHOLE_WINDOW}),
        (
            "SELECT sum(id) OVER w FROM account WINDOW w AS (ROWS 1 PRECEDING)",
            {SiblingConstruct.WHOLE_WINDOW},
        ),
        (
            "FROM account QUALIFY row_number() OVER () = 1",
            {SiblingConstruct.WHOLE_WINDOW},
        ),
        (
            "SELECT 1 FROM account WHERE id IN (SELECT lag(id) OVER () FROM stock)",
            {SiblingConstruct.WHOLE_WINDOW, SiblingConstruct.COMPARISON},
        ),
        (
            "DELETE FROM account WHERE id = (SELECT lag(item) OVER () FROM stock)",
            {SiblingConstruct.WHOLE_WINDOW},
        ),
        (
            "INSERT INTO event SELECT rank() OVER (), note FROM stock",
            {SiblingConstruct.WHOLE_WINDOW},
        ),
    ],
)
def test_what_may_need_another_form(
    rewriter: Rewriter, sql: str, beside: set[SiblingConstruct]
):
    references = rewriter.plan(sql).plan.references
    assert references
    assert all(reference.beside == beside for reference in references)


def test_the_cache_does_not_grow_without_end():
    rewriter = Rewriter(Tables(), cache_size=10)
    for number in range(100):
        rewriter.plan(f"SELECT {number}")
    assert len(rewriter._cache) <= 10


def test_a_cached_plan_costs_about_a_microsecond(rewriter: Rewriter):
    sql = "SELECT balance FROM account WHERE id = %s"
    rewriter.plan(sql)
    best = min(_seconds(rewriter, sql) for _ in range(5))
    assert best < 10e-6


def _seconds(rewriter: Rewriter, sql: str) -> float:
    begin = time.perf_counter()
    for _ in range(1000):
        rewriter.plan(sql)
    return (time.perf_counter() - begin) / 1000


def test_many_threads_share_one_rewriter():
    rewriter = Rewriter(Tables(), cache_size=5)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for number in range(60):
                wanted = (number * seed) % 11
                made = rewriter.plan(f"SELECT {wanted} FROM account").plan
                assert isinstance(made, Select)
                assert made.text[0] == f"SELECT {wanted} FROM "
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_outside_the_holes_every_byte_stays():
    checked = 0
    for case in read_cases("select", "dialect", "binding"):
        if "%" in case.sql or not case.expected[0].startswith("query: "):
            continue
        if case.sql.startswith("TABLE"):
            # It is written as SELECT.
            continue
        made = Rewriter(Tables()).plan(case.sql).plan
        assert isinstance(made, Select)
        rest = case.sql
        for piece in made.text:
            if isinstance(piece, str):
                assert piece in rest
                rest = rest[rest.index(piece) + len(piece) :]
        checked += 1
    assert checked > 80


def test_positional_parameters(rewriter: Rewriter):
    prepared = rewriter.plan("SELECT %s, %s")
    assert prepared.bind((1, "a")) == [1, "a"]
    assert prepared.bind([None, 2]) == [None, 2]
    for parameters in ((1,), (1, 2, 3), None, {"a": 1}, "ab", 5):
        with pytest.raises(ParameterError, match=r"2 placeholders|sequence"):
            prepared.bind(parameters)


def test_named_parameters(rewriter: Rewriter):
    prepared = rewriter.plan("SELECT %(b)s, %(a)s, %(b)s")
    assert prepared.bind({"a": 1, "b": 2, "c": 3}) == [2, 1]
    with pytest.raises(ParameterError, match='lack "a"'):
        prepared.bind({"b": "secret"})
    with pytest.raises(ParameterError, match='"b", "a"'):
        prepared.bind((1, 2))


def test_no_parameters(rewriter: Rewriter):
    prepared = rewriter.plan("SELECT 7 % 2", has_parameters=False)
    assert prepared.bind(None) == prepared.bind(()) == prepared.bind({}) == []
    with pytest.raises(ParameterError, match="0 placeholders, but 1 parameter was"):
        prepared.bind((1,))


def test_messages_hold_no_values(rewriter: Rewriter):
    prepared = rewriter.plan("SELECT %s")
    for parameters in (("secret", "secret"), "secret", {"secret": "secret"}):
        with pytest.raises(ParameterError) as caught:
            prepared.bind(parameters)
        assert "secret" not in str(caught.value)


def test_question_marks():
    prepared = Rewriter(Tables(), paramstyle="qmark").plan("FROM account WHERE id = ?")
    assert isinstance(prepared.plan, Select)
    assert prepared.plan.point is not None
    assert prepared.bind([4]) == [4]


def test_other_styles_are_unknown():
    with pytest.raises(ValueError, match="pyformat, qmark"):
        Rewriter(Tables(), paramstyle="numeric")


def test_places_are_those_of_the_applications_text(rewriter: Rewriter):
    sql = "SELECT %(a long name)s, '%%',\n       %(b)s FROM account, nothing"
    with pytest.raises(UnknownTable) as caught:
        rewriter.plan(sql)
    error = caught.value
    assert sql[error.position :] == "nothing"
    assert (error.line, error.column) == (2, 28)


@pytest.mark.parametrize(
    "sql", ["", " ", ";", ";;", "-- nothing", "/* nothing */; -- more"]
)
def test_an_empty_statement(rewriter: Rewriter, sql: str):
    assert rewriter.plan(sql).plan == Nothing(0, ())


@pytest.mark.parametrize("mark", ["%b", "%t", "%(a)b", "%(a)t"])
def test_placeholders_with_psycopgs_formats(rewriter: Rewriter, mark: str):
    query = "SELECT id FROM account WHERE id = "
    postgresql = Rewriter(Tables(), "postgresql")
    found = postgresql.plan(query + mark)
    expected = postgresql.plan(f"{query}{mark[:-1]}s")
    assert (found.plan, found.arguments) == (expected.plan, expected.arguments)
    with pytest.raises(RewriteError, match="placeholder"):
        rewriter.plan(query + mark)


@pytest.mark.parametrize("after", ["", " ", "\n", " ; ", " -- what"])
def test_what_is_explained_may_be_followed_by_blanks(rewriter: Rewriter, after: str):
    explained = rewriter.plan("EXPLAIN SELECT id FROM account" + after).plan
    assert explained.statement.references[0].table.name == "account"


def test_deep_nesting_is_refused_not_crashed(rewriter: Rewriter):
    for sql in (
        "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT " + "- " * 5000 + "1",
    ):
        with pytest.raises(RewriteError):
            rewriter.plan(sql)


@pytest.mark.timeout(30)
def test_many_joins_without_conditions_do_not_take_for_ever(rewriter: Rewriter):
    def joined(kind: str) -> str:
        return "FROM event" + "".join(f" {kind} event e{n}" for n in range(60))

    for kind in ("JOIN", "LEFT JOIN"):
        with pytest.raises(RewriteError, match="a JOIN without ON at line 1, column"):
            rewriter.plan(joined(kind))
    for kind in ("CROSS JOIN", "NATURAL LEFT JOIN", "POSITIONAL JOIN", ","):
        assert len(rewriter.plan(joined(kind)).plan.references) == 61


@pytest.mark.timeout(30)
@pytest.mark.parametrize("dialect", ["duckdb", "monetdb", "postgresql"])
def test_types_in_types_do_not_take_for_ever(dialect: str):
    rewriter = Rewriter(Tables(), dialect)

    def nested(begin: str, end: str, depth: int) -> str:
        return f"SELECT {begin * depth}1{end * depth}"

    pairs = [("STRUCT(", ")"), ("INT(", ")"), ("INT(1, (DATE(", ")))")]
    if dialect != "monetdb":
        pairs += [("ARRAY[", "]"), ("INT[", "]"), ("ARRAY[(0 + ", ")]")]
    for begin, end in pairs:
        with pytest.raises(UnsupportedSQL, match="so deep a nesting of"):
            rewriter.plan(nested(begin, end, 30))
    assert rewriter.plan(nested("DATE(", ")", 5))


def test_long_conditions_are_planned(rewriter: Rewriter):
    sql = "FROM account WHERE " + " AND ".join(f"balance <> {n}" for n in range(100))
    assert isinstance(rewriter.plan(sql).plan, Select)


def test_errors_survive_pickling(rewriter: Rewriter):
    with pytest.raises(UnsupportedSQL) as caught:
        rewriter.plan("GRANT SELECT ON account TO x")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position) == (str(caught.value), caught.value.position)


HOSTILE = (
    "'; DROP TABLE account; --",
    '"; DROP TABLE account; --',
    "$$; DROP TABLE account; $$",
    "/* ",
    "*/ %s",
    "⟦hole⟧",
    "$1",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_literals_and_names_stay_what_they_are(
    rewriter: Rewriter, hostile: str
):
    quoted = "'" + hostile.replace("'", "''") + "'"
    named = '"' + hostile.replace('"', '""') + '"'
    sql = f'SELECT id AS {named} FROM account AS {named} WHERE "Owner" = {quoted}'
    made = rewriter.plan(sql, has_parameters=False).plan
    assert isinstance(made, Select)
    (reference,) = made.references
    assert reference.binding[1].value == hostile
    assert text(made.text, made.references) == sql.replace(
        " FROM account AS", " FROM ⟦main.account⟧ AS", 1
    )


def test_a_hostile_tables_name_is_quoted():
    tables = Tables()
    evil = Table("main", 'a"; DROP TABLE x; --', ACCOUNT.columns, (0,))
    tables.tables["main", evil.name.lower()] = evil
    made = Rewriter(tables).plan('UPDATE "a""; DROP TABLE x; --" SET id = 1').plan
    assert made.qualifier == '"a""; DROP TABLE x; --"'
    assert made.references[0].alias == ' AS "a""; DROP TABLE x; --"'


@pytest.mark.parametrize("dialect", ["duckdb", "monetdb"])
@pytest.mark.parametrize(
    "function",
    [
        '"coalesce"',
        '"COALESCE"',
        "main.coalesce",
        'main."coalesce"',
        "ifnull",
        "nvl",
        "nullif",
        "greatest",
        "least",
    ],
)
def test_a_function_of_the_applications_own_is_not_computed(
    dialect: str, function: str
):
    """P10: a function or a macro may have any name that is no keyword."""
    rewriter = Rewriter(Tables(), dialect=dialect)
    sql = "UPDATE main.stock SET quantity = {}(quantity, 1) WHERE item = 1 AND warehouse = 2"
    (assigned,) = rewriter.plan(sql.format(function)).plan.assignments
    assert assigned[1].kernel is None
    (assigned,) = rewriter.plan(sql.format("coalesce")).plan.assignments
    assert assigned[1].kernel == Coalesced((ColumnValue(2), Literal(1)))
