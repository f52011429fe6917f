"""SET a[2] = …: the whole array, with another value in one place.

The engine has no expression for that. So the array is made of its elements: those that lie
between the old ones and the new one are NULL, and the bounds are those that the engine's
own assignment gives. The number is written out, so that it is one number for all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_rewriter.names import quote

if TYPE_CHECKING:
    from tique_rewriter.schema import Column
    from tique_rewriter.source import Source, Word
    from tique_rewriter.text import Text

_ARRAY = re.compile(r"(.+)\[\]")
_CUT = re.compile(r"(?:character|bit)\b.*\(", re.IGNORECASE)
"""Types whose casts cut values that an assignment refuses."""
_MOST = 2**31 - 1


def number_of_element(source: Source, words: list[Word]) -> tuple[int, int] | None:
    """Return the number in ``[n] =`` that the words begin with, and how many they are.

    None if they begin with anything else.
    """
    if "element" not in source.rules.row_assignments:
        return None
    keywords = [word.keyword for word in words[:5]]
    is_negative = keywords[1:2] == ["-"]
    end = 2 + is_negative
    if keywords[:1] != ["["] or keywords[end : end + 2] != ["]", "="]:
        return None
    digits = keywords[end - 1]
    if not digits.isascii() or not digits.isdigit() or int(digits) > _MOST:
        return None
    return (-int(digits) if is_negative else int(digits)), end + 2


def check_array(source: Source, column: Column, start: int) -> None:
    """Refuse an element of a column that is no array, or of values that a cast would cut.

    Raises
    ------
    UnsupportedSQL
        It is one of these.
    """
    if _ARRAY.fullmatch(column.type) is None or _CUT.match(column.type):
        raise source.unsupported(
            f"an element of a column of type {column.type}",
            start,
            "assign the whole value",
        )


def with_element(column: Column, qualifier: str, number: int, value: Text) -> Text:
    """Return the array of a column with ``value`` in the place of one element."""
    old, type_ = f"{qualifier}.{quote(column.name)}", column.type
    low = f"least(coalesce(array_lower({old}, 1), {number}), {number})"
    high = f"greatest(coalesce(array_upper({old}, 1), {number}), {number})"
    # Of an array with more dimensions the element would be a part, which is an error.
    refused = f"CAST('an array of dimensions: ' || array_ndims({old}) AS {type_})"
    every = f"CAST(_e._all AS {type_})"
    placed = f"'[' || _e._low || ':' || _e._high || ']=' || CAST({every} AS TEXT)"
    return (
        f"(SELECT CASE WHEN array_ndims({old}) > 1 THEN {refused} ",
        f"WHEN _e._low = 1 THEN {every} ELSE CAST({placed} AS {type_}) END FROM (",
        f"SELECT {low} AS _low, {high} AS _high, (SELECT array_agg(",
        f"CASE WHEN _n._number = {number} THEN (",
        *value,
        f") ELSE {old}[_n._number] END ORDER BY _n._number) FROM ",
        f"generate_series({low}, {high}) AS _n(_number)) AS _all) AS _e)",
    )
