"""Names of MonetDB's functions that depend on their arguments alone.

Not among them: clocks, chance, sequences, sessions and catalogs.

An application's function may be called in place of one of MonetDB's own of its name, if its arguments
fit better; behind an operator is a function too (``sql_add``). It might write, which would
be undone with an uncommitted fold, or read anything. While there is one of such a name,
:data:`SHADOWED` has a row.
"""

from __future__ import annotations

from tique_backends.words import SYNTAX
from tique_rewriter.plan import CONVERSION, MOMENT

_FUNCTIONS = """
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

OF_ROWS = SYNTAX.union(_FUNCTIONS.split(), _AGGREGATES.split(), (CONVERSION, MOMENT))
"""Words before brackets in a query that gives the same in any session and at any time."""

SHADOWED = """
SELECT 1 FROM sys.functions AS f JOIN sys.schemas AS s ON s.id = f.schema_id
WHERE NOT f.system AND s.name <> 'tique'
AND f.name IN (SELECT o.name FROM sys.functions AS o WHERE o.system) LIMIT 1"""
"""A query for an application's function of a name that MonetDB's own have."""
