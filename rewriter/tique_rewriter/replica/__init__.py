"""PostgreSQL's queries in DuckDB's words: the part of them that means exactly the same.

*Invariant:* of a statement that the source takes, where a translation is read without an
error, its rows are those that PostgreSQL answers, with the same values, digits and types. A
statement outside the subset is a :class:`Refusal`. A value for which the engines differ
makes the translation fail, and so does what PostgreSQL calls an error as it runs: whatever
DuckDB's error, the caller runs the statement on the source, which has the answer or the
message. Names, types and groups are not looked at where the source refuses them. No state
is kept.
"""

from tique_rewriter.replica.translation import Translation, parameter_type, translate
from tique_rewriter.replica.types import Refusal, family

__all__ = ["Refusal", "Translation", "family", "parameter_type", "translate"]
