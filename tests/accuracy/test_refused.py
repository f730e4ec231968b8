"""Measured jobs as requests: what is asked for is the job that was measured."""

from __future__ import annotations

import pytest

from bench.accuracy.asked import request_of
from service.domain.training.model import Transformer
from service.domain.training.run import FROZEN_BASE
from service.engine.training.parameters import total_parameters
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.training import resolve_axes
from tools.calibration.cases import MeasuredCase, throughput_cases
from tools.calibration.finetuning.cases import finetuning_cases


@pytest.fixture(scope="module")
def cases() -> list[MeasuredCase]:
    tuned = [job.speed for job in finetuning_cases()]
    return [case for case in [*throughput_cases()[::9], *tuned[::9]] if not case.each]


def test_a_request_has_the_jobs_model_and_layout(cases: list[MeasuredCase]) -> None:
    """After its schema and its resolution, shape and stated axes are those of the job; hybrids, latent attention and mixtures too."""
    for case in cases:
        asked = EstimateRequestSchema().load(request_of(case.model, case.training, case.cluster))
        model, _ = resolve_model(asked["model"], AssumptionLog())
        assert isinstance(model, Transformer) == isinstance(case.model, Transformer)
        assert total_parameters(model) == pytest.approx(total_parameters(case.model), rel=0.02), case.ids
        assert resolve_axes(asked["training"]) == case.training.axes, case.ids


def test_adapters_are_asked_for_as_they_were(cases: list[MeasuredCase]) -> None:
    """Rank and targets of LoRA and QLoRA stand in the request, in no other."""
    for case in cases:
        training = request_of(case.model, case.training, case.cluster)["training"]
        assert ("lora_rank" in training) == (case.training.method in FROZEN_BASE)
