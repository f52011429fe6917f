"""Which statements are known to be about the rows that they bind, and nothing else."""

from __future__ import annotations

import pytest

from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter
from tique_rewriter.plans.change_plans import Delete, Update
from tique_rewriter.plans.plan import (
    ColumnValue,
    Comparison,
    GroupRead,
    Literal,
    Lookup,
    Output,
    Select,
)

W = "FROM stock WHERE warehouse = %s"
JOIN = "stock s, member m WHERE s.warehouse = %s AND s.item = m.id"
QUANTITY, NOTE = Output(None, 2), Output(None, 3)


def compared(position, operator, value):
    return Comparison(position, operator, Literal(value))


@pytest.fixture(scope="module")
def rewriter():
    return Rewriter(Tables())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT quantity, note {W}", GroupRead((QUANTITY, NOTE))),
        (f"SELECT note AS n {W} AND quantity = 3", GroupRead((NOTE,))),
        ("SELECT s.note FROM stock s WHERE 1 = s.warehouse", GroupRead((NOTE,))),
        ("SELECT note FROM stock", GroupRead((NOTE,))),
        (
            f"SELECT note {W} ORDER BY item DESC, quantity LIMIT 2",
            GroupRead((NOTE,), ((1, True), (2, False)), 2),
        ),
        (
            f"SELECT COUNT(*), COUNT(note), SUM(quantity) AS q, MIN(item), max(item) {W}",
            GroupRead(
                (
                    Output("COUNT", None),
                    Output("COUNT", 3),
                    Output("SUM", 2),
                    Output("MIN", 1),
                    Output("MAX", 1),
                )
            ),
        ),
        (
            f"SELECT note {W} AND item > 3 AND 5 > quantity",
            GroupRead((NOTE,), comparisons=(compared(1, ">", 3), compared(2, "<", 5))),
        ),
        (
            f"SELECT COUNT(DISTINCT note) {W} AND item BETWEEN 1 AND 4",
            GroupRead(
                (Output("COUNT", 3, distinct=True),),
                comparisons=(compared(1, ">=", 1), compared(1, "<=", 4)),
            ),
        ),
        (
            f"SELECT email, s.note FROM {JOIN} AND seat <= 2 ORDER BY m.email LIMIT 1",
            GroupRead(
                (Output(None, 5), NOTE),
                ((5, False),),
                1,
                (compared(7, "<=", 2),),
                Lookup(0, (ColumnValue(1),)),
            ),
        ),
        (
            "SELECT MAX(seat) FROM member m JOIN stock s ON item = id WHERE warehouse = 1",
            GroupRead((Output("MAX", 7),), lookup=Lookup(1, (ColumnValue(1),))),
        ),
        (
            "SELECT COUNT(*) FROM member, stock WHERE team = item AND warehouse = 3",
            GroupRead(
                (Output("COUNT", None),),
                lookup=Lookup(0, (Literal(3), ColumnValue(2))),
            ),
        ),
        *(
            (sql, None)
            for sql in (
                f"SELECT note {W} AND item > quantity",
                f"SELECT note {W} AND NOT item BETWEEN 1 AND 2",
                f"SELECT note {W} AND item + 1 > 3",
                f"SELECT note {W} AND item <> 3",
                f"SELECT COUNT(DISTINCT note, item) {W}",
                f"SELECT m.* FROM {JOIN}",
                f"SELECT m.email FROM {JOIN} AND s.note = 'x' AND m.seat = 3",
                f"SELECT m.email FROM {JOIN} AND s.quantity = m.seat",
                f"SELECT m.email FROM {JOIN} OR m.id = 3",
                f"SELECT DISTINCT m.email FROM {JOIN}",
                f"SELECT m.email, COUNT(*) FROM {JOIN} GROUP BY m.email",
                f"SELECT m.email FROM {JOIN.replace(',', ' LEFT JOIN ', 1).replace('WHERE', 'ON')}",
                "SELECT email FROM stock JOIN member USING (id)",
                "SELECT email FROM stock s, member m WHERE s.item > m.id",
                "SELECT email FROM stock s, member m WHERE s.note = m.email",
                "SELECT the FROM event e, account a WHERE e.account = a.owner",
                f"SELECT note {W} OR item = 3",
                f"SELECT note {W} AND warehouse = 2",
                f"SELECT DISTINCT note {W}",
                f"SELECT note, SUM(quantity) {W} GROUP BY note",
                f"SELECT SUM(quantity) {W} HAVING SUM(quantity) > 3",
                f"SELECT SUM(quantity), note {W}",
                f"SELECT SUM(quantity + 1) {W}",
                f"SELECT SUM(DISTINCT quantity) {W}",
                f"SELECT SUM(quantity) FILTER (WHERE item = 1) {W}",
                f"SELECT SUM(quantity) OVER () {W}",
                f"SELECT COUNT(item, note) {W}",
                f"SELECT MAX(item, 2) {W}",
                f"SELECT SUM(quantity) {W} LIMIT 0",
                f"SELECT quantity + 1 {W}",
                f"SELECT note AS item {W} ORDER BY item",
                f"SELECT note {W} ORDER BY 1",
                f"SELECT note {W} ORDER BY item + 1",
                f"SELECT note {W} LIMIT 1 OFFSET 1",
                f"SELECT note {W} LIMIT 50%%",
                f"SELECT note {W} LIMIT %s",
                "SELECT a.note FROM stock a, stock b WHERE a.item = b.item AND a.item = 1",
            )
        ),
    ],
)
def test_queries(rewriter, sql, expected):
    plan = rewriter.plan(sql).plan
    assert isinstance(plan, Select)
    assert plan.group == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE stock SET quantity = %s WHERE warehouse = %s", True),
        ("UPDATE stock SET quantity = %s WHERE warehouse = %s AND item = 2", True),
        ("UPDATE stock SET quantity = %s WHERE warehouse = %s AND item < 2", False),
        (
            "UPDATE stock SET quantity = (SELECT MAX(id) FROM account)"
            " WHERE warehouse = %s",
            False,
        ),
        ("DELETE FROM stock WHERE warehouse = %s", True),
        ("DELETE FROM stock WHERE warehouse = %s OR item = 1", False),
        ("DELETE FROM stock", True),
    ],
)
def test_changes(rewriter, sql, expected):
    plan = rewriter.plan(sql).plan
    assert isinstance(plan, Update | Delete)
    assert plan.is_bound is expected
