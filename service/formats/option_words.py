"""Options of buying or renting in words: who sells what, how it is paid, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from service.formats.field_words import choice_words

Answer = Mapping[str, Any]
NOWHERE = ("any", "global")
"""Regions that say of no place that it is there."""
HOURS_PER_MONTH = 730.0
PEAKS = " with peaks on demand"
STATED = {"minimum_accelerators": "at least {} accelerators", "committed_usd": "{} USD committed"}
"""Terms that tell prices of one thing apart, as the name of an option has them."""


def option_words(option: Answer) -> str:
    """An option of an answer: `nebius on demand (gpu-h100-sxm_8gpu in eu-north1)`, or the name of a fleet or a quote."""
    return rented_words(option["name"], option["offer"]) if option["offer"] else str(option["name"])


def name_words(answer: Answer, name: str) -> str:
    """The option of an answer that has a name, in words."""
    return next((option_words(option) for option in answer["options"] if option["name"] == name), name)


def rented_words(name: str, offer: Answer) -> str:
    """An option that is rented: its seller, kind of pricing, instance type and region; a quote as its caller names it."""
    if offer["instance_type"] is None:
        return name
    alone = name.removesuffix(PEAKS)
    listed = " ".join((offer["provider"], offer["region"], offer["instance_type"], offer["pricing"]))
    place = "" if offer["region"] in NOWHERE else f" in {offer['region']}"
    what = ", ".join((f"{offer['instance_type']}{place}", *_terms(alone.removeprefix(listed))))
    return f"{offer['provider']} {_paid(offer)} ({what}){name.removeprefix(alone)}"


def _paid(offer: Answer) -> str:
    """How it is paid: the length of a term that the kind of pricing does not say, and what is paid at its start."""
    months = f" for {offer['term_hours'] / HOURS_PER_MONTH:.0f} months" if offer["pricing"] == "reserved" else ""
    upfront = f", {offer['upfront_share']:.0%} upfront" if offer["upfront_share"] else ""
    return f"{choice_words(offer['pricing'])}{months}{upfront}"


def _terms(rest: str) -> Iterator[str]:
    """What a name has after its kind of pricing: another market than list prices, and terms that tell prices apart."""
    for part in rest.replace(" ", ",").split(","):
        name, stated, value = part.partition("=")
        if name in STATED:
            yield STATED[name].format(value)
        elif name and not stated:
            yield name.replace("_", " ")
