"""The tables that CREATE TABLE makes, with the rows of CREATE TABLE … AS.

Argument
--------
*The rows belong to the definition.* They are computed in the snapshot of the transaction
that runs the statement, and are in storage by the engine transaction that creates the
table: a crash leaves the table with all of its rows, or neither (P5). They have no commit
timestamp. So an older snapshot may not see them, and is refused where it would
(:attr:`~tique.store.versions.TableVersions.since`, P1): in this process one that is older
than that of the statement, in another process one that was taken before the barrier, if
that process has followed the log's entry. One that has not, and has planned with a table of
that name that was dropped, does not find that one (:mod:`tique.query.define.redefinition`).

*In two steps*, so that the engine's adapter meets the storage table while it is empty. A table
that takes the place of another one may be made of its rows, so it is filled at once: the
query still finds the one before, which goes afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tique.query.write.referencing import expect_comparable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_rewriter.schema import History, Table


@dataclass(frozen=True)
class NewTable:
    """A table to create: its name and FOREIGN KEY constraints, and the engine's text.

    ``query`` is a query with its parameters, of which ``text`` creates the table. If it
    ``is_empty`` it gets none of its rows.
    """

    table: Table
    text: str
    query: tuple[str, Sequence[Any]] | None = None
    is_empty: bool = True

    def create(
        self,
        session: Session,
        engine: Engine,
        parents: Callable[[Table], Mapping[tuple[str, str], Table]],
        before: Table | None,
        history: History | None,
    ) -> tuple[Table, int]:
        """Create it in an engine transaction, in the place of another one if there is one.

        Returns
        -------
        tuple
            The table, and the number of rows of a query's, else -1.
        """
        sql, bound = self.query or ("", ())
        fills_at_once = before is not None and not self.is_empty
        with_rows = " WITH NO DATA" if sql and not fills_at_once else ""
        result = session.execute(f"{self.text}{with_rows}", bound)
        count = int(result.fetch_all()[0][0]) if fills_at_once else -1
        if before is not None:
            engine.unmanage(session, before)
        table = self.table
        described = engine.describe(session, table.schema, table.name)
        engine.check_definition(session, described)
        made = engine.manage(session, replace(described, history=history))
        if table.foreign_keys:
            made = replace(made, foreign_keys=table.foreign_keys)
            referenced = parents(made)
            for key in made.foreign_keys:
                expect_comparable(made, referenced[key.parent], key)
            engine.keep_foreign_keys(session, made, referenced)
        if not self.is_empty and not fills_at_once:
            place = engine.forms.plain(made)
            count = session.change(f"INSERT INTO {place} {sql}", bound)
        return made, count
