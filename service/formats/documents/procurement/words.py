"""Words and figures of the evidence pack that its page, its PDF and its workbook share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain.quantities import Range
from service.formats.documents.procurement.model import CashModel
from service.formats.field_words import choice_words, field_words
from service.formats.headline import money, short_name
from service.formats.option_words import PEAKS, name_words, option_words

Answer = Mapping[str, Any]
COLOURS = {"own": "#0072B2", "reserved": "#009E73", "on_demand": "#E69F00", "spot": "#CC79A7", "mix": "#56B4E9"}
"""The colour of each kind of option: Okabe and Ito 2008."""
MOST_CHANGE = 2.0
"""The largest change that is called one that may turn a verdict, as a share [1]."""
RENTS = "rent.price_factor"
SHARED_WORDS = {
    "demand.utilisation": "utilisation",
    "demand.growth_per_year": "growth of the demand a year",
    "demand.years": "years of the demand",
    "cost_of_capital": "cost of capital a year",
    "list_price_change_per_year": "change of list prices a year",
    RENTS: "all rents, over what they are",
}
SHARES = ("share", "utilisation", "growth", "cost_of_capital", "list_price_change", "price_factor", "price_decline", "availability")
# Probabilities from which a choice is called sure, likely, or more likely than not.
SURE, LIKELY, EVEN = 0.9, 0.7, 0.5


def title(answer: Answer) -> str:
    """What is asked."""
    demand = answer["demand"]
    return f"Buy or rent {demand['count']:,} {short_name(demand['accelerator'])} for {horizon(demand['months'])}"


def horizon(months: int) -> str:
    """A length in years, or in months where it is no whole number of them."""
    if months % 12:
        return f"{months} months"
    return f"{months // 12} year{'s' if months > 12 else ''}"


def verdict_sentence(answer: Answer) -> str:
    """The verdict in one sentence, with its range."""
    verdict = answer["verdict"]
    choice = next(option for option in answer["options"] if option["name"] == verdict["choice"])
    cost = f"{_action(choice)} costs least: {_range_text(choice['npv_usd'])} over {horizon(answer['demand']['months'])}, discounted"
    saved = verdict["npv_saved_usd"]
    if saved is None:
        return f"{cost}."
    against = name_words(answer, verdict["against"])
    other = against if verdict["kind"] == "own" else f"buying {against}"
    return f"{cost}, {money(saved['p50'])} less than {other}."


def certainty(answer: Answer) -> tuple[str, str]:
    """How sure the verdict is, as a word and as a sentence."""
    verdict = answer["verdict"]
    best, saved = verdict["probability_best"], verdict["npv_saved_usd"]
    word = "sure" if best >= SURE else "likely" if best >= LIKELY else "more likely than not" if best >= EVEN else "open"
    sentence = f"It is the cheapest option in {best:.0%} of {answer['trials']:,} simulated futures; owning is in"
    sentence += f" {verdict['probability_owning_best']:.0%}."
    if saved is not None and saved["p10"] < 0:
        sentence += f" It may save {money(saved['p90'])} or cost {money(-saved['p10'])} more (80% range)."
    elif saved is not None:
        sentence += f" It saves {money(saved['p10'])} to {money(saved['p90'])} (80% range)."
    return word, sentence


def curve_finding(model: CashModel) -> str:
    """Title of the cash curves: what they show."""
    own, rent = model.sides
    if own is None or rent is None:
        return "Cumulative cost of each option, discounted"
    month = own.option["break_even_month"]
    # The month is that against the cheapest rent, which the verdict compares with.
    if month is None:
        return f"Buying {own.name} is not paid back within {horizon(model.last_month)}"
    return f"Buying {own.name} has cost less from month {month} on" if month else f"Buying {own.name} costs less from the start"


def bands_sentence(model: CashModel) -> str:
    """What the bands of the cash curves are; empty without any."""
    if not model.bands:
        return ""
    named = " and ".join(name_words(model.answer, curve["option"]) for curve in model.bands)
    return f"Discounted cash paid by each month. Lines: at the medians; bands: p10 to p90 of {named}."


def grid_title(answer: Answer) -> str:
    """Title of the grid of utilisations and prices; empty without one."""
    grid = answer["verdict"]["grid"]
    return "" if grid is None else f"What {grid['own']} saves against {name_words(answer, grid['against'])}, million USD"


def grid_finding(answer: Answer) -> str:
    """From which rent on owning pays, at the utilisation that is asked; empty without a grid."""
    grid = answer["verdict"]["grid"]
    if grid is None:
        return ""
    used = min(grid["utilisation"], key=lambda each: abs(each - answer["demand"]["utilisation"]))
    saved, prices = grid["npv_saved_usd"][grid["utilisation"].index(used)], grid["usd_per_accelerator_hour"]
    turns = next((at for at in range(1, len(prices)) if saved[at - 1] <= 0 < saved[at]), None)
    if turns is not None:
        share = -saved[turns - 1] / (saved[turns] - saved[turns - 1])
        usd = prices[turns - 1] + share * (prices[turns] - prices[turns - 1])
        return f"Buying {grid['own']} pays where rent is above {money(usd)} an hour, {used:.0%} used"
    if saved[0] > 0:
        return f"Buying {grid['own']} pays from {money(prices[0])} an hour on, {used:.0%} used"
    return f"Renting costs less than {grid['own']} up to {money(prices[-1])} an hour, {used:.0%} used"


def other_side(answer: Answer) -> str:
    """What costs less where the verdict turns."""
    verdict = answer["verdict"]
    if verdict["against"] is None:
        return "another kind"
    return "renting" if verdict["kind"] == "own" else "owning"


def relative_flips(answer: Answer) -> list[tuple[Answer, float]]:
    """What turns the verdict, with its change as a share of what was taken [1], the least first, tripling at most.

    What was taken as zero has no such share.
    """
    flips = [(flip, flip["to"] / flip["from"] - 1) for flip in answer["verdict"]["flips"] if flip["from"]]
    return sorted((entry for entry in flips if abs(entry[1]) <= MOST_CHANGE), key=lambda entry: abs(entry[1]))


def flips_finding(answer: Answer) -> str:
    """What turns the verdict with the least change; empty where nothing does."""
    flips = relative_flips(answer)
    if not flips:
        return ""
    (flip, change), other = flips[0], other_side(answer).capitalize()
    if flip["variable"] == RENTS:
        return f"{other} costs less once rents {'rise' if change > 0 else 'fall'} by {abs(change):.0%}"
    return f"{other} costs less once {variable_text(flip['variable'])} reaches {value_text(flip['variable'], flip['to'])}"


def variable_text(variable: str) -> str:
    """An input in words."""
    if variable in SHARED_WORDS:
        return SHARED_WORDS[variable]
    _, _, rest = variable.partition(".")
    fleet, _, field = rest.rpartition(".")
    return f"{fleet}: {field_words(field)}"


def value_text(variable: str, value: float) -> str:
    """A value of an input: shares in percent, amounts with three figures."""
    field = variable.rpartition(".")[2]
    if any(word in field for word in SHARES):
        return f"{value:.1%}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def price_text(offer: Answer) -> str:
    """A price's terms: its pricing, and what is paid at the start."""
    upfront = f", {offer['upfront_share']:.0%} upfront" if offer["upfront_share"] else ""
    return f"{choice_words(offer['pricing'])}{upfront}"


def _action(option: Answer) -> str:
    name = option_words(option)
    if option["kind"] == "own":
        return f"Buying {name}"
    if option["kind"] == "mix":
        return f"Reserving {option['count']:,} at {name.removesuffix(PEAKS)} and renting peaks on demand"
    return f"Reserving {option['count']:,} at {name}" if option["kind"] == "reserved" else f"Renting at {name}"


def _range_text(npv: Answer) -> str:
    found = Range(npv["p10"], npv["p50"], npv["p90"])
    return f"{money(found.p50)} (likely {money(found.p10)}–{money(found.p90)})"
