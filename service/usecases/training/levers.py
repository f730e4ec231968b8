"""Levers of an estimate: single changes of the request, with what each saves and risks.

A saving is the difference of two whole estimates, so that it includes changes of layout, hours and prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError
from service.domain.training.estimate import EstimateLever
from service.formats.headline import day
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.levers import LeverKind, load_levers
from service.usecases.resolution.price import Price, require_priced
from service.usecases.training.estimate import EstimateAnswer, estimate
from service.usecases.training.lever_changes import Change, LeverBase, changes

Given = Mapping[str, Any]
# A smaller saving, relative to the run's own figure, is noise.
MIN_SAVING_SHARE = 0.01
HOURS_PER_DAY = 24
UNPRICED_LEVERS = "levers are left out, because they are ranked by savings and the cost is not known"


def estimate_with_levers(context: AppContext, request: Given) -> EstimateAnswer:
    """An estimate with its levers, by dollars saved. Raises as `estimate` does; a change that cannot be estimated is no lever."""
    answer = estimate(context, request)
    if answer.price is None:
        return replace(answer, warnings=(UNPRICED_LEVERS, *answer.warnings))
    base = LeverBase(context, request, answer)
    found = [lever for kind in load_levers().values() for lever in _best(kind, _levers(base, kind))]
    return replace(answer, levers=tuple(sorted(found, key=lambda lever: (-lever.saves_usd, -lever.saves_days))))


def apply_change(request: Given, change: Change) -> dict[str, Any]:
    """The request with fields at paths of one or two names set, or unset where the value is None."""
    found: dict[str, Any] = {name: dict(value) if isinstance(value, Mapping) else value for name, value in request.items()}
    for path, value in change.items():
        section, _, name = path.partition(".")
        if not name:
            found[section] = value
        elif value is None:
            found.get(section, {}).pop(name, None)
        else:
            found.setdefault(section, {})[name] = value
    return found


def _levers(base: LeverBase, kind: LeverKind) -> Iterable[EstimateLever]:
    """Levers of one kind that save something."""
    tried = ((change, _estimate_changed(base, change)) for change in changes(base, kind))
    found = (_lever(base.answer, kind, change, other) for change, other in tried if other is not None)
    return [lever for lever in found if _is_worthwhile(base.answer, lever, kind)]


def _estimate_changed(base: LeverBase, change: Change) -> EstimateAnswer | None:
    """The estimate of the changed request at the same price snapshot, or None where it cannot run."""
    try:
        other = estimate(base.context, apply_change(base.request, {"price.snapshot": base.answer.price_snapshot} | change))
    except DomainError:
        return None
    count = base.request["hardware"]["count"]
    if other.price is None or not other.estimate.memory.fits:
        return None
    if _splits_nodes(other.price, count) and not _splits_nodes(base.price, count):
        return None
    return other


def _splits_nodes(price: Price, count: int) -> bool:
    """Whether an offer's instances are smaller than the modelled nodes: then it may be cheaper because it is slower."""
    if price.provider is None or price.accelerator is None:
        return False
    return price.accelerators_per_instance < min(find_accelerator(price.accelerator).accelerator.accelerators_per_node, count)


def _lever(answer: EstimateAnswer, kind: LeverKind, change: Change, other: EstimateAnswer) -> EstimateLever:
    (usd, days, tco2e), (other_usd, other_days, other_tco2e) = _medians(answer), _medians(other)
    return EstimateLever(
        lever=kind.name,
        title=kind.title,
        change=change,
        saves_usd=round(usd - other_usd, 2),
        saves_days=days - other_days,
        saves_tco2e=tco2e - other_tco2e,
        total_usd=other_usd,
        wall_clock_days=other_days,
        risk=_risk(answer, kind, other),
        source=kind.source,
    )


def _risk(answer: EstimateAnswer, kind: LeverKind, other: EstimateAnswer) -> str:
    """The kind's risk, with the day of the price where the change takes another offer."""
    price = require_priced(other.price)
    if price == answer.price or price.observed_at is None:
        return kind.risk
    return f"{kind.risk}; the price of {price.provider} was read on {day(price.observed_at)}{' (stale)' if price.stale else ''}"


def _medians(answer: EstimateAnswer) -> tuple[float, float, float]:
    """Medians of cost [USD], duration [days] and emissions [tCO2e]."""
    found = answer.estimate
    return require_priced(answer.estimate.cost.total_usd).p50, found.time.wall_clock_hours.p50 / HOURS_PER_DAY, found.energy.tco2e


def _is_worthwhile(answer: EstimateAnswer, lever: EstimateLever, kind: LeverKind) -> bool:
    """Whether an aim of the kind improves by more than MIN_SAVING_SHARE, and cost does not rise by a larger share."""
    usd, days, tco2e = _medians(answer)
    own = {"usd": usd, "days": days, "tco2e": tco2e}
    saved = {aim: getattr(lever, f"saves_{aim}") / own[aim] if own[aim] else 0.0 for aim in own}
    most = max(saved[aim] for aim in kind.aims)
    return most > MIN_SAVING_SHARE and -saved["usd"] <= most


def _best(kind: LeverKind, levers: Iterable[EstimateLever]) -> Iterable[EstimateLever]:
    """The best lever of one kind for each of its aims."""
    levers = list(levers)
    best = [max(levers, key=lambda lever: getattr(lever, f"saves_{aim}")) for aim in kind.aims if levers]
    return {id(lever): lever for lever in best}.values()
