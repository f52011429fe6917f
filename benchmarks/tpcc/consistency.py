"""Consistency conditions 1 to 4 of clause 3.3.2, asked through a target's connection.

All are asked in one transaction, and so of one snapshot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.targets.base import Connection

CONDITIONS: dict[str, tuple[str, str]] = {
    "1": (
        "W_YTD = sum(D_YTD) of every warehouse",
        """
        SELECT w_id, w_ytd, total
        FROM warehouse
        LEFT JOIN (
            SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id
        ) AS districts ON d_w_id = w_id
        WHERE total IS NULL OR w_ytd <> total
        ORDER BY w_id""",
    ),
    "2": (
        "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID) of every district",
        """
        SELECT d_w_id, d_id, d_next_o_id, newest_order, newest_waiting
        FROM district
        LEFT JOIN (
            SELECT o_w_id, o_d_id, MAX(o_id) AS newest_order
            FROM orders GROUP BY o_w_id, o_d_id
        ) AS order_total ON o_w_id = d_w_id AND o_d_id = d_id
        LEFT JOIN (
            SELECT no_w_id, no_d_id, MAX(no_o_id) AS newest_waiting
            FROM new_order GROUP BY no_w_id, no_d_id
        ) AS waiting ON no_w_id = d_w_id AND no_d_id = d_id
        WHERE newest_order IS NULL
           OR d_next_o_id - 1 <> newest_order
           OR d_next_o_id - 1 <> newest_waiting
        ORDER BY d_w_id, d_id""",
    ),
    "3": (
        "max(NO_O_ID) - min(NO_O_ID) + 1 = number of new orders of every district",
        """
        SELECT no_w_id, no_d_id, MIN(no_o_id), MAX(no_o_id), COUNT(*)
        FROM new_order
        GROUP BY no_w_id, no_d_id
        HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)
        ORDER BY no_w_id, no_d_id""",
    ),
    "4": (
        "sum(O_OL_CNT) = number of order lines of every district",
        """
        SELECT d_w_id, d_id, expected, found
        FROM district
        LEFT JOIN (
            SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS expected
            FROM orders GROUP BY o_w_id, o_d_id
        ) AS order_total ON o_w_id = d_w_id AND o_d_id = d_id
        LEFT JOIN (
            SELECT ol_w_id, ol_d_id, COUNT(*) AS found
            FROM order_line GROUP BY ol_w_id, ol_d_id
        ) AS lines ON ol_w_id = d_w_id AND ol_d_id = d_id
        WHERE COALESCE(expected, 0) <> COALESCE(found, 0)
        ORDER BY d_w_id, d_id""",
    ),
}
"""The conditions, each with the query whose rows are its violations."""

_SHOWN_PLACES = 3


def failed_conditions(connection: Connection) -> list[str]:
    """Return a line for each condition that does not hold, with where and by how much.

    Parameters
    ----------
    connection : Connection
        A connection without an open transaction; it is left without one.
    """
    cursor = connection.cursor()
    failures = []
    for number, (meaning, query) in CONDITIONS.items():
        cursor.execute(query)
        places = cursor.fetchall()
        if places:
            shown = "; ".join(
                str(tuple(map(str, row))) for row in places[:_SHOWN_PLACES]
            )
            failures.append(
                f"condition {number} ({meaning}) fails in {len(places)} places: {shown}"
            )
    connection.rollback()
    return failures


def count_orders(connection: Connection) -> int:
    """Return the number of orders."""
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) FROM orders")
    row = cursor.fetchone()
    return int(row[0]) if row else 0
