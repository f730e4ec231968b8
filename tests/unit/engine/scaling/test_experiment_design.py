"""Which small runs to make next: what is proposed fits the sum, and sharpens the target as it was said to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.scaling.fits import ScalingFit, TrainingRuns
from service.engine.scaling.experiment_design import CandidateRuns, ExperimentDesign, default_candidates, design_runs
from service.engine.scaling.law_fit import fit_law, law_loss, precision, predict_runs, sensitivities
from tests.unit.engine.scaling.test_law_fit import BESIROGLU, fitted, runs, width

TARGET = (7e10, 1.4e12)
FIT = fitted(runs(14))


def designed(fit: ScalingFit, budget: float, candidates: CandidateRuns | None = None) -> ExperimentDesign:
    return design_runs(fit, TARGET, candidates or default_candidates(fit), budget, np.random.default_rng(0))


@given(st.floats(1e18, 1e23))
def test_the_proposal_fits_the_sum(budget: float) -> None:
    """What is proposed costs no more than the sum, no run twice, and each narrows the interval a little more."""
    design = designed(FIT, budget)
    assert design.cost == pytest.approx(sum(run.cost for run in design.runs))
    assert design.cost <= budget * (1 + 1e-9)
    assert len({(run.params, run.tokens) for run in design.runs}) == len(design.runs)
    shares = [1.0, *(run.narrowed_to for run in design.runs)]
    assert shares == sorted(shares, reverse=True)


def test_a_larger_sum_sharpens_more() -> None:
    """The interval expected after the runs shrinks with the sum, and is narrower than the one before."""
    widths = [width(designed(FIT, budget).after) / width(designed(FIT, budget).before) for budget in (1e19, 1e20, 1e21, 1e22)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] < 1


def test_candidates_cost_their_flops() -> None:
    """Candidates cost 6 N D, from less than the smallest run on."""
    found = default_candidates(FIT)
    assert found.cost == pytest.approx(6 * found.params * found.tokens)
    assert found.params.min() < FIT.points.params.min()


def test_the_same_information_is_bought_where_it_is_cheap() -> None:
    """Of two runs that differ in price alone, the cheaper is proposed first."""
    twice = CandidateRuns(np.array([8e9, 8e9]), np.array([1.6e11, 1.6e11]), np.array([5.0, 3.0]))
    assert designed(FIT, 6.0, twice).runs[0].cost == 3.0


def test_costs_may_be_in_any_unit() -> None:
    """Dollars or FLOPs: scaled costs and sum propose the same runs."""
    flops = default_candidates(FIT)
    dollars = CandidateRuns(flops.params, flops.tokens, flops.cost / 1e17)
    assert [run.params for run in designed(FIT, 1e3, dollars).runs] == [run.params for run in designed(FIT, 1e20, flops).runs]


def test_a_sum_below_every_run_is_refused() -> None:
    """The message says what the cheapest candidate costs."""
    with pytest.raises(InvalidRequest, match="the cheapest candidate costs 7"):
        designed(FIT, 5.0, CandidateRuns(np.array([1e9]), np.array([2e10]), np.array([7.0])))


def test_a_refit_with_the_proposed_runs_is_as_sharp_as_was_said() -> None:
    """Made on the true law, the proposed runs bring the interval within half and twice the expected width, in the median of five sets."""
    ratios = []
    for seed in range(5):
        fit = fitted(runs(14, seed=seed), bootstraps=100)
        design = designed(fit, 1e21)
        after = predict_runs(made(fit, design, seed), *(np.array([value]) for value in TARGET), np.random.default_rng(1))[0].interval
        ratios.append(width(after) / width(design.after))
    assert 0.5 < np.median(ratios) < 2


def test_proposed_runs_tell_more_than_the_same_sum_spent_on_one_more_of_the_largest() -> None:
    """The expected interval is narrower than that of a single run like the largest so far, scaled up to the whole sum."""
    budget, largest = 1e21, int(np.argmax(FIT.points.params))
    ratio = FIT.points.tokens[largest] / FIT.points.params[largest]
    params = np.sqrt(budget / 6 / ratio)
    single = CandidateRuns(np.array([params]), np.array([params * ratio]), np.array([budget]))
    assert width(designed(FIT, budget).after) < width(designed(FIT, budget, single).after)


def test_a_run_narrows_the_interval_as_the_update_of_one_measurement_says() -> None:
    """V falls by (c' V j)^2 / (s^2 + j' V j), by Sherman and Morrison (1950); the run's own scatter, 2 s^2, stays."""
    single = CandidateRuns(np.array([8e9]), np.array([1.6e11]), np.array([5.0]))
    covariance = np.linalg.inv(precision(FIT))
    run = sensitivities(FIT, single.params, single.tokens)[0]
    target = sensitivities(FIT, *(np.array([value]) for value in TARGET))[0]
    before = target @ covariance @ target
    after = before - (target @ covariance @ run) ** 2 / (FIT.scatter**2 + run @ covariance @ run)
    left = np.sqrt((after + 2 * FIT.scatter**2) / (before + 2 * FIT.scatter**2))
    assert designed(FIT, 6.0, single).runs[0].narrowed_to == pytest.approx(left)


def made(fit: ScalingFit, design: ExperimentDesign, seed: int) -> ScalingFit:
    """The fit with the proposed runs added, their losses of the true law with its scatter."""
    params, tokens = (np.array([getattr(run, name) for run in design.runs]) for name in ("params", "tokens"))
    loss = law_loss(BESIROGLU, params, tokens)[0] * np.exp(np.random.default_rng(seed).normal(0, 0.005, len(params)))
    old = fit.points
    both = TrainingRuns(np.append(old.params, params), np.append(old.tokens, tokens), np.append(old.loss, loss))
    return fit_law(both, FIT.prior, np.random.default_rng(2), 80, 100)
