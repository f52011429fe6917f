"""Transactions of ten operations on one table, as Wu et al. have them, on YCSB's rows.

An operation reads a row by its key, all of it, or sets one field, and depends on no other
operation's result. So an update is blind: tique merges it with another one of the same
row where nothing that the transaction has read was changed.

What is checked afterwards: a client's transactions follow from the seed and its number,
and every update writes who it is from. What a client wrote last to a field must be there,
unless another client's value is. That finds lost updates, transactions of which a part is
missing, and what no committed transaction wrote.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from typing_extensions import override

from benchmarks.protocols.zipf import Zipf
from benchmarks.targets.base import in_style
from benchmarks.tpcc.columns import letters
from benchmarks.workload import Client, Transaction, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection, ParameterStyle

VERSION = 1
"""Goes up when the table or its generator changes."""

OPERATIONS = 10
FIELDS = 10
FIELD_LENGTH = 100

_BATCH = 1000
"""Transactions that are drawn at a time."""

_HEAD = 24
"""Characters of a written field in which its writer stands."""

_NAMES = tuple(f"field{number}" for number in range(FIELDS))


class Mix(NamedTuple):
    """What transactions consist of.

    Attributes
    ----------
    read_only : float
        The share of the transactions that only read.
    reads : float
        The share of reads among the operations of the others.
    """

    read_only: float
    reads: float


MIXES = {
    "read-only-80": Mix(0.8, 0.5),
    "read-intensive": Mix(0.0, 0.8),
    "update-intensive": Mix(0.0, 0.2),
}


class Operation(NamedTuple):
    """One operation on the row with a key: it sets a field, or reads the row."""

    key: int
    field: int | None

    @property
    def is_update(self) -> bool:
        """Whether it sets a field."""
        return self.field is not None


def inputs(
    keys: Zipf, mix: Mix, seed: int, client: int, *, ordered: bool = False
) -> Iterator[tuple[Operation, ...]]:
    """Yield one client's transactions, without an end; operations ordered by key or not."""
    rng = np.random.default_rng([seed, client])
    shape = (_BATCH, OPERATIONS)
    while True:
        drawn = keys.draw(rng, shape)
        if ordered:
            drawn.sort(axis=1)
        fields = rng.integers(0, FIELDS, shape)
        only_reads = rng.random(_BATCH) < mix.read_only
        reads = (rng.random(shape) < mix.reads) | only_reads[:, np.newaxis]
        for transaction in zip(
            drawn.tolist(), fields.tolist(), reads.tolist(), strict=True
        ):
            yield tuple(
                Operation(key, None if is_read else field)
                for key, field, is_read in zip(*transaction, strict=True)
            )


def written(client: int, number: int) -> str:
    """Return what a client's transaction writes, of the length of all fields."""
    return f"{client} {number} ".ljust(FIELD_LENGTH, "x")


class Writer(NamedTuple):
    """Who wrote a field: a client, and the number of its transaction."""

    client: int
    number: int

    @classmethod
    def of(cls, value: str) -> Writer | None:
        """Read it from the beginning of a value; None if that was loaded."""
        client, _, rest = value.partition(" ")
        number, separator, _ = rest.partition(" ")
        return cls(int(client), int(number)) if separator else None


class YcsbClient(Client):
    """One client's connection, and its sequence of transactions."""

    def __init__(
        self,
        number: int,
        transactions: Iterator[tuple[Operation, ...]],
        connection: Connection,
        style: ParameterStyle,
    ) -> None:
        self._number = number
        self._transactions = enumerate(transactions)
        self._connection = connection
        self._cursor = connection.cursor()
        self._read = in_style(
            f"SELECT {', '.join(_NAMES)} FROM usertable WHERE ycsb_key = %s", style
        )
        self._updates = tuple(
            in_style(f"UPDATE usertable SET {name} = %s WHERE ycsb_key = %s", style)
            for name in _NAMES
        )

    @override
    def next_transaction(self) -> Transaction:
        """Return the next transaction; a read-only one is of another kind."""
        number, operations = next(self._transactions)
        updates = any(each.is_update for each in operations)
        kind = "update" if updates else "read"
        return Transaction(
            kind, partial(self._run, written(self._number, number), operations)
        )

    def _run(self, value: str, operations: tuple[Operation, ...]) -> bool:
        cursor = self._cursor
        for key, field in operations:
            if field is None:
                cursor.execute(self._read, (key,))
                if cursor.fetchone() is None:
                    raise LookupError(f"no row {key}")
            else:
                cursor.execute(self._updates[field], (value, key))
        self._connection.commit()
        return True


class YcsbWorkload(Workload):
    """One table, with a number as key and ten fields of a hundred characters.

    Parameters
    ----------
    mix : str
        One of `MIXES`.
    records : int
        Number of rows.
    theta : float
        The skew of keys, see `Zipf`.
    seed : int
        Fixes the database, and each client's sequence of transactions.
    ordered : bool
        Let each transaction go through its keys in their order, so that no locks of its
        updates can make a circle.
    """

    name: ClassVar[str] = "ycsb"
    kinds: tuple[str, ...] = ("read", "update")

    def __init__(
        self, mix: str, records: int, theta: float, seed: int, *, ordered: bool = False
    ) -> None:
        self.mix = MIXES[mix]
        self.records = records
        self.seed = seed
        self.ordered = ordered
        self._keys = Zipf(records, theta, seed)

    @property
    @override
    def label(self) -> str:
        """The name of the loaded database."""
        return f"ycsb-v{VERSION}-{self.records}-seed{self.seed}"

    @override
    def load(self, path: Path) -> None:
        """Generate and load the table."""
        rng = np.random.default_rng(self.seed)
        fields = {
            name: letters(rng, self.records, FIELD_LENGTH, FIELD_LENGTH)
            for name in _NAMES
        }
        rows = pa.table({"ycsb_key": np.arange(self.records), **fields})
        columns = ", ".join(f"{name} VARCHAR NOT NULL" for name in _NAMES)
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                f"CREATE TABLE usertable (ycsb_key BIGINT PRIMARY KEY, {columns})"
            )
            connection.register("rows", rows)
            connection.execute("INSERT INTO usertable BY NAME SELECT * FROM rows")
            connection.unregister("rows")
            connection.execute("CHECKPOINT")

    @override
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return client `number` with its sequence."""
        return YcsbClient(number, self._inputs(number), connection, style)

    @override
    def state(self, connection: Connection) -> int:
        """Return the number of rows, to which nothing is added."""
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM usertable")
        row = cursor.fetchone()
        return int(row[0]) if row else 0

    @override
    def failures(
        self, connection: Connection, before: int, committed: Mapping[str, int]
    ) -> list[str]:
        """Check that rows stayed, and that each client's last writes are there."""
        failures = []
        after = self.state(connection)
        if after != before:
            failures.append(f"there were {before} rows, and are {after}")
        found = self._writers(connection)
        updates = 0
        for client in {writer.client for writer in found.values()}:
            last = max(w.number for w in found.values() if w.client == client)
            writes: dict[tuple[int, int], int] = {}
            for number, operations in enumerate(islice(self._inputs(client), last + 1)):
                updates += any(each.is_update for each in operations)
                for key, field in operations:
                    if field is not None:
                        writes[key, field] = number
            failures += _missing(client, writes, found)
        if updates > committed.get("update", 0):
            failures.append(
                f"{updates} updates left traces, {committed.get('update', 0)} committed"
            )
        return failures

    def _inputs(self, client: int) -> Iterator[tuple[Operation, ...]]:
        return inputs(self._keys, self.mix, self.seed, client, ordered=self.ordered)

    def _writers(self, connection: Connection) -> dict[tuple[int, int], Writer]:
        """By key and number of the field who wrote it last, if anybody did."""
        heads = ", ".join(f"substring({name}, 1, {_HEAD})" for name in _NAMES)
        cursor = connection.cursor()
        cursor.execute(f"SELECT ycsb_key, {heads} FROM usertable")
        return {
            (key, field): writer
            for key, *values in cursor.fetchall()
            for field, value in enumerate(values)
            if (writer := Writer.of(value))
        }


def _missing(
    client: int,
    writes: Mapping[tuple[int, int], int],
    found: Mapping[tuple[int, int], Writer],
) -> list[str]:
    """Compare what a client wrote last to each field with what is there."""
    failures = [
        f"client {client}'s transaction {writer.number} never wrote field {field} of"
        f" row {key}"
        for (key, field), writer in found.items()
        if writer.client == client and (key, field) not in writes
    ]
    for (key, field), number in writes.items():
        writer = found.get((key, field))
        if writer is None or (writer.client == client and writer.number != number):
            failures.append(
                f"client {client}'s transaction {number} wrote field {field} of row"
                f" {key}, where there is {writer or 'what was loaded'}"
            )
    return failures
