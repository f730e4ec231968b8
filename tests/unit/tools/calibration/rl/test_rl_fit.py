"""The fit of steps of reinforcement learning: rows as questions of the engine, and what a fit finds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from service.presets.training.reinforcement import FITTED, rollout_rates, with_fitted
from tools.calibration.cases import read_table
from tools.calibration.rl.cases import FILE, predict_seconds, rl_cases
from tools.calibration.rl.fit import fit, fit_spread, read_rl_folds


def test_every_row_that_is_not_excluded_is_a_case() -> None:
    """With the reason in the row where it is."""
    scored = [row["id"] for row in read_table(FILE) if not row["excluded"]]
    assert [case.id for case in rl_cases()] == scored
    assert len(scored) == 21


def test_rows_keep_what_their_source_states() -> None:
    """A synchronous step of an 8B on 16 H100, and one of 192 of which 64 sample eight steps ahead."""
    cases = {case.id: case for case in rl_cases()}
    plain, ahead = cases["rl0001"].training.rl, cases["rl0017"].training.rl
    assert plain is not None
    assert ahead is not None
    assert (plain.rollouts.responses, plain.mini_batch_responses, plain.generation.count) == (2048, 512, None)
    assert (ahead.asynchronous_steps, ahead.generation.count, ahead.generation.tensor) == (8, 64, 2)
    assert cases["rl0001"].measured == {"step_s": 92.8}
    assert set(cases["rl0024"].measured) >= {"generation_s", "values_s", "update_critic_s"}


def test_a_fit_finds_the_rates_that_made_the_rows() -> None:
    """Rows with the seconds that other rates predict move the fit from its priors towards them."""
    known = rollout_rates()
    other = with_fitted(known, {name: getattr(known, name) * (2.0 if name == "step_s" else 1.0) for name in FITTED})
    cases = [replace(case, measured={"step_s": predict_seconds(case, other)["step_s"]}) for case in rl_cases() if "8b" in case.name]
    found = fit(cases)
    errors = [math.log(predict_seconds(case, found)["step_s"] / case.measured["step_s"]) for case in cases]
    assert np.max(np.abs(errors)) < 0.08


def test_the_spread_holds_four_fifths() -> None:
    """As wide to either side."""
    spread = fit_spread(np.array([-0.1, 0.1, 0.2, -0.2, 0.9]))
    assert spread.p10 * spread.p90 == pytest.approx(1, abs=0.01)
    assert spread.p90 == pytest.approx(math.exp(0.34), rel=0.01)


def test_folds_leave_out_each_document_and_publication() -> None:
    """Rates of rows that were predicted never saw them."""
    folds, cases = read_rl_folds(), rl_cases()
    assert set(folds.documents) == {case.document for case in cases}
    assert set(folds.publications) == {case.source for case in cases}
