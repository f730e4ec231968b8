"""A step of reinforcement learning: what is sampled, on what, how it is trained on, and what such steps achieve."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.quantities import Range
from service.domain.serving.requirements import ServingMachine, WeightFormat

PHASES = (
    "prefill",
    "generation",
    "environment",
    "old_log_prob",
    "reference",
    "reward",
    "values",
    "update_actor",
    "update_critic",
    "weight_transfer",
    "offload",
    "overhead",
)
"""Phases of a step, in the order in which they run; an answer leaves out those that take no time."""


@dataclass(frozen=True, slots=True)
class ResponseLengths:
    """Tokens of the answers: log-normal, cut off at a limit.

    Attributes
    ----------
    median_tokens : float
        Of the distribution before it is cut off.
    log_deviation : float
        Standard deviation of the logarithm [1]; 0: all answers are as long.
    max_tokens : float
        Limit at which an answer is cut off.
    """

    median_tokens: float
    log_deviation: float
    max_tokens: float


@dataclass(frozen=True, slots=True)
class Rollouts:
    """What is sampled in a step.

    Attributes
    ----------
    prompts, responses_per_prompt : int
        Prompts of a step, and answers sampled to each.
    prompt_tokens : float
        Mean tokens of a prompt.
    lengths : ResponseLengths
    environment_seconds : float
        Time of a step in which only rewards or an environment are computed [s].
    """

    prompts: int
    responses_per_prompt: int
    prompt_tokens: float
    lengths: ResponseLengths
    environment_seconds: float = 0.0

    @property
    def responses(self) -> int:
        """Answers of a step."""
        return self.prompts * self.responses_per_prompt


@dataclass(frozen=True, slots=True)
class GenerationPool:
    """Accelerators that sample, and how; axes that are None are searched.

    Attributes
    ----------
    count : int, optional
        Accelerators that only sample; None: all that train sample too, in turns, or `share` of them where steps are asynchronous.
    share : float
        Part of all accelerators that only sample where no count is stated [1].
    tensor, pipeline, expert : int, optional
        Ranks of one replica. `expert`: those that its experts are divided over, at least `tensor`.
    weight_format : WeightFormat
    machine : ServingMachine
        The accelerator with what serving engines reach on it, and their limits.
    eager : bool
        Kernels of a decode step are launched one by one, not as a captured graph.
    """

    count: int | None
    share: float
    tensor: int | None
    pipeline: int | None
    expert: int | None
    weight_format: WeightFormat
    machine: ServingMachine
    eager: bool = False


@dataclass(frozen=True, slots=True)
class RolloutRates:
    """What steps of reinforcement learning achieve, from measurements.

    Attributes
    ----------
    decode_share : float
        Speed of sampling over that of a tuned serving engine, its host's time apart [1].
    decode_host_s : float
        Host's time of a decode step: scheduling, sampling, launch of a captured graph [s].
    eager_layer_s : float
        The same for each layer where its kernels are launched one by one, in addition [s].
    update_share : float
        Speed of passes over short answers over that of pre-training steps of as many tokens [1].
    transfer_share : float
        Share of the links' rate that the transfer of weights to the sampler reaches [1].
    host_bytes_per_s : float
        Rate between an accelerator and the host's memory [B/s].
    packed_tokens : float
        Tokens of short answers that are packed into one sequence of a micro-batch, at least.
    step_s : float
        Fixed time of a step: waking the sampler, starting phases, collecting their results [s].
    sample_s : float
        Time in which one process handles an answer: its reward by rule, its advantage, its batch [s].
    spread : Range
        Measured over predicted throughput [1].
    source : str
    """

    decode_share: float
    decode_host_s: float
    eager_layer_s: float
    update_share: float
    transfer_share: float
    host_bytes_per_s: float
    packed_tokens: float
    step_s: float
    sample_s: float
    spread: Range
    source: str


@dataclass(frozen=True, slots=True)
class Reinforcement:
    """A step of reinforcement learning.

    Attributes
    ----------
    rollouts : Rollouts
    generation : GenerationPool
    mini_batch_responses : int
        Answers of one optimizer step.
    critic_params : float
        Parameters of a critic that is trained beside the policy; 0: none.
    asynchronous_steps : int
        Steps by which the sampler's weights may be older than the trainer's; 0: both take turns.
    offload : bool
        Whichever of sampler and trainer waits is kept in the host's memory.
    rates : RolloutRates
    """

    rollouts: Rollouts
    generation: GenerationPool
    mini_batch_responses: int
    critic_params: float
    asynchronous_steps: int
    offload: bool
    rates: RolloutRates

    @property
    def colocated(self) -> bool:
        """Whether sampler and trainer share accelerators."""
        return self.generation.count is None and not self.asynchronous_steps
