"""The clauses at the end of a change: where they stand, and the plan of RETURNING."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plans.change_plans import Returning
from tique_rewriter.scope.bindings import Scope
from tique_rewriter.scope.outputs import plain_columns, star_of
from tique_rewriter.text.source import Mark
from tique_rewriter.tree.scalars import check_scalar, split
from tique_rewriter.tree.shape import clause_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import expressions as exp

    from tique_rewriter.plans.text import Piece, Text
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source, Word


class ClauseText:
    """A clause's text, which counts its placeholders for itself.

    Parameters
    ----------
    source
        The statement.
    words
        The clause's words.
    reads
        The places where the statement reads managed tables, and its labels.
    replaced
        The replacements of other parts.
    """

    def __init__(
        self,
        source: Source,
        words: Sequence[Word],
        reads: Reads,
        replaced: Sequence[Mark] = (),
    ) -> None:
        self._source = source
        found = source.placeholders(words[0].start, words[-1].end)
        self.parameters = tuple(sorted({number for _, number in found}))
        own = [
            Mark(at, at + len(f"${number}"), f"${self.parameters.index(number) + 1}")
            for at, number in found
        ]
        self._counted = reads.marks_with(replaced)
        self._marks = reads.marks_with([*replaced, *own])

    def cut(self, start: int, end: int) -> Text:
        """``text[start:end]`` as the plan has it."""
        return _joined(self._source.cut(start, end, self._marks))

    def counted(self, start: int, end: int) -> Text:
        """The same, with placeholders that count as the statement's."""
        return _joined(self._source.cut(start, end, self._counted))


def _joined(pieces: Iterable[Piece]) -> Text:
    """Put neighbouring strings together."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, str) and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    return tuple(joined)


def find_clause(source: Source, tree: exp.Expr, keyword: str) -> int:
    """Return the number of the one word that names the clause.

    Raises
    ------
    UnsupportedSQL
        If there are several such words: the parser keeps one of the clauses.
    """
    found = clause_words(source, tree, keyword)
    if len(found) != 1:
        start = found[-1][1].start if found else source.find(keyword)
        raise source.unsupported(f"{keyword} and a word that looks like it", start)
    return found[0][0]


def plan_returning(
    source: Source, tree: exp.Expr, target: Read, reads: Reads
) -> Returning | None:
    """Return the plan of a change's RETURNING clause, if it has one."""
    returning = tree.args.get("returning")
    if returning is None:
        return None
    words = source.words[find_clause(source, tree, "RETURNING") + 1 :]
    if returning.args.get("into"):
        raise source.unsupported("RETURNING … INTO", words[0].start)
    pieces = split(words)
    nodes: list[exp.Expr] = returning.expressions
    if len(pieces) != len(nodes):
        raise source.unsupported("this form of RETURNING", words[0].start)
    for piece, node in zip(pieces, nodes, strict=True):
        if star_of(node) is None:
            check_scalar(source, node, piece[0].start, "RETURNING")
    text = ClauseText(source, words, reads)
    plain = plain_columns(nodes, Scope.of(target), target)
    return Returning(
        text.parameters,
        text.cut(words[0].start, words[-1].end),
        target.qualifier,
        None if plain is None else tuple(plain),
    )
