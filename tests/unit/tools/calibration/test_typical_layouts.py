"""How far teams stay below the fastest layout that is found: the loss that rows show, and what is not known of those left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.tools.calibration.published import chosen_parameters
from tools.calibration.cases import MeasuredCase, throughput_cases, without_layout
from tools.calibration.folds import Folds, search_case_rate
from tools.calibration.typical_layouts import fit_layout_loss, shortfalls, with_layout_losses

PARAMETERS = chosen_parameters()


def reaching(loss: float) -> list[MeasuredCase]:
    """Jobs of two publications, which reach that much less than the fastest layout found for them, on one node no less."""
    some = [case for case in throughput_cases() if case.source in ("llm-foundry", "fms-fsdp") and not case.each][::6]
    goals = [without_layout(case) for case in some]
    known = replace(PARAMETERS, layout_loss=loss)
    return [replace(goal, rates=np.array([search_case_rate(goal, known)])) for goal in goals]


def folds_of(goals: list[MeasuredCase]) -> Folds:
    """Folds that all have the same parameters."""
    documents, publications = ({getattr(goal, name): PARAMETERS for goal in goals} for name in ("document", "source"))
    return Folds(documents, publications, PARAMETERS)


@pytest.mark.parametrize("loss", [0.0, 0.15])
def test_the_loss_of_teams_is_found(loss: float) -> None:
    """Whether they have many nodes or two."""
    goals = reaching(loss)
    found = shortfalls(goals, folds_of(goals).documents)
    assert 0 < len(found.cases) < len(goals)
    assert fit_layout_loss(found) == pytest.approx(loss, abs=1e-4)


def test_no_team_beats_the_fastest() -> None:
    """Rows that are faster than what is found are misses of the model."""
    goals = reaching(-0.1)
    assert fit_layout_loss(shortfalls(goals, folds_of(goals).documents)) == 0


def test_a_publication_is_planned_with_the_loss_of_the_others() -> None:
    slow, plain = reaching(0.2), reaching(0.1)
    goals = [one if one.source == "fms-fsdp" else other for one, other in zip(slow, plain, strict=True)]
    _, folds = with_layout_losses(goals, PARAMETERS, folds_of(goals))
    found = {name: fold.layout_loss for name, fold in folds.publications.items()}
    assert found == pytest.approx({"fms-fsdp": 0.1, "llm-foundry": 0.2}, abs=1e-4)
