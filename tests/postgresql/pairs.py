"""One database twice, through psycopg and through tique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

TABLES = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER, big BIGINT, small SMALLINT, "
    "number NUMERIC, fixed NUMERIC(5,2), double DOUBLE PRECISION, single REAL, "
    "words TEXT, short VARCHAR(3), padded CHAR(4), truth BOOLEAN, raw BYTEA, day DATE, "
    "moment TIMESTAMP, instant TIMESTAMPTZ, hour TIME, span INTERVAL, code UUID, "
    "data JSONB, list INTEGER[], ranged INT4RANGE, place INET)",
    "CREATE TABLE k (id INTEGER PRIMARY KEY, i INTEGER, u INTEGER UNIQUE, "
    "c INTEGER CHECK (c > 0), n INTEGER NOT NULL DEFAULT 7, short VARCHAR(3), "
    "fixed NUMERIC(5,2), small SMALLINT)",
    "CREATE TABLE cut (id INTEGER PRIMARY KEY, padded CHAR(4), bits BIT(3), "
    "varbits VARBIT(3), shorts VARCHAR(3)[], chars CHAR(3)[], bitses BIT(3)[], "
    "code UUID, data JSONB, raw BYTEA, day DATE, truth BOOLEAN, words TEXT)",
)
ROWS = (
    "INSERT INTO t (id, i, words) VALUES (1, 10, '1'), (2, 20, '2'), (3, 30, '3')",
    "INSERT INTO k (id, u, c) VALUES (1, 1, 1), (2, 2, 2)",
    "INSERT INTO cut (id, words) VALUES (1, 'x')",
)

CLASSES = frozenset(
    (
        *("DataError", "OperationalError", "IntegrityError", "InternalError"),
        *("ProgrammingError", "NotSupportedError", "InterfaceError"),
    )
)


class Failure(NamedTuple):
    """An exception: which of PEP 249's, and its SQLSTATE."""

    kind: str
    sqlstate: str | None = None


def outcome(body: Callable[[Any], Any], connection: Any) -> Any:
    """The result or the error of a body; the transaction is undone."""
    try:
        return body(connection)
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        kind = next((name for name in names if name in CLASSES), names[0])
        return Failure(kind, getattr(error, "sqlstate", None))
    finally:
        connection.rollback()


class Pair:
    """One connection through psycopg and one through tique."""

    def __init__(self, native: Any, ours: Any) -> None:
        self.native, self.ours = native, ours

    def both(self, body: Callable[[Any], Any]) -> tuple[Any, Any]:
        return outcome(body, self.native), outcome(body, self.ours)

    def same(self, body: Callable[[Any], Any]) -> Any:
        """Run a body on both; their one outcome. Values must be of one type too."""
        native, ours = self.both(body)
        if isinstance(native, Failure) and native.sqlstate is None:
            # An error of psycopg's own, without the server; tique always has a code.
            assert isinstance(ours, Failure)
            assert ours.kind == native.kind
        else:
            assert repr(ours) == repr(native)
        return ours
