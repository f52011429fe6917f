"""Plans made executable: one module per kind of statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from tique_rewriter.kinds.define.objects import KeepOwner
from tique_rewriter.kinds.define.temporary import CreateTemporary
from tique_rewriter.kinds.session.describe import Described, SetVariable
from tique_rewriter.plans import change_plans, ddl_plans, plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique.query.base import Statement
    from tique.query.transaction.ddl_transaction import DDLTransaction

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
    CreateTableAs: CreateTableAsStatement,
    CreateTemporary: CreateTemporaryStatement,
    Truncate: TruncateStatement,
    ddl_plans.Tidy: TidyStatement,
    Described: DescribedStatement,
    SetVariable: SetVariableStatement,
}

_DEFINITIONS: dict[type[plan.Plan], Callable[[Any, DDLTransaction], None]] = {
    ddl_plans.CreateTable: create_table,
    ddl_plans.DropTable: drop_table,
    ddl_plans.CreateIndex: create_index,
    ddl_plans.DropIndex: drop_index,
    AlterTable: alter_table,
    AlterNothing: alter_nothing,
    KeepOwner: keep_owner,
    ddl_plans.DefineViews: define_views,
    ddl_plans.DefineObjects: define_objects,
    ddl_plans.DefineMacro: define_macro,
    ddl_plans.RenameSchema: rename_schema,
    ddl_plans.Grant: grant,
    ddl_plans.CreateMaterialized: create_materialized,
    ddl_plans.RefreshMaterialized: refresh_materialized,
    ddl_plans.CreateTemporaryView: create_temporary_view,
    ddl_plans.DropTemporaryViews: drop_temporary_views,
}
"""What one function does, of the plan and the transaction."""

_HELD = (ddl_plans.CreateMaterialized, ddl_plans.RefreshMaterialized)
"""Those that only a transaction with DDL can run, until its COMMIT."""


def _is_lasting(found: plan.Plan) -> bool:
    """Whether a definition is about what outlives the session."""
    if isinstance(found, ddl_plans.DropTable):
        return not all(table.is_temporary for table in found.tables)
    return not isinstance(
        found,
        AlterNothing | ddl_plans.CreateTemporaryView | ddl_plans.DropTemporaryViews,
    )


def executable(found: plan.Plan) -> Statement:
    """The statement that executes a plan."""
    if isinstance(found, plan.Select):
        return selecting(found)
    if isinstance(found, change_plans.ChangingWith):
        return WithStatement(found, executable)
    if isinstance(found, plan.Explain):
        return ExplainStatement(found, executable(found.statement))
    define = _DEFINITIONS.get(type(found))
    if define is not None:
        return DefinitionStatement(
            found,
            define,
            defines=_is_lasting(found),
            is_held=isinstance(found, _HELD),
        )
    return _CLASSES[type(found)](found)
