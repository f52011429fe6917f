"""Statements about transactions, the session, and the engine's own structures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.kinds.define.maintenance import plan_maintenance, plan_tidying
from tique_rewriter.kinds.registry import Kind, phrases
from tique_rewriter.kinds.session.calls import plan_notify
from tique_rewriter.kinds.session.control import plan_control
from tique_rewriter.kinds.session.cursors import plan_cursor
from tique_rewriter.kinds.session.describe import plan_description, plan_variable
from tique_rewriter.kinds.session.prepare import (
    plan_deallocate,
    plan_execute,
    plan_prepare,
)
from tique_rewriter.kinds.session.session import (
    plan_discard,
    plan_set_constraints,
    plan_setting,
    plan_use,
)
from tique_rewriter.safety.attaching import plan_attaching

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.kinds.planner import Planner
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source


def _plan_variable(source: Source, planner: Planner) -> Plan:
    if len(source.words) == 2:
        return plan_setting(source)
    return plan_variable(source, planner.catalog)


def _unexplained(read: Callable[[Source], Plan], *patterns: str) -> Kind:
    return Kind(lambda source, _: read(source), phrases(*patterns), explains=False)


def _by_catalog(read: Callable[[Source, Catalog], Plan], *patterns: str) -> Kind:
    return Kind(
        lambda source, planner: read(source, planner.catalog),
        phrases(*patterns),
        explains=False,
    )


CONTROL = Kind(
    lambda source, _: plan_control(source),
    {
        **phrases("BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE"),
        "START": "START TRANSACTION",
        "END": "COMMIT",
        "ABORT": "ROLLBACK",
        "SET TRANSACTION": "SET",
    },
    explains=False,
)
SETTING = _unexplained(plan_setting, "SET|RESET|SHOW")
CONSTRAINTS = _unexplained(plan_set_constraints, "SET CONSTRAINTS")
VARIABLE = Kind(
    _plan_variable, {"SET VARIABLE": "SET", "RESET VARIABLE": "RESET"}, explains=False
)
USE = _unexplained(plan_use, "USE")
DESCRIPTION = _by_catalog(plan_description, "DESCRIBE|DESC|SHOW|SUMMARIZE|PRAGMA|CALL")
DISCARD = _unexplained(plan_discard, "DISCARD [ALL]")
PREPARED = (
    _unexplained(plan_prepare, "PREPARE"),
    _by_catalog(plan_execute, "EXECUTE"),
    _unexplained(plan_deallocate, "DEALLOCATE [ALL]"),
)
CURSOR = Kind(
    lambda source, planner: plan_cursor(source, planner.plan),
    {
        "DECLARE": "DECLARE CURSOR",
        "FETCH": "FETCH #",
        "MOVE": "MOVE #",
        "CLOSE": "CLOSE CURSOR",
        "CLOSE ALL": "CLOSE CURSOR ALL",
    },
)
NOTIFY = Kind(lambda source, _: plan_notify(source), phrases("NOTIFY"))
ATTACH = _unexplained(plan_attaching, "ATTACH|DETACH")
MAINTENANCE = _by_catalog(plan_maintenance, "ANALYZE|VACUUM|CHECKPOINT|FORCE|LOAD")
TIDYING = (
    _unexplained(plan_tidying, "ANALYZE"),
    Kind(
        lambda source, _: plan_tidying(source),
        phrases("ANALYSE|VACUUM|REINDEX|CLUSTER"),
    ),
)
