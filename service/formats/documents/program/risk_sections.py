"""The risk register of a plan as text and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.formats.documents.sections import DocumentTable
from service.formats.documents.text import number, share, usd

Answer = Mapping[str, Any]


def risk_sentences(answer: Answer) -> tuple[str, ...]:
    """What all risks cost together, and the budget with and without mitigations."""
    register = answer["risk_register"]
    if register is None:
        return ()
    p80, p90 = (usd(register[f"loss_{percentile}_usd"]) for percentile in ("p80", "p90"))
    losses = (
        f"All risks together are expected to cost {usd(register['expected_loss_usd'])} USD:"
        f" no more than {p80} USD with a probability of 80 %, {p90} USD with 90 %. None happens with {share(register['none_probability'])}."
    )
    if not any(risk["effect"] for risk in answer["risks"]):
        return (losses,)
    budgets = (
        f"The budget is {usd(register['budget_usd'])} USD with the mitigations that are taken,"
        f" {usd(register['budget_without_mitigations_usd'])} USD with none,"
        f" {usd(register['budget_with_paying_mitigations_usd'])} USD with every one that pays."
    )
    return losses, budgets


def risk_table(answer: Answer) -> DocumentTable:
    """The risks as they are planned with; who watches them and by what sign where anything is stated of it."""
    watched = any(risk["owner"] or risk["trigger"] or risk["state"] != "open" for risk in answer["risks"])
    rows = [(*_planned(risk), *(_watched(risk) if watched else ())) for risk in answer["risks"]]
    head = ("risk", "tier", "probability", "loss, USD", "expected loss, USD")
    return DocumentTable((*head, *(("state", "owner", "trigger") if watched else ())), rows, frozenset({2, 3, 4}))


def mitigation_table(answer: Answer) -> DocumentTable:
    """What is done against the risks, and whether it pays."""
    rows = [_mitigation(risk) for risk in answer["risks"] if risk["effect"]]
    head = ("mitigation of", "taken", "costs, USD", "avoids, USD", "avoids, days", "net, USD", "why")
    return DocumentTable(head, rows, frozenset({2, 3, 4, 5}))


def _planned(risk: Answer) -> tuple[str, ...]:
    figures = share(risk["planned_probability"]), usd(risk["loss_usd"]), usd(risk["expected_loss_usd"])
    return (risk["name"], risk["tier"] or "all", *figures)


def _watched(risk: Answer) -> tuple[str, ...]:
    return risk["state"], risk["owner"] or "", risk["trigger"] or ""


def _mitigation(risk: Answer) -> tuple[str, ...]:
    effect, taken = risk["effect"], "yes" if risk["mitigation"]["taken"] else "no"
    amounts = (usd(risk["mitigation"]["usd"]), usd(effect["loss_avoided_usd"]), number(effect["days_avoided"]), usd(effect["net_usd"]))
    return (risk["name"], taken, *amounts, effect["statement"])
