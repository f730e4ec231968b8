"""Random numbers for trials: each block of trials has a stream of its own, so that it is the same whoever draws it, and when.

Philox is counter-based (Salmon et al. 2011, Parallel random numbers: as easy as 1, 2, 3): key and counter are the stream's name.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class BlockStreams:
    """A block's random numbers. `columns` gives as many whatever the model's parameters are, so that models can be compared on the same
    chances; what takes a number of them that is chance itself is drawn from `ragged`.
    """

    fixed_rng: np.random.Generator
    variable_rng: np.random.Generator


def block_streams(seed: int, block: int) -> BlockStreams:
    """The random numbers of a block, 2^128 of each kind. `seed` is 0 to 2^64 - 1; block -1 is for looking ahead."""
    return BlockStreams(*(np.random.Generator(np.random.Philox(key=_words(seed, 0), counter=_words(0, 0, kind, block))) for kind in (0, 1)))


def _words(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.array([number % 2**64 for number in numbers], dtype=np.uint64)
