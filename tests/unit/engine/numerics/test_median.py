"""The quick median is numpy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.engine.numerics.median import median


@given(st.lists(st.floats(min_value=-1e300, max_value=1e300), min_size=1, max_size=40))
def test_the_median_is_that_of_numpy_to_the_last_bit(values: list[float]) -> None:
    """Of odd and even numbers of values, in any order, equal ones among them."""
    assert median(np.array(values)) == np.median(values)
