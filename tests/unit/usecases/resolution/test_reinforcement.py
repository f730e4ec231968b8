"""What a request says of a step of reinforcement learning: defaults noted, lengths, pools, contradictions named."""

from __future__ import annotations

from typing import Any

import pytest

from service.domain.errors import InvalidRequest
from service.domain.training.reinforcement import Reinforcement
from service.domain.training.run import Cluster, Training
from service.engine.training.rl.lengths import mean_tokens, share_longer
from service.engine.training.rl.phases import sampling_accelerators
from service.presets.hardware.accelerators import load_accelerators
from service.presets.training.models import find_model
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.training import resolve_training
from tests.unit.usecases.requests import noted, pointer_of

H100 = load_accelerators()["NVIDIA-H100-80GB-SXM"]
LLAMA = find_model("llama-3.1-8b").model
MACHINE = Cluster(H100, 16, 8, 400)


def resolved(given: dict[str, Any], notes: AssumptionLog | None = None, year: int = 2026) -> Training:
    return resolve_training({"method": "rl", **given}, LLAMA, 131_072, MACHINE, year, notes or AssumptionLog())


def step(rl: dict[str, Any], notes: AssumptionLog | None = None, **given: Any) -> Reinforcement:
    found = resolved({"rl": rl, **given}, notes).rl
    assert found is not None
    return found


def test_everything_that_is_not_stated_is_noted() -> None:
    """As people run GRPO: 512 prompts of 16 answers, 512 to an optimizer step, in turns on all accelerators, without a critic."""
    notes = AssumptionLog()
    found = step({}, notes)
    assert (found.rollouts.prompts, found.rollouts.responses_per_prompt, found.mini_batch_responses) == (512, 16, 512)
    assert (found.generation.count, found.critic_params, found.asynchronous_steps, found.offload) == (None, 0, 0, True)
    fields = {name.removeprefix("training.rl.") for name in noted(notes) if name.startswith("training.rl.")}
    assert fields >= {
        *("prompts_per_step", "responses_per_prompt", "prompt_tokens", "response_tokens", "mini_batch_responses", "critic_params"),
        *("generation.count", "generation.precision", "asynchronous_steps", "offload", "environment_seconds", "rates"),
    }
    assert all(assumption.source for assumption in notes.assumptions)
    assert "training.seq_len" not in noted(notes)


def test_unknown_answers_are_warned_of() -> None:
    """Their length decides the cost; stated, there is no warning."""
    unknown, known = AssumptionLog(), AssumptionLog()
    step({}, unknown)
    step({"response_tokens": 1000.0}, known)
    assert any("state training.rl.response_tokens" in warning for warning in unknown.warnings)
    assert not known.warnings


def test_a_stated_mean_is_kept() -> None:
    """With the limit that seq_len leaves beside the prompt; the trained sequence is the mean of both."""
    found = resolved({"seq_len": 4096, "rl": {"prompt_tokens": 127.0, "response_tokens": 1019.0}})
    assert found.rl is not None
    assert mean_tokens(found.rl.rollouts.lengths) == pytest.approx(1019)
    assert found.rl.rollouts.lengths.max_tokens == 4096 - 127
    assert found.seq_len == 1146
    assert found.global_batch == 8192


def test_stated_percentiles_are_kept() -> None:
    """p50, p90 and the limit."""
    lengths = step({"response_tokens": {"p50": 1000.0, "p90": 3000.0, "max": 8000.0}}).rollouts.lengths
    assert share_longer(lengths, 3000) == pytest.approx(0.1)
    assert (lengths.median_tokens, lengths.max_tokens) == (1000, 8000)


def test_the_older_fields_say_the_same() -> None:
    """response_tokens, seq_len and global_batch_tokens of the training alone: prompt and answers follow from them."""
    found = resolved({"seq_len": 2048, "response_tokens": 1024, "global_batch_tokens": 1024 * 2048}).rl
    assert found is not None
    assert found.rollouts.prompt_tokens == 1024
    assert mean_tokens(found.rollouts.lengths) == pytest.approx(1024, rel=0.01)
    assert found.rollouts.responses == 1024


def test_asynchronous_steps_take_half_of_the_accelerators() -> None:
    """As recipes do; a stated count stays. All of them is as none that only sample."""
    notes = AssumptionLog()
    half = step({"asynchronous_steps": 1}, notes)
    assert noted(notes)["training.rl.generation.count"] == "0.5 of all accelerators"
    assert [sampling_accelerators(half, count) for count in (16, 64)] == [8, 32]
    assert step({"asynchronous_steps": 1, "generation": {"count": 4}}).generation.count == 4
    assert step({"generation": {"count": 16}}).generation.count is None


@pytest.mark.parametrize(
    ("rl", "count"),
    [({"generation": {"count": 17}}, 16), ({"asynchronous_steps": 1, "generation": {"count": 16}}, 16), ({"asynchronous_steps": 1}, 1)],
)
def test_pools_that_do_not_add_up_are_refused(rl: dict[str, Any], count: int) -> None:
    """More samplers than accelerators, or none that train beside them."""
    assert pointer_of(lambda: sampling_accelerators(step(rl), count)) == "/training/rl/generation/count"


def test_older_software_launches_kernels_one_by_one() -> None:
    """Captured graphs came to samplers inside trainers later."""
    old, new = (resolved({}, year=year).rl for year in (2024, 2026))
    assert old is not None
    assert new is not None
    assert (old.generation.eager, new.generation.eager) == (True, False)


@pytest.mark.parametrize(
    ("rl", "given", "pointer"),
    [
        ({"response_tokens": {"p50": 1000.0, "max": 500.0}}, {}, "response_tokens/max"),
        ({"response_tokens": {"p50": 1000.0, "p90": 500.0}}, {}, "response_tokens/p90"),
        ({"response_tokens": {"p50": 1000.0, "p90": 3000.0, "max": 2000.0}}, {}, "response_tokens/p90"),
        ({"response_tokens": {"p50": 1000.0, "max": 4096.0}}, {"seq_len": 4096}, "response_tokens"),
        ({"response_tokens": 4000.0}, {"seq_len": 4096}, "response_tokens"),
        ({"prompt_tokens": 4096.0}, {"seq_len": 4096}, "prompt_tokens"),
        ({"mini_batch_responses": 2048, "prompts_per_step": 64}, {}, "mini_batch_responses"),
        ({"generation": {"precision": "no-such"}}, {}, "generation/precision"),
    ],
)
def test_what_contradicts_itself_is_refused(rl: dict[str, Any], given: dict[str, Any], pointer: str) -> None:
    """The message points to the field."""
    assert pointer_of(lambda: resolved({"rl": rl, **given})) == f"/training/rl/{pointer}"


def test_answers_are_stated_once() -> None:
    """Not in the training and in its step."""
    with pytest.raises(InvalidRequest, match="not in both"):
        resolved({"response_tokens": 100, "rl": {"response_tokens": 100.0}})
