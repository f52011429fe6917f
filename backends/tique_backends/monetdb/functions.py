"""Functions that are not MonetDB's own, read from its catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.schema import Function, HiddenCall, Named

if TYPE_CHECKING:
    from tique_backends.session import Session

# The text is the whole CREATE FUNCTION, in SQL or in another language: no expression.
_FUNCTIONS = """
SELECT s.name, f.name, s.name || '.' || f.name, 'CREATE', f.func, '', f.side_effect,
  f.type = 1, EXISTS (SELECT 1 FROM sys.functions AS o
                      WHERE o.system AND o.name = f.name),
  CAST(NULL AS VARCHAR(1)), f.id || ' ' || f.func
FROM sys.functions AS f JOIN sys.schemas AS s ON s.id = f.schema_id
WHERE NOT f.system AND s.name <> 'tique'
ORDER BY f.id"""


def functions(session: Session) -> list[Function]:
    """The application's functions, in whatever language."""
    return [Function(*row) for row in session.execute(_FUNCTIONS).fetch_all()]


# Operators, conditions and keywords are calls of functions with these names, as far as their
# operands' types lead to one of the application's.
_BEHIND_SYNTAX = """
SELECT s.name, f.name, s.name || '.' || f.name FROM sys.functions AS f
JOIN sys.schemas AS s ON s.id = f.schema_id
WHERE NOT f.system AND s.name <> 'tique' AND (f.name LIKE 'sql!_%' ESCAPE '!'
  OR f.name LIKE '%!_shift%' ESCAPE '!' OR f.name LIKE 'bit!_%' ESCAPE '!'
  OR f.name IN ('=', '<>', '<', '<=', '>', '>=', 'all', 'and', 'any', 'anyequal',
    'allnotequal', 'between', 'case', 'casewhen', 'coalesce', 'concat', 'exist', 'identity',
    'ifthenelse', 'ilike', 'isnotnull', 'isnull', 'like', 'minus', 'mod', 'next_value_for',
    'not', 'not_exist', 'not_ilike', 'not_like', 'not_unique', 'null', 'nullif', 'or',
    'rowid', 'star', 'xor', 'zero_or_one'))
ORDER BY f.id"""


def hidden_calls(session: Session) -> list[HiddenCall]:
    """The application's functions that operators call, by whichever operands."""
    return [
        HiddenCall(Named.ANYTHING, schema, name, "what operators may call", signature)
        for schema, name, signature in session.execute(_BEHIND_SYNTAX).fetch_all()
    ]
