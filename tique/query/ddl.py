"""Changes of definitions, adoption and detaching: one at a time, alone.

A definition takes effect at once and is durable when the statement returns; it
is not part of the transaction that surrounds it (and is refused while that has
uncommitted writes). While it runs, no checkpoint and no commit does: it holds the
checkpointer's lock, then the committer's; where other processes use the database too,
the checkpointer's lease after the former and a barrier in the order of commits after
the latter. It is refused if another open transaction of this process has used the
table; one of another process finds the table gone. Each is one engine transaction: a
crash leaves all of it or nothing.

*Between processes (P6, P9).* When the barrier stands, every commit that was let through
before it is finished and known here, and none is let through until the definition is
finished. The transaction's log entry has the barrier's timestamp: whoever begins
afterwards follows it and reads the catalog first, and whoever had certified before is
refused and certifies again, by the new catalog. If the process dies the timestamp is
fenced. If it was stopped for too long, the server refuses its COMMIT.
"""

from __future__ import annotations

import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from tique import errors
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from tique.database.database import Database
    from tique.query.transaction import Transaction
    from tique_backends.base import Session
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

LOCK_TIMEOUT = 10.0

_FOLD_PATIENCE = 2.0


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    database.timeline.expect_owner()
    # A checkpoint may take its time; commits wait for the rest only.
    with (
        database.checkpointer.paused(LOCK_TIMEOUT),
        database.committer.paused(LOCK_TIMEOUT),
        database.timeline.alone(),
    ):
        yield


def _transact(
    database: Database, session: Session, body: Callable[[], _Outcome]
) -> _Outcome:
    """Change definitions; if that fails, read the catalog again."""
    try:
        return database.timeline.define(session, body)
    except BaseException:
        # A COMMIT that raised may have happened all the same, and the connection be gone.
        with suppress(EngineError), closing(database.engine.session()) as witness:
            database.reload(witness)
        raise


def _refuse_users(
    database: Database, tables: Collection[Table], mine: Transaction | None
) -> None:
    ids = {table.id for table in tables}
    for other in list(database.transactions.values()):
        used = ids & other.touched
        if other is not mine and used:
            names = ", ".join(t.qualified_name for t in tables if t.id in used)
            raise errors.OperationalError(
                f"cannot change {names}: an open transaction uses it; end that "
                "transaction and try again",
                sqlstate="55006",
            )


def _refuse_writes(transaction: Transaction) -> None:
    if transaction.read_only:
        raise errors.OperationalError(
            "cannot change a definition in a read-only transaction", sqlstate="25006"
        )
    if transaction.has_writes:
        raise errors.NotSupportedError(
            "a definition cannot run in a transaction that has uncommitted writes; "
            "commit or roll back first",
            sqlstate="25001",
        )


def create_table(
    transaction: Transaction, table: Table, text: str, *, if_not_exists: bool
) -> None:
    """Create an abstract table: the storage table and its cache table."""
    _refuse_writes(transaction)
    database, session = transaction.database, transaction.session
    with _alone(database):
        if database.catalog.find(table.schema, table.name) is not None:
            if if_not_exists:
                return
            raise errors.ProgrammingError(
                f"table {table.qualified_name} exists already", sqlstate="42P07"
            )
        exists = (table.schema.lower(), table.name.lower()) in {
            (schema.lower(), name.lower())
            for schema, name in database.engine.user_tables(session)
        }
        if exists:
            raise errors.ProgrammingError(
                f"table {table.qualified_name} exists in the database but is not "
                "under tique's management; take it in with 'tique adopt'",
                sqlstate="42P07",
            )

        def create() -> None:
            session.execute(text)
            engine = database.engine
            described = engine.describe(session, table.schema, table.name)
            engine.check_definition(session, described)
            engine.manage(session, described)

        _transact(database, session, create)
        database.reload(session)


def drop_tables(transaction: Transaction, tables: Sequence[Table]) -> None:
    """Drop abstract tables with everything that belongs to them."""
    _refuse_writes(transaction)
    database, session = transaction.database, transaction.session
    with _alone(database):
        _refuse_users(database, tables, transaction)

        def drop() -> None:
            for table in tables:
                database.engine.unmanage(session, table)
                plain = database.engine.forms.plain(table)
                # One that was changed without tique may be gone.
                unless = "" if table.fault is None else "IF EXISTS "
                session.execute(f"DROP TABLE {unless}{plain}")

        _transact(database, session, drop)
        database.reload(session)


def define(transaction: Transaction, table: Table | None, text: str) -> None:
    """Run a definition that concerns the storage table only (an index).

    A new index has to take the recent versions of its table too, which storage gets later.
    """
    _refuse_writes(transaction)
    database, session = transaction.database, transaction.session
    engine = database.engine
    with _alone(database):
        if table is not None:
            _refuse_users(database, [table], transaction)
            database.catalog.versions(table).drain(session)

        def change() -> None:
            session.execute(text)
            if table is not None:
                described = engine.describe(session, table.schema, table.name)
                engine.check_definition(session, described)
                engine.check_versions(session, table)

        _transact(database, session, change)
        database.reload(session)


def adopt(database: Database, names: Sequence[str] | None = None) -> list[str]:
    """Take existing tables under management without moving a row.

    Parameters
    ----------
    database
        The open database.
    names
        ``table`` or ``schema.table``; None takes every table that is not managed.

    Returns
    -------
    list of str
        The adopted tables' qualified names.

    Raises
    ------
    NotSupportedError
        If a table has something whose promises tique cannot keep; none of the
        tables is adopted then.
    ProgrammingError
        If a table does not exist or is managed already.
    """
    engine = database.engine
    session = engine.session()

    def take_in() -> list[str]:
        wanted = (
            [
                (schema, name)
                for schema, name in engine.user_tables(session)
                if database.catalog.named(schema, name) is None
            ]
            if names is None
            else [_split(database, name) for name in names]
        )
        adopted = []
        for schema, name in wanted:
            if database.catalog.find(schema, name) is not None:
                raise errors.ProgrammingError(
                    f"table {schema}.{name} is under tique's management already"
                )
            table = engine.describe(session, schema, name)
            engine.check_definition(session, table)
            engine.manage(session, table)
            adopted.append(table.qualified_name)
        return adopted

    try:
        with _alone(database):
            adopted = _transact(database, session, take_in)
            database.reload(session)
    finally:
        session.close()
    return adopted


def detach(database: Database, names: Sequence[str] | None = None) -> list[str]:
    """Fold everything and forget the tables; with the last, drop tique's schema.

    Parameters
    ----------
    database
        The open database.
    names
        As for :func:`adopt`; None detaches all tables and removes every trace.

    Raises
    ------
    OperationalError
        If an open transaction's snapshot still needs versions of a table.
    """
    engine = database.engine
    tables = list(database.catalog)
    if names is not None:
        tables = [_managed(database, name) for name in names]
    _fold_all(database, tables)
    session = engine.session()
    try:
        with _alone(database):
            _refuse_users(database, tables, None)
            for table in tables:
                obstacle = database.checkpointer.obstacles.error(table)
                if obstacle is not None:
                    raise errors.OperationalError(
                        f"cannot detach {table.qualified_name}: its recent versions "
                        f"cannot be folded ({obstacle}); change or delete the rows "
                        "that storage does not take, or drop the table",
                        sqlstate="55000",
                    )
                if not database.catalog.versions(table).is_empty:
                    raise errors.OperationalError(
                        f"cannot detach {table.qualified_name}: an open snapshot "
                        "needs its recent versions, or somebody keeps writing to it; "
                        "end all transactions first",
                        sqlstate="55006",
                    )

            def release() -> None:
                for table in tables:
                    engine.unmanage(session, table)

            def release_all() -> None:
                database.timeline.expect_alone(session)
                release()
                # Afterwards there is nothing left by which it could be said.
                database.timeline.close()
                engine.uninstall(session)

            if names is None:
                session.transact(release_all)
                database.is_detached = True
                database.catalog.load([])
                engine.compact(session, force=True)
            else:
                _transact(database, session, release)
                database.reload(session)
    finally:
        session.close()
    return [table.qualified_name for table in tables]


def _fold_all(database: Database, tables: Collection[Table]) -> None:
    """Fold; where other processes have yet to follow, wait for them a little."""
    deadline = time.monotonic() + _FOLD_PATIENCE
    while True:
        database.checkpointer.checkpoint(thorough=True)
        if (
            not database.timeline.is_shared
            or all(database.catalog.versions(table).is_empty for table in tables)
            or time.monotonic() > deadline
        ):
            return
        time.sleep(_FOLD_PATIENCE / 20)


def _split(database: Database, name: str) -> tuple[str, str]:
    schema, _, table = name.rpartition(".")
    return schema or database.catalog.default_schema, table


def _managed(database: Database, name: str) -> Table:
    schema, _, bare = name.rpartition(".")
    table = database.catalog.named(schema or None, bare)
    if table is None:
        raise errors.ProgrammingError(f"table {name} is not under tique's management")
    return table
