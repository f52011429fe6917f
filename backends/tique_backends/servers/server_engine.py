"""Folding as both servers do it: one engine transaction that claims, moves, drops.

Each server's package says how it does each of these (its module ``folding``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from typing_extensions import override

from tique_backends.catalog import slots
from tique_backends.engine import Engine, Introspection, SessionT
from tique_backends.errors import ErrorKind
from tique_backends.names import cache_name
from tique_backends.records import Versions
from tique_backends.servers.aside import Aside
from tique_backends.session import Session
from tique_backends.sharing import FoldedMeanwhileError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from tique_backends.catalog import foreign_keys
    from tique_backends.records import Images, Row
    from tique_backends.servers.replaying import Version
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer

_SessionT = TypeVar("_SessionT", bound=Session, contravariant=True)


class Folding(Protocol[_SessionT]):
    """The steps of a fold; each is part of the body of one engine transaction."""

    def claim_fold(
        self, session: _SessionT, table: Table, known: str, until: int
    ) -> bool:
        """Keep other processes from folding the table; note how far it is folded.

        ``known`` is a condition on its row; False if that does not hold.
        """

    def store_rows(
        self,
        session: _SessionT,
        table: Table,
        rows: Mapping[Row, Row | None],
        new: Collection[Row],
    ) -> None:
        """Bring storage up to rows that the driver knows."""

    def overwrite_cached(
        self, session: _SessionT, table: Table, after: int, until: int
    ) -> int:
        """Replace storage rows by their newest versions with ``after`` < cts ≤ ``until``."""

    def fold_keyless(
        self, session: _SessionT, table: Table, after: int, until: int
    ) -> None:
        """The same with a table without a primary key."""

    def versions_to_replay(
        self, session: _SessionT, table: Table, aside: Aside
    ) -> list[Version]:
        """The logged versions that the cache table lacks, whole."""


class ServerIntrospection(Introspection, Protocol):
    """How a server's catalog is read, which has FOREIGN KEY constraints of its own."""

    def foreign_keys(
        self, session: Session, table: Table
    ) -> Sequence[foreign_keys.Declared]:
        """The FOREIGN KEY constraints that the engine has on a table."""

    def referencing_tables(self, session: Session, table: Table) -> Sequence[Row]:
        """Schema and name of each table with a constraint that references this one."""


class ServerEngine(Engine[SessionT]):
    """A database of a server, which moves its own log to its tables by itself."""

    _introspection: ServerIntrospection
    _folding: Folding[SessionT]
    """The server's steps of a fold."""

    @override
    def declared_foreign_keys(
        self, session: SessionT, table: Table
    ) -> Sequence[foreign_keys.Declared]:
        return self._introspection.foreign_keys(session, table)

    @override
    def referencing_tables(self, session: SessionT, table: Table) -> Sequence[Row]:
        return self._introspection.referencing_tables(session, table)

    @override
    def last_commit(self, session: SessionT) -> int:
        # A replica has what was aborted behind the last commit, too.
        ((covered,),) = session.execute(slots.COVERED).fetch_all()
        return max(super().last_commit(session), int(covered))

    @override
    def replay(self, session: SessionT, table: Table) -> int:
        folding = self._folding
        aside = Aside() if self.shared is None else self.shared.aside

        def append() -> int:
            versions = folding.versions_to_replay(session, table, aside)
            if versions:
                stamps, rows, deleted = zip(*versions, strict=True)
                session.append(Versions(table, rows, stamps, deleted))
            return len(versions)

        return session.transact(append)

    @override
    def store(
        self,
        session: SessionT,
        table: Table,
        rows: Mapping[Row, Row | None],
        until: int,
        new: Collection[Row] = (),
        *,
        since: int | None = None,
        images: Images | None = None,
    ) -> None:
        self._move(
            session,
            table,
            since,
            until,
            lambda: self._folding.store_rows(session, table, rows, new),
        )

    def _move(
        self,
        session: SessionT,
        table: Table,
        since: int | None,
        until: int,
        write: Callable[[], object],
    ) -> int:
        """Fold in one engine transaction; return how many versions were folded.

        Raises
        ------
        FoldedMeanwhileError
            The table is not folded up to ``since``. Rows that were computed from that
            state of storage would undo parts of a later one.
        """
        known = f"id = {table.id}" + ("" if since is None else f" AND folded = {since}")

        def move() -> int:
            if not self._folding.claim_fold(session, table, known, until):
                raise FoldedMeanwhileError(
                    ErrorKind.OPERATIONAL,
                    f"another process has folded {table.qualified_name} meanwhile",
                )
            write()
            return session.change(
                f"DELETE FROM {cache_name(table)} "
                f"WHERE _cts > {since or 0} AND _cts <= {until}"
            )

        return session.transact(move)

    @override
    def overwrite(
        self, session: SessionT, table: Table, rows: Mapping[Row, Row | None]
    ) -> None:
        self._folding.store_rows(session, table, rows, ())

    @override
    def overwrite_cached(
        self, session: SessionT, table: Table, after: int, until: int
    ) -> int:
        return self._folding.overwrite_cached(session, table, after, until)

    @override
    def fold(
        self,
        session: SessionT,
        table: Table,
        until: int,
        *,
        since: int | None = None,
        appended: bool = False,
        columns_set: Collection[int] | None = None,
    ) -> int:
        folding = self._folding
        write_cached = (
            folding.fold_keyless if table.is_keyless else folding.overwrite_cached
        )
        # There are none up to then, but the server may have kept rows that were.
        after = since or 0

        def write() -> None:
            self._keep_images(session, table, after, until, appended=appended)
            write_cached(session, table, after, until)

        return self._move(session, table, since, until, write)

    @override
    def attach_sequencer(self, sequencer: Sequencer) -> bool:
        return False

    @override
    def compact(self, session: SessionT, *, force: bool = False) -> bool:
        return False
