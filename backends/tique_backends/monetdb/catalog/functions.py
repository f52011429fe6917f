"""Functions that are not MonetDB's own, read from its catalog; and what its own depend on.

An application's function may be called in place of one of MonetDB's own of its name, if its arguments
fit better; behind an operator is a function too (``sql_add``). It might write, which would
be undone with an uncommitted fold, or read anything. While there is one of such a name,
:data:`SHADOWED` has a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.catalog.words import SYNTAX
from tique_rewriter.plans.plan import CONVERSION, MOMENT
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


# They depend on their arguments alone: no clocks, chance, sequences, sessions and catalogs.
_OF_ARGUMENTS = """
abs acos ascii asin atan ceil ceiling char_length character_length code concat convert cos
cosh cot date_trunc day dayofmonth dayofweek dayofyear decade century degrees
editdistance epoch_ms exp floor greatest hour ifnull lcase least left length levenshtein ln
locate log log10 log2 lower lpad ltrim md5 minute mod month nullif octet_length patindex pi
position power quarter radians repeat replace right round rpad rtrim second sign sin sinh
space splitpart sqrt substr substring tan tanh trim truncate ucase upper week weekofyear
year extract coalesce
"""

_AGGREGATES = """
avg corr count covar_pop covar_samp cume_dist dense_rank first_value group_concat grouping
lag last_value lead listagg max median median_avg min nth_value ntile percent_rank prod
quantile quantile_avg rank row_number stddev_pop stddev_samp sum var_pop var_samp
"""

OF_ROWS = SYNTAX.union(_OF_ARGUMENTS.split(), _AGGREGATES.split(), (CONVERSION, MOMENT))
"""Words before brackets in a query that gives the same in any session and at any time."""

SHADOWED = """
SELECT 1 FROM sys.functions AS f JOIN sys.schemas AS s ON s.id = f.schema_id
WHERE NOT f.system AND s.name <> 'tique'
AND f.name IN (SELECT o.name FROM sys.functions AS o WHERE o.system) LIMIT 1"""
"""A query for an application's function of a name that MonetDB's own have."""
