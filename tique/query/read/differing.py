"""What differs between a table at one point of the past and at another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.query.read.sources import Source
from tique_backends.changes import difference
from tique_rewriter.plans.past import Past
from tique_rewriter.plans.plan import Literal, Reference

if TYPE_CHECKING:
    from datetime import datetime

    from tique.query.transaction.transaction import Transaction
    from tique_rewriter.schema import Table


def differing(
    transaction: Transaction,
    table: Table,
    since: int | datetime,
    until: int | datetime | None = None,
) -> str:
    """A query for the rows that are not the same at two points; None: in the snapshot.

    A row has whether there was one and whether there is one, and the columns of both.
    """
    relations, versions = [], []
    for asked in (since, until):
        past = None if asked is None else Past(Literal(asked))
        every = frozenset(range(len(table.columns)))
        source = Source(Reference(table, "", {}, every, past=past))
        point = source.point(transaction, ())
        versions.append(transaction.sts if point is None else point.version)
        relations.append(source.text(transaction, ()))
    return difference(transaction.engine.forms, table, relations, versions)
