"""Write sets of transactions, from their statements to their commits.

:class:`~tique.writes.table.TableWrites` is one transaction's writes to one table, which
statements fill and may undo; a :class:`~tique.writes.tickets.Ticket` is a committing
transaction's place in the queue, and its outcome.
"""
