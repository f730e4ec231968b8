"""Quality of runs: each metric's level, noise, drop and way back, and guardrails. The test of drops is in `quality_drops`."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean

import numpy as np
from numpy.typing import NDArray

from service.domain.programs.outcome import Guardrail, Outcome
from service.domain.quantities import Range
from service.domain.tracking.quality import (
    GoingBack,
    GuardrailStatus,
    LastGood,
    MetricDirection,
    MetricQuality,
    MetricState,
    NoiseSource,
)
from service.engine.tracking.costs.cost import CostedRun
from service.engine.tracking.monitoring.quality_drops import DropTest, QualityRules, find_drops
from service.engine.tracking.runs.history import Evaluation, RunHistory

Floats = NDArray[np.float64]
NORMAL = NormalDist()
IMPROVING_AT = 0.95  # one-sided level of significance of 5 %, the usual one


@dataclass(frozen=True, slots=True)
class _Series:
    """Newest evaluations of a metric on the surviving line of a run, in order."""

    run: CostedRun
    metric: str
    direction: MetricDirection
    all: Sequence[Evaluation]
    watched: Sequence[Evaluation]

    @property
    def sign(self) -> int:
        return 1 if self.direction == "up" else -1


def watch_quality(
    runs: Sequence[CostedRun], remaining: Sequence[Range | None], outcome: Outcome | None, rules: QualityRules
) -> tuple[tuple[MetricQuality, ...], ...]:
    """Quality of each run's metrics, in the order of their names.

    Parameters
    ----------
    runs : sequence of CostedRun
        Runs with history and cost.
    remaining : sequence of Range or None
        Forecast cost of the rest of each run [USD].
    outcome : Outcome or None
        Its baseline and target say in which direction its metric improves.
    rules : QualityRules
        Rules of the test.

    References
    ----------
    Page 1954; Hawkins 1987; see `quality_drops`.
    """
    series = [each for run in runs for each in _series_of(run, outcome, rules)]
    if not series:
        return tuple(() for _ in runs)
    length = max(len(each.watched) for each in series)
    values, deviations = np.full((len(series), length), np.nan), np.full((len(series), length), np.nan)
    for row, each in enumerate(series):
        values[row, : len(each.watched)] = [each.sign * one.value for one in each.watched]
        deviations[row, : len(each.watched)] = [stated_deviation(one) or math.nan for one in each.watched]
    test = find_drops(values, deviations, rules)
    left = {id(run): rest for run, rest in zip(runs, remaining, strict=True)}
    found: dict[int, list[MetricQuality]] = defaultdict(list)
    for row, each in enumerate(series):
        found[id(each.run)].append(_quality(each, test, row, left[id(each.run)], rules))
    return tuple(tuple(found[id(run)]) for run in runs)


def watch_guardrails(
    floors: Sequence[Guardrail], qualities: Iterable[MetricQuality], outcome: Outcome | None, rules: QualityRules
) -> tuple[GuardrailStatus, ...]:
    """Each guardrail against the newest evaluation of its metric in any run.

    Parameters
    ----------
    floors : sequence of Guardrail
        Guardrails.
    qualities : iterable of MetricQuality
        Metrics of all runs.
    outcome : Outcome or None
        As for `watch_quality`.
    rules : QualityRules
        Names of metrics of which less is better.
    """
    newest: dict[str, MetricQuality] = {}
    for each in sorted(qualities, key=lambda one: one.last_at):
        newest[each.metric] = each
    return tuple(_guardrail(floor, newest.get(floor.metric), direction_of(floor.metric, outcome, rules)) for floor in floors)


def direction_of(metric: str, outcome: Outcome | None, rules: QualityRules) -> MetricDirection:
    """Direction in which a metric improves: from the outcome's baseline to its target, else by a word of its name."""
    if outcome is not None and outcome.metric == metric and outcome.target != outcome.baseline:
        return "up" if outcome.target > outcome.baseline else "down"
    words = re.split(r"[^a-z]+", metric.casefold())
    return "down" if any(word in rules.lower_is_better for word in words) else "up"


def stated_deviation(one: Evaluation) -> float | None:
    """Standard error of an evaluation as stated, or of a share of so many samples (binomial; two successes and two failures are added,
    Agresti & Coull 1998); None where neither is stated."""
    if one.standard_error:
        return one.standard_error
    if not one.samples or not 0 <= one.value <= 1:
        return None
    portion = (one.value * one.samples + 2) / (one.samples + 4)
    return math.sqrt(portion * (1 - portion) / one.samples)


def surviving_evaluations(history: RunHistory) -> list[Evaluation]:
    """Evaluations of work on the surviving line, in order of time."""
    line = history.lineage
    if not line.surviving.size:
        return list(history.evaluations)
    places = line.index(np.array([history.elapsed(one.at) for one in history.evaluations], dtype=np.float64))
    return [one for one, place in zip(history.evaluations, places.tolist(), strict=True) if place < 0 or line.surviving[place]]


def _series_of(run: CostedRun, outcome: Outcome | None, rules: QualityRules) -> list[_Series]:
    by_metric: dict[str, list[Evaluation]] = defaultdict(list)
    for one in surviving_evaluations(run.history):
        by_metric[one.metric].append(one)
    return [
        _Series(run, metric, direction_of(metric, outcome, rules), found, found[-rules.watched :])
        for metric, found in sorted(by_metric.items())
    ]


def _quality(series: _Series, test: DropTest, row: int, remaining: Range | None, rules: QualityRules) -> MetricQuality:
    watched, last = series.watched, len(series.watched) - 1
    values = [one.value for one in series.all]
    dropped, error = bool(test.dropped[row, last]), float(test.deviation[row, last])
    first = int(test.since[row, last]) if dropped else max(0, last + 1 - rules.window)
    change, confidence = _drop(series, test, row, first) if dropped else _improvement(series, first, error)
    state: MetricState = "regressed" if dropped else "improving" if confidence is not None and confidence >= IMPROVING_AT else "flat"
    good = _last_good(series, first) if dropped and first else None
    return MetricQuality(
        run=series.run.baseline.name,
        metric=series.metric,
        direction=series.direction,
        evaluations=len(values),
        last=values[-1],
        last_at=watched[-1].at,
        best=max(values) if series.sign > 0 else min(values),
        level=series.sign * float(test.level[row, last]) if last else values[-1],
        standard_error=error if last else stated_deviation(watched[-1]) or error,
        noise=_noise(watched, rules),
        state=state,
        change=change,
        since=watched[first].at,
        confidence=None if state == "flat" else confidence,
        last_good=good,
        going_back=None if good is None else _going_back(series, good, remaining),
    )


def _drop(series: _Series, test: DropTest, row: int, first: int) -> tuple[float, float]:
    """Mean since the drop less the level before, and the confidence of all evaluations since together (Stouffer et al. 1949)."""
    last = len(series.watched) - 1
    level = series.sign * float(test.level[row, last])
    scores = test.score[row, first : last + 1]
    return fmean(one.value for one in series.watched[first:]) - level, NORMAL.cdf(float(scores.sum()) / math.sqrt(len(scores)))


def _improvement(series: _Series, first: int, error: float) -> tuple[float | None, float | None]:
    """Mean of the newer half less that of the older half, and the confidence that the metric is better."""
    values = [one.value for one in series.watched[first:]]
    half = len(values) // 2
    if not half:
        return None, None
    change = fmean(values[half:]) - fmean(values[:half])
    scatter = error * math.sqrt(1 / half + 1 / (len(values) - half))
    return change, NORMAL.cdf(series.sign * change / scatter) if scatter else None


def _noise(watched: Sequence[Evaluation], rules: QualityRules) -> NoiseSource:
    if any(stated_deviation(one) for one in watched[-rules.window :]):
        return "stated"
    return "history" if len(watched) > rules.min_own else "typical"


def _last_good(series: _Series, first: int) -> LastGood:
    """The evaluation before the drop, and the newest checkpoint until then."""
    one, history = series.watched[first - 1], series.run.history
    times = np.concatenate([history.checkpoints.first, history.checkpoints.last])
    until = times[times <= history.elapsed(one.at)]
    return LastGood(one.step, one.at, history.moment(float(until.max())) if until.size else None)


def _going_back(series: _Series, good: LastGood, remaining: Range | None) -> GoingBack:
    """Use since the checkpoint that is gone back to, and on the earlier way up from the present value to the level."""
    history, watched = series.run.history, series.watched
    end = history.elapsed(history.last_at or history.until)
    back = history.elapsed(good.checkpoint_at or good.at)
    low = [one for one in series.all if one.at < good.at and series.sign * one.value <= series.sign * watched[-1].value]
    ends = np.array([back, end, history.elapsed(low[-1].at) if low else math.nan, history.elapsed(good.at)])
    total = series.run.usd_at(np.nan_to_num(ends))
    hours = history.accelerator_hours
    usd = None if total is None else float(total[1] - total[0])
    regain = None if total is None or not low else float(total[3] - total[2])
    return GoingBack(
        hours=float(np.diff(history.uptime(ends[:2]))[0]),
        accelerator_hours=None if hours is None else float(np.diff(hours.interpolate(ends[:2]))[0]),
        usd=usd,
        regain_usd=regain,
        saved_usd=None if regain is None or usd is None else regain - usd,
        remaining_usd=None if remaining is None else remaining.p50,
    )


def _guardrail(floor: Guardrail, found: MetricQuality | None, direction: MetricDirection) -> GuardrailStatus:
    if found is None:
        return GuardrailStatus(floor.metric, floor.floor, direction, None, None, None, None, None)
    below = (floor.floor - found.last) * (1 if direction == "up" else -1)
    confidence = NORMAL.cdf(below / found.standard_error) if found.standard_error else float(below > 0)
    return GuardrailStatus(floor.metric, floor.floor, direction, found.run, found.last, found.last_at, below > 0, confidence)
