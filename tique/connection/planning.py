"""A connection's way from a statement's text to what runs it.

What a name means depends on the connection: its temporary tables come first, then the
tables along its search path, then the definitions of the database or, while its
transaction has DDL, of that. Plans are kept by the rewriter that made them, of which
there is one for each of these; statements that run are kept here, and forgotten when
the definitions are others.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tique.query.kinds import executable
from tique_rewriter.errors import RewriteError, UnknownTable
from tique_rewriter.kinds.session.session import SessionPlan
from tique_rewriter.plans.plan import TransactionControl
from tique_rewriter.scope.catalog import SearchPath

if TYPE_CHECKING:
    from tique.connection.runner import Runner
    from tique.query.base import Statement
    from tique.store.catalog import ManagedCatalog
    from tique_rewriter import Prepared, Rewriter
    from tique_rewriter.scope.catalog import Catalog

_STATEMENTS = 1000


class Planner:
    """Plans the statements of one connection, under its lock.

    Parameters
    ----------
    execution
        What runs them, in its database, with its temporary tables.
    paramstyle
        PEP 249's, of the connection's statements.
    """

    def __init__(self, execution: Runner, paramstyle: str) -> None:
        self._execution = execution
        self._database = database = execution.database
        self._is_shared = database.timeline.is_shared
        self._paramstyle = paramstyle
        self._temporaries = execution.temporaries
        self._catalog = database.catalog
        self._without_temporaries = database.rewriters[paramstyle]
        self._follows = database.engine.follows_path
        self._path: SearchPath | None = None
        """The session's, if that is not settled."""
        self._path_at = -1
        """The version of the definitions for which that was asked; -1: not yet."""
        self._statements: dict[Prepared, Statement] = {}
        self.look_along(None)

    @property
    def rewriter(self) -> Rewriter:
        """Plans by the definitions as they are now."""
        return self._temporaries.rewriter or self._without_temporaries

    def plan(self, query: str, has_parameters: bool) -> Prepared:
        """Plan a statement, by the catalog with which its transaction begins.

        Raises
        ------
        RewriteError
            If the statement is not understood, or not supported.
        """
        if self._path is None:
            return self._plan(query, has_parameters)
        was_asked = self._is_behind
        with suppress(UnknownTable):
            prepared = self._plan(query, has_parameters)
            statement = self.statement(prepared)
            if was_asked or statement is None or not statement.defines:
                return prepared
        # Another program may have made or dropped a schema of the path.
        if self._execution.migration is None:
            self._path_at = -1
        return self._plan(query, has_parameters)

    @property
    def _is_behind(self) -> bool:
        """Whether the schemas of the path have to be asked for."""
        return self._path is not None and self._path_at != self._catalog.version

    def _plan(self, query: str, has_parameters: bool) -> Prepared:
        begins = self._is_shared and self._execution.txid is None
        if begins or self._is_behind:
            # Another process may have created or changed a table meanwhile.
            with suppress(RewriteError):
                prepared = self.rewriter.plan(query, has_parameters)
                # (ROLLBACK is possible where nothing can be asked any more.)
                if isinstance(prepared.plan, TransactionControl):
                    return prepared
                if isinstance(prepared.plan, SessionPlan):
                    if not self._is_behind:
                        return prepared
                    self._follow_path()
                    return self.rewriter.plan(query, has_parameters)
            if begins:
                self._execution.begin()
            if self._path is not None:
                self._follow_path()
        rewriter = self._temporaries.rewriter or self._without_temporaries
        return rewriter.plan(query, has_parameters)

    def plan_blindly(self, query: str, has_parameters: bool) -> Prepared | None:
        """Plan a statement by the definitions as far as they were followed.

        None where others have to be asked for.
        """
        if self._is_behind:
            return None
        with suppress(RewriteError):
            return self.rewriter.plan(query, has_parameters)
        return None

    def statement(self, prepared: Prepared) -> Statement | None:
        """Return what runs a plan; None for those of transactions and the session."""
        statement = self._statements.get(prepared)
        if statement is None and not isinstance(
            prepared.plan, TransactionControl | SessionPlan
        ):
            if len(self._statements) >= _STATEMENTS:
                self._statements.clear()
            statement = self._statements[prepared] = executable(prepared.plan)
        return statement

    def plan_by(self, catalog: ManagedCatalog) -> None:
        """Take these definitions for those of the database."""
        self._catalog = catalog
        self._path_at = -1
        self._choose_rewriter()
        self._statements.clear()

    @property
    def catalog(self) -> Catalog:
        """The tables and views that are no connection's, as this one finds them."""
        if self._path is not None:
            self._follow_path()
        return self._without_temporaries.catalog

    @property
    def search_path(self) -> tuple[str, ...]:
        """The schemas in which a relation is looked for that names none."""
        path = self.catalog.search_path
        return self._catalog.search_path if path is None else path.schemas

    def look_along(self, path: str | None) -> None:
        """Look for names along the session's path, which is this one; None: the first."""
        is_settled = path is None and not self._follows
        self._path = None if is_settled else SearchPath(())
        self._path_at = -1
        if is_settled:
            self._choose_rewriter()

    def _choose_rewriter(self) -> None:
        self._without_temporaries = self._database.rewriter(
            self._catalog, self._paramstyle, self._path
        )
        self._temporaries.plan_by(self._catalog, self._path)

    def _follow_path(self) -> None:
        """Ask which schemas the search path leads to, if definitions have changed."""
        if self._path_at == self._catalog.version:
            return
        session, version = self._execution.live_session(), self._catalog.version
        schemas, alike = self._database.engine.resolve_path(session)
        self._path = SearchPath(tuple(schemas), self._catalog.unmanaged(alike))
        self._choose_rewriter()
        self._path_at = version
