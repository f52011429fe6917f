"""Ways to break SERIALIZABLE on purpose, as :mod:`jepsen.mutations` breaks the rest.

Each leaves out one step of the argument that :mod:`tique.commit.validation` begins with, or
of what :mod:`tique.writes.seen` promises to have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique.commit.batch import BatchCertifier
from tique.commit.batch_rows import BatchRows
from tique.commit.validation import Validation, _Rows
from tique.query.transaction.transaction import Transaction
from tique.store.rows import merged
from tique.writes.seen import Seen

if TYPE_CHECKING:
    from collections.abc import Callable


def _looks_at_new_images() -> None:
    """A row that leaves a predicate is not in its way."""

    def image(old: Any, new: Any) -> Any:
        return new if old is None or new is None else merged(new, old)

    _look_at(image)


def _looks_at_old_images() -> None:
    """A row that gets into a predicate is not in its way."""
    _look_at(lambda old, _: old)


def _look_at(image: Callable[[Any, Any], Any]) -> None:
    genuine = _Rows.differ

    def differ(rows: Any, old: Any, new: Any) -> bool:
        return genuine(rows, old, new) and rows._has(image(old, new))

    _replace(_Rows, differ)


def _savepoints_take_back_what_was_seen() -> None:
    """What was seen goes with what was written."""
    genuine = Transaction.take_back

    def take_back(transaction: Any, sequence: int) -> None:
        genuine(transaction, sequence)
        transaction.seen = Seen()

    _replace(Transaction, take_back)


def _notes_no_rows() -> None:
    """A row that is read by its key is not noted."""

    def see_row(*_: Any) -> None:
        """Note nothing."""

    _replace(Transaction, see_row)


def _notes_no_predicates() -> None:
    """What a query reads is not noted."""

    def see_rows(*_: Any) -> None:
        """Note nothing."""

    _replace(Transaction, see_rows)


def _validates_without_the_batch() -> None:
    """The commits of its own batch are not looked at, all of which come before."""
    genuine = Validation.__init__

    def __init__(validation: Any, catalog: Any, *others: Any, **how: Any) -> None:
        forms, sequencer, _ = others
        genuine(validation, catalog, forms, sequencer, BatchRows(catalog), **how)

    _replace(Validation, __init__)


def _validates_too_early() -> None:
    """Other processes' commits may come between the validation and the commit."""
    genuine = BatchCertifier.certify

    def certify(certifier: Any, *batch: Any) -> Any:
        certified, later = genuine(certifier, *batch)
        for ticket in certified:
            ticket.is_validated = False
        return certified, later

    _replace(BatchCertifier, certify)


def _replace(owner: object, function: Callable[..., Any]) -> None:
    setattr(owner, function.__name__, function)


SERIALIZABLE: dict[str, Callable[[], None]] = {
    "looks-at-new-images": _looks_at_new_images,
    "looks-at-old-images": _looks_at_old_images,
    "savepoints-take-back-what-was-seen": _savepoints_take_back_what_was_seen,
    "notes-no-rows": _notes_no_rows,
    "notes-no-predicates": _notes_no_predicates,
    "validates-without-the-batch": _validates_without_the_batch,
}
"""Mutations of SERIALIZABLE by name, which a short random workload finds."""

SHARED_SERIALIZABLE: dict[str, Callable[[], None]] = {
    "validates-too-early": _validates_too_early,
}
"""The same beside another process of a server."""
