"""The published runs that an estimate is compared with."""

from __future__ import annotations

import pytest

from service.presets.training.comparable_runs import find_comparable_run, load_comparable_runs
from tools.calibration.whole_runs.runs import published_runs


def test_every_run_of_the_calibration_is_there_with_its_hours_and_source() -> None:
    runs = {run.name: run for run in load_comparable_runs()}
    assert {name: run.reported_accelerator_hours for name, run in runs.items()} == {run.name: run.hours for run in published_runs()}
    assert all(run.source and run.params > 0 and run.planned_accelerator_hours > 0 for run in runs.values())


def test_the_nearest_in_parameters_tokens_and_family_is_found() -> None:
    found = find_comparable_run("transformer", 70e9, 15e12, "hopper")
    assert found is not None
    assert found.run == "apertus-70b"
    near = find_comparable_run("mixture", 671e9, 14.8e12, "hopper")
    assert near is not None
    assert near.run == "deepseek-v3"


@pytest.mark.parametrize(
    ("kind", "params", "tokens"),
    [("transformer", 5e12, 15e12), ("transformer", 70e9, 1e7), ("vit", 1e9, 1e12), ("samples: graph", 1e6, 1e6)],
    ids=["too large", "too short", "no such kind", "unknown unit"],
)
def test_nothing_far_away_or_of_another_kind_is_found(kind: str, params: float, tokens: float) -> None:
    assert find_comparable_run(kind, params, tokens, "hopper") is None
