"""What whole runs lose: a regression that finds known coefficients, shrinks where little is told, and is scored without a run's kin."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from service.domain.training.utilisation import LossTerms, PlanCalibration
from service.engine.training.run_time import run_over_step_speed
from tests.unit.engine.builders import run, with_training
from tools.calibration.priors import loss_priors
from tools.calibration.whole_runs.losses import RunLosses, coefficients_left_out, fit_coefficients, slowdown, without
from tools.calibration.whole_runs.runs import PublishedRun, goodput_of, published_runs

CHOSEN = LossTerms(off_node=0.25, scale=-0.03, age=0.12, mixture=0.0)


@cache
def runs() -> tuple[PublishedRun, ...]:
    """Every published run."""
    return tuple(published_runs())


def behaving(coefficients: LossTerms, luck: float = 1.0) -> RunLosses:
    """The runs with the hours that the coefficients give, but for every tenth, which took `luck` times as long."""
    factor = np.where(np.arange(len(runs())) % 10 == 0, luck, 1.0)
    return RunLosses(runs(), factor * np.array([slowdown(one, coefficients) for one in runs()]))


def test_coefficients_are_found() -> None:
    """Drawn a little towards no loss by their priors."""
    found = fit_coefficients(behaving(CHOSEN))
    assert found.off_node == pytest.approx(CHOSEN.off_node, abs=0.06)
    assert found.scale == pytest.approx(CHOSEN.scale, abs=0.02)
    assert found.age == pytest.approx(CHOSEN.age, abs=0.03)
    assert abs(found.mixture) < 0.05


def test_a_few_runs_do_not_decide() -> None:
    """A tenth of the runs that took four times as long move the others' plans by less than a tenth."""
    plain, pulled = (fit_coefficients(behaving(CHOSEN, luck)) for luck in (1.0, 4.0))
    moved = [slowdown(one, pulled) / slowdown(one, plain) for one in runs()]
    assert np.median(np.abs(np.log(moved))) < 0.1


def test_runs_that_lose_nothing_leave_nothing() -> None:
    """No loss is found where hours are those of steps and failures."""
    found = fit_coefficients(behaving(LossTerms(0.0, 0.0, 0.0, 0.0)))
    assert max(map(abs, (found.off_node, found.scale, found.age, found.mixture))) < 0.02


def test_runs_are_slowed_down_by_what_the_engine_says_they_do_not_sustain() -> None:
    """One formula serves the fit and the plans made with it."""
    planning = PlanCalibration(CHOSEN, loss_priors().measured)
    for published in runs()[::5]:
        asked = with_training(run(model=published.model, cluster=published.cluster), software_year=published.training.software_year)
        assert slowdown(published, CHOSEN) * run_over_step_speed(asked, planning) == pytest.approx(1.0)


def test_a_run_is_planned_without_its_kin() -> None:
    """Its coefficients are those of the runs of other publications and families of models."""
    losses = behaving(CHOSEN)
    kin = runs()[0].kin
    others = without(losses, kin)
    assert kin not in {one.kin for one in others.runs}
    assert len(others.runs) < len(losses.runs)
    moved = replace(losses, ratio=np.where([one.kin == kin for one in losses.runs], 3.0, losses.ratio))
    assert coefficients_left_out(moved)[kin] == coefficients_left_out(losses)[kin]


def test_runs_recover_as_the_software_of_their_year() -> None:
    """Of one machine, a later run spends more of its time on training."""
    large = next(one for one in runs() if one.name == "llama3.1-405b")
    earlier = replace(large, training=replace(large.training, software_year=2022))
    assert goodput_of(earlier) < 0.8
    assert goodput_of(large) > 0.9
