"""The queries of CH-benCHmark by name.

They are TPC-H's questions in terms of TPC-C's tables. Two of the twenty-two are here;
the others join this dictionary. The dates mean "every delivered line" as in the
original, and so the upper one lies far ahead of the deliveries of a run.
"""

QUERIES: dict[str, str] = {
    "Q1": """
        SELECT ol_number,
               SUM(ol_quantity) AS sum_qty,
               SUM(ol_amount) AS sum_amount,
               AVG(ol_quantity) AS avg_qty,
               AVG(ol_amount) AS avg_amount,
               COUNT(*) AS count_order
        FROM order_line
        WHERE ol_delivery_d > TIMESTAMP '2007-01-02 00:00:00'
        GROUP BY ol_number
        ORDER BY ol_number""",
    "Q6": """
        SELECT SUM(ol_amount) AS revenue
        FROM order_line
        WHERE ol_delivery_d >= TIMESTAMP '1999-01-01 00:00:00'
          AND ol_delivery_d < TIMESTAMP '2100-01-01 00:00:00'
          AND ol_quantity BETWEEN 1 AND 100000""",
}
"""SQL without parameters, by the name that the benchmark gives it."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "Q1": ("line", "quantity", "amount", "avg quantity", "avg amount", "lines"),
    "Q6": ("revenue",),
}
"""Short headings of the answers."""
