"""What a sentence asks for, from its words and from what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.domain.ask import Kind
from service.formats.ask.grammar.attributes import DETECTION, MTBF, MTTF, WRITE
from service.formats.ask.grammar.machines.own_machines import OWN_MACHINE
from service.formats.ask.grammar.money.paying_off import COMMITMENT
from service.formats.ask.grammar.money.quoted import QUOTE_TERM, QUOTED_BY
from service.formats.ask.grammar.money.rates import EACH
from service.formats.ask.grammar.money.reservations import RESERVED_FOR
from service.formats.ask.grammar.money.upfront import UPFRONT
from service.formats.ask.grammar.slots import ALL_OFFERS, Slots
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.vocabulary import Name

LEVERS = "levers"
"""What asks for changes of one run that are worth making: its estimate has them."""
AFFORDED = "tokens afforded"
"""What asks how many tokens a budget affords a model that is said."""
GRID = "energy.grid_gco2_per_kwh"
"""Beside the carbon of a stated grid there is no place to look for."""
GROUPS = frozenset({"EU", "EEA", "Europe"})
"""Jurisdictions of several countries, whose grids differ."""
MONEY = ("budget_usd", "money", "money_at")
MODEL = ("model", "doubtful_model", "quantity", "params")
"""What names a model, or may."""
DATA = ("tokens", "samples", "tokens_per_parameter", "other_unit", "steps")


WEIGHED = ("accelerator", "count", "nodes", "provider", "region", "pricing")
"""What is compared, where several of it are said."""


def choose_kind(slots: Slots) -> Kind | None:
    """The kind of question: of a program, of words alone, else the one that most of what is said speaks for; None where nothing does."""
    asked = {slot.value for slot in slots.all if slot.name == "intent"}
    if slots.has("program"):
        return "chance" if "chance" in asked else "status"
    if not slots.has(*SUBJECTS):
        return _without_subject(asked, has_setting=slots.has(*SETTINGS))
    if slots.has(OWN_MACHINE):
        return "compare"
    weights: dict[Kind, int] = dict.fromkeys((cue.kind for cue in CUES), 0)
    for cue in CUES:
        weights[cue.kind] += cue.weight if cue.is_said(slots) else 0
    kind = max(weights, key=lambda each: weights[each])
    return _of_run(slots, asked) if kind == "estimate" and _is_trained(slots) else kind


SETTINGS = ("method", "tuning", "precision", "optimizer", "seq_len", "batch_tokens", "zero_stage", "mfu", "tensor", "pipeline")
"""Settings of a run: alone they ask for its estimate, and for all the rest of it."""
FAILURES = frozenset({MTTF, MTBF, WRITE, DETECTION, "restart_minutes", "checkpoint_interval_minutes"})
"""Slots of how a machine fails."""
SUBJECTS = (
    *(
        "model",
        "doubtful_model",
        "quantity",
        "params",
        "tokens",
        "samples",
        "accelerator",
        "count",
        "nodes",
        "racks",
        "accelerator_hours",
        "flops",
        "provider",
        "region",
    ),
    *MONEY,
    *("capex", "capex_of_all", "capex_of_machine", "price_per_hour", "max_price_per_hour", "pricing"),
)


@dataclass(frozen=True, slots=True)
class Cue:
    """What speaks for a kind of question, and how much."""

    kind: Kind
    weight: int
    is_said: Callable[[Slots], bool]


def _asks(kind: str) -> Callable[[Slots], bool]:
    """Whether words ask for a kind and for nothing else: tco, how big a model, list price."""
    return lambda slots: any(slot.name == "intent" and slot.value == kind and not slot.implied for slot in slots.all)


def _hints(kind: Kind) -> Callable[[Slots], bool]:
    """Whether words of other senses too may ask for a kind, and no others do: buy, what can, price."""
    return lambda slots: not _asks(kind)(slots) and any(slot.name == "intent" and slot.value == kind for slot in slots.all)


def _is_trained(slots: Slots) -> bool:
    return slots.has(*MODEL) or slots.has(*DATA)


def _is_whole_run(slots: Slots) -> bool:
    return slots.has(*MODEL) and slots.has(*DATA)


def _is_commitment(slots: Slots) -> bool:
    """Whether a fleet is to be reserved for a time, or not: 512 H100 for a year, reserved or on demand; reserved, used at 60%."""
    pricings = {slot.value for slot in slots.all if slot.name == "pricing"}
    used = slots.has("utilisation")
    if any(slot.name == "intent" and slot.value == "price" and not (used and slot.implied) for slot in slots.all):
        return False
    reserved = any(str(pricing).startswith("reserved") for pricing in pricings)
    timed = slots.has("span", "utilisation") or any(slot.name == "pricing" and slot.note == RESERVED_FOR for slot in slots.all)
    weighed = len(pricings) > 1 or slots.has("utilisation")  # what is used in part may be rented by the hour
    return reserved and weighed and slots.has("accelerator") and slots.has("count") and timed


def _is_owning(slots: Slots) -> bool:
    """Whether a sum for accelerators stands against renting them, for some time: $11M for 384 B200, against $3.75 an hour."""
    if _is_trained(slots) or any(slot.name == "intent" and slot.value == "optimal" for slot in slots.all):
        return False
    if slots.has("bare_sum") and slots.has("accelerator") and slots.has("price_per_hour"):  # 300 H100 at 27k against 2.30 an hour
        return True
    if slots.has("bare_sum") and slots.has("accelerator") and slots.has("count") and slots.has("utilisation"):  # at 40k, 75% used
        return True
    return (
        slots.has("rent") and slots.has(*MONEY) and slots.has("price_per_hour") and slots.has("count") and slots.has("span", "utilisation")
    )


def _are_quotes(slots: Slots) -> bool:
    """Whether several prices of an hour, each with its kind of pricing, are weighed for accelerators: 1.95 for a year or 1.79 for three."""
    if _is_trained(slots):
        return False
    terms = [slot for slot in slots.all if slot.name in ("pricing", QUOTE_TERM)]
    ends = {at for slot in terms for at in (slot.first, slot.last)}
    prices = [slot for slot in slots.all if slot.name == "price_per_hour"]
    beside = [slot for slot in prices if slot.first in ends or slot.last in ends]
    starts = {at for slot in prices for at in (slot.first, slot.last)}
    apart = [slot for slot in terms if slot.name == QUOTE_TERM and not {slot.first, slot.last} & starts]
    reserved = slots.has(QUOTE_TERM) or any(str(slot.value).startswith("reserved") for slot in terms)
    return len(beside) + len(apart) > 1 and reserved and slots.has("accelerator", QUOTED_BY)


def _is_prepaid(slots: Slots) -> bool:
    """Whether a price of an hour is said with what is paid of its term at the start: a reservation that is weighed against others."""
    timed = slots.has("span") or any(slot.name == "pricing" and str(slot.value).startswith("reserved") for slot in slots.all)
    return slots.has("price_per_hour") and slots.has(UPFRONT) and timed and not _is_trained(slots)


def _is_lease(slots: Slots) -> bool:
    """Whether a sum for each accelerator in each of a time stands against renting them otherwise: lease at $1,150 a month, or cloud."""
    rents = [slot for slot in slots.all if slot.name == "rent"]
    compared = any(slot.name == "intent" and slot.value == "compare" for slot in slots.all) and slots.has("pricing")
    weighed = len(rents) > 1 or (bool(rents) and compared)
    return weighed and slots.has(EACH) and slots.has("span") and slots.has("count") and not _is_trained(slots)


def _is_reservation_asked(slots: Slots) -> bool:
    """Whether words ask if accelerators are worth reserving or leasing."""
    asked = any(slot.name == "intent" and slot.value == COMMITMENT for slot in slots.all)
    return asked and slots.has("accelerator") and not _is_trained(slots)


def _without_subject(asked: set[object], *, has_setting: bool) -> Kind | None:
    order: tuple[Kind, ...] = ("status", "help", "buy_or_rent", "optimal", "chance", "price", "compare", "estimate")
    return next((kind for kind in order if kind in asked), "estimate" if has_setting else None)


def _are_prices_weighed(slots: Slots) -> bool:
    """Whether words ask for the prices of accelerators by several sellers or kinds of pricing, and no means are said: get me prices."""
    several = any(len({_said(slot.value) for slot in slots.all if slot.name == name}) > 1 for name in ("provider", "pricing", "region"))
    means = slots.has(*MONEY, "accelerator_hours", "flops", "limit", "deadline", "utilisation")
    return _hints("price")(slots) and several and slots.has("accelerator") and not means and not _is_trained(slots)


def _may_be_optimal(slots: Slots) -> bool:
    """Whether the size can be what is asked for: it is not said with its data, and where it is, there are means besides."""
    sized = slots.has("model", "doubtful_model", "params")
    if sized and slots.has("tokens", "samples", "tokens_per_parameter"):
        return False
    return slots.has(*MONEY, "accelerator_hours", "flops", "limit", "span", "deadline") or not (sized or slots.has("samples"))


def _has_means_alone(slots: Slots) -> bool:
    """Whether a budget is given, of dollars, hours or arithmetic, and nothing that is trained."""
    return not slots.has(*MODEL, "tokens", "samples") and slots.has(*MONEY, "accelerator_hours", "flops")


def _owns_for_years(slots: Slots) -> bool:
    """Whether words of owning stand with a number of accelerators and years that they are used: whatever they train is their use."""
    years = any(slot.name == "span" and isinstance(slot.value, Duration) and slot.value.years >= 1 for slot in slots.all)
    return _asks("buy_or_rent")(slots) and years and slots.has("count", "nodes", "racks")


def _is_owned_for_years(slots: Slots) -> bool:
    """Whether a price to buy stands with years, and nothing is trained: 128 H100 at $30k each over 5 years, what is the hourly rate."""
    years = any(slot.name == "span" and isinstance(slot.value, Duration) and slot.value.years >= 1 for slot in slots.all)
    return (
        years and slots.has("capex", "capex_of_all", "capex_of_machine") and slots.has("count", "nodes", "racks") and not _is_trained(slots)
    )


def _is_bought(slots: Slots) -> bool:
    words = any(slot.name == "intent" and slot.value == "buy_or_rent" for slot in slots.all)
    return words or slots.has("capex", "capex_of_all", "capex_of_machine")


def _are_offers(slots: Slots) -> bool:
    return not _is_trained(slots) and slots.has("accelerator", "provider", "region", "max_price_per_hour", ALL_OFFERS)


def _are_hours_at_price(slots: Slots) -> bool:
    """Whether accelerator-hours are priced and no size is asked for: what would 500k H100 hours cost, at $1.75."""
    priced = slots.has("price_per_hour", "pricing") or any(
        slot.name == "intent" and slot.value in ("estimate", "price") for slot in slots.all
    )
    hours = slots.has("accelerator_hours") and slots.has("accelerator")
    return hours and priced and not slots.has("count", "nodes", "racks", *MODEL, *DATA)


def _are_failures(slots: Slots) -> bool:
    """Whether failures or checkpoints are said, which no offer has: an interval on 2048 H100 whose checkpoints take 4 minutes."""
    return any(slot.name in FAILURES or slot.name.startswith("failures.") for slot in slots.all) and not _is_bought(slots)


def _is_energy(slots: Slots) -> bool:
    """Whether electricity has a price, which no offer has: the bill of 90 days on 256 H100 at $0.12 per kWh."""
    return slots.has("usd_per_kwh", "pue") and not _is_bought(slots)


CUES: tuple[Cue, ...] = (
    # of several with the same weight the first
    Cue("buy_or_rent", 4, _is_bought),
    Cue("buy_or_rent", 1, _asks("buy_or_rent")),
    Cue("buy_or_rent", 3, _owns_for_years),
    Cue("buy_or_rent", 6, _is_owning),
    Cue("buy_or_rent", 6, _is_owned_for_years),
    Cue("buy_or_rent", 4, _is_commitment),
    Cue("buy_or_rent", 8, _are_quotes),
    Cue("buy_or_rent", 8, _is_prepaid),
    Cue("buy_or_rent", 8, _is_lease),
    Cue("buy_or_rent", 8, _is_reservation_asked),
    Cue("optimal", 5, lambda slots: _asks("optimal")(slots) and _may_be_optimal(slots)),
    Cue("optimal", 3, lambda slots: _hints("optimal")(slots) and _may_be_optimal(slots)),
    Cue("optimal", 3, _has_means_alone),
    Cue("optimal", 20, _asks(AFFORDED)),
    Cue("price", 2, _are_offers),
    Cue("price", 5, _are_hours_at_price),
    Cue("price", 2, _are_prices_weighed),
    Cue("price", 5, lambda slots: _asks("price")(slots) and _are_offers(slots)),
    Cue("estimate", 4, _is_whole_run),
    Cue("estimate", 3, _is_trained),
    Cue("estimate", 3, _is_energy),
    Cue("estimate", 5, _are_failures),
    Cue("estimate", 1, lambda slots: not _is_trained(slots)),
)
"""What speaks for each kind of question besides a program's, with its weight; an estimate stands for all questions of one run."""


def asks_figure(slots: Slots) -> bool:
    """Whether carbon is a figure of one run that is asked for, in one country at most, and nothing that offers are ordered by."""
    places = {slot.value for slot in slots.all if slot.name == "jurisdiction"}
    one = len(places) <= 1 and all(isinstance(place, Name) and place.value not in GROUPS for place in places)
    weak = all(slot.implied for slot in slots.all if slot.name == "objective")
    return weak and one and _is_one_offer(slots) and not slots.has("ways", "max_tco2e", "probability", *MONEY)


def _is_one_offer(slots: Slots) -> bool:
    """Whether one region at most is said, and one provider at most."""
    return all(len({_said(slot.value) for slot in slots.all if slot.name == name}) <= 1 for name in ("region", "provider"))


def _said(value: object) -> str:
    """What a request has of a value: of a name its own, whatever it was called."""
    return value.value if isinstance(value, Name) else str(value)


def _of_run(slots: Slots, asked: set[object]) -> Kind:
    """Of a question about a run: chances where a budget or that word is said, comparison where several ways or
    offers are, else its estimate."""
    if "chance" in asked and not ("compare" in asked and slots.has("accelerator") and not slots.has("count", "nodes", "racks")):
        return "chance"
    several = any(len({_said(slot.value) for slot in slots.all if slot.name == name}) > 1 for name in WEIGHED)
    if (
        LEVERS in asked
        and not several
        and slots.has("accelerator")
        and slots.has("count", "nodes", "racks")
        and not slots.has("jurisdiction", "ways")
    ):
        return "estimate"
    figure = slots.has(GRID) or (asks_figure(slots) and "compare" not in asked)
    if slots.has("objective") and figure and not several and slots.has("accelerator") and slots.has("count", "nodes", "racks"):
        return "estimate"
    sure_by = slots.has("probability") and slots.has("deadline")
    if "compare" in asked or several or sure_by or slots.has("jurisdiction", "objective", "ways"):
        return "compare"
    if slots.has(*MONEY):
        return "chance" if "price" not in asked and slots.has("accelerator") and slots.has("count", "nodes", "racks") else "compare"
    return "estimate"
