"""The fit of fine-tuning's rates: it reproduces the data file, and every rate has a prior and a source."""

from __future__ import annotations

import pytest

from service.presets.training.finetuning import finetuning_rates, finetuning_spread
from tools.calibration.finetuning.cases import finetuning_cases
from tools.calibration.finetuning.fit import NAMES, finetuning_table, fit_rates, priors, speed_cases


def test_the_data_file_is_the_fit() -> None:
    """`python -m tools.calibration.finetuning.fit` would write the rates that are there."""
    found = fit_rates(finetuning_table(speed_cases()))
    assert {name: getattr(found, name) for name in NAMES} == pytest.approx(
        {name: getattr(finetuning_rates(), name) for name in NAMES}, rel=1e-2
    )


def test_every_rate_has_a_prior() -> None:
    """What is expected before any measurement, how far off it may be, its unit and why."""
    assert set(priors()) == set(NAMES)
    assert all(prior.factor > 1 and prior.unit and prior.why for prior in priors().values())


def test_the_range_holds_the_middle() -> None:
    """p10 and p90 lie on both sides of the prediction."""
    spread = finetuning_spread()
    assert spread.p10 < 1 < spread.p90


def test_every_row_asks_in_layouts_that_make_up_its_machine() -> None:
    """Stated ranks are asked with as they are, the others as the engine would search them."""
    for case in finetuning_cases():
        layouts = case.speed.layouts
        assert (layouts.tensor * layouts.pipeline * layouts.data * layouts.context == case.speed.cluster.count).all(), case.speed.ids
