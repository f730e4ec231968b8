"""Random streams of trials: each block of trials has its own, so it draws the same numbers in any process and order.

Philox is counter-based (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3): key and counter identify the stream.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class BlockStreams:
    """A block's generators. `fixed_rng` draws a number of values that does not depend on the model's parameters (common random numbers);
    `variable_rng` draws what takes a random number of values.
    """

    fixed_rng: np.random.Generator
    variable_rng: np.random.Generator


def block_streams(seed: int, block: int) -> BlockStreams:
    """Generators of a block, 2^128 numbers each.

    Parameters
    ----------
    seed : int
        0 to 2^64 - 1.
    block : int
        Number of the block; -1 is the pilot block, which no result counts.

    Returns
    -------
    BlockStreams
        The same for the same seed and block.

    References
    ----------
    Salmon et al. 2011.
    """
    return BlockStreams(*(np.random.Generator(np.random.Philox(key=_words(seed, 0), counter=_words(0, 0, kind, block))) for kind in (0, 1)))


def _words(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([number % 2**64 for number in numbers], dtype=np.uint64)
