"""What a card says of an answer: its sentence, three fields, the range that is drawn, and the first warning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.counts import parse_count
from service.domain.quantities import Range
from service.formats.field_words import choice_words
from service.formats.headline import count, duration_range, money, money_range, short_name
from service.formats.option_words import name_words

Answer = Mapping[str, Any]
Field = tuple[str, str]
NOT_KNOWN = "not known"
MOST_OFFERS = 3


@dataclass(frozen=True, slots=True)
class Card:
    """A sentence, fields, a range of costs [USD] with its goal, a warning, what was read; what is not known is None."""

    sentence: str
    fields: tuple[Field, ...] = ()
    usd: Range | None = None
    goal_usd: float | None = None
    warning: str | None = None
    reading: str | None = None


def make_card(kind: str, request: Answer, answer: Answer, reading: str | None = None) -> Card:
    """The card of an answer of POST /v1/ask, by the kind of question. `reading`: what the question was read as."""
    return Card(
        sentence=str(answer["summary"]["text"]),
        fields=_FIELDS[kind](request, answer) if kind in _FIELDS else (),
        usd=_range(_COSTS[kind](answer)) if kind in _COSTS else None,
        goal_usd=answer.get("budget_usd") if kind == "chance" else None,
        warning=next(iter(answer.get("warnings") or ()), None),
        reading=reading,
    )


def status_card(sentence: str, status: Answer, budget_usd: float | None) -> Card:
    """The card of a tracked program's status."""
    return Card(sentence, _status(status), _range(status["forecast"]["cost_usd"]), budget_usd, next(iter(status["warnings"]), None))


def _estimate(request: Answer, answer: Answer) -> tuple[Field, ...]:
    price = answer["price"]
    hardware = request["hardware"]
    name = hardware["accelerator"] if price is None else short_name(price["accelerator"])
    machine = f"{parse_count(hardware['count']):,} {name}" + (f" at {price['provider']}" if price and price["provider"] else "")
    return _cost(answer["cost"]["total_usd"]), _finish(answer["time"]), ("Machine", machine)


def _compare(_: Answer, answer: Answer) -> tuple[Field, ...]:
    best = next(iter(answer["options"]), None)
    if best is None:
        return ()
    offer = best["offer"]
    place = " ".join(filter(None, (offer["provider"], offer["region"], choice_words(offer["pricing"]))))
    return _cost(best["cost_usd"]), _finish(best["time"]), ("Machine", f"{best['count']:,} {short_name(offer['accelerator'])}, {place}")


def _optimal(_: Answer, answer: Answer) -> tuple[Field, ...]:
    size = f"{count(answer['params']['p50'])} parameters, {count(answer['tokens']['p50'])} tokens"
    training = answer["training"]
    return _cost(training and training["usd"]), _finish(training), ("Size", size)


def _buy_or_rent(_: Answer, answer: Answer) -> tuple[Field, ...]:
    verdict = answer["verdict"]
    saved = _range(verdict["npv_saved_usd"])
    best, choice = verdict["probability_best"], name_words(answer, verdict["choice"])
    return (
        _cost(_chosen(answer)),
        ("Saves", NOT_KNOWN if saved is None else money_range(saved)),
        ("Choice", choice if best is None else f"{choice}, best in {best:.0%} of the trials"),
    )


def _chance(_: Answer, answer: Answer) -> tuple[Field, ...]:
    if "forecast" in answer:
        return _status(answer)
    chances = [
        f"{answer[f'{name}_probability']:.0%} {name}" for name in ("deadline", "budget") if answer[f"{name}_probability"] is not None
    ]
    return _cost(answer["cost_usd"]), _finish(answer), ("Chance", ", ".join(chances) or NOT_KNOWN)


def _price(_: Answer, answer: Answer) -> tuple[Field, ...]:
    prices = (f"{money(float(offer['usd_per_accelerator_hour']))} per accelerator-hour" for offer in answer["items"])
    return tuple(dict.fromkeys(zip(map(_offer_name, answer["items"]), prices, strict=True)))[:MOST_OFFERS]


def _offer_name(offer: Answer) -> str:
    return f"{offer['provider']} {offer['region']}, {choice_words(offer['pricing'])}"


def _status(status: Answer) -> tuple[Field, ...]:
    forecast, spent = status["forecast"], status["spend"]["usd"]
    finish = forecast["finish"]
    ends = NOT_KNOWN if finish is None else f"{finish['p50']} ({finish['p10']} to {finish['p90']})"
    return _cost(forecast["cost_usd"]), ("Finish", ends), ("Spent", NOT_KNOWN if spent is None else money(spent))


def _cost(usd: Answer | None) -> Field:
    known = _range(usd)
    return "Cost", NOT_KNOWN if known is None else money_range(known)


def _finish(time: Answer | None) -> Field:
    """When it ends, where a start is known, else how long it takes."""
    if time is not None and time.get("finish"):
        finish = time["finish"]
        return "Finish", f"{finish['p50']} ({finish['p10']} to {finish['p90']})"
    hours = _range(time and time["wall_clock_hours"])
    return "Finish", NOT_KNOWN if hours is None else f"after {duration_range(hours)}"


def _range(quantity: Answer | None) -> Range | None:
    return None if quantity is None else Range(float(quantity["p10"]), float(quantity["p50"]), float(quantity["p90"]))


def _chosen(answer: Answer) -> Answer | None:
    """Present cost of what the verdict chooses."""
    return next((option["npv_usd"] for option in answer["options"] if option["name"] == answer["verdict"]["choice"]), None)


def _first_cost(options: Sequence[Answer]) -> Answer | None:
    return options[0]["cost_usd"] if options else None


_FIELDS: Mapping[str, Callable[[Answer, Answer], tuple[Field, ...]]] = {
    "estimate": _estimate,
    "compare": _compare,
    "optimal": _optimal,
    "buy_or_rent": _buy_or_rent,
    "chance": _chance,
    "price": _price,
    "status": lambda _, answer: _status(answer),
}
_COSTS: Mapping[str, Callable[[Answer], Answer | None]] = {
    "estimate": lambda answer: answer["cost"]["total_usd"],
    "compare": lambda answer: _first_cost(answer["options"]),
    "optimal": lambda answer: answer["training"] and answer["training"]["usd"],
    "buy_or_rent": _chosen,
    "chance": lambda answer: answer["forecast"]["cost_usd"] if "forecast" in answer else answer["cost_usd"],
    "status": lambda answer: answer["forecast"]["cost_usd"],
}
