"""A law from the caller's runs: what is asked is answered, the same each time, and what was assumed is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.domain.errors import InvalidRequest
from service.engine.scaling.laws import loss
from service.presets.scaling.laws import default_law
from service.usecases.scaling.law_fit import MAX_WORK, LawFitAnswer, fit_scaling_law
from tests.unit.usecases.requests import pointer_of

TARGET = {"params": 7e10, "tokens": 1.4e12}


def points(count: int, scatter: float = 0.005) -> list[dict[str, float]]:
    """Runs of 10M to 5B parameters that follow the default law but for a scatter."""
    generator = np.random.default_rng(1)
    params = np.exp(generator.uniform(np.log(1e7), np.log(5e9), count))
    tokens = params * np.exp(generator.uniform(np.log(5), np.log(100), count))
    losses = loss(default_law().law, params, tokens) * np.exp(generator.normal(0, scatter, count))
    return [{"params": n, "tokens": d, "loss": measured} for n, d, measured in np.column_stack([params, tokens, losses]).tolist()]


RUNS = points(30)


def fitted(**asked: Any) -> LawFitAnswer:
    return fit_scaling_law({"points": RUNS, "starts": 60, "bootstraps": 40} | asked)


def test_the_same_request_has_the_same_answer() -> None:
    """To the last digit; another seed draws other resamples of the same best fit."""
    asked = {"predict": [TARGET], "design": {"flops": 1e21, "target": TARGET}}
    assert fitted(**asked) == fitted(**asked)
    other = fitted(**asked, seed=7)
    assert other.parameters == fitted().parameters
    assert other.intervals != fitted().intervals


def test_one_more_question_changes_no_other_answer() -> None:
    """A prediction or a design more leaves the law, its intervals and the first prediction as they are."""
    few, many = fitted(design={"flops": 1e21, "target": TARGET}), fitted(predict=[TARGET], design={"flops": 1e21, "target": TARGET})
    assert (few.intervals, few.design) == (many.intervals, many.design)
    assert fitted(predict=[TARGET]).predictions == many.predictions


def test_the_law_is_foretold_within_its_interval() -> None:
    """The true law's loss of a target far beyond the runs lies in the interval, and a warning says that it is beyond."""
    found = fitted(predict=[TARGET])
    run = found.predictions[0]
    truth = float(loss(default_law().law, TARGET["params"], TARGET["tokens"]))
    assert run.p10 < truth < run.p90
    assert run.beyond["params"] > 10
    assert "1 of 1 predictions lie beyond" in found.warnings[-1]


def test_parameters_and_predictions_lie_in_their_own_intervals() -> None:
    """Also of nine runs, whose best fit is not in the middle of its resamples."""
    found = fitted(points=points(9, 0.02), predict=[TARGET])
    for name, value in found.parameters.items():
        assert found.intervals[name][0] <= value <= found.intervals[name][1]
    assert found.predictions[0].p10 <= found.predictions[0].best_fit <= found.predictions[0].p90


def test_the_design_fits_its_sum_and_narrows_the_interval() -> None:
    """What is proposed costs at most the sum, at 6 N D, and the interval expected after it is narrower."""
    design = fitted(design={"flops": 1e21, "target": TARGET}).design
    assert design is not None
    assert sum(6 * run.params * run.tokens for run in design.runs) == pytest.approx(design.flops)
    assert design.flops <= 1e21
    assert design.after.p90 - design.after.p10 < design.before.p90 - design.before.p10


def test_the_law_is_what_an_optimum_is_asked_with() -> None:
    """Its resamples are rows of its parameters, in the order that the parametric law takes them."""
    found = fitted()
    assert len(found.law["draws"]) == 40
    assert [row[0] for row in found.law["draws"]] == pytest.approx([found.law["E"]] * 40, rel=0.5)
    assert found.law["largest_params"] == max(run["params"] for run in RUNS)


def test_what_was_not_chosen_is_assumed_with_a_source() -> None:
    """The form, the starts, the resamples and the seed, and what the fit leans on."""
    assumed = {each.field: each for each in fit_scaling_law({"points": RUNS}).assumptions}
    assert {"form", "starts", "bootstraps", "seed", "prior"} == set(assumed)
    assert all(each.source for each in assumed.values())
    assert {each.field for each in fitted(form="chinchilla", seed=1).assumptions} == {"prior"}


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"points": RUNS[:5] * 3}, "/points"),
        ({"points": [{**run, "loss": 3.0} for run in RUNS]}, "/points"),
        ({"points": [{**run, "loss": 1 + run["params"] / 1e10} for run in RUNS]}, "/points"),
        ({"bootstraps": MAX_WORK // len(RUNS) + 1}, "/bootstraps"),
        ({"design": {"flops": 1e3, "target": TARGET}}, "/design"),
    ],
    ids=["five sizes", "constant loss", "rising loss", "too much work", "no run for the sum"],
)
def test_what_cannot_be_answered_is_refused_where_it_stands(asked: dict[str, Any], pointer: str) -> None:
    """With a pointer to it."""
    assert pointer_of(lambda: fitted(**asked), InvalidRequest) == pointer


def test_larger_runs_off_the_law_widen_intervals_and_no_figure_is_lost() -> None:
    """Exact small runs, and large ones 5 % above them: the interval is several per cent wide, finite, and a warning says why."""
    exact = points(40, 0.0)
    spoiled = [{**run, "loss": run["loss"] * (1.05 if run["params"] * run["tokens"] > 1e20 else 1.0)} for run in exact]
    found = fitted(points=spoiled, predict=[TARGET])
    run = found.predictions[0]
    assert np.isfinite([run.p10, run.p50, run.p90]).all()
    assert run.p90 - run.p10 > 0.04 * run.p50
    assert any("intervals are widened by 10.0" in warning for warning in found.warnings)
