"""What suites can detect: each suite that measures the outcome's metric, or states the difference it is to see."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.domain.errors import InvalidRequest
from service.domain.programs.evaluation import Detection
from service.domain.programs.outcome import Outcome, OutcomeMetric
from service.engine.programs.detection import Comparison, detection_power, samples_needed, seeds_needed, smallest_difference
from service.formats.headline import counted
from service.presets.programs import find_program_default
from service.usecases.evaluation.evaluated_runs import EvaluatedTier
from service.usecases.evaluation.suites import Request, Suite
from service.usecases.resolution.assumption_log import AssumptionLog

Improved = Outcome | OutcomeMetric


@dataclass(frozen=True, slots=True)
class Significance:
    """Power asked for, and the accepted probability of a false finding [1]."""

    power: float
    significance: float


def detect(
    request: Request,
    suites: Sequence[Suite],
    tiers: Sequence[EvaluatedTier],
    outcome: Outcome | None,
    asked: Significance,
    notes: AssumptionLog,
) -> Iterator[Detection]:
    """Each suite that can be judged, with a warning of those that cannot see their difference. Raises InvalidRequest."""
    sections = request["evaluation"].get("suites", ())
    measured = {section.get("metric", section["name"]) for section in sections}
    if suites and outcome is not None and outcome.metric not in measured:
        notes.warn(f"no suite measures {outcome.metric}, the outcome's metric: give one its name, or state the metric that it measures")
    for suite, section in zip(suites, sections, strict=True):
        metric = section.get("metric", suite.name)
        improved: Sequence[Improved] = () if outcome is None else (outcome, *outcome.metrics)
        compared = _comparison(section, suite, next((one for one in improved if one.metric == metric), None), asked, notes)
        if compared is None:
            continue
        found = _detection(suite, metric, compared, _seeds(suite, tiers), asked.power)
        if not found.enough:
            notes.warn(_blindness(found, asked.power))
        yield found


def _comparison(section: Request, suite: Suite, outcome: Improved | None, asked: Significance, notes: AssumptionLog) -> Comparison | None:
    """What the suite is to tell apart; None where nothing says it."""
    path, difference, deviation = f"evaluation.suites.{suite.index}", section.get("difference"), section.get("deviation")
    if outcome is None:
        if difference is None:
            return None
        baseline, target = 0.0, float(difference)
    else:
        baseline, target = outcome.baseline, outcome.target
        if difference is not None:
            target = baseline + math.copysign(difference, target - baseline)
    if target == baseline:
        return None
    if deviation is None and outcome is None:
        text = f"{suite.name} is not the outcome's metric: to see a difference it needs the deviation of a sample"
        raise InvalidRequest(text, f"/evaluation/suites/{suite.index}")
    if deviation is None and not (min(baseline, target) >= 0 and max(baseline, target) <= 1):
        notes.warn(
            f"whether {suite.name} can see the target is not known: {baseline:g} and {target:g} are no shares, so state {path}.deviation,"
            " the standard deviation of a sample's score"
        )
        return None
    fallback = find_program_default("seed_deviation")
    noise = notes.take(section, f"{path}.seed_deviation", fallback.value, fallback.source)
    return Comparison(baseline, target, deviation, noise, asked.significance)


def _detection(suite: Suite, metric: str, compared: Comparison, seeds: int, power: float) -> Detection:
    reached = detection_power(compared, suite.samples, seeds)
    return Detection(
        suite=suite.name,
        metric=metric,
        difference=abs(compared.target - compared.baseline),
        samples=suite.samples,
        seeds=seeds,
        power=reached,
        smallest_difference=smallest_difference(compared, suite.samples, seeds, power),
        enough=reached >= power,
        samples_needed=samples_needed(compared, seeds, power),
        seeds_needed=seeds_needed(compared, suite.samples, power),
    )


def _seeds(suite: Suite, tiers: Sequence[EvaluatedTier]) -> int:
    """Training seeds of the last tier that the suite judges, the fewest of any run."""
    last = [tier for tier in tiers if suite.judges(tier.tier)][-1]
    return min(run.repetition.seeds for run in last.runs)


def _blindness(found: Detection, power: float) -> str:
    """What the suite misses, and what would be enough."""
    seen = f"{found.suite} sees a difference of {found.difference:.3g} with a probability of {found.power:.0%}, not of {power:.0%}"
    with_what = f"with {counted(found.samples, 'sample')} and {counted(found.seeds, 'seed')}"
    ways = []
    if found.samples_needed is not None:
        ways.append(f"{counted(found.samples_needed - found.samples, 'more sample')}")
    if found.seeds_needed is not None:
        ways.append(f"{counted(found.seeds_needed - found.seeds, 'more training seed')}")
    enough = f"it takes {' or '.join(ways)}" if ways else "more samples or seeds alone are not enough: add both"
    return f"{seen}, {with_what}: {enough}"
