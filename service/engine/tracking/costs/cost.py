"""Cost of runs over time: invoiced cost to the last invoice, then self-reported cost, plus other cost lines; and what runs use a day.

A compute invoice is authoritative until the newest time it pays for; it is spread over time in proportion to the self-reported cost. After
that time the self-reported increments count. Accelerator-hours without a reported cost are priced as planned, with a warning.

Burn rates are over the whole life and over recent windows. Running totals are interpolated linearly between reports; tokens are those that
still count (surviving line).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from service.domain.tracking.events import RunBaseline
from service.domain.tracking.status import BurnRate, BurnWindow, Spend, SpendLine, WindowName
from service.domain.training.estimate import COMPUTE_LINE
from service.engine.tracking.runs.history import MICRO, CumulativeSeries, RunHistory

Floats = NDArray[np.float64]
CostAt = Callable[[Floats], Floats]
Span = tuple[datetime, datetime]
WINDOWS: tuple[tuple[WindowName, float], ...] = (("28d", 672.0), ("7d", 168.0), ("24h", 24.0))
HOURS_PER_DAY = 24.0


@dataclass(frozen=True, slots=True)
class CostedRun:
    """A run with its plan and its cost.

    `compute_usd` gives the cost of its accelerators at elapsed hours; `unknown_reason` says why that is unknown, None where it is known.
    `lines` is the known cost by line until now.
    """

    baseline: RunBaseline
    history: RunHistory
    compute_usd: CostAt
    lines: tuple[SpendLine, ...]
    unknown_reason: str | None
    warnings: tuple[str, ...]

    @property
    def usd(self) -> float | None:
        """Known cost until now [USD]; None where nothing is known."""
        return None if self.unknown_reason and not self.lines else math.fsum(line.usd for line in self.lines)

    def usd_at(self, hours: Floats) -> Floats | None:
        """Cost at elapsed hours [USD], None where the cost of compute is unknown."""
        return None if self.unknown_reason else self.compute_usd(hours) + self.history.costs.unbilled.step_at(hours) / MICRO

    @property
    def accelerator_hours(self) -> float | None:
        """Accelerator-hours until now, None where the run trained and reported none."""
        reported = self.history.accelerator_hours
        return float(reported.value[-1]) if reported is not None else None if self.history.lineage.tokens.size else 0.0


def cost_run(baseline: RunBaseline, history: RunHistory) -> CostedRun:
    """The run with its cost.

    Parameters
    ----------
    baseline : RunBaseline
        Plan of the run; its price applies to accelerator-hours without a reported cost [USD per accelerator-hour].
    history : RunHistory
        History of the run.
    """
    own, warnings = _self_reported(baseline, history)
    unknown = None if own is not None else _why_unknown(baseline, history)
    compute = _invoiced(own or np.zeros_like, history) if history.costs.billed.value.size else own or np.zeros_like
    usd = {line: micro / MICRO for line, micro in history.costs.lines.items()}
    if history.events and unknown is None:
        usd[COMPUTE_LINE] = usd.get(COMPUTE_LINE, 0.0) + float(compute(np.array([history.elapsed(history.until)]))[0])
    lines = tuple(SpendLine(line, amount) for line, amount in sorted(usd.items()))
    return CostedRun(baseline, history, compute, lines, unknown, warnings)


def spend(runs: Sequence[CostedRun], budget_usd: float | None) -> Spend:
    """Cost of runs together against a budget.

    Parameters
    ----------
    runs : sequence of CostedRun
        Unknown costs are left out, and the sum is then marked incomplete.
    budget_usd : float or None
        Budget [USD].
    """
    known = [run.usd for run in runs if run.usd is not None]
    usd = math.fsum(known) if known or not runs else None
    hours = [run.accelerator_hours for run in runs if run.accelerator_hours is not None]
    lines: dict[str, float] = defaultdict(float)
    for line in (line for run in runs for line in run.lines):
        lines[line.line] += line.usd
    return Spend(
        usd=usd,
        accelerator_hours=math.fsum(hours) if hours or not runs else None,
        tokens=math.fsum(run.history.lineage.position for run in runs),
        lines=tuple(SpendLine(line, amount) for line, amount in sorted(lines.items())),
        complete=all(run.unknown_reason is None for run in runs),
        remaining_usd=None if budget_usd is None or usd is None else budget_usd - usd,
        share_of_budget=_share(usd, budget_usd),
    )


def _share(usd: float | None, budget_usd: float | None) -> float | None:
    """Spend over budget; None without a budget, and for one so small that no number holds the share."""
    if usd is None or not budget_usd:
        return None
    share = usd / budget_usd
    return share if math.isfinite(share) else None


def burn_rate(runs: Sequence[CostedRun], now: datetime) -> BurnRate:
    """Burn rates of runs together, over the whole life and over the windows of `WINDOWS`.

    Parameters
    ----------
    runs : sequence of CostedRun
        Runs of the program.
    now : datetime
        End of the recent windows, UTC. The whole life ends with the last event.

    Returns
    -------
    BurnRate
        Rates a day; None where no time has passed or a total is unknown.
    """
    alive = [run for run in runs if run.history.last_at is not None]
    first = min((run.history.moment(0.0) for run in alive), default=now)
    last = max((run.history.last_at or now for run in alive), default=now)
    spans = [(first, last), *((now - min(now - first, timedelta(hours=hours)), now) for _, hours in WINDOWS)]
    run_hours = [(run, np.array([run.history.elapsed(moment) for span in spans for moment in span])) for run in alive]
    gains = [_gains(run_hours, total) or (None,) * len(spans) for total in (CostedRun.usd_at, _accelerator_hours, _tokens, _checkpoints)]
    names: tuple[WindowName, ...] = ("whole", *(name for name, _ in WINDOWS))
    whole, *windows = (_window(name, span, each) for name, span, each in zip(names, spans, zip(*gains, strict=True), strict=True))
    return BurnRate(whole.usd_per_day, whole.accelerator_hours_per_day, whole.tokens_per_day, whole.checkpoints_per_day, (whole, *windows))


def _self_reported(baseline: RunBaseline, history: RunHistory) -> tuple[CostAt | None, tuple[str, ...]]:
    """Self-reported cost over time with its warnings; None where the run reports none."""
    reported, hours, price = history.micro_usd, history.accelerator_hours, baseline.usd_per_accelerator_hour
    by_events = COMPUTE_LINE in history.costs.lines
    if reported is not None:
        return _reported_cost(reported, hours, price, baseline.name)
    if hours is not None and price is not None and not by_events:
        return _priced(hours, price, 0.0), (
            f"{baseline.name} reported no cost: its accelerator-hours are priced at the plan's {price:g} USD",
        )
    idle = hours is None and not history.lineage.tokens.size
    return (np.zeros_like if by_events or idle or history.costs.billed.value.size else None), ()


def _reported_cost(
    reported: CumulativeSeries, hours: CumulativeSeries | None, price: float | None, name: str
) -> tuple[CostAt, tuple[str, ...]]:
    """Reported cost, plus later accelerator-hours at the planned price."""
    if hours is None:
        return _scaled(reported), ()
    paid = float(hours.interpolate(reported.at_hours[-1:])[0])
    unpaid = float(hours.value[-1]) - paid
    if not unpaid:
        return _scaled(reported), ()
    if price is None:
        return _scaled(reported), (f"{name} reported {unpaid:,.0f} accelerator-hours after its last cost: they are not in its spend",)
    own, later = _scaled(reported), _priced(hours, price, paid)
    warning = f"{name} reported {unpaid:,.0f} accelerator-hours after its last cost: they are priced at the plan's {price:g} USD"
    return (lambda at: own(at) + later(at)), (warning,)


def _scaled(reported: CumulativeSeries) -> CostAt:
    return lambda at: reported.interpolate(at) / MICRO


def _priced(hours: CumulativeSeries, price: float, paid: float) -> CostAt:
    """Accelerator-hours beyond those already paid, at a price."""
    return lambda at: np.maximum(hours.interpolate(at) - paid, 0.0) * price


def _invoiced(own: CostAt, history: RunHistory) -> CostAt:
    """Invoiced cost to the last invoice, spread as the self-reported cost or evenly without one, then self-reported increments."""
    billed = history.costs.billed
    ends = np.minimum(billed.at_hours, history.elapsed(history.until))
    knots = np.append(min(0.0, float(ends[0])), ends)
    bills, owned = np.append(0.0, billed.value / MICRO), own(knots)

    def at(hours: Floats) -> Floats:
        before = np.clip(np.searchsorted(knots, hours, side="right") - 1, 0, len(knots) - 2)
        spent, lasts = np.diff(owned)[before], np.diff(knots)[before]
        part = np.where(spent > 0, (own(hours) - owned[before]) / np.where(spent > 0, spent, 1.0), 1.0)
        evenly = np.where(lasts > 0, (hours - knots[before]) / np.where(lasts > 0, lasts, 1.0), 1.0)
        share = np.clip(np.where(spent > 0, part, evenly), 0.0, 1.0)
        inside = bills[before] + np.diff(bills)[before] * share
        return np.asarray(np.where(hours >= knots[-1], bills[-1] + own(hours) - owned[-1], inside))

    return at


def _why_unknown(baseline: RunBaseline, history: RunHistory) -> str:
    if history.accelerator_hours is None:
        return f"{baseline.name} reported tokens, but neither cost nor accelerator-hours"
    return f"{baseline.name} reported accelerator-hours but no cost, and no price of an accelerator-hour is planned"


def _window(name: WindowName, span: Span, gains: Sequence[float | None]) -> BurnWindow:
    hours = (span[1] - span[0]) / timedelta(hours=1)
    return BurnWindow(name, hours, *(None if gain is None or hours <= 0 else gain / hours * HOURS_PER_DAY for gain in gains))


def _gains(run_hours: Sequence[tuple[CostedRun, Floats]], total: Callable[[CostedRun, Floats], Floats | None]) -> list[float]:
    """Growth of a total over all runs in each span, given the elapsed hours of the spans' ends; empty where the total of one run is
    unknown."""
    gains = []
    for run, hours in run_hours:
        totals = total(run, hours)
        if totals is None:
            return []
        gains.append((totals[1::2] - totals[::2]).tolist())
    return [math.fsum(each) for each in zip(*gains, strict=True)]


def _accelerator_hours(run: CostedRun, hours: Floats) -> Floats | None:
    accelerator_hours = run.history.accelerator_hours
    return None if accelerator_hours is None else accelerator_hours.interpolate(hours)


def _tokens(run: CostedRun, hours: Floats) -> Floats:
    line = run.history.lineage
    return np.interp(hours, line.at_hours, line.earned) if line.earned.size else np.zeros_like(hours)


def _checkpoints(run: CostedRun, hours: Floats) -> Floats:
    checkpoints = run.history.checkpoints
    return CumulativeSeries(checkpoints.last, np.cumsum(checkpoints.count)).step_at(hours)
