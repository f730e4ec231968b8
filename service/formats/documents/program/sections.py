"""A plan as sections of text and tables: what the readable documents (Markdown, HTML) have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from service.formats.documents.text import days, number, share, span, text, usd, usd_span

Answer = Mapping[str, Any]
Rows = Sequence[tuple[str, ...]]
GAINS = ("gain_per_usd", "loss_avoided_per_usd", "allocated_usd")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; `numeric` are the columns aligned by their last digit, `dated` those of days. `total`: the last row is a sum."""

    head: tuple[str, ...]
    rows: Rows
    numeric: frozenset[int] = frozenset()
    dated: frozenset[int] = frozenset()
    total: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """`name` is where a document may put a picture beside it; `listed` are sentences, one an item."""

    name: str
    title: str
    listed: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def sections(answer: Answer) -> tuple[Section, ...]:
    """Everything a reader decides by, in the order of reading. What the plan does not have is left out."""
    found = (
        Section("summary", "Summary", tables=(Table(("", ""), tuple(_summary(answer))),)),
        Section("warnings", "Warnings", listed=tuple(answer["warnings"])),
        Section("budget", "Budget", tables=(_budget(answer),)),
        Section("tiers", "Tiers and runs", tables=(_tiers(answer), _runs(answer))),
        Section("failures", "Failure budget", tables=_tables(_failures(answer))),
        Section("gates", "Gates", listed=_midpoint(answer["midpoint_gate"]), tables=_tables(_gates(answer))),
        Section("risks", "Risks", tables=_tables(_risks(answer))),
        _schedule(answer["schedule"], answer["reporting"]),
        Section("burn_plan", "Burn plan", tables=_tables(_burn_plan(answer))),
        Section("tokens", "Tokens", tables=_tables(_tokens(answer["tokens"] or {}))),
        Section("spend_choices", "Spend choices", tables=_tables(_choices(answer["spend_choices"] or {"choices": ()}))),
        Section("assumptions", "Assumptions", tables=_tables(_assumptions(answer))),
    )
    return tuple(section for section in found if section.listed or section.tables)


def footer(answer: Answer) -> str:
    """Where the figures come from, for who wants to have them again."""
    return f"Prices: {answer['price_snapshot']}. Engine: {answer['engine_version']}. Ranges are p50 (p10 to p90)."


def _tables(table: Table) -> tuple[Table, ...]:
    return (table,) if table.rows else ()


def _summary(answer: Answer) -> Iterable[tuple[str, str]]:
    envelope = answer["envelope"]
    yield "Budget, every gate passed, USD", usd_span(answer["total_usd"])
    yield "Expected over the gates, USD", usd(answer["expected_usd"])
    for part in ("exploration", "committed", "reserve"):
        yield f"of the budget: {part}, USD", usd(envelope[f"{part}_usd"])
    if answer["outcome"]:
        yield from _outcome(answer["outcome"])
    yield "Every gate passed, probability", share(answer["completion_probability"])
    yield from _finish(answer["schedule"])


def _outcome(outcome: Answer) -> Iterable[tuple[str, str]]:
    yield "Outcome", f"{outcome['metric']} from {outcome['baseline']:g} to {outcome['target']:g}"
    yield "Decision it serves", outcome["decision"] or "not stated"
    yield "Price of a point, USD", usd(outcome["usd_per_point"])
    yield "Compute of a point, FLOPs", number(outcome["flops_per_point"])


def _finish(schedule: Answer) -> Iterable[tuple[str, str]]:
    yield "Start", schedule["start"]
    yield "Finish", days(schedule["finish"])
    if schedule["deadline"]:
        yield f"In time for the deadline {schedule['deadline']}, probability", share(schedule["deadline_probability"])
    if schedule["latest_start"]:
        yield "Latest start, for the probability wanted", schedule["latest_start"]["start"] or "no start is early enough"


def _budget(answer: Answer) -> Table:
    whole = answer["total_usd"]["p50"]
    rows = [(line["line"], usd(line["usd"]), share(line["usd"] / whole if whole else None), line["basis"]) for line in answer["lines"]]
    total = ("total", usd(whole), share(1.0), "p50: the sum of the lines")
    return Table(("line", "USD", "of budget", "basis"), (*rows, total), frozenset({1, 2}), total=True)


def _tiers(answer: Answer) -> Table:
    rows = [
        (tier["tier"], usd(tier["cost_usd"]), span(tier["accelerator_hours"]), span(tier["wall_clock_hours"])) for tier in answer["tiers"]
    ]
    return Table(("tier", "runs, USD", "accelerator-hours", "wall-clock hours"), rows, frozenset({1, 2, 3}))


def _runs(answer: Answer) -> Table:
    rows = [_run(tier["tier"], run) for tier in answer["tiers"] for run in tier["runs"]]
    head = ("tier", "run", "whole runs", "accelerator-hours of one", "price", "of one, USD", "all, USD")
    return Table(head, rows, frozenset({2, 3, 5, 6}))


def _run(tier: str, run: Answer) -> tuple[str, ...]:
    estimate = run["estimate"]
    one, hours = estimate["cost"]["total_usd"], estimate["time"]["accelerator_hours"]
    return (
        tier,
        run["name"],
        number(run["run_equivalents"]),
        span(hours),
        price_words(estimate["price"]),
        usd_span(one),
        usd(run["cost_usd"]),
    )


def price_words(price: Answer) -> str:
    """An hour's price, and whose it is and of which day; `stale` where it is said to be."""
    of = ", ".join(str(price[name]) for name in ("provider", "region", "pricing") if price.get(name))
    seen = f" of {price['observed_at'][:10]}" if price.get("observed_at") else ""
    return f"{price['usd_per_accelerator_hour']:g} USD/h: {of or price['source']}{seen}" + (", stale" if price.get("stale") else "")


def _failures(answer: Answer) -> Table:
    blocks = [(tier["tier"], tier["failures"]) for tier in answer["tiers"]]
    names = ("expected_interruptions", "lost_accelerator_hours", "checkpoint_interval_minutes", "rollback_allowance_accelerator_hours")
    rows = [
        (tier, share(block["goodput"]), *(number(block[name]) for name in names), usd(block["rollback_allowance_usd"]))
        for tier, block in blocks
    ]
    lost = ("interruptions", "lost accelerator-hours", "checkpoint every, minutes")
    head = ("tier", "goodput", *lost, "rollback, accelerator-hours", "rollback, USD")
    return Table(head, rows, frozenset({1, 2, 3, 4, 5, 6}))


def _gates(answer: Answer) -> Table:
    gates = [(tier["tier"], tier["gate"]) for tier in answer["tiers"] if tier["gate"]]
    rows = [(tier, *_gate(gate)) for tier, gate in gates]
    head = ("after", "decides", "evidence", "passed", "cost to decide, USD", "earliest", "date")
    return Table(head, rows, frozenset({3, 4}), frozenset({5, 6}))


def _gate(gate: Answer) -> tuple[str, ...]:
    cost, passed = usd(gate["cost_to_decide_usd"]), share(gate["pass_probability"])
    return gate["decides"], gate["evidence"] or "", passed, cost, gate["earliest"], days(gate["date"])


def _midpoint(gate: Answer | None) -> tuple[str, ...]:
    """The gate at half the budget, as sentences."""
    if gate is None:
        return ()
    due = f"When {gate['at_spend_share']:.0%} of the budget is spent, {usd(gate['at_usd'])} USD, in the week of {gate['date']}"
    said = (f"{due}: continue if {_criteria(gate['continue_if'])}.", f"Stop if {_criteria(gate['stop_if'])}.")
    return (*said, f"Else pivot to: {gate['pivot_to']}.") if gate["pivot_to"] else said


def _criteria(criteria: Answer) -> str:
    words = {"metric_at_least": "the metric is at least", "cpi_at_least": "CPI is at least", "cpi_below": "CPI is below"}
    held = [f"{said} {criteria[name]:g}" for name, said in words.items() if criteria[name] is not None]
    return " and ".join(held) or "nothing was decided"


def _risks(answer: Answer) -> Table:
    rows = [(risk["name"], risk["tier"] or "all", *_loss(risk)) for risk in answer["risks"]]
    return Table(("risk", "tier", "probability", "loss, USD", "expected loss, USD"), rows, frozenset({2, 3, 4}))


def _loss(risk: Answer) -> tuple[str, ...]:
    return share(risk["probability"]), usd(risk["loss_usd"]), usd(risk["expected_loss_usd"])


def _schedule(schedule: Answer, reporting: Answer) -> Section:
    path = "Critical path: " + ", then ".join(schedule["critical_path"]) + "."
    reports = f"Reports: every {reporting['every_days']} days, {reporting['reports']} of them, the first on {reporting['first']}."
    tables = (_calendar(schedule), *_tables(_buy_back(schedule)))
    return Section("schedule", "Schedule", (path, reports), tables)


def _calendar(schedule: Answer) -> Table:
    rows = [
        (
            entry["what"],
            entry["kind"],
            entry["start"],
            days(entry["finish_range"]),
            number(entry["float_hours"]),
            share(entry["criticality"]),
        )
        for entry in schedule["calendar"]
    ]
    head = ("what", "kind", "start", "finish", "float, hours", "critical, probability")
    return Table(head, rows, frozenset({4, 5}), frozenset({2, 3}))


def _buy_back(schedule: Answer) -> Table:
    """What buys the deadline back, and for how much."""
    rows = [
        (
            found["change"],
            share(found["probability"]),
            usd(found["price_usd"]),
            _price(found["usd_per_point"]),
            _yes(found["reaches_target"]),
        )
        for found in schedule["deadline_options"]
    ]
    head = ("to be in time", "probability", "price, USD", "USD a point", "enough")
    return Table(head, rows, frozenset({1, 2, 3}))


def _price(amount: float | None) -> str:
    return "" if amount is None else usd(amount)


def _yes(said: bool) -> str:
    return "yes" if said else "no"


def _burn_plan(answer: Answer) -> Table:
    weeks = answer["burn_plan"]
    spent = accumulate(week["usd"] for week in weeks)
    rows = [(week["week"], usd(week["usd"]), usd(by_then), *_used(week)) for week, by_then in zip(weeks, spent, strict=True)]
    head = ("week", "USD", "USD by then", "accelerator-hours", "tokens", "checkpoints")
    return Table(head, rows, frozenset({1, 2, 3, 4, 5}))


def _used(week: Answer) -> tuple[str, ...]:
    return f"{week['accelerator_hours']:,.2f}", number(week["tokens"]), f"{week['checkpoints']:,}"


def _tokens(tokens: Answer) -> Table:
    """From raw to what the tokens are worth, and the first target."""
    steps = ("raw", "filtered", "deduplicated", "trained", "effective", "epochs")
    flow, suggested = tokens.get("flow") or {}, tokens.get("suggested")
    rows = [(step, number(flow[step]), "") for step in steps if flow]
    rows += [(f"{part['name']}, effective", number(part["effective"]), f"{part['epochs']:.3g} epochs") for part in flow.get("parts", ())]
    rows += [("suggested first target", span(suggested), suggested["basis"])] if suggested else []
    return Table(("tokens", "count", "basis"), rows, frozenset({1}))


def _choices(spend: Answer) -> Table:
    rows = [(found["choice"], *(_little(found[name]) for name in GAINS), found["unit"], found["basis"]) for found in spend["choices"]]
    head = ("spend on", "gain a USD", "loss avoided a USD", "of the budget, USD", "gain in", "basis")
    return Table(head, rows, frozenset({1, 2, 3}))


def _little(amount: float | None) -> str:
    return "" if amount is None else f"{amount:.3g}" if abs(amount) < 100 else usd(amount)


def _assumptions(answer: Answer) -> Table:
    rows = [(entry["field"], text(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    return Table(("field", "value", "source"), rows)
