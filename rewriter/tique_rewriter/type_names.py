"""Several spellings of one type: ``DOUBLE PRECISION`` and ``FLOAT8``, ``TIMESTAMPTZ(3)``.

A catalog has one of them, the application's text any.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_rewriter.values import normal_type

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHAPE = re.compile(
    r"(?:PG_CATALOG\.)?(.*?)(\(\d+(?:,-?\d+)?\))?( WITH(?:OUT)? TIME ZONE)?((?:\[\d*\])*)"
)
_ZONED = " WITH TIME ZONE"
_SCHEMA = re.compile(r'(?:"(?:[^"]|"")*"|[^".(\[ ]+)\.')


def is_same_type(one: str, other: str, spellings: Mapping[str, str]) -> bool:
    """Whether two texts are one type.

    ``spellings`` has the catalog's name of each name without a length that has another.
    """
    return _parts(one, spellings) == _parts(other, spellings)


def may_be_same_type(one: str, other: str, spellings: Mapping[str, str]) -> bool:
    """Whether two texts are one type if the engine finds it in the schema that one lacks."""
    schemas = [_SCHEMA.match(text) for text in (one, other)]
    if sum(schema is not None for schema in schemas) != 1:
        return False
    return is_same_type(_SCHEMA.sub("", one, 1), _SCHEMA.sub("", other, 1), spellings)


def _parts(type_: str, spellings: Mapping[str, str]) -> tuple[str, str, bool, str]:
    """The name, the length, whether there is a time zone, and an array's brackets."""
    found = _SHAPE.fullmatch(normal_type(type_))
    assert found is not None
    name = spellings.get(found[1], found[1])
    is_zoned = found[3] == _ZONED or name.endswith(_ZONED)
    return name.removesuffix(_ZONED), found[2] or "", is_zoned, found[4]
