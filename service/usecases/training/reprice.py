"""The difference to an earlier estimate, attributed to engine, prices and workload.

Four totals in sequence: the earlier stated one, the earlier request at the earlier prices by the present engine, the same at present
prices, and the present request. Each step has one cause, so the causes add up to the difference to the cent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Annotated, Any

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.errors import DomainError, NoOffer, UnknownName
from service.domain.quantities import Assumption
from service.domain.tracking.feedback import LessonsReference
from service.engine.numerics.money import cents
from service.presets.version import engine_version
from service.prices.catalog import PriceBook
from service.serialization import to_builtins
from service.usecases.resolution.price import Price, require_priced
from service.usecases.training.estimate import EstimateAnswer, estimate

Given = Mapping[str, Any]
# Request fields that do not describe the workload.
NON_WORKLOAD_FIELDS = ("levers", "price.snapshot")
OFFER_FIELDS = ("provider", "region", "instance_type", "pricing", "accelerator", "accelerators_per_instance", "market")
# `stale` depends on the time of the request, not on the price.
PRICE_FIELDS = tuple(field.name for field in fields(Price) if field.name != "stale")
MAX_LISTED_CHANGES = 5
MAX_VALUE_CHARS = 60


@dataclass(frozen=True, slots=True)
class EstimateSummary:
    """Medians of an estimate, with its price and versions."""

    total_usd: Annotated[float, Doc("Median cost of the run", "USD")]
    wall_clock_hours: Annotated[float, Doc("Median time on the clock", "h")]
    accelerator_hours: Annotated[float, Doc("Median accelerator-hours", "accelerator-hours")]
    price: Annotated[Price, Doc("Price it is computed with")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field of the request or price by its path; None: not stated."""

    field: Annotated[str, Doc("Path of the field", max_length=100000)]
    before: Annotated[Any, Doc("Value in the earlier request or price; null: not stated")]
    now: Annotated[Any, Doc("Value now; null: not stated")]


@dataclass(frozen=True, slots=True)
class MoveCause:
    """One cause of the difference: engine, price or workload. `usd` above 0: more expensive."""

    cause: Annotated[str, Doc("What moved the cost", choices=("engine", "price", "workload"))]
    usd: Annotated[Decimal, Doc("Change of the median cost, above 0 dearer", "USD")]
    detail: Annotated[str, Doc("The cause in words", max_length=5000)]
    changes: Annotated[tuple[FieldChange, ...], Doc("Fields of the price or of the request that changed", max_items=300000)]


@dataclass(frozen=True, slots=True)
class PriceMove:
    """The difference and its causes, which add up to it."""

    from_usd: Annotated[Decimal, Doc("Earlier median cost, as stated or else as computed today", "USD")]
    to_usd: Annotated[Decimal, Doc("Median cost now", "USD")]
    usd: Annotated[Decimal, Doc("Difference of the two", "USD")]
    causes: Annotated[tuple[MoveCause, ...], Doc("Causes, which add up to the difference to the cent", max_items=3)]


@dataclass(frozen=True, slots=True)
class RepriceAnswer:
    """The earlier and present estimate and their difference. `before` is computed with the present engine."""

    before: Annotated[EstimateSummary, Doc("The earlier run, computed with the present engine")]
    now: Annotated[EstimateSummary, Doc("The run as it is planned now")]
    moved: Annotated[PriceMove, Doc("Why the cost moved")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


def reprice(context: AppContext, given: Given) -> RepriceAnswer:
    """The difference to the earlier estimate. Raises DomainErrors, with pointers into the whole request."""
    request, since = given["request"], given["since"]
    earlier, where = (given["before"], "/before") if "before" in given else (request, "/request")
    _book(context, since, "/since")
    book = _book(context, request.get("price", {}).get("snapshot"), "/request/price/snapshot")
    before = _estimate(context, earlier, since, where)
    bought, priced = _earlier_at_present_price(context, earlier, request, book.name, where)
    now = _estimate(context, request, book.name, "/request")
    causes = (
        *_engine_cause(before, given.get("before_total_usd")),
        _price_cause(before, priced, book, asked_otherwise=any(_changed_fields(earlier, bought))),
        _workload_cause(priced, now, tuple(_changed_fields(bought, request))),
    )
    to_usd, usd = _total(now), sum((cause.usd for cause in causes), Decimal(0))
    moved = PriceMove(to_usd - usd, to_usd, usd, causes)
    return RepriceAnswer(
        before=_summarise(before),
        now=_summarise(now),
        moved=moved,
        price_snapshot=book.name,
        lessons=now.lessons,
        engine_version=engine_version(),
        assumptions=now.assumptions,
        warnings=now.warnings,
    )


def _book(context: AppContext, name: str | None, pointer: str) -> PriceBook:
    """The price book of that name, by default the current one. Raises UnknownName at `pointer`."""
    try:
        return context.book(name)
    except UnknownName as problem:
        problem.pointer = pointer
        raise


def _estimate(context: AppContext, request: Given, snapshot: str, where: str) -> EstimateAnswer:
    """The estimate at a price snapshot; errors point into the request at `where`."""
    try:
        answer = estimate(context, {**request, "price": {**request.get("price", {}), "snapshot": snapshot}})
        require_priced(answer.price)
    except DomainError as problem:
        raise problem.below(where) from problem
    return answer


def _earlier_at_present_price(
    context: AppContext, earlier: Given, request: Given, snapshot: str, where: str
) -> tuple[Given, EstimateAnswer]:
    """The earlier request with the present one's `price` section, and its estimate: a change of seller counts as price.

    Without a matching offer, the earlier `price` section is kept.
    """
    bought = {**earlier, "price": request.get("price", {})}
    try:
        return bought, _estimate(context, bought, snapshot, where)
    except NoOffer:
        return earlier, _estimate(context, earlier, snapshot, where)


def _summarise(answer: EstimateAnswer) -> EstimateSummary:
    found = answer.estimate
    hours = found.time
    return EstimateSummary(
        total_usd=require_priced(answer.estimate.cost.total_usd).p50,
        wall_clock_hours=hours.wall_clock_hours.p50,
        accelerator_hours=hours.accelerator_hours.p50,
        price=require_priced(answer.price),
        price_snapshot=answer.price_snapshot,
        engine_version=answer.engine_version,
    )


def _total(answer: EstimateAnswer) -> Decimal:
    return cents(require_priced(answer.estimate.cost.total_usd).p50)


def _engine_cause(before: EstimateAnswer, stated_usd: float | None) -> Iterator[MoveCause]:
    """The cost of the earlier request at the earlier prices by the present engine, minus the earlier stated total."""
    if stated_usd is None:
        return
    stated, total = cents(stated_usd), _total(before)
    moved = f"{total:,} USD where {stated:,} USD were stated: the engine, its data, your measurements or your finished runs moved"
    told = "as stated then" if total == stated else moved
    detail = f"the earlier request at the earlier prices, by engine {before.engine_version}: {told}"
    yield MoveCause("engine", total - stated, detail, ())


def _price_cause(before: EstimateAnswer, after: EstimateAnswer, book: PriceBook, *, asked_otherwise: bool) -> MoveCause:
    """The extra cost of the earlier request at present prices."""
    old, new = require_priced(before.price), require_priced(after.price)
    names = [name for name in PRICE_FIELDS if getattr(old, name) != getattr(new, name)]
    changes = (FieldChange(f"price.{name}", to_builtins(getattr(old, name)), to_builtins(getattr(new, name))) for name in names)
    detail = _price_detail(old, new, book, asked_otherwise=asked_otherwise)
    return MoveCause("price", _total(after) - _total(before), detail, tuple(changes))


def _price_detail(old: Price, new: Price, book: PriceBook, *, asked_otherwise: bool) -> str:
    """Text: another price filter, the same offer at another price, or another offer."""
    if old.provider is None and new.provider is None:
        return f"your own price: {_rate_text(old)}, {'unchanged' if _rate_text(old) == _rate_text(new) else f'now {_rate_text(new)}'}"
    if asked_otherwise:
        return f"asked for otherwise: {_price_text(old)}; now {_price_text(new)}"
    if _offer(old) == _offer(new):
        moved = "unchanged" if _rate_text(old) == _rate_text(new) else "another price"
        return f"the same offer, {moved}: {_offer_text(old)} at {_dated_rate(old)}; now {_dated_rate(new)}"
    now = f"now {_offer_text(new)} at {_dated_rate(new)}"
    return f"another offer is the cheapest: {_offer_text(old)} at {_dated_rate(old)}; {now}; {_earlier_offer_text(old, book)}"


def _earlier_offer_text(old: Price, book: PriceBook) -> str:
    """Text on the earlier offer: its present price, or that it is not listed."""
    for offer in book.by_accelerator.get(str(old.accelerator), ()):
        if (*(getattr(offer, name) for name in OFFER_FIELDS[:5]), offer.accelerator_count, offer.market) == _offer(old):
            return f"the earlier offer is at {offer.usd_per_accelerator_hour:.4f} USD, read {offer.observed_at:%Y-%m-%d}"
    return "the earlier offer is not listed any more"


def _offer(price: Price) -> tuple[Any, ...]:
    return tuple(getattr(price, name) for name in OFFER_FIELDS)


def _offer_text(price: Price) -> str:
    return f"{price.provider} {price.region} {price.instance_type} {price.pricing}"


def _price_text(price: Price) -> str:
    return f"your own {_rate_text(price)}" if price.provider is None else f"{_offer_text(price)} at {_dated_rate(price)}"


def _rate_text(price: Price) -> str:
    return f"{price.usd_per_accelerator_hour:.4f} USD an accelerator-hour"


def _dated_rate(price: Price) -> str:
    return f"{_rate_text(price)}, read {price.observed_at:%Y-%m-%d}"


def _workload_cause(before: EstimateAnswer, now: EstimateAnswer, changes: tuple[FieldChange, ...]) -> MoveCause:
    """The extra cost of the present request over the earlier one, both at present prices."""
    told = [f"{change.field} from {_value_text(change.before)} to {_value_text(change.now)}" for change in changes[:MAX_LISTED_CHANGES]]
    more = [f"and {len(changes) - MAX_LISTED_CHANGES} more"] if len(changes) > MAX_LISTED_CHANGES else []
    return MoveCause("workload", _total(now) - _total(before), "; ".join([*told, *more]) or "the same request", changes)


def _value_text(value: Any) -> str:
    return "nothing stated" if value is None else f"{value:,}" if isinstance(value, int) else str(value)[:MAX_VALUE_CHARS]


def _changed_fields(earlier: Given, request: Given) -> Iterator[FieldChange]:
    """Changed fields of the workload, ordered by path."""
    before, now = dict(_leaves(earlier)), dict(_leaves(request))
    for path in sorted({*before, *now} - set(NON_WORKLOAD_FIELDS)):
        if before.get(path) != now.get(path):
            yield FieldChange(path, before.get(path), now.get(path))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """JSON values by dotted path, without nulls."""
    if isinstance(value, Mapping):
        for name, below in value.items():
            yield from _leaves(below, f"{path}.{name}" if path else str(name))
    elif value is not None:
        yield path, to_builtins(value)
