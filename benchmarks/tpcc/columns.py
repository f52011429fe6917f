"""Arrow columns made from numpy arrays without a Python object per row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.tpcc.rules import ORIGINAL_SHARE

if TYPE_CHECKING:
    import numpy.typing as npt

_LETTERS = np.frombuffer(
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", np.uint8
)
_DIGITS = np.frombuffer(b"0123456789", np.uint8)
_ORIGINAL = np.frombuffer(b"ORIGINAL", np.uint8)
_ZIP_END = np.frombuffer(b"11111", np.uint8)


def _characters(
    rng: np.random.Generator, alphabet: npt.NDArray[np.uint8], count: int
) -> npt.NDArray[np.uint8]:
    return alphabet[rng.integers(0, len(alphabet), count, dtype=np.uint8)]


def _strings(offsets: npt.NDArray[np.int32], data: npt.NDArray[np.uint8]) -> pa.Array:
    return pa.StringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
    )


def _offsets(
    rng: np.random.Generator, count: int, shortest: int, longest: int
) -> npt.NDArray[np.int32]:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(rng.integers(shortest, longest + 1, count), out=offsets[1:])
    return offsets


def letters(
    rng: np.random.Generator, count: int, shortest: int, longest: int
) -> pa.Array:
    """Return random a-strings of `shortest` to `longest` characters (4.3.2.2)."""
    offsets = _offsets(rng, count, shortest, longest)
    return _strings(offsets, _characters(rng, _LETTERS, int(offsets[-1])))


def digits(rng: np.random.Generator, count: int, length: int) -> pa.Array:
    """Return random n-strings of exactly `length` digits (4.3.2.2)."""
    offsets = _offsets(rng, count, length, length)
    return _strings(offsets, _characters(rng, _DIGITS, count * length))


def zip_codes(rng: np.random.Generator, count: int) -> pa.Array:
    """Return four random digits followed by 11111 (4.3.2.7)."""
    width = 4 + len(_ZIP_END)
    data = np.empty((count, width), np.uint8)
    data[:, :4] = _characters(rng, _DIGITS, count * 4).reshape(count, 4)
    data[:, 4:] = _ZIP_END
    return _strings(np.arange(count + 1, dtype=np.int32) * width, data.reshape(-1))


def original_data(rng: np.random.Generator, count: int) -> pa.Array:
    """Return a-strings [26 .. 50] of which one in ten holds ORIGINAL (4.3.3.1)."""
    offsets = _offsets(rng, count, 26, 50)
    data = _characters(rng, _LETTERS, int(offsets[-1]))
    chosen = rng.choice(count, count // ORIGINAL_SHARE, replace=False)
    room = offsets[chosen + 1] - offsets[chosen] - len(_ORIGINAL)
    starts = offsets[chosen] + rng.integers(0, room + 1)
    data[starts[:, None] + np.arange(len(_ORIGINAL))] = _ORIGINAL
    return _strings(offsets, data)


def decimals(unscaled: npt.NDArray[np.int64], precision: int, scale: int) -> pa.Array:
    """Return DECIMAL(precision, scale) values from integers in the last digit's unit."""
    words = np.empty((len(unscaled), 2), np.int64)
    words[:, 0] = unscaled
    words[:, 1] = unscaled >> 63
    return pa.Array.from_buffers(
        pa.decimal128(precision, scale),
        len(unscaled),
        [None, pa.py_buffer(words.reshape(-1))],
    )


def constant_decimals(
    count: int, unscaled: int, precision: int, scale: int
) -> pa.Array:
    """Return the same decimal `count` times."""
    return decimals(np.full(count, unscaled, np.int64), precision, scale)
