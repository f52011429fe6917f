"""What was changed in a table between two of its versions.

Argument
--------
*Exactly the commits asked for, each once.* All is read in one engine transaction that is
held (:mod:`tique.query.transaction.held`): whatever is folded, pruned or committed meanwhile, it
shows each version with cts ≤ sts in the cache table, or in storage with the state before it
in the history table (:mod:`tique_backends.changes`). Images are complete from
the version on that :func:`expect_every_change` accepts, as that engine transaction sees it.

*Not all in memory.* Commits are gone through a page at a time, because their txid and time
are in the log, and rows are fetched as they are taken.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from typing_extensions import TypeVar

from tique import errors
from tique.history.moments import Point, expect_kept, now_of
from tique.history.retention import Retention
from tique_backends import changes
from tique_backends.catalog import histories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow

    from tique_backends.engine import Engine
    from tique_backends.records import ResultColumn, Row
    from tique_backends.session import Result, Session
    from tique_rewriter.schema import Table

_PAGE = 50_000
"""Commits that are gone through at once."""
_PIECE = 5_000
"""Changes that are fetched at once."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

RowT = TypeVar("RowT", default=Any)


class Change(NamedTuple, Generic[RowT]):
    """A row that a commit has changed.

    Attributes
    ----------
    version : int
        The version of the database that the commit made.
    txid : int
        Its transaction.
    time : datetime
        The time of the commit by the log's clock, in UTC.
    operation : str
        ``"insert"``, ``"update"`` or ``"delete"``.
    old, new : row or None
        The row before and after.
    """

    version: int
    txid: int
    time: datetime
    operation: str
    old: RowT | None
    new: RowT | None


class Difference(NamedTuple, Generic[RowT]):
    """A row that is not the same in two versions: :class:`Change` without the commits."""

    operation: str
    old: RowT | None
    new: RowT | None


class Piece(NamedTuple):
    """Some changes, in their order.

    ``rows`` have the cts, whether there was a row and whether there is one, and the columns of
    both; ``columns`` are theirs, and ``commits`` has txid and time of each cts.
    """

    columns: Sequence[ResultColumn]
    rows: Sequence[Row]
    commits: Mapping[int, tuple[int, int]]


def expect_every_change(
    engine: Engine, session: Session, table: Table, since: int
) -> None:
    """Refuse a version since which not every change of a table is kept.

    Raises
    ------
    ProgrammingError
        It has no history (SQLSTATE 55000).
    OperationalError
        Its history, or the first term of that, begins later (72000).
    """
    now = now_of(engine, session)
    if table.history is None:
        expect_kept(session, table, Point(since, now))
        return
    term = Retention.parse(table.history.retention).first * 10**6
    first = max(table.history.since, histories.version_at(session, now - term))
    if since < first:
        raise errors.OperationalError(
            f"not every change of {table.qualified_name} since version {since} is kept; "
            f"ask for those since version {first}, or a later one",
            sqlstate="72000",
        )


def pieces(
    engine: Engine, session: Session, table: Table, since: int, until: int
) -> Iterator[Piece]:
    """The changes with ``since`` < cts ≤ ``until``, in the order of commits."""
    while since < until:
        page = engine.commits(session, since, until, _PAGE)
        last = page[-1][0] if len(page) == _PAGE else until
        commits = {cts: (txid, at) for cts, txid, at in page}
        query = changes.changes(engine.forms, table, since, last)
        result = session.execute(query, wide=True)
        columns = list(result.columns)
        if table.is_keyless:
            # A number stands in the place of two signs.
            columns[1:2] = columns[1:2] * 2
            columns += columns[3:]
        for rows in fetched(result):
            if table.is_keyless:
                rows = [copy for row in rows for copy in _copies(row)]
            yield Piece(columns, rows, commits)
        since = last


def fetched(result: Result) -> Iterator[list[Row]]:
    """A result's rows, some at a time."""
    while rows := result.fetch(_PIECE):
        yield rows


def _copies(row: Row) -> Iterator[Row]:
    """One row for each copy that came or went."""
    cts, copies, *values = row
    return repeat((cts, copies < 0, copies > 0, *values, *values), abs(copies))


def operation(was: bool, there: bool) -> str:
    """The operation after which there is a row, and before which there was one."""
    if not was:
        return "insert"
    return "update" if there else "delete"


def as_changes(
    piece: Piece, width: int, make: Callable[[Row], RowT]
) -> Iterator[tuple[int, Change[RowT]]]:
    """The changes of a piece, each with its version.

    The table has ``width`` columns, and ``make`` makes its rows.
    """
    middle = 3 + width
    for row in piece.rows:
        version, was, there = row[:3]
        txid, at = piece.commits[version]
        yield (
            version,
            Change(
                version,
                txid,
                _EPOCH + timedelta(microseconds=at),
                operation(was, there),
                make(row[3:middle]) if was else None,
                make(row[middle:]) if there else None,
            ),
        )


def as_differences(
    rows: Sequence[Row], width: int, make: Callable[[Row], RowT]
) -> Iterator[tuple[int, Difference[RowT]]]:
    """The differences of rows of :func:`tique_backends.changes.difference`."""
    middle = 2 + width
    for row in rows:
        was, there = row[:2]
        old = make(row[2:middle]) if was else None
        new = make(row[middle:]) if there else None
        yield 0, Difference(operation(was, there), old, new)


def as_batch(
    piece: Piece, names: Sequence[str], engine: Engine
) -> tuple[int, pyarrow.RecordBatch]:
    """A piece as Arrow's columns, which are called as the parts of a :class:`Change`.

    It comes with the version of its last change. ``old`` and ``new`` are structs of the
    table's columns, NULL where there is no row.
    """
    import pyarrow

    rows, width = piece.rows, len(names)
    columns = [
        replace(column, name=name)
        for column, name in zip(piece.columns[3:], [*names, *names], strict=True)
    ]
    table = engine.arrow([row[3:] for row in rows], columns)
    arrays = [column.combine_chunks() for column in table.columns]
    versions = [row[0] for row in rows]
    txids, times = zip(*[piece.commits[version] for version in versions], strict=True)
    was, there = ([row[i] for row in rows] for i in (1, 2))
    old, new = (
        pyarrow.StructArray.from_arrays(
            values, list(names), mask=pyarrow.array([not each for each in signs])
        )
        for values, signs in ((arrays[:width], was), (arrays[width:], there))
    )
    batch = pyarrow.RecordBatch.from_arrays(
        [
            pyarrow.array(versions, pyarrow.int64()),
            pyarrow.array(txids, pyarrow.int64()),
            pyarrow.array(times, pyarrow.timestamp("us", "UTC")),
            pyarrow.array(map(operation, was, there), pyarrow.string()),
            old,
            new,
        ],
        names=Change._fields,
    )
    return versions[-1], batch
