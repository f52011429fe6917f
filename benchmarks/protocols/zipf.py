"""Keys of which some are wanted more often than others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class Zipf:
    """Keys 0 to `count` - 1: the k-th in popularity as often as 1 / k ** theta says.

    The distribution is inverted exactly. As in YCSB popular keys lie anywhere among the
    others.

    Parameters
    ----------
    count : int
        Number of keys.
    theta : float
        The skew; with 0 all are equally popular.
    seed : int
        Fixes which keys are popular, the same ones with every skew.
    """

    def __init__(self, count: int, theta: float, seed: int) -> None:
        cumulative = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -theta)
        self._cumulative = cumulative / cumulative[-1]
        self.by_popularity = np.random.default_rng(seed).permutation(count)

    def draw(
        self, rng: np.random.Generator, shape: tuple[int, ...]
    ) -> npt.NDArray[np.int64]:
        """Return an array of keys."""
        ranks = np.searchsorted(self._cumulative, rng.random(shape), side="right")
        return self.by_popularity[ranks]
