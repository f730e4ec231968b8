"""What is told of other layouts, on timed layouts by hand."""

from __future__ import annotations

import numpy as np
import pytest

from service.engine.training.layouts import candidate_layouts
from service.engine.training.search.alternatives import TimedLayouts, alternatives, has_several_meshes
from service.engine.training.step.step_time import StepTime
from tests.unit.engine.builders import A100, LLAMA_7B, cluster, training

# The chosen layout, one that takes a second more in the network for its batch, one that does not fit, one as fast as the chosen.
BATCH = np.array([64.0, 32.0, 64.0, 64.0])
NETWORK = np.array([1.0, 1.5, 0.5, 1.0])
COMPUTE = np.array([4.0, 2.25, 4.0, 4.0])
SECONDS = NETWORK + COMPUTE


def timed() -> TimedLayouts:
    """Layouts of four meshes of an eight-accelerator node."""
    layouts = candidate_layouts(LLAMA_7B, training(), cluster(8))
    _, first = np.unique(np.stack([layouts.tensor, layouts.pipeline, layouts.context]), axis=1, return_index=True)
    chosen = np.zeros(len(layouts), dtype=np.bool_)
    chosen[first[:4]] = True
    still = np.zeros(4)
    steps = StepTime(compute=COMPUTE, memory=still, launch=still, network=NETWORK, pipeline=still, input=still, batch=BATCH)
    fits = np.array([True, True, False, True])
    return TimedLayouts(layouts.take(chosen), steps, np.array([40e9, 50e9, 123.45e9, 60e9]), fits, SECONDS, BATCH / SECONDS)


def test_other_layouts_are_told_with_what_they_cost() -> None:
    """64 sequences in 5 s: 32 in 3.75 s are a third slower, for the same sequences 2 s more in the network and half a second in compute."""
    unfitting, equal, slower = alternatives(timed(), 0, training(seq_len=2048), cluster(8))
    assert not unfitting.fits
    assert unfitting.why == f"needs 123.5 GB of {A100.usable_memory_bytes / 1e9:,.1f} GB"
    assert unfitting.slower_by == pytest.approx(1 - 5 / 4.5)
    assert unfitting.memory_gb == pytest.approx(123.45)
    assert (equal.why, equal.slower_by) == ("as fast", 0)
    assert slower.why.endswith(": +2.00 s a step")
    assert slower.slower_by == pytest.approx(1 / 3)
    assert slower.step_time_s == 3.75
    assert slower.tokens_per_s_per_accelerator == pytest.approx(32 / 3.75 * 2048 / 8)


def test_less_than_a_second_is_told_in_milliseconds() -> None:
    """A quarter of a second more in the network."""
    made = timed()
    network, seconds = made.steps.network.copy(), made.seconds.copy()
    network[3], seconds[3] = 1.25, 5.25
    steps = StepTime(COMPUTE, made.steps.memory, made.steps.launch, network, made.steps.pipeline, made.steps.input, BATCH)
    changed = TimedLayouts(made.layouts, steps, made.needed, made.fits, seconds, BATCH / seconds)
    found = alternatives(changed, 0, training(), cluster(8))[1]
    assert found.why.endswith(": +250 ms a step")


def test_meshes_are_several_where_any_differs() -> None:
    """Of one mesh there are none beside it."""
    made = timed()
    assert has_several_meshes(made.layouts)
    assert not has_several_meshes(made.layouts.take(np.array([True, False, False, False])))
    lone = TimedLayouts(
        made.layouts.take(np.array([True, False, False, False])),
        made.steps,
        made.needed[:1],
        made.fits[:1],
        SECONDS[:1],
        (BATCH / SECONDS)[:1],
    )
    assert alternatives(lone, 0, training(), cluster(8)) == ()
