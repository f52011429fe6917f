"""SQL text with holes: pieces of the application's own text, and what is put between them.

A *hole* is where a managed table is read; the executor fills it with a snapshot form of
that table. Placeholders are numbered, ``$1 … $n``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Hole:
    """The place in a statement's text where reference number ``index`` is read."""

    index: int


@dataclass(frozen=True)
class Label:
    """The place after a result without an alias that is this ``expression``.

    The expression reads some table, so that the filled text is another one. The driver
    puts `` AS `` there and the name that the engine has for the expression.
    """

    expression: str


@dataclass(frozen=True)
class Variant:
    """A place where the engine gets ``text``.

    It gets ``written`` there where it is only asked what results are called.
    """

    written: str
    text: str


@dataclass(frozen=True)
class Outer:
    """The place where a member of the WITH list around a part of a statement is read.

    ``alias`` must follow the text that fills it; it is empty if the application gave one.
    """

    name: str
    alias: str


@dataclass(frozen=True)
class Moment:
    """A place where the transaction's moment is ``written``: it takes the ``{}`` of ``form``."""

    written: str
    form: str


@dataclass(frozen=True)
class Default:
    """The place of a column's DEFAULT, in which its moments are the transaction's."""

    text: str


Piece = str | Hole | Label | Variant | Outer | Moment | Default


UNNAMED = "_unnamed_"
"""How the names begin that results have in a plan and not in the application's text."""


Text = tuple[Piece, ...]
"""SQL text with holes. Placeholders in it are ``$n``, counted from 1."""


def holes(text: Text) -> Iterable[int]:
    """The numbers of the holes in ``text``, in order."""
    return (piece.index for piece in text if isinstance(piece, Hole))


def labels(text: Text) -> Iterable[Label]:
    """The labels in ``text``, in order."""
    return (piece for piece in text if isinstance(piece, Label))
