"""FOREIGN KEY constraints, kept by tique itself (P9).

The storage tables have no such constraints: folds bring rows to them in an order of their
own, long after the commit, and engines' own ones are over-eager or missing. Here they hold
for what a transaction sees; :mod:`tique.commit.referential` sees to concurrent ones.

Argument
--------
*When.* A statement notes its writes to tables that reference or are referenced
(:meth:`~tique.query.transaction.transaction.Transaction.note_unchecked`). When it has written
everything, :func:`enforce` carries out actions and checks, before the statement ends:
an error undoes the statement with all of its actions and nothing else (P8). What a
deferred constraint has to check is kept until :func:`check_deferred`, at commit, before
certification. Entries of statements that were undone do no harm: the check
asks whether the rows that are there reference keys that are.

*References.* Only rows whose reference is new count: an UPDATE of other columns looks at
nothing. The parent's row is looked up by its key as any point read: in the own writes, in the
index of versions, in what is known of storage. So where the transaction has read the
parent or written it, which is the common case, no engine statement is needed; many keys
are read in one. A UNIQUE key that is not the primary key is looked up by a query.

*A key that is found* is held in shared mode until the commit, unless the row that has it
is one of the transaction's own writes: then no other transaction can commit a change of
it. *A key that is given up* is held exclusively.

*Referencing rows* are found by a query over the child's snapshot, by the columns of the
constraint, and only if a parent's row is deleted or its key is changed. CASCADE, SET NULL and
SET DEFAULT are further writes of the same statement, each round with a number of its
own, which see the writes before. They may in turn give keys up; a round deletes or
changes at least one row to another state, and rounds are bounded. All rows of a round
are looked for before any is changed, so that keys may be swapped.

*NO ACTION* is checked when all rounds are over: by then another row may have taken the
key. RESTRICT is checked at once; a row that an earlier constraint of its table has deleted, because
of the same row or one before it, restricts nothing, as in PostgreSQL.

*Staged writes* have no list of rows. Both sides are checked by one anti-join of the
child's snapshot with the parent's: the constraint held before the statement, so every
orphan is due to it. After a DELETE, or an UPDATE of the key, orphans are what an action is
about; those of a deferred constraint only if their parent was there before the statement.
A key that another row of an UPDATE takes leaves none, so that is refused if a row references it.
A statement that inserts parents, and updates at the most other columns than the key, takes
no key away: there is nothing to act on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique import errors
from tique._translation import concerning
from tique.query.write.changes import stage_old, write_changes
from tique.query.write.referencing import (
    children,
    children_queries,
    expect_privilege,
    held_key,
    missing_parents,
    orphans,
    taken_over,
)
from tique.store.rows import key_of
from tique_rewriter.local.kernel import NotLocal, coercer
from tique_rewriter.schema import Action

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tique.query.transaction.constraint_modes import Name
    from tique.query.transaction.transaction import Transaction, Unchecked
    from tique.query.write.changes import Change
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.schema import ForeignKey, Table

_ROUNDS = 10_000
"""A hierarchy that is deeper is not deleted by one statement."""


def enforce(transaction: Transaction) -> None:
    """Carry out the actions that the statement's writes ask for; check references.

    Raises
    ------
    ForeignKeyViolation
        A row references a key that is not there.
    RestrictViolation
        A key was given up that a RESTRICT constraint references.
    """
    if transaction.unchecked:
        _Enforcement(transaction).run()


def check_deferred(transaction: Transaction, *, is_commit: bool = True) -> None:
    """Check the deferred constraints of a transaction: those that wait only at commit.

    Raises
    ------
    ForeignKeyViolation
        A row references a key that is not there.
    """
    if not transaction.deferred:
        return
    catalog = transaction.catalog
    tables = catalog.by_id()
    deferred = list(transaction.deferred.items())
    for (child_id, name), suspects in deferred:
        child = tables.get(child_id)
        for key in () if child is None else child.foreign_keys:
            if child is None or key.name != name:
                continue
            if is_commit or not transaction.modes.are_deferred(child, key):
                _check(transaction, child, key, suspects)


def set_constraints(
    transaction: Transaction, names: frozenset[Name] | None, *, is_deferred: bool
) -> None:
    """Say when some constraints, or all, are checked; those that are not to wait, now.

    Raises
    ------
    ForeignKeyViolation
        A row references a key that is not there: nothing has changed.
    """
    before = transaction.sequence
    transaction.refresh()
    transaction.sequence += 2
    transaction.modes.set(transaction.sequence, names, is_deferred=is_deferred)
    try:
        check_deferred(transaction, is_commit=False)
    except BaseException:
        transaction.modes.rollback_to(before)
        transaction.sequence = before
        raise
    transaction.visible_sequence = transaction.sequence


class _Acted:
    """What the actions of a round do to the rows of one table.

    A row that several constraints act on is deleted if one of them does that; else it
    gets the new values of all.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._rows: dict[tuple[Any, ...], tuple[Row, Row | None]] = {}
        self._deleted: dict[tuple[Any, ...], int] = {}
        """Because of which row of the parent, by its number."""
        self.columns: set[int] = set()
        """The columns that are set."""

    def _name(self, row: Row, copy: int) -> tuple[Any, ...]:
        # Without a key equal rows fare alike: each copy is one.
        return key_of(self._table.primary_key, row) or (*row, copy)

    def deletes(self, row: Row, number: int) -> bool:
        """Whether a row goes because of one of the parent's rows up to this number."""
        since = self._deleted.get(self._name(row, 1))
        return since is not None and since <= number

    def add(
        self,
        rows: Iterable[Row],
        columns: Sequence[int],
        values: Iterable[Key | None],
        numbers: Iterable[int],
    ) -> None:
        """Give each row new values in some columns; None deletes it.

        ``numbers`` are those of the parent's rows that are the reason.
        """
        copies: dict[Row, int] = {}
        for row, new, number in zip(rows, values, numbers, strict=True):
            copies[row] = copies.get(row, 0) + 1
            name = self._name(row, copies[row])
            if new is None:
                self._deleted[name] = min(number, self._deleted.get(name, number))
            _, now = self._rows.get(name, (row, row))
            if new is None or now is None:
                self._rows[name] = (row, None)
                continue
            changed = list(now)
            for position, value in zip(columns, new, strict=True):
                changed[position] = value
            self._rows[name] = (row, tuple(changed))
            self.columns.update(columns)

    @property
    def changes(self) -> list[Change]:
        """The rows before and after."""
        return list(self._rows.values())


class _Enforcement:
    """The end of one statement."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._catalog = transaction.catalog
        self._suspects: dict[tuple[int, str], tuple[Table, ForeignKey]] = {}
        self._values: dict[tuple[int, str], dict[Key, None] | None] = {}
        self._acted: dict[int, tuple[Table, _Acted]] = {}

    def run(self) -> None:
        """Run rounds of actions until nothing is left to do; then check."""
        transaction = self._transaction
        for _ in range(_ROUNDS):
            work = list(transaction.unchecked)
            if not work:
                break
            transaction.unchecked.clear()
            for written in work:
                self._note_references(written)
                if written.table.referenced:
                    self._give_up_keys(written)
            self._write_round()
        else:
            raise errors.OperationalError(
                f"actions of FOREIGN KEY constraints did not end after {_ROUNDS} rounds",
                sqlstate="54001",
            )
        for name, (child, key) in self._suspects.items():
            values = self._values[name]
            if key.is_deferred:
                # A savepoint may take back what made a check pass.
                before = transaction.deferred.get(name, {})
                every = None if values is None or before is None else before | values
                transaction.deferred[name] = every
            if not transaction.modes.are_deferred(child, key):
                _check(transaction, child, key, values)

    def _suspect(
        self, child: Table, key: ForeignKey, values: Iterable[Key] | None
    ) -> None:
        """Note references to check when all rounds are over; None: all of them."""
        name = (child.id, key.name)
        self._suspects[name] = (child, key)
        before = self._values.setdefault(name, {})
        if values is None or before is None:
            self._values[name] = None
        else:
            before.update(dict.fromkeys(values))

    def _note_references(self, written: Unchecked) -> None:
        columns = set(written.columns)
        for key in written.table.foreign_keys:
            if columns.isdisjoint(key.columns):
                continue
            if written.changes is None:
                self._suspect(written.table, key, None)
                continue
            new = [
                values
                for old, row in written.changes
                if row is not None
                and None not in (values := key_of(key.columns, row))
                and (old is None or key_of(key.columns, old) != values)
            ]
            if new:
                self._suspect(written.table, key, new)

    def _give_up_keys(self, written: Unchecked) -> None:
        """Act on the rows that reference what the statement took away."""
        table, updated = written.table, set(written.updated)
        for key in table.referenced:
            if written.changes is not None:
                self._give_up_known(table, key, written.changes)
            elif written.deletes or not updated.isdisjoint(key):
                for child, reference in self._referencing(table, key):
                    self._act_on_orphans(child, reference, written)

    def _give_up_known(
        self, table: Table, key: tuple[int, ...], changes: Sequence[Change]
    ) -> None:
        deleted: dict[Key, Key | None] = {}
        changed: dict[Key, Key | None] = {}
        taken: set[Key] = set()
        rows: dict[Key, Row] = {}
        numbers: dict[Key, int] = {}
        for number, (old, new) in enumerate(changes):
            before = None if old is None else key_of(key, old)
            after = None if new is None else key_of(key, new)
            if before == after:
                continue
            if after is not None:
                taken.add(after)
            if old is not None and before is not None and None not in before:
                rows[before] = old
                numbers[before] = number
                (deleted if after is None else changed)[before] = after
        if not rows:
            return
        transaction = self._transaction
        for values, row in rows.items():
            if values not in taken:
                primary = key_of(table.primary_key, row) if table.primary_key else None
                transaction.references.give_up(
                    held_key(transaction, table, key, values, primary)
                )
        for child, reference in self._referencing(table, key):
            self._act(child, reference, reference.on_delete, deleted, numbers)
            self._act(child, reference, reference.on_update, changed, numbers)

    def _referencing(
        self, table: Table, key: tuple[int, ...]
    ) -> Iterator[tuple[Table, ForeignKey]]:
        for child, reference in self._catalog.referencing(table):
            if reference.key == key:
                # One that was changed without tique is refused here.
                self._catalog.find(child.schema, child.name)
                expect_privilege(self._transaction, child, "SELECT")
                yield child, reference

    def _act(
        self,
        child: Table,
        key: ForeignKey,
        action: Action,
        given_up: Mapping[Key, Key | None],
        numbers: Mapping[Key, int],
    ) -> None:
        """Act on the rows that reference keys that are given up for others, or none.

        ``numbers`` are those of the rows that give them up.
        """
        if not given_up:
            return
        if action is Action.NO_ACTION:
            self._suspect(child, key, given_up)
            return
        transaction = self._transaction
        if not self._catalog.buffers(child):
            deletes = None in given_up.values()
            if action is Action.CASCADE and not deletes:
                raise errors.NotSupportedError(
                    f"ON UPDATE {action.value} of the FOREIGN KEY {key.name} is not "
                    f"supported where {child.qualified_name} has values that do not "
                    "survive the way through Python"
                )
            for query in children_queries(transaction, child, key, list(given_up)):
                self._stage(child, key, action, query)
            self._suspect(child, key, given_up)
            return
        rows = list(children(transaction, child, key, list(given_up)))
        if not rows:
            return
        causes = [numbers[key_of(key.columns, row)] for row in rows]
        if action is Action.RESTRICT:
            earlier = self._acted.get(child.id)
            for row, number in zip(rows, causes, strict=True):
                if earlier is None or not earlier[1].deletes(row, number):
                    raise _restricted(child, key, key_of(key.columns, row))
            return
        _, acted = self._acted.setdefault(child.id, (child, _Acted(child)))
        values: Iterable[Key | None]
        if action is Action.CASCADE:
            values = self._fitting(
                child, key, [given_up[key_of(key.columns, row)] for row in rows]
            )
        else:
            texts = self._substitutes(child, key, action)
            items = ", ".join(f"{text} AS _d{n}" for n, text in enumerate(texts))
            values = transaction.session.rows_to_keep(f"SELECT {items}") * len(rows)
            # The default may be what is given up.
            self._suspect(child, key, given_up)
        acted.add(rows, key.columns, values, causes)

    def _fitting(
        self, child: Table, key: ForeignKey, values: Iterable[Key | None]
    ) -> Iterator[Key | None]:
        """Keys of the parent as values of the child's columns."""
        columns = [child.columns[i] for i in key.columns]
        # Names of an enumeration are the same in both.
        coercers = [str if c.is_named else coercer(c.type) for c in columns]
        for value in values:
            if value is None:
                yield None
                continue
            try:
                yield tuple([c(v) for c, v in zip(coercers, value, strict=True)])
            except NotLocal:
                raise errors.DataError(
                    f"the key {value} does not fit into the columns of the FOREIGN KEY "
                    f"{key.name} of {child.qualified_name}",
                    sqlstate="22003",
                ) from None

    def _substitutes(self, child: Table, key: ForeignKey, action: Action) -> list[str]:
        """Expressions for the values of SET NULL and SET DEFAULT."""
        cast = self._transaction.engine.forms.cast
        texts = []
        for position in key.columns:
            column = child.columns[position]
            default = column.default if action is Action.SET_DEFAULT else None
            text = self._transaction.default(default)
            texts.append(cast(f"({text})", column.type))
        return texts

    def _write_round(self) -> None:
        """Write what the actions of a round came to."""
        if not self._acted:
            return
        transaction = self._transaction
        acted, self._acted = self._acted, {}
        transaction.sequence += 2
        for child, done in acted.values():
            changes = done.changes
            if any(new is None for _, new in changes):
                expect_privilege(transaction, child, "DELETE")
            if done.columns:
                expect_privilege(transaction, child, "UPDATE")
            write_changes(transaction, child, changes, done.columns)

    def _act_on_orphans(
        self, child: Table, key: ForeignKey, written: Unchecked
    ) -> None:
        """Act after a statement that staged its writes to the parent."""
        action = key.on_delete if written.deletes else key.on_update
        if action is Action.NO_ACTION:
            self._suspect(child, key, None)
            return
        if action is Action.CASCADE and not written.deletes:
            raise errors.NotSupportedError(
                f"ON UPDATE CASCADE of the FOREIGN KEY {key.name} is not supported for a "
                "statement that changes so many keys; change fewer at a time"
            )
        if not set(written.updated).isdisjoint(key.key):
            self._expect_none_taken_over(child, key, written)
        # Others may wait for a parent by a deferred constraint.
        before = written.sequence - 2 if key.is_deferred else None
        query = orphans(self._transaction, child, key, before=before)
        if action is Action.RESTRICT:
            found = _first(self._transaction, query)
            if found:
                raise _restricted(child, key, key_of(key.columns, found[0]))
            return
        self._stage(child, key, action, query)
        if action is Action.SET_DEFAULT:
            self._suspect(child, key, None)

    def _expect_none_taken_over(
        self, child: Table, key: ForeignKey, written: Unchecked
    ) -> None:
        """Refuse keys that one row gave up and another took: they leave no orphans."""
        query = taken_over(self._transaction, child, key, written.sequence)
        found = _first(self._transaction, query)
        if found:
            raise errors.NotSupportedError(
                f"ON UPDATE {key.on_update.value} of the FOREIGN KEY {key.name} is not "
                "supported for a statement that changes so many keys and gives "
                f"{key_of(key.columns, found[0])} to another row, which "
                f"{child.qualified_name} references; change fewer at a time"
            )

    def _stage(self, child: Table, key: ForeignKey, action: Action, query: str) -> None:
        """Delete or change the rows of a query without moving them."""
        transaction = self._transaction
        deletes = action is Action.CASCADE
        expect_privilege(transaction, child, "DELETE" if deletes else "UPDATE")
        transaction.sequence += 2
        width, columns, new = len(child.columns), key.columns, None
        if deletes:
            columns = ()
        else:
            texts = self._substitutes(child, key, action)
            given = dict(zip(columns, texts, strict=True))
            new = [given.get(i, f"_{i}") for i in range(width)]
        stage_old(transaction, child, query, (), width, new, columns)


def _first(transaction: Transaction, query: str) -> list[Row]:
    """The first row of a query, if it has any."""
    first = transaction.engine.forms.first_of(query)
    return transaction.session.rows_to_keep(first)


def _check(
    transaction: Transaction,
    child: Table,
    key: ForeignKey,
    values: dict[Key, None] | None,
) -> None:
    """Check references with these values, or all of them."""
    if values is None:
        found = _first(transaction, orphans(transaction, child, key))
    else:
        missing = missing_parents(transaction, child, key, list(values))
        if not missing:
            return
        # A later action may have taken the reference away.
        found = list(children(transaction, child, key, missing))
    if found:
        at_fault = key_of(key.columns, found[0])
        names = ", ".join(child.columns[i].name for i in key.columns)
        raise errors.ForeignKeyViolation(
            f"FOREIGN KEY constraint {key.name} of {child.qualified_name}: there is no "
            f"row in {'.'.join(key.parent)} for ({names}) = {at_fault}",
            constraint=key.name,
            table=child.qualified_name,
            key=at_fault,
            diag=concerning(child, constraint_name=key.name),
        )


def _restricted(child: Table, key: ForeignKey, values: Key) -> errors.RestrictViolation:
    return errors.RestrictViolation(
        f"FOREIGN KEY constraint {key.name} of {child.qualified_name}: RESTRICT, a row "
        f"references the key {values} of {'.'.join(key.parent)}",
        constraint=key.name,
        table=child.qualified_name,
        key=values,
        diag=concerning(child, constraint_name=key.name),
    )
