"""TABLESAMPLE of a snapshot, where the engine samples the pages of tables only.

The rows of the snapshot are chosen one by one: by a random number, or for REPEATABLE by a
number that the row and the seed determine. So a sample of the same rows with the same seed
is the same, and SYSTEM, which takes what is stored together, is as fine as BERNOULLI.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_rewriter.scope.reads import Read
    from tique_rewriter.text.source import Source

_METHODS = frozenset({"BERNOULLI", "SYSTEM"})
_INNER = "_sampled"
_PARTS = 1_000_000
_MOST_SEED = 2**31


def sample_marks(source: Source, reads: Sequence[Read]) -> Iterator[Mark]:
    """Yield the plan's text around the tables that are sampled.

    Raises
    ------
    UnsupportedSQL
        For a sample of anything but a table, another method, or a number that is not
        written out.
    """
    if not source.rules.samples_rows:
        return
    for read in reads:
        sample = read.node.args.get("sample")
        if isinstance(sample, exp.TableSample):
            yield from _marks(source, read, sample)


def check_samples(source: Source, tree: exp.Expr, reads: Sequence[Read]) -> None:
    """Refuse samples of relations that are not managed tables.

    Raises
    ------
    UnsupportedSQL
        There is one.
    """
    if not source.rules.samples_rows:
        return
    known = {id(read.node) for read in reads if read.view is None}
    for sample in tree.find_all(exp.TableSample):
        if id(sample.parent) not in known:
            raise _refusal(source, "of anything but a table")


def _marks(source: Source, read: Read, sample: exp.TableSample) -> Iterator[Mark]:
    words = source.words
    start, end = read.span.start, read.span.end
    begin = source.number(start)
    while begin < len(words) and words[begin].keyword != "TABLESAMPLE":
        begin += 1
    last = _closing(source, begin + 2)
    if words[begin + 1].keyword not in _METHODS:
        raise _refusal(source, words[begin + 1].keyword)
    percent = _number(source, sample.args.get("percent"))
    if not 0 <= percent <= 100:
        raise _refusal(source, "of no percentage")
    name = quote(_INNER) if read.own_alias else quote(read.node.name)
    chance = f"random() * 100 < {percent}"
    if source.keywords(last + 1)[:1] == ["REPEATABLE"]:
        seed = _number(source, sample.args.get("seed"))
        if abs(seed) >= _MOST_SEED:
            raise _refusal(source, "with so large a seed")
        last = _closing(source, last + 2)
        # The hash of the row with the seed, as one of so many parts.
        row = f"pg_catalog.hashtextextended({name}::text, {int(seed * 1000)})"
        chance = f"abs({row} % {_PARTS}) < {percent * (_PARTS // 100)}"
    inner = f" AS {name}" if read.own_alias else ""
    outer = "" if read.own_alias else f" AS {name}"
    yield Mark(start, start, "(SELECT * FROM ")
    yield Mark(end, end, f"{inner} WHERE {chance}){outer}")
    yield Mark(words[begin].start, words[last].end, "")


def _closing(source: Source, number: int) -> int:
    """The number of the word that closes the bracket here."""
    if source.keywords(number)[:1] != ["("]:
        raise _refusal(source, "of this form")
    return number + source.closing(source.words[number:])


def _number(source: Source, node: exp.Expr | None) -> Decimal:
    sign = 1
    if isinstance(node, exp.Neg):
        sign, node = -1, node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        raise _refusal(source, "by anything but a number")
    return sign * Decimal(node.this)


def _refusal(source: Source, what: str) -> Exception:
    return source.unsupported(f"TABLESAMPLE {what}", source.find("TABLESAMPLE"))
