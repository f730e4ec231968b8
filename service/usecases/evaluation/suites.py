"""Evaluation suites: what the request states or defaults give, and the time of one evaluation of a run's model."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.errors import DoesNotFit, InvalidRequest
from service.domain.programs.evaluation import Cadence
from service.domain.programs.tiers import TierName
from service.domain.quantities import Range
from service.domain.serving.requirements import MeanRequest, ServingMachine
from service.domain.training.hardware import Accelerator
from service.domain.training.model import Transformer
from service.engine.numerics.ranges import inverse
from service.engine.programs.evaluation import SampleEvaluation, evaluation_seconds, sample_flops
from service.engine.serving.configurations import SECONDS_PER_HOUR
from service.engine.training.inference.model import ServedModel, ServingSetup, describe_served_model
from service.presets.programs import find_program_default
from service.presets.serving import can_serve, load_formats
from service.usecases.evaluation.evaluated_runs import EvaluatedRun, EvaluatedTier
from service.usecases.programs.defaults import take_or_default
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.serving.search import resolve_serving_machine

Request = Mapping[str, Any]

FORMATS = ("bf16", "fp16")
"""What models are evaluated in: as they are trained."""
MAX_TIMED = 2000
"""Suites times runs of a program."""
MAX_REMEMBERED = 16
"""Programs whose evaluations are remembered."""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite with its defaults. `tier` None: every tier; `accelerators` None: those of the run, or a node beside it.

    `sign_off`: a name and working days.
    """

    index: int
    name: str
    tier: TierName | None
    samples: int
    generated: bool
    prompt_tokens: int
    output_tokens: int
    every_tokens: int | None
    at: Cadence
    blocking: bool
    accelerators: int | None
    sign_off: tuple[str, float] | None

    @property
    def sample_tokens(self) -> int:
        """Tokens of a sample, its answer included."""
        return self.prompt_tokens + self.output_tokens

    def judges(self, tier: TierName | None) -> bool:
        """Whether it evaluates a tier's runs, or a run of no tier."""
        return self.tier in {None, tier}


@dataclass(frozen=True, slots=True)
class SuiteOnRun:
    """One evaluation of a run's model: hours, the accelerators they are paid on, and arithmetic [FLOP]."""

    hours: Range
    accelerators: int
    flops: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an evaluation has around its inference: `start_hours` before it [h], and the share of the rest that is inference [1]."""

    start_hours: float
    busy_share: float


def resolve_suites(request: Request, tiers: Sequence[EvaluatedTier], notes: AssumptionLog) -> tuple[Suite, ...]:
    """The stated suites. Raises InvalidRequest where they contradict themselves, each other or `overhead.evaluation`."""
    sections = request["evaluation"].get("suites", ())
    if sections and request.get("overhead", {}).get("evaluation"):
        raise InvalidRequest(
            "evaluation.suites are counted one by one, and overhead.evaluation would count them again: state one of the two",
            "/overhead/evaluation",
        )
    if len(sections) * (runs := sum(len(tier.runs) for tier in tiers)) > MAX_TIMED:
        raise InvalidRequest(
            f"{len(sections):,} suites on {runs:,} runs are more than the {MAX_TIMED:,} evaluations that one program may time: state fewer"
            " suites, or plan the program in parts",
            "/evaluation/suites",
        )
    planned, names = [tier.tier for tier in tiers], [section["name"] for section in sections]
    for index, section in enumerate(sections):
        pointer = f"/evaluation/suites/{index}"
        if names.index(section["name"]) < index:
            raise InvalidRequest(f"two suites are called {section['name']!r}", f"{pointer}/name")
        if section.get("tier", planned[0]) not in planned:
            raise InvalidRequest(f"no tier {section['tier']!r} is planned; there are {', '.join(map(str, planned))}", f"{pointer}/tier")
    return tuple(_resolve_suite(section, index, notes) for index, section in enumerate(sections))


def resolve_surroundings(section: Request, notes: AssumptionLog) -> Surroundings:
    """What an evaluation has around it, stated or by default."""
    minutes, busy = (take_or_default(section, f"evaluation.{name}", notes) for name in ("start_minutes", "busy_share"))
    return Surroundings(minutes / 60, busy)


def time_suites(judged: Sequence[tuple[Suite, EvaluatedRun]], around: Surroundings) -> list[SuiteOnRun]:
    """One evaluation of each suite on its run's machine, or beside it.

    Raises InvalidRequest and DoesNotFit where answers cannot be generated there.
    """
    machine, served = functools.cache(resolve_serving_machine), functools.cache(describe_served_model)
    setups = [_setup(suite, run, machine, served) for suite, run in judged]
    counts = [_accelerators(suite, run) for suite, run in judged]
    evaluations = {
        index: SampleEvaluation(setup, judged[index][0].samples, counts[index]) for index, setup in enumerate(setups) if setup is not None
    }
    found = dict(zip(evaluations, _timed(tuple(evaluations.values())), strict=True))
    return [
        _on_run(suite, run, accelerators, found.get(index), around)
        for index, ((suite, run), accelerators) in enumerate(zip(judged, counts, strict=True))
    ]


@functools.lru_cache(maxsize=MAX_REMEMBERED)
def _timed(evaluations: tuple[SampleEvaluation, ...]) -> tuple[tuple[Range, float] | None, ...]:
    """Seconds and FLOPs of each, None where no replica fits; a program's alternatives in tokens and repeats ask for the same."""
    return tuple(
        None if seconds is None else (seconds, each.samples * sample_flops(each.setup))
        for each, seconds in zip(evaluations, evaluation_seconds(evaluations), strict=True)
    )


def _accelerators(suite: Suite, run: EvaluatedRun) -> int:
    """Accelerators of an evaluation: the run's, which waits for it, or those beside it."""
    cluster = run.trained.cluster
    return cluster.count if suite.blocking else suite.accelerators or min(cluster.count, cluster.accelerators_per_node)


def _on_run(suite: Suite, run: EvaluatedRun, accelerators: int, found: tuple[Range, float] | None, around: Surroundings) -> SuiteOnRun:
    """An evaluation by the seconds and FLOPs of its samples in a serving engine, or by the training job's speed where none serves it."""
    seconds, flops = _by_training_speed(suite, run, accelerators) if found is None else found
    hours = seconds.scaled(1 / SECONDS_PER_HOUR / around.busy_share)
    return SuiteOnRun(Range(*(around.start_hours + value for value in (hours.p10, hours.p50, hours.p90))), accelerators, flops)


def _resolve_suite(section: Request, index: int, notes: AssumptionLog) -> Suite:
    pointer, path = f"/evaluation/suites/{index}", f"evaluation.suites.{index}"
    if ("samples" in section) == ("tokens" in section):
        raise InvalidRequest("state samples or tokens, one of the two", pointer)
    if "every_tokens" in section and "at" in section:
        raise InvalidRequest("state every_tokens or at, one of the two", f"{pointer}/at")
    generated = section.get("generated", False)
    if generated and "tokens" in section:
        raise InvalidRequest("tokens are scored; of a suite whose answers are generated state samples", f"{pointer}/tokens")
    blocking = _take(section, f"{path}.blocking", "evaluation_blocking", notes)
    if blocking and "accelerators" in section:
        raise InvalidRequest("the whole machine waits for this suite: state blocking false, or no accelerators", f"{pointer}/accelerators")
    prompt = _take(section, f"{path}.prompt_tokens", "prompt_tokens", notes)
    if "tokens" in section:
        output = section.get("output_tokens", 0)
    else:
        output = _take(section, f"{path}.output_tokens", "generated_tokens" if generated else "scored_tokens", notes)
    cadence: Cadence = "gates" if "every_tokens" in section else _take(section, f"{path}.at", "evaluation_at", notes)
    sign_off = section.get("sign_off")
    return Suite(
        index=index,
        name=section["name"],
        tier=section.get("tier"),
        samples=section["samples"] if "samples" in section else math.ceil(section["tokens"] / (prompt + output)),
        generated=generated,
        prompt_tokens=prompt,
        output_tokens=output,
        every_tokens=section.get("every_tokens"),
        at=cadence,
        blocking=blocking,
        accelerators=section.get("accelerators"),
        sign_off=None if sign_off is None else (sign_off["name"], sign_off["days"]),
    )


def _take(section: Request, path: str, name: str, notes: AssumptionLog) -> Any:
    fallback = find_program_default(name)
    return notes.take(section, path, fallback.value, fallback.source)


def _setup(
    suite: Suite,
    run: EvaluatedRun,
    machine: Callable[[Accelerator], ServingMachine],
    served: Callable[[Transformer], ServedModel],
) -> ServingSetup | None:
    """A sample through a serving engine; None of a network that none serves, or that the accelerator does not multiply."""
    model, accelerator = run.trained.model, run.trained.cluster.accelerator
    if not isinstance(model, Transformer) or model.kind != "transformer":
        return None
    stored = next((load_formats()[name] for name in FORMATS if can_serve(accelerator, load_formats()[name])), None)
    if stored is None:
        return None
    # A given answer is read as the prompt is; a last step gives its logits.
    output = suite.output_tokens if suite.generated else 1
    return ServingSetup(served(model), stored, machine(accelerator), MeanRequest(float(suite.sample_tokens - output), float(output)))


def _by_training_speed(suite: Suite, run: EvaluatedRun, accelerators: int) -> tuple[Range, float]:
    """Seconds and FLOPs of scoring in the training job: a forward pass is a third of a training step (Kaplan et al. 2020, section 2.1)."""
    if suite.generated:
        raise DoesNotFit(
            f"no serving engine generates answers with the model of {run.name} on {accelerators:,} of its accelerators: state"
            " more accelerators, or generated false",
            f"/evaluation/suites/{suite.index}/generated",
        )
    found, tokens = run.found, suite.samples * suite.sample_tokens
    seconds = inverse(found.throughput.tokens_per_s_per_accelerator).scaled(tokens / 3 / accelerators)
    return seconds, found.flops.forward / found.tokens.trained * tokens
