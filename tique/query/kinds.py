"""Plans made executable: what runs a plan of each class."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tique.query.base import Statement
from tique.query.define.definition import (
    CreateTableAsStatement,
    CreateTemporaryStatement,
    DefinitionStatement,
    alter_nothing,
    alter_table,
    create_index,
    create_table,
    create_temporary_view,
    drop_index,
    drop_table,
    drop_temporary_views,
)
from tique.query.define.objects import (
    TidyStatement,
    create_materialized,
    define_macro,
    define_objects,
    define_views,
    grant,
    keep_owner,
    refresh_materialized,
)
from tique.query.define.renaming import rename_schema
from tique.query.read.explain import ExplainStatement
from tique.query.read.locking import LockingSelectStatement
from tique.query.read.select import (
    DescribedStatement,
    SetVariableStatement,
    selecting,
)
from tique.query.write.change import DeleteStatement, UpdateStatement
from tique.query.write.copying import CopyInStatement, CopyOutStatement
from tique.query.write.insert import InsertQueryStatement, InsertRowsStatement
from tique.query.write.merging import MergeStatement
from tique.query.write.truncating import TruncateStatement
from tique.query.write.with_changes import WithStatement
from tique_rewriter.kinds.change.truncate import Truncate
from tique_rewriter.kinds.define.alter import AlterNothing, AlterTable
from tique_rewriter.kinds.define.create_as import CreateTableAs
from tique_rewriter.kinds.define.objects import KeepOwner
from tique_rewriter.kinds.define.temporary import CreateTemporary
from tique_rewriter.kinds.session.describe import Described, SetVariable
from tique_rewriter.plans import change_plans, ddl_plans, plan

if TYPE_CHECKING:
    from tique.query.transaction.ddl_transaction import DDLTransaction

_Maker = Callable[[Any], Statement]


def _defining(
    define: Callable[[Any, DDLTransaction], None],
    *,
    defines: bool = True,
    is_held: bool = False,
) -> _Maker:
    """Return what makes a statement of DDL that one function carries out.

    ``define`` is given the plan and the transaction; ``defines`` and ``is_held`` are the
    statement's (:class:`Statement`).
    """
    return partial(DefinitionStatement, define=define, defines=defines, is_held=is_held)


def _dropping(found: ddl_plans.DropTable) -> Statement:
    outlives = not all(table.is_temporary for table in found.tables)
    return DefinitionStatement(found, drop_table, defines=outlives, is_held=False)


def _changing_with(found: change_plans.ChangingWith) -> Statement:
    return WithStatement(found, executable)


def _explaining(found: plan.Explain) -> Statement:
    return ExplainStatement(found, executable(found.statement))


_KINDS: dict[type[plan.Plan], _Maker] = {
    plan.Select: selecting,
    plan.LockingSelect: LockingSelectStatement,
    plan.Explain: _explaining,
    change_plans.InsertRows: InsertRowsStatement,
    change_plans.InsertQuery: InsertQueryStatement,
    change_plans.Update: UpdateStatement,
    change_plans.Delete: DeleteStatement,
    change_plans.Merge: MergeStatement,
    change_plans.ChangingWith: _changing_with,
    change_plans.CopyIn: CopyInStatement,
    change_plans.CopyOut: CopyOutStatement,
    Truncate: TruncateStatement,
    ddl_plans.CreateTable: _defining(create_table),
    CreateTableAs: CreateTableAsStatement,
    CreateTemporary: CreateTemporaryStatement,
    ddl_plans.DropTable: _dropping,
    AlterTable: _defining(alter_table),
    AlterNothing: _defining(alter_nothing, defines=False),
    KeepOwner: _defining(keep_owner),
    ddl_plans.CreateIndex: _defining(create_index),
    ddl_plans.DropIndex: _defining(drop_index),
    ddl_plans.DefineViews: _defining(define_views),
    ddl_plans.CreateMaterialized: _defining(create_materialized, is_held=True),
    ddl_plans.RefreshMaterialized: _defining(refresh_materialized, is_held=True),
    ddl_plans.CreateTemporaryView: _defining(create_temporary_view, defines=False),
    ddl_plans.DropTemporaryViews: _defining(drop_temporary_views, defines=False),
    ddl_plans.DefineObjects: _defining(define_objects),
    ddl_plans.DefineMacro: _defining(define_macro),
    ddl_plans.RenameSchema: _defining(rename_schema),
    ddl_plans.Grant: _defining(grant),
    ddl_plans.Tidy: TidyStatement,
    Described: DescribedStatement,
    SetVariable: SetVariableStatement,
}


def executable(found: plan.Plan) -> Statement:
    """The statement that executes a plan."""
    return _KINDS[type(found)](found)
