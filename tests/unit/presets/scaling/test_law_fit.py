"""What fits lean on: shares and exponents with their sources."""

from __future__ import annotations

import re

import numpy as np
import pytest

from service.presets.scaling.law_fit import curve_prior, fit_default, law_prior


def test_priors_are_logs_of_shares_with_a_deviation_for_each() -> None:
    """Terms are less than the whole loss, exponents between 0 and 1, and each has a width and a source."""
    law, curve = law_prior(), curve_prior()
    for prior, logs, exponents in ((law, [0, 1, 2], [3, 4]), (curve, [0, 2, 3], [1])):
        assert np.all(prior.centre[logs] < 0)
        assert np.all((prior.centre[exponents] > 0) & (prior.centre[exponents] < 1))
        assert np.all(prior.deviation > 0)
        assert re.search(r"arXiv \d{4}\.\d{5}.*, 20\d\d-\d\d$", prior.source)


def test_the_terms_of_a_typical_law_make_up_the_loss() -> None:
    """Two terms and E of the shares that are typical add up to a loss, give or take."""
    assert np.exp(law_prior().centre[:3]).sum() == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("name", ["starts", "bootstraps", "seed", "tolerance", "shrink", "extend"])
def test_every_default_says_why(name: str) -> None:
    """A value and its reason."""
    assert fit_default(name).source
