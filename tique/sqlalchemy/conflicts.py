"""ON CONFLICT on engines that know a key by its columns, and not by a constraint's name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, PrimaryKeyConstraint, UniqueConstraint
from sqlalchemy.dialects.postgresql.base import PGCompiler
from sqlalchemy.exc import CompileError


class ConflictCompiler(PGCompiler):
    """Queries and changes in which the table's metadata says what a constraint is of."""

    def _on_conflict_target(self, clause: Any, **kw: Any) -> str:
        name = clause.constraint_target
        if name is None:
            text: str = super()._on_conflict_target(clause, **kw)
            return text
        statement: Any = self.stack[-1]["selectable"]
        table = statement.table
        for key in (*table.constraints, *table.indexes):
            columns = _columns(key)
            if columns and key.name == name:
                kw |= {"include_table": False, "use_schema": False}
                return f"({', '.join(self.process(each, **kw) for each in columns)})"
        raise CompileError(
            f"the metadata of the table {table.name} has no PRIMARY KEY, UNIQUE constraint or "
            f"unique index of columns called {name}: give the columns as index_elements"
        )


def _columns(key: object) -> list[Any]:
    """The columns of a key; none if it is no key, or is on an expression."""
    if isinstance(key, PrimaryKeyConstraint | UniqueConstraint):
        return list(key.columns)
    if isinstance(key, Index) and key.unique:
        columns = list(key.expressions)
        return columns if all(isinstance(each, Column) for each in columns) else []
    return []
