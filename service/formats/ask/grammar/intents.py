"""What a sentence asks for, from its words and from what it says."""

from __future__ import annotations

from service.domain.ask import Kind
from service.formats.ask.grammar.reservations import RESERVED_FOR
from service.formats.ask.grammar.slots import Slots

LEVERS = "levers"
"""What asks for changes of one run that are worth making: its estimate has them."""
MONEY = ("budget_usd", "money", "money_at")
MODEL = ("model", "doubtful_model", "quantity", "params")
"""What names a model, or may."""
DATA = ("tokens", "samples", "tokens_per_parameter", "other_unit", "steps")


def choose_kind(slots: Slots) -> Kind | None:
    """The kind of question; None where nothing says one."""
    asked = {slot.value for slot in slots.all if slot.name == "intent"}
    if slots.has("program"):
        return "chance" if "chance" in asked else "status"
    if not slots.has(*SUBJECTS):
        return _without_subject(asked)
    has_model, has_data = slots.has(*MODEL), slots.has(*DATA)
    bought = "buy_or_rent" in asked or slots.has("capex", "capex_of_all", "capex_of_machine")
    weighed = "optimal" not in asked and not (has_model or has_data) and _is_owning(slots)
    commitment = "price" not in asked and _is_commitment(slots)
    if weighed or ((bought or commitment) and not (has_model and has_data)):
        return "buy_or_rent"
    if _is_optimal(slots, asked):
        return "optimal"
    if not (has_model or has_data):
        return "price" if slots.has("accelerator", "provider", "region", "max_price_per_hour") else "estimate"
    return _of_run(slots, asked)


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
        "accelerator_hours",
        "flops",
        "provider",
        "region",
    ),
    *MONEY,
    *("capex", "capex_of_all", "capex_of_machine", "price_per_hour", "max_price_per_hour", "pricing"),
)


def _is_commitment(slots: Slots) -> bool:
    """Whether a fleet is to be reserved for a time, or not: 512 H100 for a year, reserved or on demand."""
    pricings = {slot.value for slot in slots.all if slot.name == "pricing"}
    reserved = any(str(pricing).startswith("reserved") for pricing in pricings)
    timed = slots.has("span") or any(slot.name == "pricing" and slot.note == RESERVED_FOR for slot in slots.all)
    return reserved and len(pricings) > 1 and slots.has("accelerator") and slots.has("count") and timed


def _is_owning(slots: Slots) -> bool:
    """Whether a sum for accelerators stands against renting them, for some time: $11M for 384 B200, against $3.75 an hour."""
    if slots.has("bare_sum") and slots.has("price_per_hour") and slots.has("accelerator"):  # 300 H100 at 27k against 2.30 an hour
        return True
    return (
        slots.has("rent") and slots.has(*MONEY) and slots.has("price_per_hour") and slots.has("count") and slots.has("span", "utilisation")
    )


def _without_subject(asked: set[object]) -> Kind | None:
    order: tuple[Kind, ...] = ("status", "help", "buy_or_rent", "optimal", "chance", "price", "compare", "estimate")
    return next((kind for kind in order if kind in asked), None)


def _is_optimal(slots: Slots, asked: set[object]) -> bool:
    """Whether a budget is given, of dollars, hours or arithmetic, and not both size and data."""
    sized = slots.has("model", "doubtful_model", "params")
    whole_run = sized and slots.has("tokens", "samples", "tokens_per_parameter")
    means = slots.has(*MONEY, "accelerator_hours", "flops", "limit", "span", "deadline")
    if whole_run or not means:
        return "optimal" in asked and not whole_run and not sized and not slots.has("samples")
    return "optimal" in asked or (not slots.has(*MODEL, "tokens", "samples") and slots.has(*MONEY, "accelerator_hours", "flops"))


def _of_run(slots: Slots, asked: set[object]) -> Kind:
    """Of a question about a run: chances where a budget or that word is said, comparison where several ways or
    offers are, else its estimate."""
    if "chance" in asked:
        return "chance"
    several = any(
        len({str(slot.value) for slot in slots.all if slot.name == name}) > 1 for name in ("accelerator", "count", "provider", "pricing")
    )
    if (
        LEVERS in asked
        and not several
        and slots.has("accelerator")
        and slots.has("count", "nodes")
        and not slots.has("jurisdiction", "ways")
    ):
        return "estimate"
    sure_by = slots.has("probability") and slots.has("deadline")
    if "compare" in asked or several or sure_by or slots.has("jurisdiction", "objective", "ways"):
        return "compare"
    if slots.has(*MONEY):
        return "chance" if "price" not in asked and slots.has("accelerator") and slots.has("count", "nodes") else "compare"
    return "estimate"
