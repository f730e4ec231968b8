"""Time to sample: by hand where nothing waits, and the laws of tails, queues, pools and replicas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.serving.requirements import MeanRequest, Replicas
from service.domain.training.reinforcement import Reinforcement, ResponseLengths
from service.engine.training.inference.model import ServingSetup, describe_served_model
from service.engine.training.inference.roofline import time_step
from service.engine.training.rl.generation import GenerationTime, generation_time
from tests.unit.engine.builders import DEEPSEEK_V3, LLAMA_3_8B, ROLLOUT_RATES, reinforcement


def sampled(rl: Reinforcement, count: int = 16) -> GenerationTime:
    return generation_time(LLAMA_3_8B, rl, count)


def total(rl: Reinforcement, count: int = 16) -> float:
    found = sampled(rl, count)
    return found.prefill_s + found.decode_s


def test_equal_answers_by_hand() -> None:
    """64 sequences a replica of one length take a step a token: the roofline of a served model and the host's time."""
    rl = reinforcement(lengths=ResponseLengths(512.0, 0.0, 4096.0))
    machine = rl.generation.machine
    setup = ServingSetup(describe_served_model(LLAMA_3_8B), rl.generation.weight_format, machine, MeanRequest(128 + 256, 1.0))
    step = time_step(setup, Replicas(np.ones(1), np.ones(1), np.full(1, 64.0)), np.zeros(1))
    by_hand = 512 * (step.seconds[0] / ROLLOUT_RATES.decode_share + ROLLOUT_RATES.decode_host_s)
    found = sampled(rl)
    assert found.sequences == 64
    assert found.decode_s == pytest.approx(by_hand, rel=0.01)
    assert found.waiting_s == pytest.approx(0, abs=0.01 * by_hand)


@given(st.floats(50, 2000), st.floats(1.05, 3.0))
def test_longer_answers_take_longer(median: float, times: float) -> None:
    """Whatever the spread."""
    short, long = (reinforcement(lengths=ResponseLengths(tokens, 0.6, 8192.0)) for tokens in (median, times * median))
    assert total(short) < total(long)


@given(st.integers(1, 400), st.integers(1, 400))
def test_more_answers_never_take_less(prompts: int, more: int) -> None:
    """They share each step's read of the weights, but steps grow."""
    assert total(reinforcement(prompts=prompts)) <= total(reinforcement(prompts=prompts + more)) * (1 + 1e-9)


@given(st.floats(0.05, 0.8), st.floats(0.05, 0.8))
def test_a_longer_tail_costs_more_for_the_same_mean(spread: float, more: float) -> None:
    """The step waits for its longest answer while most of the batch is empty."""
    even, uneven = (ResponseLengths(600 * np.exp(-(s**2) / 2), s, 1e6) for s in (spread, spread + more))
    assert total(reinforcement(lengths=even)) < total(reinforcement(lengths=uneven))


def test_what_a_replica_does_not_hold_waits() -> None:
    """Eight times the answers of a full replica take about eight times as long, not as long as one batch."""
    one = reinforcement(prompts=64, lengths=ResponseLengths(1000.0, 0.1, 4096.0))
    held = sampled(replace(one, rollouts=replace(one.rollouts, prompts=4096)), 1).sequences
    few, many = (replace(one, rollouts=replace(one.rollouts, prompts=round(times * held / 16))) for times in (1, 8))
    assert sampled(many, 1).sequences == held
    assert 6 < sampled(many, 1).decode_s / sampled(few, 1).decode_s < 8.5


def test_a_prompt_is_read_once_for_all_its_answers() -> None:
    """Sixteen answers to a prompt share its keys and values."""
    shared, alone = sampled(reinforcement(64, 16), 1), sampled(reinforcement(1024, 1), 1)
    assert alone.prefill_s == pytest.approx(16 * shared.prefill_s)


def test_captured_graphs_are_faster_than_launched_kernels() -> None:
    """Each decode step of an eager sampler waits for the host's launch of every layer."""
    captured, eager = (total(reinforcement(pool={"eager": eager})) for eager in (False, True))
    assert eager > captured + 600 * 32 * ROLLOUT_RATES.eager_layer_s


def test_asynchronous_sampling_waits_less() -> None:
    """The more steps the weights may lag, the less often the batch empties."""
    times = [sampled(reinforcement(asynchronous_steps=lag)).decode_s for lag in (0, 1, 4, 8)]
    assert times == sorted(times, reverse=True)


def test_the_fastest_replica_that_fits_is_searched() -> None:
    """No stated width is faster than the one that is found."""
    found = total(reinforcement(pool={"tensor": None}))
    assert found == pytest.approx(min(total(reinforcement(pool={"tensor": width})) for width in (1, 2, 4, 8)))


@pytest.mark.parametrize(
    ("pool", "count", "place"),
    [
        ({"tensor": 3}, 16, "tensor"),
        ({"tensor": 8}, 12, "tensor"),
        ({"tensor": 2, "pipeline": 3}, 16, "tensor"),
        ({"expert": 8}, 16, "expert"),
    ],
)
def test_replicas_that_do_not_divide_are_refused(pool: dict[str, int], count: int, place: str) -> None:
    """The message points to what to change."""
    with pytest.raises(InvalidRequest) as caught:
        generation_time(LLAMA_3_8B, reinforcement(pool=pool), count)
    assert caught.value.pointer == f"/training/rl/generation/{place}"


def test_a_sampler_that_cannot_hold_the_model_is_timed_one_sequence_at_a_time() -> None:
    """671 billion parameters in 16 bits on eight accelerators of 80 GB, stated or searched: said not to fit."""
    for width in (8, None):
        found = generation_time(DEEPSEEK_V3, reinforcement(pool={"tensor": width}), 8)
        assert (found.fits, found.sequences, found.tensor) == (False, 1, 8)
    assert sampled(reinforcement()).fits


def test_a_mixture_samples_on_replicas_of_several_nodes() -> None:
    """Its experts divide over more ranks than its attention."""
    wide = generation_time(DEEPSEEK_V3, reinforcement(pool={"tensor": 8, "expert": 64}), 128)
    assert (wide.replica_accelerators, wide.tensor) == (64, 8)
    assert wide.decode_s > 0
