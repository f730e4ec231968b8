"""Apply the outcomes of a team's finished runs, its lessons, to its estimates. Outcomes are recorded when runs are closed.

One answer is made with lessons of one version, which it names. A scenario keeps those it was submitted with.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.teams import Principal
from service.domain.tracking.feedback import FeedbackFactors, Lessons
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.engine.tracking.feedback import feedback_factors, make_lessons, mean_overhead, scale_throughput
from service.presets.tracking.feedback import feedback_rules
from service.presets.training.reliability import find_failure_rate
from service.usecases.resolution.assumption_log import AssumptionLog

if TYPE_CHECKING:
    from service.store import Store

log = logging.getLogger(__name__)

Given = Mapping[str, Any]
MAX_AGE_S = 2.0
"""Age of cached outcomes at which they are read again [s]."""
MTTF = "mttf_hours_per_accelerator"


class FeedbackCache:
    """Lessons by team, at most MAX_AGE_S old. While the database is unavailable the last known ones are used."""

    def __init__(self, store: Store, ticks: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._ticks = ticks
        self._known: dict[str, tuple[float, Lessons | None]] = {}

    def lessons(self, team: str) -> Lessons | None:
        """Lessons of a team's finished runs; None where it has none."""
        until, known = self._known.get(team, (0.0, None))
        if self._ticks() < until:
            return known
        try:
            known = make_lessons(self._store.run_outcomes(team))
        except StoreUnavailable as error:
            log.warning("the last known lessons of a team are used: %s", error)
        self._known[team] = (self._ticks() + MAX_AGE_S, known)
        return known


def apply_throughput_feedback(context: AppContext, run: Run, utilisation: Utilisation, notes: AssumptionLog) -> Utilisation:
    """The utilisation scaled to the throughput that the team's finished runs on this accelerator reached."""
    factors = _factors(context, run.cluster.accelerator)
    if factors is None or factors.throughput_ratio is None:
        return utilisation
    source = f"{_runs(factors.throughput_runs)} on this accelerator reached it, against what was modelled; {feedback_rules().source}"
    notes.assume("throughput.learned", round(factors.throughput_ratio, 4), source)
    return scale_throughput(utilisation, factors.throughput_ratio)


def apply_request_feedback(context: AppContext, request: Given, accelerator: Any, notes: AssumptionLog) -> Given:
    """The request with failure rate and overheads of the team's finished runs where it states none."""
    factors = _factors(context, accelerator)
    if factors is None:
        return request
    note_lessons(context, notes)
    request, failures = apply_overhead_feedback(context, request, notes), request.get("failures", {})
    if factors.mttf_hours_per_accelerator is None or failures.get(MTTF) is not None:
        return request
    source = f"{_runs(factors.failure_runs)} on this accelerator; {feedback_rules().source}"
    return {**request, "failures": {**failures, MTTF: notes.assume(f"failures.{MTTF}", factors.mttf_hours_per_accelerator, source)}}


def apply_overhead_feedback(context: AppContext, request: Given, notes: AssumptionLog) -> Given:
    """The request with the overheads of the team's finished runs, on any accelerator, where it states none."""
    lessons = context.lessons()
    if lessons is None or request.get("overhead"):
        return request
    overhead, runs = mean_overhead(lessons.outcomes)
    source = f"{_runs(runs)} with such costs reported"
    return {**request, "overhead": {name: notes.assume(f"overhead.{name}", share, source) for name, share in overhead.items()}}


def note_lessons(context: AppContext, notes: AssumptionLog) -> None:
    """Name the version of the team's lessons among the assumptions."""
    lessons = context.lessons()
    if lessons is not None:
        source = f"{_runs(len(lessons.outcomes))}: what they change is named where it is taken"
        notes.assume("lessons", lessons.version, source)


def _factors(context: AppContext, accelerator: Any) -> FeedbackFactors | None:
    """Factors for an accelerator; None for a team without finished runs."""
    lessons = context.lessons()
    if lessons is None:
        return None
    return feedback_factors(lessons.outcomes, accelerator.name, find_failure_rate(accelerator).mttf_hours.p50, feedback_rules())


def context_for_team(context: AppContext, cache: FeedbackCache, who: Principal) -> AppContext:
    """The context of a team: with its own prices and its lessons, which are read when first used."""
    return replace(context.priced_for(who.team_name), lessons=functools.cache(lambda: cache.lessons(who.team)))


def _runs(count: int) -> str:
    return "1 finished run of the team" if count == 1 else f"{count} finished runs of the team"
