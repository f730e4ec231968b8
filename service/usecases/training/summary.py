"""The summary of an estimate: its sentence, the assumptions that move it most, and the published run most like it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from service.domain.programs.evaluation import EvaluationPlan
from service.domain.quantities import Range
from service.domain.summary import ComparableRun, Driver, Summary
from service.domain.training.estimate import COMPUTE_LINE, CauseOfSpread, Estimate
from service.domain.training.model import GenericNetwork
from service.domain.training.run import Run
from service.engine.numerics.ranges import comonotone_sum, percentile
from service.engine.training.cost import COMMITMENT_LINE, SPARES_LINE, with_overhead
from service.engine.training.parameters import total_parameters
from service.engine.training.run_time import run_over_step_speed
from service.formats.headline import day, duration_range, money, money_range, short_name
from service.presets.training.comparable_runs import find_comparable_run, model_kind
from service.presets.training.utilisation import plan_calibration
from service.usecases.evaluation.plan import elapsed_hours, suites_usd
from service.usecases.resolution.offer_choice import CheaperStale
from service.usecases.resolution.price import Price
from service.usecases.training.cost_warnings import unused_capacity

KEPT_WITH = 0.8
NO_OTHERS: Mapping[str, float] = MappingProxyType({})
MAX_DRIVERS = 3
PRICE_CHANGE = 0.1
# A range of time narrower than this share of its median moves nothing worth telling.
LEAST_WIDTH = 0.002
STATE_PRICE = "the cost is not known because no price is known: state price.usd_per_accelerator_hour"
# An old price that is less than this of the best fresh one's cost is worth a call, though it may not hold any more.
FAR_CHEAPER = 0.5
# A published run that took this much less or more of its plan than 1 is further off than most runs are.
COMPARABLE_WITHIN = (0.75, 1.33)
COMPARABLE_METHODS = ("pretrain", "continued_pretrain")


def summarise_estimate(
    run: Run,
    found: Estimate,
    price: Price | None,
    *,
    evaluation: EvaluationPlan | None = None,
    cost_by_provider: Mapping[str, float] = NO_OTHERS,
    cheaper_stale: CheaperStale | None = None,
) -> Summary:
    """The summary of a run's estimate; without a price nothing in it is in dollars.

    The p80 is that of a log-normal quantity through its p50 and p90. `cost_by_provider` is the least cost of the run at each provider over
    that at the price [1], the price's own first; `cheaper_stale` the least costly offer with an old price.
    """
    usd = found.cost.total_usd
    around = comonotone_sum((with_overhead(run, found.time.wall_clock_hours), elapsed_hours(evaluation)))
    hours = shifted(around, run.schedule.queue_hours)
    machine = f"{run.cluster.count:,} {short_name(run.cluster.accelerator.name)}"
    fits = "" if found.memory.fits else "It does not fit into the accelerators' memory."
    comparable = comparable_run(run)
    sentences = [
        estimate_text(usd, hours, machine, price),
        *unused_capacity(run, found.cost),
        other_sellers_text(usd, cost_by_provider),
        stale_seller_text(usd, cheaper_stale),
        deadline_text(run, found),
        comparable_text(comparable),
        fits,
    ]
    return Summary(
        text=" ".join(sentence for sentence in sentences if sentence),
        p50_usd=None if usd is None else usd.p50,
        p80_usd=None if usd is None else percentile(usd, KEPT_WITH),
        p50_finish_days=hours.p50 / 24,
        p80_finish_days=percentile(hours, KEPT_WITH) / 24,
        bound=found.throughput.bound_by,
        drivers=_drivers(run, found, price, 0.0 if evaluation is None else suites_usd(evaluation).p50),
        comparable=comparable,
    )


def estimate_text(usd: Range | None, hours: Range, machine: str, price: Price | None) -> str:
    """Cost, duration, machine and price in a sentence; without a price it says what to state."""
    if usd is None or price is None:
        return f"{_capital(duration_range(hours))} on {machine}; {STATE_PRICE}."
    return f"About {money_range(usd)} and {duration_range(hours)} on {machine} {price_phrase(price)}."


def other_sellers_text(usd: Range | None, cost_by_provider: Mapping[str, float]) -> str:
    """What the run would cost at the other providers; empty where there are none."""
    others = sorted(list(cost_by_provider.items())[1:], key=lambda item: item[1])
    if usd is None or not others:
        return ""
    (cheapest, least), (dearest, most) = others[0], others[-1]
    if len(others) == 1:
        return f"At {cheapest}: {money(least * usd.p50)}."
    return f"At {len(others)} other providers: {money(least * usd.p50)} ({cheapest}) to {money(most * usd.p50)} ({dearest})."


def stale_seller_text(usd: Range | None, old: CheaperStale | None) -> str:
    """The offer with an old price that costs less than half of what the run costs; empty where there is none."""
    if usd is None or old is None or old.cost_ratio >= FAR_CHEAPER:
        return ""
    return f"{money(old.cost_ratio * usd.p50)} at {old.offer.provider}, by a price read {old.age_days} days ago (stale)."


def deadline_text(run: Run, found: Estimate) -> str:
    """Probability of a stated deadline; empty where none is stated."""
    probability, deadline = found.time.deadline_probability, run.schedule.deadline
    return "" if probability is None or deadline is None else f"{probability:.0%} to meet {day(deadline)}."


def comparable_text(comparable: ComparableRun | None) -> str:
    """How long the nearest published run took where that is far from what is planned for it; else empty."""
    if comparable is None or COMPARABLE_WITHIN[0] <= comparable.planned_over_reported <= COMPARABLE_WITHIN[1]:
        return ""
    return f"The nearest published run, {comparable.run}, took {1 / comparable.planned_over_reported:.2g} times the hours planned for it."


def price_phrase(price: Price) -> str:
    """Where the price is from, and when it was read."""
    if price.provider is None:
        return f"at your {money(price.usd_per_accelerator_hour)} an accelerator-hour"
    read = "" if price.observed_at is None else f", price of {day(price.observed_at)}"
    return f"at {price.provider}{read}{' (stale)' if price.stale else ''}"


def shifted(hours: Range, by_hours: float) -> Range:
    """The range some hours later."""
    return Range(*(value + by_hours for value in (hours.p10, hours.p50, hours.p90)))


def comparable_run(run: Run) -> ComparableRun | None:
    """The published run most like a pretraining run; None for other methods, and where none is near."""
    model = run.model
    params = model.params if isinstance(model, GenericNetwork) else total_parameters(model)
    if not params or run.training.method not in COMPARABLE_METHODS:
        return None
    return find_comparable_run(model_kind(model), params, run.data.trained_tokens, run.cluster.accelerator.family)


def _drivers(run: Run, found: Estimate, price: Price | None, evaluation_usd: float) -> tuple[Driver, ...]:
    """The causes with the widest 80 % range of cost, or of time without a price; a price is weighed by a tenth more and less."""
    weighed = [(_width(cause), _cause_driver(run, found, cause)) for cause in found.spread_causes if _matters(cause)]
    weighed += _price_drivers(found, price, evaluation_usd)
    return tuple(driver for _, driver in sorted(weighed, key=lambda pair: -pair[0])[:MAX_DRIVERS])


def _matters(cause: CauseOfSpread) -> bool:
    hours = cause.wall_clock_hours
    return hours.p90 - hours.p10 > LEAST_WIDTH * hours.p50


def _width(cause: CauseOfSpread) -> float:
    """Width of the range of cost [USD], or of time without a price [h]."""
    moved = cause.wall_clock_hours if cause.total_usd is None else cause.total_usd
    return moved.p90 - moved.p10


def _price_drivers(found: Estimate, price: Price | None, evaluation_usd: float) -> Iterator[tuple[float, Driver]]:
    if price is None or not price.usd_per_accelerator_hour:
        return
    tenth = PRICE_CHANGE * (evaluation_usd + sum(float(line.usd) for line in found.cost.lines if _scales_with_price(line.line)))
    effect = f"{PRICE_CHANGE:.0%} more an hour: {money(tenth)} more"
    yield 2 * tenth, Driver("price.usd_per_accelerator_hour", price.usd_per_accelerator_hour, effect)


def _scales_with_price(line: str) -> bool:
    return line in (COMPUTE_LINE, SPARES_LINE, COMMITMENT_LINE) or line.startswith("overhead: ")


def _cause_driver(run: Run, found: Estimate, cause: CauseOfSpread) -> Driver:
    mfu, mttf = found.throughput.mfu, run.failures.mttf_hours_per_accelerator
    planned = run_over_step_speed(run, plan_calibration())
    field, value, changes = {
        "speed": ("throughput.mfu", mfu.p50, f"MFU from {mfu.p90:.0%} to {mfu.p10:.0%}"),
        "planning": ("throughput.run_over_step_speed", planned, "from no loss beyond steps and failures to twice the planned one"),
        "failures": (
            "failures.mttf_hours_per_accelerator",
            mttf.p50,
            f"a failure every {mttf.p90:,.0f} to {mttf.p10:,.0f} hours of one",
        ),
    }[cause.cause]
    usd, hours = cause.total_usd, cause.wall_clock_hours
    cost = "" if usd is None else f"{money(usd.p10)}–{money(usd.p90)} and "
    return Driver(field, value, f"{changes}: {cost}{_ends(hours)}")


def _ends(hours: Range) -> str:
    """p10 and p90 of a duration in the unit of its median: 118–171 days."""
    whole = duration_range(hours)
    middle, _, ends = whole.partition(" (")
    return f"{ends.rstrip(')')} {middle.partition(' ')[2]}" if ends else middle


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
