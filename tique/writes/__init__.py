"""Write sets: what transactions wrote, on its way to their commit.

:class:`~tique.writes.table.TableWrites` is one transaction's writes to one table, which
statements fill and may undo; a :class:`~tique.writes.tickets.Ticket` is its place among
those that commit, and its outcome.
"""
