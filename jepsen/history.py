"""Histories: the requests of a run's clients and the answers to them.

A history is a list of operations in the order in which they happened. An operation is
seen twice: once when a client asks for it (``invoke``) and once when it learns the
outcome: ``ok`` (it happened), ``fail`` (it certainly did not) or ``info`` (unknown: an
error, a time-out or a crash while it was being committed). The order of the indices is
the order in real time; a process has at most one operation open.

Files hold them as Elle's EDN (``.edn``, one operation per line, with or without a vector
around them), as one JSON array (``.json``) or as one JSON object per line (``.jsonl``),
each also compressed (``.gz``). A value means the same in each of them: keywords and
strings are both text, and a map's key that is written as an integer is an integer, as
JSON has no other way to write one.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from jepsen import edn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

OperationType: TypeAlias = Literal["invoke", "ok", "fail", "info"]

_TYPES = frozenset(get_args(OperationType))

# Jepsen's own process for notes of its nemesis: not a client's operation, and no
# number.
_NEMESIS = "nemesis"

_CANONICAL_INTEGER = re.compile(r"0|-?[1-9]\d*")


class MalformedHistory(ValueError):
    """A file or a list of operations that is no history: nothing follows from it."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of a history.

    Attributes
    ----------
    index : int
        Its place in the history: unique and ascending.
    time : int
        Nanoseconds since the run's start.
    process : int
        The client. After an ``info`` a client goes on under a new number.
    type : {"invoke", "ok", "fail", "info"}
        Whether it is a request, or its outcome.
    f : str
        The operation's name: ``"txn"``, or one of another workload.
    value : Any
        Of a ``"txn"`` a tuple of micro-operations ``("r", key, None | elements)`` and
        ``("append", key, element)``; of others as the workload defines.
    error : str, optional
        The error that the client got when it was not ``ok``.
    """

    index: int
    time: int
    process: int
    type: OperationType
    f: str
    value: Any
    error: str | None = None


def read(path: str | PathLike[str]) -> list[Operation]:
    """Return the operations of a file.

    Raises
    ------
    MalformedHistory
        If the file is not one, with the place and the problem there.
    OSError
        If the file cannot be read.
    """
    name = str(path)
    try:
        with _open(name, "r") as file:
            return [
                _operation(fields, f"{name}, {place}")
                for place, fields in _forms(name, file)
                if not _is_nemesis(fields)
            ]
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
        raise MalformedHistory(f"{name}: {error}") from error


def write(path: str | PathLike[str], operations: Iterable[Operation]) -> None:
    """Write operations to a file, in the format that its name says."""
    name = str(path)
    with _open(name, "w") as file:
        match _format(name):
            case "edn":
                file.writelines(f"{_edn_operation(each)}\n" for each in operations)
            case "jsonl":
                file.writelines(f"{_json_operation(each)}\n" for each in operations)
            case _:
                lines = ",\n ".join(map(_json_operation, operations))
                file.write(f"[{lines}]\n")


def _format(name: str) -> str:
    plain = name.removesuffix(".gz")
    for suffix in ("edn", "jsonl", "json"):
        if plain.endswith(f".{suffix}"):
            return suffix
    raise MalformedHistory(
        f"{name}: a history's name ends in .edn, .json or .jsonl, with .gz or without"
    )


def _open(name: str, mode: Literal["r", "w"]) -> IO[str]:
    _format(name)
    if name.endswith(".gz"):
        return cast("IO[str]", gzip.open(name, f"{mode}t", encoding="utf-8"))
    return open(name, mode, encoding="utf-8")


def _forms(name: str, file: IO[str]) -> Iterator[tuple[str, Any]]:
    """Yield each operation's place in the file and its fields."""
    match _format(name):
        case "edn":
            try:
                for number, form in edn.maps(file):
                    yield f"line {number}", form
            except ValueError as error:
                raise MalformedHistory(f"{name}, {error}") from error
        case "jsonl":
            for number, line in enumerate(file, 1):
                if line.strip():
                    place = f"line {number}"
                    yield place, _json(line, f"{name}, {place}")
        case _:
            forms = _json(file.read(), name)
            if not isinstance(forms, list):
                raise MalformedHistory(f"{name}: expected an array of operations")
            for number, form in enumerate(forms):
                yield f"operation {number}", form


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise MalformedHistory(f"{where}: not JSON: {error}") from error


def _is_nemesis(fields: Any) -> bool:
    return isinstance(fields, dict) and fields.get("process") == _NEMESIS


def _operation(fields: Any, where: str) -> Operation:
    if not isinstance(fields, dict):
        raise MalformedHistory(f"{where}: expected an operation, found {fields!r}")
    for name, kind in (("index", int), ("time", int), ("process", int), ("f", str)):
        if type(fields.get(name)) is not kind:
            raise MalformedHistory(
                f"{where}: {name} must be {kind.__name__}, is {fields.get(name)!r}"
            )
    if fields.get("type") not in _TYPES:
        raise MalformedHistory(
            f"{where}: type must be invoke, ok, fail or info, is {fields.get('type')!r}"
        )
    value = fields.get("value")
    error = fields.get("error")
    return Operation(
        fields["index"],
        fields["time"],
        fields["process"],
        fields["type"],
        fields["f"],
        _micro_operations(value, where) if fields["f"] == "txn" else plain(value),
        None if error is None else str(error),
    )


def _micro_operations(value: Any, where: str) -> tuple[tuple[Any, ...], ...]:
    try:
        micro_operations = tuple(
            (f, key, tuple(argument) if type(argument) is list else argument)
            for f, key, argument in value
        )
        hash(micro_operations)
        return micro_operations
    except (TypeError, ValueError):
        raise MalformedHistory(
            f"{where}: a txn's value is a list of [f key argument], flat, not {value!r}"
        ) from None


def plain(value: Any) -> Any:
    """Return a value with the keys of its maps as every format gives them."""
    if isinstance(value, dict):
        return {_key(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def _key(key: Any) -> Any:
    if isinstance(key, str) and _CANONICAL_INTEGER.fullmatch(key):
        return int(key)
    return key


def _fields(operation: Operation) -> dict[str, Any]:
    fields = {
        "index": operation.index,
        "time": operation.time,
        "process": operation.process,
        "type": operation.type,
        "f": operation.f,
        "value": operation.value,
    }
    if operation.error is not None:
        fields["error"] = operation.error
    return fields


def _json_operation(operation: Operation) -> str:
    return json.dumps(_fields(operation), ensure_ascii=False)


def _edn_operation(operation: Operation) -> str:
    texts = {name: edn.text(value) for name, value in _fields(operation).items()}
    texts["type"] = edn.keyword(operation.type)
    texts["f"] = edn.keyword(operation.f)
    if operation.f == "txn":
        micro_operations = (
            f"[{edn.keyword(f)} {edn.text(key)} {edn.text(argument)}]"
            for f, key, argument in operation.value
        )
        texts["value"] = f"[{' '.join(micro_operations)}]"
    return "{" + ", ".join(f":{name} {text}" for name, text in texts.items()) + "}"
