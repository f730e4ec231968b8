"""Quality of a report's runs: evaluation metrics, the way back from a drop, and guardrails, as tables and sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.documents.text import number

Report = Mapping[str, Any]
NOISES = {"stated": "stated", "history": "from its history", "typical": "typical"}
MAX_LISTED_METRICS = 50
"""Metrics of the table: those that regressed first."""
MAX_CHARTS = 4
"""Metrics that are drawn."""


def quality_section(report: Report) -> DocumentSection:
    """The target, metrics and guardrails; empty without an evaluation, a target and a guardrail."""
    status = report["status"]
    listed = (*_target(report["target"]), *_regressions(status))
    return DocumentSection("quality", "Quality", listed, (_metrics(status), _guardrails(status)))


def _target(target: Report | None) -> Iterable[str]:
    """How far the outcome's metric is, as a sentence."""
    if target is not None:
        now = "not evaluated yet" if target["last"] is None else f"now {target['last']:.4g}"
        yield f"{target['metric']} is to go from {target['baseline']:g} to {target['target']:g}: {now}."


def shown_metrics(status: Report) -> list[Report]:
    """Metrics of all runs, those that regressed first."""
    found: list[Report] = sorted(status["quality"], key=lambda metric: metric["state"] != "regressed")
    return found


def drawn_metrics(status: Report) -> list[str]:
    """Names of the metrics that are drawn, those that regressed first."""
    return list(dict.fromkeys(metric["metric"] for metric in shown_metrics(status)))[:MAX_CHARTS]


def _regressions(status: Report) -> Iterable[str]:
    for metric in status["quality"]:
        if metric["state"] == "regressed":
            fallen = f"{metric['run']}: {metric['metric']} has dropped from {metric['level']:.4g} to {metric['last']:.4g}"
            yield f"{fallen} since {_minute(metric['since'])} (confidence {metric['confidence']:.1%}).{_back(metric)}"


def _back(metric: Report) -> str:
    """What going back costs and saves, as a sentence."""
    good, back = metric["last_good"], metric["going_back"]
    if good is None or back is None:
        return ""
    where = f"the checkpoint of {_minute(good['checkpoint_at'])}" if good["checkpoint_at"] else f"the state of {_minute(good['at'])}"
    step = "" if good["step"] is None else f" (step {good['step']:,} was good)"
    cost = "" if back["usd"] is None else f" and {back['usd']:,.0f} USD"
    saved = back["saved_usd"]
    word = "" if saved is None else f"; training on to the same level costs {abs(saved):,.0f} USD {'more' if saved >= 0 else 'less'}"
    return f" Going back to {where}{step} redoes {number(back['hours'])} hours{cost}{word}."


def _metrics(status: Report) -> DocumentTable:
    rows = [
        (
            metric["run"], metric["metric"], f"{metric['last']:.4g}", f"{metric['best']:.4g}", f"{metric['level']:.4g}",
            f"{metric['standard_error']:.2g}, {NOISES[metric['noise']]}", metric["state"],
            "" if metric["change"] is None else f"{metric['change']:+.3g}", metric["since"][:10],
        )
        for metric in shown_metrics(status)[:MAX_LISTED_METRICS]
    ]  # fmt: skip
    head = ("run", "metric", "last", "best", "level before", "standard error", "state", "change", "since")
    return DocumentTable(head, rows, frozenset({2, 3, 4, 5, 7}), frozenset({8}))


def _guardrails(status: Report) -> DocumentTable:
    rows = [
        (
            each["metric"], f"{each['floor']:.4g}", "not evaluated" if each["last"] is None else f"{each['last']:.4g}", each["run"] or "",
            "" if each["breached"] is None else "broken" if each["breached"] else "kept",
        )
        for each in status["guardrails"]
    ]  # fmt: skip
    return DocumentTable(("guardrail", "floor", "last", "run", "state"), rows, frozenset({1, 2}))


def _minute(moment: str) -> str:
    return f"{moment[:10]} {moment[11:16]}"
