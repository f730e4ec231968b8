"""A step measured elsewhere, and what is modelled for it."""

from __future__ import annotations

from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.training.model import GenericNetwork
from service.domain.training.run import Axes, Efficiency, MeasuredOn
from service.engine.training.measured_step import model_measured_step, training_there
from service.engine.training.search.layout_search import choose_layout
from tests.unit.engine.builders import cluster, run, training, utilisation

MESH = Axes(tensor=4, pipeline=2, data=8, context=1, micro_batch=2, zero_stage=1, recompute="full")
PLAN = run(cluster=cluster(64), training=training(axes=MESH, global_batch=512), efficiency=Efficiency(mfu=0.4))


@pytest.mark.parametrize(
    ("measured_on", "axes"),
    [
        (MeasuredOn(64), {}),
        (MeasuredOn(16), {"data": None}),
        (MeasuredOn(16, Axes(micro_batch=1, recompute="none")), {"data": None, "micro_batch": 1, "recompute": "none"}),
        (MeasuredOn(64, Axes(zero_stage=0)), {"zero_stage": 0}),
        (MeasuredOn(64, Axes(tensor=8), own_mesh=True), {"tensor": 8, "pipeline": None, "data": None, "context": None}),
        (MeasuredOn(64, Axes(), own_mesh=True), {"tensor": None, "pipeline": None, "data": None, "context": None}),
    ],
)
def test_what_is_not_stated_of_the_layout_is_as_planned(measured_on: MeasuredOn, axes: dict[str, Any]) -> None:
    """A mesh is stated as a whole; the planned one keeps all but its data ranks on another count."""
    found = training_there(PLAN, measured_on).axes
    assert {name: getattr(found, name) for name in Axes.__slots__} == {name: getattr(MESH, name) for name in Axes.__slots__} | axes


def test_a_batch_is_in_tokens() -> None:
    """Half as long sequences are twice as many."""
    seq_len = PLAN.training.seq_len
    found = training_there(PLAN, MeasuredOn(64, seq_len=seq_len // 2))
    assert (found.seq_len, found.global_batch) == (seq_len // 2, 1024)
    assert training_there(PLAN, MeasuredOn(64, global_batch_tokens=seq_len * 8)).global_batch == 8


def test_networks_counted_by_samples_have_no_sequences() -> None:
    network = GenericNetwork(flops_per_sample=4e9, sample_unit="image")
    images = run(model=network, training=training(seq_len=1, global_batch=256), efficiency=Efficiency(mfu=0.2))
    found = training_there(images, MeasuredOn(8, seq_len=77))
    assert (found.seq_len, found.global_batch) == (1, 256)


def test_the_ratio_is_measured_over_modelled() -> None:
    """A figure of what the model says is a ratio of one."""
    measured_on, used = MeasuredOn(16), utilisation()
    first = model_measured_step(PLAN, measured_on, used)
    same = run(cluster=PLAN.cluster, training=PLAN.training, efficiency=Efficiency(tokens_per_s_per_accelerator=first.modelled))
    assert model_measured_step(same, measured_on, used).ratio == pytest.approx(1.0)
    there = choose_layout(PLAN.model, training_there(PLAN, measured_on), cluster(16), used)
    assert first.choice.layouts.named(0) == there.layouts.named(0)


def test_a_layout_that_does_not_make_up_the_count_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="the 12 accelerators"):
        model_measured_step(PLAN, MeasuredOn(12), utilisation())
