"""Plans made executable: one module per kind of statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.query.define.definition import (
    AlterNothingStatement,
    AlterTableStatement,
    CreateIndexStatement,
    CreateTableAsStatement,
    CreateTableStatement,
    CreateTemporaryStatement,
    CreateTemporaryViewStatement,
    DropIndexStatement,
    DropTableStatement,
    DropTemporaryViewsStatement,
)
from tique.query.define.objects import (
    CreateMaterializedStatement,
    DefineMacroStatement,
    DefineObjectsStatement,
    DefineViewsStatement,
    GrantStatement,
    RefreshMaterializedStatement,
    RenameSchemaStatement,
    TidyStatement,
)
from tique.query.read.explain import ExplainStatement
from tique.query.read.locking import LockingSelectStatement
from tique.query.read.select import (
    DescribedStatement,
    SetVariableStatement,
    selecting,
)
from tique.query.write.change import DeleteStatement, UpdateStatement
from tique.query.write.copying import (
    AppendStatement,
    CopyInStatement,
    CopyOutStatement,
)
from tique.query.write.insert import InsertQueryStatement, InsertRowsStatement
from tique.query.write.merging import MergeStatement
from tique.query.write.truncating import TruncateStatement
from tique.query.write.with_changes import WithStatement
from tique_rewriter.kinds.change.truncate import Truncate
from tique_rewriter.kinds.define.alter import AlterNothing, AlterTable
from tique_rewriter.kinds.define.create_as import CreateTableAs
from tique_rewriter.kinds.define.temporary import CreateTemporary
from tique_rewriter.kinds.session.describe import Described, SetVariable
from tique_rewriter.plans import change_plans, ddl_plans, plan

if TYPE_CHECKING:
    from tique.query.base import Statement

__all__ = [
    "AppendStatement",
    "CopyInStatement",
    "CopyOutStatement",
    "executable",
]

_CLASSES: dict[type[plan.Plan], type[Statement]] = {
    plan.LockingSelect: LockingSelectStatement,
    change_plans.InsertRows: InsertRowsStatement,
    change_plans.InsertQuery: InsertQueryStatement,
    change_plans.Update: UpdateStatement,
    change_plans.Delete: DeleteStatement,
    change_plans.Merge: MergeStatement,
    change_plans.CopyIn: CopyInStatement,
    change_plans.CopyOut: CopyOutStatement,
    ddl_plans.CreateTable: CreateTableStatement,
    CreateTableAs: CreateTableAsStatement,
    CreateTemporary: CreateTemporaryStatement,
    ddl_plans.CreateTemporaryView: CreateTemporaryViewStatement,
    ddl_plans.RenameSchema: RenameSchemaStatement,
    ddl_plans.DropTemporaryViews: DropTemporaryViewsStatement,
    ddl_plans.DropTable: DropTableStatement,
    ddl_plans.CreateIndex: CreateIndexStatement,
    ddl_plans.DropIndex: DropIndexStatement,
    ddl_plans.DefineViews: DefineViewsStatement,
    ddl_plans.CreateMaterialized: CreateMaterializedStatement,
    ddl_plans.RefreshMaterialized: RefreshMaterializedStatement,
    Truncate: TruncateStatement,
    ddl_plans.DefineObjects: DefineObjectsStatement,
    ddl_plans.DefineMacro: DefineMacroStatement,
    ddl_plans.Grant: GrantStatement,
    ddl_plans.Tidy: TidyStatement,
    AlterTable: AlterTableStatement,
    AlterNothing: AlterNothingStatement,
    Described: DescribedStatement,
    SetVariable: SetVariableStatement,
}


def executable(found: plan.Plan) -> Statement:
    """The statement that executes a plan."""
    if isinstance(found, plan.Select):
        return selecting(found)
    if isinstance(found, change_plans.ChangingWith):
        return WithStatement(found, executable)
    if isinstance(found, plan.Explain):
        return ExplainStatement(found, executable(found.statement))
    return _CLASSES[type(found)](found)
