"""Types and values of a source's columns, as a replica has them.

A type is mapped exactly: each value of it has one of the replica's type that is shown as the same.
Others are refused by name before anything is copied. A value that the replica's type lacks
(NaN as NUMERIC, years before the first) is found here as it is published, and its table stops.

Values come in the form in which the source's driver keeps them
(:mod:`tique_backends.postgresql.values.text_values`), and become those that the replica's driver
keeps, because its index stands in for storage.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from tique.checkpoint.replica import UnheldError
from tique_backends.names import quote
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from decimal import Decimal

    from tique.store.rows import Key
    from tique_backends.engine import Engine
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_Convert: TypeAlias = "Callable[[Any], Any]"

_DECIMAL = re.compile(r"(?:NUMERIC|DECIMAL)\((\d+),(\d+)\)")
_TEXT = re.compile(r"TEXT|CLOB|VARCHAR(?:\(\d+\))?")
_PADDED = re.compile(r"PG_CATALOG\.BPCHAR\((\d+)\)")
_DIGITS = re.compile(r"\(\d\)")
_WIDEST = 38
_OTHERS = {
    "DOUBLE PRECISION": "DOUBLE",
    "TIME WITHOUT TIME ZONE": "TIME",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ",
    "BYTEA": "BLOB",
}
_UNCOMPARED = frozenset({"REAL", "TIME", "TIMESTAMPTZ"})
"""Types of which equal values may differ in Python: no key has them."""


def _number(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise ValueError
    return value


def _clock(value: Any) -> str:
    text = str(value)
    if len(text) > len("00:00:00.000000"):
        # MonetDB's stand-in for 24:00:00.
        raise ValueError
    return text if text == "24:00:00" else time.fromisoformat(text).isoformat()


def _made(kind: type, read: _Convert) -> _Convert:
    """What reads values of a type if they come as text."""
    return lambda value: value if type(value) is kind else read(value)


_moment = _made(datetime, datetime.fromisoformat)


def _zoned(value: Any) -> datetime:
    moment: datetime = _moment(value)
    return moment.astimezone(UTC)


_CONVERTS: dict[str, _Convert | None] = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT", "DOUBLE", "BOOLEAN", "BLOB")),
    "REAL": float,
    "DATE": _made(date, date.fromisoformat),
    "TIME": _clock,
    "TIMESTAMP": _moment,
    "TIMESTAMPTZ": _zoned,
    "UUID": _made(UUID, UUID),
}
"""What makes the replica's values, by its types; None: they are the source's."""


def _form(table: Table, position: int, engine: Engine) -> tuple[str, _Convert | None]:
    """The type of a column in the replica, whose engine this is, and what makes its values."""
    column, is_key = table.columns[position], position in table.primary_key
    name = column.type.upper()
    found = _DECIMAL.fullmatch(name)
    if found and int(found[1]) <= _WIDEST:
        return f"DECIMAL({found[1]}, {found[2]})", _number
    if _TEXT.fullmatch(name):
        return "VARCHAR", None
    if found := _PADDED.fullmatch(name):
        width = int(found[1])
        return "VARCHAR", lambda value: value.ljust(width)
    name = _DIGITS.sub("", name)
    name = _OTHERS.get(name, name)
    if name not in _CONVERTS or (is_key and name in _UNCOMPARED):
        where = " in a PRIMARY KEY" if is_key else ""
        raise UnheldError(table, f"column {column.name} of type {column.type}{where}")
    if name == "TIMESTAMPTZ" and engine.keeps("TIMESTAMP WITH TIME ZONE"):
        return name, lambda value: _zoned(value).isoformat(" ")
    return name, _CONVERTS[name]


class Copied:
    """A table of the source, and how the replica, whose engine this is, has it.

    ``number`` is its number there; it has the source's commits up to ``since`` if it was copied by
    this process. Raises UnheldError if it has a column that cannot be there.
    """

    def __init__(self, source: Table, qualified_name: str, engine: Engine) -> None:
        if source.generated:
            raise UnheldError(source, f"generated column {source.generated[0].name}")
        if len(source.spellings) < len(source.columns):
            raise UnheldError(source, "columns whose names differ in case only")
        self.source, self.qualified_name = source, qualified_name
        self.name, self.number, self.since = source.name, 0, 0
        self.schema = qualified_name.removesuffix(f".{source.name}")
        self._place = f"{quote(self.schema)}.{quote(self.name)}"
        forms = [_form(source, i, engine) for i in range(len(source.columns))]
        self._types = [type_name for type_name, _ in forms]
        self._names = [quote(column.name) for column in source.columns]
        self._converts = [(i, c) for i, (_, c) in enumerate(forms) if c is not None]

    def create(self) -> str:
        """CREATE TABLE in the replica: names, types, NOT NULL and the key."""
        parts = [
            f"{name} {type_name}{' NOT NULL' * column.not_null}"
            for name, type_name, column in zip(
                self._names, self._types, self.source.columns, strict=True
            )
        ]
        if not self.source.is_keyless:
            key = ", ".join(self._names[i] for i in self.source.primary_key)
            parts.append(f"PRIMARY KEY ({key})")
        return f"CREATE TABLE {self._place} ({', '.join(parts)})"

    def insert(self, relation: str) -> str:
        """The statement that adds rows which have the source's columns."""
        parts = zip(self._names, self._types, strict=True)
        values = ", ".join(f"CAST({name} AS {type_name})" for name, type_name in parts)
        names = ", ".join(self._names)
        return f"INSERT INTO {self._place} ({names}) SELECT {values} FROM {relation}"

    def writes(
        self, writes: Sequence[tuple[Key, Row, bool]]
    ) -> Sequence[tuple[Key, Row, bool]]:
        """The versions of a commit with the replica's values, or UnheldError."""
        if not self._converts:
            return writes
        return [(*self._converted(row), deleted) for _, row, deleted in writes]

    def _converted(self, row: Row) -> tuple[Key, Row]:
        values = list(row)
        for position, convert in self._converts:
            value = values[position]
            if value is None or value is MISSING:
                continue
            try:
                values[position] = convert(value)
            except (ValueError, TypeError) as error:
                column = self.source.columns[position]
                raise UnheldError(
                    self.source,
                    f"column {column.name} of type {column.type} has a value that the "
                    f"replica's type {self._types[position]} has not",
                ) from error
        return tuple([values[i] for i in self.source.primary_key]), tuple(values)
