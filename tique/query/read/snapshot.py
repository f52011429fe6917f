"""Snapshot queries: a plan's texts with the forms of all tables in them (paper 2.3.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique.query.read.sources import Source
from tique_rewriter.plans.text import (
    Default,
    Hole,
    Label,
    Moment,
    Outer,
    Piece,
    Text,
    Variant,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique_rewriter.plans.plan import JoinRead, Plan, Reference
    from tique_rewriter.schema import Table


_Filler = str | Hole | Label | Variant | Outer
_Ready = tuple[_Filler, ...]


class SnapshotText:
    """A plan's texts, made into engine SQL for one transaction's snapshot."""

    def __init__(self, plan: Plan) -> None:
        self.sources = [_source(reference) for reference in plan.references]
        """The plan's references, ready to be filled in."""
        self.reads_past = any(reference.past for reference in plan.references)
        """Whether some table is read as of the past."""
        self._parameters = plan.parameters
        self.is_wide = not all(source.is_narrow for source in self.sources)
        """Whether some table is read with no column of its key bound."""
        self.accompany(self.tables)
        self._names: dict[str, str] = {}
        """Aliases of results that have none, by their expressions' texts."""

    @property
    def tables(self) -> list[Table]:
        """The tables that the statement reads."""
        return [table for source in self.sources for table in source.tables]

    def accompany(self, tables: Sequence[Table]) -> None:
        """Take note of the tables of the statement that this is a part of."""
        for source in self.sources:
            source.accompany(tables)

    def fill(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *texts: Text,
        in_storage: bool = False,
    ) -> tuple[list[str], Sequence[Any]]:
        """The texts with all holes filled, and the parameters that they need.

        ``in_storage``: for an engine session in which storage is the snapshot.

        (A clause's texts need others: see :class:`~tique_rewriter.plans.change_plans.Clause`.)

        Raises
        ------
        EngineError
            UNSUPPORTED if the engine has no name for a result without an alias.
        """
        filled: dict[int | str, str] = {}
        ready = _timed(transaction, texts)
        for text in ready:
            for piece in text:
                if type(piece) is Hole:
                    index = piece.index
                    if index not in filled:
                        source = self.sources[index]
                        filled[index] = source.text(
                            transaction, parameters, in_storage=in_storage
                        )
                elif type(piece) is Outer:
                    relation = transaction.relations[piece.name]
                    filled[f"{piece.name}{piece.alias}"] = relation + piece.alias
                elif type(piece) is Label:
                    filled[piece.expression] = self._named(transaction, piece, texts)
        return [_complete(text, filled) for text in ready], parameters[
            : self._parameters
        ]

    def plain(self, transaction: Transaction, text: Text) -> str:
        """The text over the storage tables and the engine's own relations themselves."""
        filled: dict[int | str, str] = {
            number: source.plain(transaction)
            for number, source in enumerate(self.sources)
        }
        filled |= {piece.expression: "" for piece in text if isinstance(piece, Label)}
        filled |= {
            f"{piece.name}{piece.alias}": transaction.relations[piece.name]
            + piece.alias
            for piece in text
            if isinstance(piece, Outer)
        }
        written = [
            p.written if isinstance(p, Variant | Moment) else p
            for p in text
            if not isinstance(p, Default)
        ]
        return _complete(written, filled)

    def _named(
        self, transaction: Transaction, label: Label, texts: Sequence[Text]
    ) -> str:
        """The alias that a label stands for; the engine is asked for all, once."""
        if label.expression not in self._names:
            every = (p.expression for t in texts for p in t if isinstance(p, Label))
            unknown = list(dict.fromkeys(every))
            quote = transaction.engine.forms.quote
            names = transaction.session.names_of(unknown)
            for expression, name in zip(unknown, names, strict=True):
                self._names[expression] = f" AS {quote(name)}"
        return self._names[label.expression]

    def join(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        join: JoinRead,
        text: Text,
    ) -> tuple[str, Sequence[Any]]:
        """As :meth:`fill`, for a join; in parts where that is faster for the engine."""
        joined, whole = _timed(transaction, (join.rows, text))
        first, second = self.sources
        parts = first.queries(transaction, parameters)
        others = second.queries(transaction, parameters)
        forms = transaction.engine.forms
        if not forms.joins_in_parts(len(parts), len(others), wide=self.is_wide):
            both = first.relation(parts), second.relation(others)
            sql = _complete(whole, dict(enumerate(both)))
        else:
            rows = [
                _complete(
                    joined, {0: first.relation([part]), 1: second.relation([other])}
                )
                for part in parts
                for other in others
            ]
            sql = f"{join.before}({' UNION ALL '.join(rows)}){join.after}"
        return sql, parameters[: self._parameters]


class _ViewSource(Source):
    """A reference to a view: its query, over the snapshot of the tables that it reads."""

    def __init__(self, reference: Reference) -> None:
        # What the statement says of the view's columns does not matter to them.
        super().__init__(replace(reference, binding={}))
        assert reference.view is not None
        query = reference.view.select
        below = [
            replace(each, beside=each.beside | reference.beside)
            for each in query.references
        ]
        self._view = reference.view
        self._query = SnapshotText(replace(query, references=tuple(below)))
        self.is_narrow = not self._query.is_wide

    @property
    @override
    def tables(self) -> list[Table]:
        return self._query.tables

    @override
    def accompany(self, tables: Sequence[Table]) -> None:
        self._query.accompany(tables)

    @override
    def queries(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        in_storage: bool = False,
    ) -> tuple[str, ...]:
        transaction.touched.add(self.table.id)
        around = transaction.past
        if self.reference.past is not None:
            transaction.past = self.point(transaction, parameters)
        try:
            (sql,), _ = self._query.fill(
                transaction, (), self._view.select.text, in_storage=in_storage
            )
        finally:
            transaction.past = around
        return (self._named(transaction, sql),)

    @override
    def plain(self, transaction: Transaction) -> str:
        if not self.table.is_temporary:
            return super().plain(transaction)
        # The engine has no view of that name.
        sql = self._query.plain(transaction, self._view.select.text)
        return self.relation([self._named(transaction, sql)])

    def _named(self, transaction: Transaction, sql: str) -> str:
        quote = transaction.engine.forms.quote
        columns = ", ".join([quote(name) for name in self._view.columns])
        names = f" ({columns})" if columns else ""
        return f"(SELECT * FROM ({sql}) AS {quote(self.table.name)}{names})"


def _source(reference: Reference) -> Source:
    return Source(reference) if reference.view is None else _ViewSource(reference)


def _timed(transaction: Transaction, texts: Sequence[Text]) -> Sequence[_Ready]:
    """The texts with the transaction's moment in the places of its names."""
    return [tuple([_with_moment(transaction, p) for p in text]) for text in texts]


def _with_moment(transaction: Transaction, piece: Piece) -> _Filler:
    if isinstance(piece, Moment):
        return piece.form.format(transaction.moment)
    return transaction.default(piece.text) if isinstance(piece, Default) else piece


def _complete(text: Sequence[_Filler], filled: Mapping[int | str, str]) -> str:
    return "".join(
        [piece if isinstance(piece, str) else _filling(piece, filled) for piece in text]
    )


def _filling(
    piece: Hole | Label | Variant | Outer, filled: Mapping[int | str, str]
) -> str:
    if isinstance(piece, Variant):
        return piece.text
    if isinstance(piece, Outer):
        return filled[f"{piece.name}{piece.alias}"]
    return filled[piece.index if isinstance(piece, Hole) else piece.expression]
