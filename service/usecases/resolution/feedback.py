"""Apply the outcomes of a team's finished runs to its estimates. Outcomes are recorded when runs are closed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from service.context import AppContext
from service.domain.errors import StoreUnavailable
from service.domain.teams import Principal
from service.domain.tracking.feedback import FeedbackFactors, RunOutcome
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.engine.tracking.feedback import feedback_factors, scale_throughput
from service.presets.tracking.status import feedback_rules
from service.presets.training.reliability import find_failure_rate
from service.store import Store
from service.usecases.resolution.assumption_log import AssumptionLog

log = logging.getLogger(__name__)

Given = Mapping[str, Any]
MAX_AGE_S = 2.0
"""Age of cached outcomes at which they are read again [s]."""
MTTF = "mttf_hours_per_accelerator"


class FeedbackCache:
    """Run outcomes by team, at most MAX_AGE_S old. While the database is unavailable the last known ones are used."""

    def __init__(self, store: Store, ticks: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._ticks = ticks
        self._known: dict[str, tuple[float, tuple[RunOutcome, ...]]] = {}

    def run_outcomes(self, team: str) -> tuple[RunOutcome, ...]:
        """Run outcomes of a team, newest first."""
        until, known = self._known.get(team, (0.0, ()))
        if self._ticks() < until:
            return known
        try:
            known = () if self._store.absent() else self._store.run_outcomes(team)
        except StoreUnavailable as error:
            log.warning("run outcomes of a team cannot be read, the last known ones are used: %s", error)
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
    failures, overhead = request.get("failures", {}), request.get("overhead")
    learned: dict[str, Any] = {}
    if factors.mttf_hours_per_accelerator is not None and failures.get(MTTF) is None:
        source = f"{_runs(factors.failure_runs)} on this accelerator; {feedback_rules().source}"
        learned["failures"] = {**failures, MTTF: notes.assume(f"failures.{MTTF}", factors.mttf_hours_per_accelerator, source)}
    if factors.overhead and not overhead:
        source = f"{_runs(factors.overhead_runs)} with such costs reported"
        learned["overhead"] = {name: notes.assume(f"overhead.{name}", share, source) for name, share in factors.overhead.items()}
    return {**request, **learned}


def _factors(context: AppContext, accelerator: Any) -> FeedbackFactors | None:
    """Factors for an accelerator; None for a team without finished runs."""
    outcomes = context.run_outcomes()
    if not outcomes:
        return None
    return feedback_factors(outcomes, accelerator.name, find_failure_rate(accelerator).mttf_hours.p50, feedback_rules())


def context_for_team(context: AppContext, cache: FeedbackCache, who: Principal) -> AppContext:
    """The context of a team: with its run outcomes and its own prices."""
    return replace(context.priced_for(who.team_name), run_outcomes=lambda: cache.run_outcomes(who.team))


def _runs(count: int) -> str:
    return "1 finished run of the team" if count == 1 else f"{count} finished runs of the team"
