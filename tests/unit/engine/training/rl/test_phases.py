"""A step of reinforcement learning: its phases, what overlaps, and the memory of what is resident."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.training.reinforcement import PHASES, Reinforcement, ResponseLengths
from service.domain.training.run import AuxiliaryModels, Axes, Training
from service.domain.training.utilisation import LossRange, LossTerms, PlanCalibration
from service.engine.training.estimate import estimate
from service.engine.training.layouts import Layouts
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.parameters import total_parameters
from service.engine.training.rl.phases import packed_layouts, phases_of, update_training
from service.engine.training.search.layout_search import choose_layout
from tests.unit.engine.builders import H100, LLAMA_3_8B, cluster, reinforcement, rl_training, run, utilisation

PLANNING = PlanCalibration(LossTerms(0.0, 0.0, 0.0, 0.0), LossRange(512, 16_384, 2021, 2024))
EIGHT = Layouts.single(data=8, zero_stage=3)


def phases(asked: Training | Reinforcement, count: int = 8, layouts: Layouts = EIGHT) -> dict[str, float]:
    """Seconds by phase, with the whole step as `step`."""
    training = asked if isinstance(asked, Training) else rl_training(asked)
    found = phases_of(LLAMA_3_8B, training, cluster(count, H100), utilisation(), layouts)
    return {phase.phase: phase.seconds for phase in found.phases} | {"step": found.step_s}


def test_phases_in_turns_add_up() -> None:
    """Where sampler and trainer take turns the step is the sum, in the order of the phases."""
    found = phases(reinforcement())
    step = found.pop("step")
    assert step == pytest.approx(sum(found.values()))
    assert list(found) == [name for name in PHASES if name in found]
    own = {"prefill", "generation", "old_log_prob", "reference", "update_actor"}
    assert set(found) == own | {"weight_transfer", "offload", "overhead"}


def test_each_further_network_has_its_phase() -> None:
    """A critic of the policy's size takes what the policy does; a reward model a forward pass; no reference none."""
    size = total_parameters(LLAMA_3_8B)
    judged = rl_training(reinforcement(critic_params=size), auxiliary_models=AuxiliaryModels(reward_model=LLAMA_3_8B))
    found = phases(judged)
    assert "reference" not in found
    assert found["reward"] == pytest.approx(found["old_log_prob"])
    assert found["update_critic"] == pytest.approx(found["update_actor"], rel=0.1)
    assert found["values"] == pytest.approx(found["old_log_prob"], rel=0.1)
    seconds = dict(found)
    assert seconds.pop("step") == pytest.approx(sum(seconds.values()))


def test_an_update_costs_about_three_scorings() -> None:
    """Forward and twice that backward, and the exchange and optimizer of each mini-batch."""
    found = phases(reinforcement())
    assert 2.8 < found["update_actor"] / found["old_log_prob"] < 4


def test_smaller_mini_batches_update_more_often() -> None:
    """Each has its own gradient exchange and optimizer pass; the answers are the same."""
    rare, often = (phases(reinforcement(mini_batch_responses=size))["update_actor"] for size in (1024, 64))
    assert rare < often


@given(st.integers(0, 8), st.integers(1, 16), st.floats(0.1, 1.2), st.floats(0, 300))
def test_asynchronous_steps_are_never_slower(lag: int, thousands: int, spread: float, environment: float) -> None:
    """On the same pools, more lag never takes longer; the step is at least as long as each pool's phases."""
    lengths = ResponseLengths(64.0 * thousands, spread, 8192.0)
    slow, fast = (phases(reinforcement(lengths=lengths, pool={"count": 8}, asynchronous_steps=steps), count=16) for steps in (lag, lag + 1))
    assert fast["step"] <= slow["step"] * (1 + 1e-9)
    assert fast["step"] >= (fast["prefill"] + fast["generation"]) * (1 - 1e-9)
    assert fast["step"] >= (fast["update_actor"] + fast["old_log_prob"] + fast["reference"]) * (1 - 1e-9)


def test_pools_apart_have_their_own_accelerators() -> None:
    """Eight of sixteen sample as eight that sample and train in turns do, and nothing is offloaded."""
    apart, together = phases(reinforcement(pool={"count": 8}), count=16), phases(reinforcement())
    assert apart["generation"] == together["generation"]
    assert apart["update_actor"] == pytest.approx(together["update_actor"], rel=0.05)
    assert "offload" not in apart


def test_an_environment_takes_its_time() -> None:
    """In turns it is added; beside the trainer it is hidden."""
    plain = reinforcement(pool={"count": 8})
    slower = replace(plain, rollouts=replace(plain.rollouts, environment_seconds=1.0))
    assert phases(slower, 16)["step"] == pytest.approx(phases(plain, 16)["step"] + 1)


def test_short_answers_are_packed() -> None:
    """A micro-batch of one longest sequence of 4,096 tokens holds five mean ones of 800."""
    training = update_training(rl_training(reinforcement(), seq_len=800))
    assert packed_layouts(training, EIGHT).micro_batch[0] == 5


def test_the_search_times_the_whole_step() -> None:
    """Its batch is all answers of a step; the layout is of the accelerators that train."""
    training = rl_training(reinforcement(pool={"count": 8}))
    found = choose_layout(LLAMA_3_8B, training, cluster(16, H100), utilisation())
    assert found.steps.batch[0] == 1024
    ranks = found.layouts.row(0)
    assert ranks["tensor"] * ranks["pipeline"] * ranks["data"] * ranks["context"] == 8
    assert found.steps.total[0] == pytest.approx(phases(training, 16, found.layouts)["step"])


def test_an_answer_has_its_phases() -> None:
    """They add up to the step's time; cost and hours follow from it."""
    asked = run(model=LLAMA_3_8B, training=rl_training(reinforcement()), cluster=cluster(8, H100))
    found = estimate(asked, utilisation(), PLANNING)
    assert found.throughput.phases is not None
    assert sum(phase.seconds for phase in found.throughput.phases) == pytest.approx(found.throughput.step_time_s)
    tokens = {phase.phase: phase.tokens for phase in found.throughput.phases}
    assert tokens["prefill"] == 64 * 128
    assert tokens["update_actor"] == pytest.approx(tokens["generation"] + 1024 * 128)
    steps = found.time.steps * found.throughput.step_time_s / 3600
    assert found.time.wall_clock_hours.p50 == pytest.approx(steps / found.reliability.goodput)
    assert estimate(run(), utilisation(), PLANNING).throughput.phases is None


def memory(**changes: Any) -> dict[str, float]:
    used = memory_use(LLAMA_3_8B, update_training(rl_training(reinforcement(**changes))), EIGHT)
    return {name: float(np.squeeze(part)) for name, part in used.parts.items()}


def test_a_sleeping_sampler_takes_no_memory_of_the_trainer() -> None:
    """One that is not offloaded keeps its weights and its cache; one apart takes none; the reference is resident either way."""
    asleep, awake, apart = memory(), memory(offload=False), memory(offload=False, pool={"count": 8})
    assert (asleep["sampler_weights"], asleep["kv_cache"]) == (0, 0)
    assert awake["sampler_weights"] == pytest.approx(2 * total_parameters(LLAMA_3_8B), rel=0.01)
    assert awake["kv_cache"] > 1e9
    assert (apart["sampler_weights"], apart["kv_cache"]) == (0, 0)
    assert asleep["auxiliary_models"] > 0


def test_a_critic_is_resident() -> None:
    """Of the policy's size it takes the policy's weights, gradients and optimizer states."""
    found = memory(critic_params=total_parameters(LLAMA_3_8B))
    assert found["critic"] == pytest.approx(found["weights"] + found["gradients"] + found["optimizer"], rel=0.01)
    assert memory()["critic"] == 0


def test_memory_has_room_for_the_longest_answer() -> None:
    """Activations are those of the limit, not of the mean."""
    short, long = (memory(lengths=ResponseLengths(600.0, 0.6, limit)) for limit in (8192.0, 16384.0))
    assert long["activations"] == pytest.approx(short["activations"] * (16384 + 128) / (8192 + 128), rel=0.01)


def test_no_layout_is_searched_for_a_micro_batch_that_is_stated() -> None:
    """The caller's micro-batch is in longest sequences."""
    training = rl_training(reinforcement(), axes=Axes(micro_batch=2))
    found = choose_layout(LLAMA_3_8B, training, cluster(8, H100), utilisation())
    assert found.layouts.row(0)["micro_batch"] == 2
