"""A plan as sections of text and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from service.formats.documents.program.branch_sections import branch_table, decision_sentences, gate_decisions
from service.formats.documents.program.endings import ending_table
from service.formats.documents.program.evaluation_sections import evaluation_section
from service.formats.documents.program.risk_sections import mitigation_table, risk_sentences, risk_table
from service.formats.documents.program.time_sections import months_section, waiting_section
from service.formats.documents.sections import DocumentSection, DocumentTable, filled_sections
from service.formats.documents.text import days, number, share, span, text, usd, usd_span

Answer = Mapping[str, Any]
GAINS = ("gain_per_usd", "loss_avoided_per_usd", "usd_returned_per_usd", "allocated_usd")


def sections(answer: Answer) -> tuple[DocumentSection, ...]:
    """The plan in the order of reading; empty sections are left out."""
    return filled_sections(
        DocumentSection("summary", "Summary", tables=(DocumentTable(("", ""), tuple(_summary(answer))),)),
        DocumentSection("warnings", "Warnings", listed=tuple(answer["warnings"])),
        DocumentSection("budget", "Budget", tables=(_budget(answer),)),
        DocumentSection("tiers", "Tiers and runs", tables=(_tiers(answer), _runs(answer))),
        DocumentSection("failures", "Failure budget", tables=(_failures(answer),)),
        DocumentSection(
            "gates",
            "Gates",
            (*_midpoint(answer["midpoint_gate"]), *decision_sentences(answer)),
            (_gates(answer), ending_table(answer["endings"]), branch_table(list(gate_decisions(answer))), _information(answer)),
        ),
        evaluation_section(answer["evaluation"]),
        DocumentSection("risks", "Risks", risk_sentences(answer), (risk_table(answer), mitigation_table(answer))),
        _schedule(answer["schedule"], answer["reporting"]),
        waiting_section(answer),
        months_section(answer),
        DocumentSection("burn_plan", "Burn plan", tables=(_burn_plan(answer),)),
        DocumentSection("tokens", "Tokens", tables=(_tokens(answer["tokens"] or {}),)),
        _spend_choices(answer["spend_choices"] or {"choices": (), "missing": ()}),
        DocumentSection("assumptions", "Assumptions", tables=(_assumptions(answer),)),
    )


def footer(answer: Answer) -> str:
    """Prices and engine that the figures were made with."""
    return f"Prices: {answer['price_snapshot']}. Engine: {answer['engine_version']}. Ranges are p50 (p10 to p90)."


def _summary(answer: Answer) -> Iterable[tuple[str, str]]:
    envelope = answer["envelope"]
    yield "Budget, every gate passed, contingency included, USD", usd_span(answer["total_usd"])
    if answer.get("without_contingency_usd"):
        yield "What it costs, contingency left out, USD", usd_span(answer["without_contingency_usd"])
    yield "Expected over the gates, USD", usd(answer["expected_usd"])
    for part in ("exploration", "committed", "reserve"):
        yield f"of the budget: {part}, USD", usd(envelope[f"{part}_usd"])
    if answer["outcome"]:
        yield from _outcome(answer["outcome"])
    if answer.get("serving"):
        yield from _serving(answer["serving"])
    yield "Every gate passed, probability", share(answer["completion_probability"])
    yield from _finish(answer["schedule"])


def _serving(serving: Answer) -> Iterable[tuple[str, str]]:
    months = f"{serving['months']:g} months, {number(serving['tokens'])} tokens"
    yield f"Not in the budget: serving {serving['run']}, {months}, USD", usd_span(serving["usd"]) if serving["usd"] else "not known"
    if serving["with_budget_usd"]:
        yield "Budget and serving together, USD", usd_span(serving["with_budget_usd"])


def _outcome(outcome: Answer) -> Iterable[tuple[str, str]]:
    yield "Outcome", f"{outcome['metric']} from {outcome['baseline']:g} to {outcome['target']:g}"
    yield "Decision it serves", outcome["decision"] or "not stated"
    if outcome["points"]:
        yield "Price of a point, USD", usd(outcome["usd_per_point"])
        yield "Compute of a point, FLOPs", number(outcome["flops_per_point"])
    for value in outcome["values"]:
        yield f"Worth: {value['of']}, USD", f"{usd(value['usd'])}: {value['basis']}"
    if outcome["expected_net_usd"] is not None:
        yield "Worth less cost, expected over the gates, USD", usd(outcome["expected_net_usd"])
    if outcome["guardrails"]:
        yield "Guardrails", "; ".join(f"{each['metric']} not below {each['floor']:g}" for each in outcome["guardrails"])


def _finish(schedule: Answer) -> Iterable[tuple[str, str]]:
    yield "Start", schedule["start"]
    yield "Finish", days(schedule["finish"])
    if schedule["deadline"]:
        yield f"In time for the deadline {schedule['deadline']}, probability", share(schedule["deadline_probability"])
    if schedule["latest_start"]:
        yield "Latest start, for the probability wanted", schedule["latest_start"]["start"] or "no start is early enough"


def _budget(answer: Answer) -> DocumentTable:
    whole = answer["total_usd"]["p50"]
    rows = [(line["line"], usd(line["usd"]), share(line["usd"] / whole if whole else None), line["basis"]) for line in answer["lines"]]
    total = ("total", usd(whole), share(1.0), "p50: the sum of the lines")
    return DocumentTable(("line", "USD", "of budget", "basis"), (*rows, total), frozenset({1, 2}), total=True)


def _tiers(answer: Answer) -> DocumentTable:
    rows = [
        (tier["tier"], usd(tier["cost_usd"]), span(tier["accelerator_hours"]), span(tier["wall_clock_hours"])) for tier in answer["tiers"]
    ]
    return DocumentTable(("tier", "runs, USD", "accelerator-hours", "wall-clock hours"), rows, frozenset({1, 2, 3}))


def _runs(answer: Answer) -> DocumentTable:
    rows = [_run(tier["tier"], run) for tier in answer["tiers"] for run in tier["runs"]]
    head = ("tier", "run", "whole runs", "accelerator-hours of one", "price", "of one, USD", "all, USD")
    return DocumentTable(head, rows, frozenset({2, 3, 5, 6}))


def _run(tier: str, run: Answer) -> tuple[str, ...]:
    estimate = run["estimate"]
    one, hours = estimate["cost"]["total_usd"], estimate["time"]["accelerator_hours"]
    return (
        tier,
        run["name"],
        number(run["run_equivalents"]),
        span(hours),
        price_text(estimate["price"]),
        usd_span(one),
        usd(run["cost_usd"]),
    )


def price_text(price: Answer) -> str:
    """Price of an accelerator-hour with provider and day; `stale` where it is."""
    of = ", ".join(str(price[name]) for name in ("provider", "region", "pricing") if price.get(name))
    seen = f" of {price['observed_at'][:10]}" if price.get("observed_at") else ""
    return f"{price['usd_per_accelerator_hour']:g} USD/h: {of or price['source']}{seen}" + (", stale" if price.get("stale") else "")


def _failures(answer: Answer) -> DocumentTable:
    blocks = [(tier["tier"], tier["failures"]) for tier in answer["tiers"]]
    names = ("expected_interruptions", "lost_accelerator_hours", "checkpoint_interval_minutes", "rollback_allowance_accelerator_hours")
    rows = [
        (tier, share(block["goodput"]), *(number(block[name]) for name in names), usd(block["rollback_allowance_usd"]))
        for tier, block in blocks
    ]
    lost = ("interruptions", "lost accelerator-hours", "checkpoint every, minutes")
    head = ("tier", "goodput", *lost, "rollback, accelerator-hours", "rollback, USD")
    return DocumentTable(head, rows, frozenset({1, 2, 3, 4, 5, 6}))


def _gates(answer: Answer) -> DocumentTable:
    gates = [(tier["tier"], tier["gate"]) for tier in answer["tiers"] if tier["gate"]]
    rows = [(tier, *_gate(gate)) for tier, gate in gates]
    head = ("after", "decides", "evidence", "passed", "cost to decide, USD", "earliest", "date")
    return DocumentTable(head, rows, frozenset({3, 4}), frozenset({5, 6}))


def _gate(gate: Answer) -> tuple[str, ...]:
    cost, passed = usd(gate["cost_to_decide_usd"]), share(gate["pass_probability"])
    return gate["decides"], gate["evidence"] or "", passed, cost, gate["earliest"], days(gate["date"])


def _information(answer: Answer) -> DocumentTable:
    """What deciding by each gate is worth, where the outcome has a worth."""
    found = [(tier["tier"], tier["gate"]["information"]) for tier in answer["tiers"] if tier["gate"] and tier["gate"]["information"]]
    rows = [
        (tier, *(usd(one[name]) for name in ("decide_usd", "wrong_go_usd", "wrong_stop_usd", "value_usd")), one["statement"])
        for tier, one in found
        if one["value_usd"] is not None
    ]
    head = ("deciding after", "costs, USD", "going on wrongly, USD", "stopping wrongly, USD", "is worth, USD", "why")
    return DocumentTable(head, rows, frozenset({1, 2, 3, 4}))


def _midpoint(gate: Answer | None) -> tuple[str, ...]:
    """The midpoint gate as sentences."""
    if gate is None:
        return ()
    due = f"When {gate['at_spend_share']:.0%} of the budget is spent, {usd(gate['at_usd'])} USD, in the week of {gate['date']}"
    sentences = (f"{due}: continue if {_criteria(gate['continue_if'])}.", f"Stop if {_criteria(gate['stop_if'])}.")
    return (*sentences, f"Else pivot to: {gate['pivot_to']}.") if gate["pivot_to"] else sentences


def _criteria(criteria: Answer) -> str:
    words = {"metric_at_least": "the metric is at least", "cpi_at_least": "CPI is at least", "cpi_below": "CPI is below"}
    bounds = [f"{text} {criteria[name]:g}" for name, text in words.items() if criteria[name] is not None]
    return " and ".join(bounds) or "nothing was decided"


def _schedule(schedule: Answer, reporting: Answer) -> DocumentSection:
    path = "Critical path: " + ", then ".join(schedule["critical_path"]) + "."
    reports = f"Reports: every {reporting['every_days']} days, {reporting['reports']} of them, the first on {reporting['first']}."
    tables = (_calendar(schedule), _deadline_options(schedule))
    return DocumentSection("schedule", "Schedule", (path, reports), tables)


def _calendar(schedule: Answer) -> DocumentTable:
    rows = [
        (
            entry["what"],
            entry["kind"].replace("_", "-"),
            entry["start"],
            days(entry["finish_range"]),
            number(entry["float_hours"]),
            share(entry["criticality"]),
        )
        for entry in schedule["calendar"]
    ]
    head = ("what", "kind", "start", "finish", "float, hours", "critical, probability")
    return DocumentTable(head, rows, frozenset({4, 5}), frozenset({2, 3}))


def _deadline_options(schedule: Answer) -> DocumentTable:
    """Deadline options with their prices."""
    rows = [
        (
            option["change"],
            share(option["probability"]),
            usd(option["price_usd"]),
            _price(option["usd_per_point"]),
            _yes_or_no(option["reaches_target"]),
        )
        for option in schedule["deadline_options"]
    ]
    head = ("to be in time", "probability", "price, USD", "USD a point", "enough")
    return DocumentTable(head, rows, frozenset({1, 2, 3}))


def _price(amount: float | None) -> str:
    return "" if amount is None else usd(amount)


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _burn_plan(answer: Answer) -> DocumentTable:
    weeks = answer["burn_plan"]
    spent = accumulate(week["usd"] for week in weeks)
    rows = [(week["week"], usd(week["usd"]), usd(by_then), *_used(week)) for week, by_then in zip(weeks, spent, strict=True)]
    head = ("week", "USD", "USD by then", "accelerator-hours", "tokens", "checkpoints")
    return DocumentTable(head, rows, frozenset({1, 2, 3, 4, 5}))


def _used(week: Answer) -> tuple[str, ...]:
    return f"{week['accelerator_hours']:,.2f}", number(week["tokens"]), f"{week['checkpoints']:,}"


def _tokens(tokens: Answer) -> DocumentTable:
    """Tokens from raw to effective, and the first target."""
    steps = ("raw", "filtered", "deduplicated", "trained", "effective", "epochs")
    flow, suggested = tokens.get("flow") or {}, tokens.get("suggested")
    rows = [(step, number(flow[step]), "") for step in steps if flow]
    rows += [(f"{part['name']}, effective", number(part["effective"]), f"{part['epochs']:.3g} epochs") for part in flow.get("parts", ())]
    rows += [("suggested first target", span(suggested), suggested["basis"])] if suggested else []
    return DocumentTable(("tokens", "count", "basis"), rows, frozenset({1}))


def _spend_choices(spend: Answer) -> DocumentSection:
    """The choices in the order in which they are funded, and what a comparison in dollars lacks."""
    rows = [
        (choice["choice"], *(_small_number(choice[name]) for name in GAINS), choice["unit"], choice["basis"]) for choice in spend["choices"]
    ]
    head = ("spend on", "gain a USD", "loss avoided a USD", "returns a USD, USD", "of the budget, USD", "gain in", "basis")
    listed = tuple(f"{text[0].upper()}{text[1:]}." for text in spend["missing"])
    return DocumentSection("spend_choices", "Spend choices", listed, (DocumentTable(head, rows, frozenset({1, 2, 3, 4})),))


def _small_number(amount: float | None) -> str:
    return "" if amount is None else f"{amount:.3g}" if abs(amount) < 100 else usd(amount)


def _assumptions(answer: Answer) -> DocumentTable:
    rows = [(entry["field"], text(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    return DocumentTable(("field", "value", "source"), rows)
