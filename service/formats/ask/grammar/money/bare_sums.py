"""Dollars without a sign: what a bare figure is in money, by its size and the word before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.machines.nodes import NODES, RACKS
from service.formats.ask.grammar.quantities import LEAST_CAPEX_USD, LEAST_PER_HOUR_USD, MOST_PER_HOUR_USD, figures
from service.formats.ask.grammar.ranges import EITHER
from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.tokens import Piece, Sentence

Pieces = Sequence[Piece]
RUN = frozenset({"model", "params", "quantity", "tokens", "samples", "tokens_per_parameter", "steps", "flops", "doubtful_model"})
"""Slots of what is trained."""
LIMITING = frozenset({"under", "less", "below", "most", "max", "maximum", "budget", "within", "than"})
LEAST_QUANTITY = 10**6
"""Fewer are no size of a model and no number of tokens."""
FALLING = 10
"""A figure so many times the next one is no number of the same list."""
LEAST_BUDGET_USD = 1000
"""Fewer may be something else: hours, accelerators."""
LEAST_MAXIMUM_USD = 20_000
MOST_BARE_USD = 10**8
"""A larger sum without a sign is rather one of parameters, or tokens."""


def _span(pieces: Pieces) -> tuple[int, int]:
    return pieces[0].first, pieces[-1].last


def keyed_price(pieces: Pieces) -> Iterator[Slot]:
    """price=2.5: dollars for an accelerator-hour."""
    figure = figures(pieces)[0]
    if str(pieces[0].value).startswith("price") and figure.scale == 1 and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD:
        yield Slot("price_per_hour", plain(figure.value), *_span(pieces), note="read as dollars for an accelerator-hour")


def sum_for(pieces: Pieces) -> Iterator[Slot]:
    """For 30k, they cost 44k: dollars without a sign where something is bought, else a figure as any other."""
    figure = figures(pieces)[0]
    costs = pieces[0].kind == "I"
    if figure.scale in (10**3, 10**6) and (not costs or pieces[0].value == "estimate"):
        yield Slot("sum_for", figure.value, *_span(pieces[costs:]))


def settle_sums(slots: Sequence[Slot]) -> list[Slot]:
    """The slots with `for 30k` as a sum in questions of buying; else millions are a size, or a number of tokens."""
    bought = any(slot.name == "intent" and slot.value == "buy_or_rent" for slot in slots)
    return [_settled(slot, bought=bought) if slot.name == "sum_for" else slot for slot in slots]


def _settled(slot: Slot, *, bought: bool) -> Slot:
    value = slot.value
    assert isinstance(value, Fraction)
    if not bought and value >= LEAST_QUANTITY:
        return replace(slot, name="quantity")
    return replace(slot, name="bare_sum", value=plain(value), note="read as dollars")


def sum_before_count(pieces: Pieces) -> Iterator[Slot]:
    """Buy at 31k, 400 H100: a sum and a number, where numbers of one list would rise."""
    usd, count = figures(pieces)
    if usd.scale == 10**3 and usd.value > FALLING * count.value:
        yield Slot("bare_sum", plain(usd.value), *_span(pieces[:2]), note="read as dollars")


def bare_budget(pieces: Pieces) -> Iterator[Slot]:
    """Within 4 million, under 300k: dollars without a sign; under 0.80: an accelerator-hour of them."""
    figure = figures(pieces)[0]
    if figure.scale in (10**3, 10**6) and not figure.unit:
        yield Slot("budget_usd", plain(figure.value), *_span(pieces), note="read as dollars")
    elif figure.scale == 1 and figure.value.denominator > 1 and figure.value < MOST_PER_HOUR_USD:
        yield Slot("max_price_per_hour", plain(figure.value), *_span(pieces), note="read as dollars for an accelerator-hour")


def keyed_budget(pieces: Pieces) -> Iterator[Slot]:
    """Budget=250000: dollars without a sign."""
    figure = figures(pieces)[0]
    if pieces[0].value == "budget" and figure.value >= LEAST_BUDGET_USD and figure.scale <= 10**6:
        yield Slot("budget_usd", plain(figure.value), *_span(pieces), note="read as dollars")


def sum_before_limit(pieces: Pieces) -> Iterator[Slot]:
    """50k budget, 50k max: dollars without a sign; of a smaller maximum accelerators are as likely."""
    figure = figures(pieces)[0]
    least = LEAST_CAPEX_USD if pieces[-1].value == "budget" else LEAST_MAXIMUM_USD
    if figure.scale in (10**3, 10**6) and least <= figure.value < MOST_BARE_USD:
        yield Slot("budget_usd", plain(figure.value), *_span(pieces), note="read as dollars")


def sum_in_question(pieces: Pieces) -> Iterator[Slot]:
    """Is 400k enough: dollars without a sign."""
    figure = figures(pieces)[0]
    if figure.scale in (10**3, 10**6) and figure.value < MOST_BARE_USD and pieces[-1].value == "chance":
        yield Slot("budget_usd", plain(figure.value), pieces[0].first, pieces[0].last, note="read as dollars")


def price_of_term(pieces: Pieces) -> Iterator[Slot]:
    """2.49 on demand: dollars and cents before a kind of pricing."""
    figure = figures(pieces)[0]
    if figure.scale == 1 and figure.value.denominator > 1 and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD:
        yield Slot("price_per_hour", plain(figure.value), *_span(pieces), note="read as dollars for an accelerator-hour")


def bare_rate(pieces: Pieces) -> Iterator[Slot]:
    """Vs 2.05, or rent 2.05: a price of an hour, where buying is asked about."""
    figure = figures(pieces)[0]
    fits = figure.scale == 1 and figure.value.denominator > 1 and LEAST_PER_HOUR_USD <= figure.value < MOST_PER_HOUR_USD
    if fits and pieces[0].value in ("list", "rent"):
        yield Slot("bare_rate", plain(figure.value), pieces[-1].first, pieces[-1].last)


def bare_price(pieces: Pieces) -> Iterator[Slot]:
    """At 32k, at 1.89: dollars without a sign."""
    figure = figures(pieces)[0]
    if figure.value >= LEAST_CAPEX_USD and figure.scale <= 10**6:
        yield Slot("bare_sum", plain(figure.value), *_span(pieces), note="read as dollars")
    elif figure.scale == 1 and figure.value < MOST_PER_HOUR_USD:
        yield Slot("price_per_hour", plain(figure.value), *_span(pieces), note="read as dollars for an accelerator-hour")


def _is_paid_for(sentence: Sentence, slot: Slot) -> bool:
    """Whether a sum is said as that of a thing, for $5.2M, and as no limit."""
    said = set(sentence.texts[slot.first : slot.last])
    return sentence.texts[slot.first] == "for" and not said & LIMITING


def sums_against_rent(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with a sum as that of a purchase, where `or` stands between it and a price of an hour and nothing is to be trained."""
    sums = [slot for slot in slots if slot.name == "money" or (slot.name == "budget_usd" and _is_paid_for(sentence, slot))]
    prices = [slot for slot in slots if slot.name == "price_per_hour"]
    counted = any(slot.name in ("count", NODES, RACKS) for slot in slots)
    run = any(slot.name in RUN or (slot.name == "intent" and slot.value == "optimal") for slot in slots)
    if len(sums) != 1 or len(prices) != 1 or not counted or run:
        return list(slots)
    first, last = sorted((sums[0], prices[0]), key=lambda slot: slot.first)
    between = set(sentence.texts[first.last : last.first])
    if not between & EITHER or any(slot.name == "accelerator" and first.last <= slot.first < last.first for slot in slots):
        return list(slots)
    bought = replace(sums[0], name="capex", note="read as the price of what is rented otherwise")
    return [bought if slot is sums[0] else slot for slot in slots]
