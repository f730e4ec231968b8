"""What a program's request says beside its runs: overheads, reserves, risks, the outcome, and lines that belong to no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.programs.program import (
    GateCriteria,
    MidpointGate,
    OtherLine,
    Outcome,
    ProgramOverhead,
    ProgramPlan,
    Reserves,
    Risk,
    Tier,
)
from service.engine.numerics.money import cents, share_usd, sum_usd
from service.engine.programs.budget import default_point, run_equivalents
from service.engine.training.cost import HOURS_PER_MONTH
from service.presets.programs import development_shares, find_program_default, overhead_shares
from service.usecases.programs.runs import EstimatedRun
from service.usecases.resolution.assumption_log import AssumptionLog

Given = Mapping[str, Any]


def resolve_overheads(request: Given, notes: AssumptionLog) -> tuple[ProgramOverhead, ...]:
    """The overheads stated, a published share where that is asked for."""
    return tuple(_overhead(line, given, notes) for line, given in request.get("overhead", {}).items())


def resolve_reserves(request: Given, notes: AssumptionLog) -> Reserves:
    """What is held back."""
    given = request.get("reserves", {})
    held, confidence = (_choose(given, f"reserves.{name}", notes) for name in ("evaluation_and_debugging", "confidence"))
    stated = notes.take(given, "reserves.contingency", "from_risks", "not stated: of the risks and the spread of the estimate")
    return Reserves(held, confidence, None if stated == "from_risks" else stated)


def resolve_outcome(request: Given, notes: AssumptionLog) -> Outcome | None:
    """What the program is for."""
    given = request.get("outcome")
    if given is None:
        return None
    usual = default_point(given["baseline"], given["target"])
    point = notes.take(given, "outcome.point", usual, "a hundredth where baseline and target are shares, else 1")
    return Outcome(given["metric"], given["baseline"], given["target"], point, given.get("decision"))


def resolve_midpoint_gate(request: Given, notes: AssumptionLog) -> MidpointGate | None:
    """The gate at half of the budget, or where it is stated to be."""
    given = request.get("midpoint_gate")
    if given is None:
        return None
    share = _choose(given, "midpoint_gate.at_spend_share", notes)
    return MidpointGate(share, GateCriteria(**given["continue_if"]), GateCriteria(**given["stop_if"]), given.get("pivot_to"))


def resolve_risks(request: Given) -> tuple[Risk, ...]:
    """The risk log."""
    return tuple(Risk(**given) for given in request.get("risks", ()))


def build_other_lines(
    request: Given, runs: Sequence[EstimatedRun], tiers: Sequence[Tier], months: float, notes: AssumptionLog
) -> tuple[OtherLine, ...]:
    """Storage, network, people, labelling, data and evaluation of the whole program, which lasts so many months."""
    lines = [
        *_storage(request, runs, months, notes),
        *_network(request, notes),
        *_personnel(request, notes),
        *_labelling(request),
        *_purchase(request),
        *_evaluation(request, tiers),
    ]
    return tuple(line for line in lines if line.usd)


def warn_of_low_development_share(plan: ProgramPlan, notes: AssumptionLog) -> None:
    """Where earlier tiers and overheads are a smaller part of the production runs than what any published program spent beside them."""
    final = plan.tiers[-1]
    if final.tier != "production" or not final.cost_usd:
        return
    beside = sum_usd(tier.cost_usd + tier.overhead_usd for tier in plan.tiers) - final.cost_usd
    least = min(development_shares(), key=lambda published: published.share)
    if beside < share_usd(least.share, final.cost_usd):
        notes.warn(
            f"earlier tiers and overheads are {beside / final.cost_usd:.0%} of what the production runs cost; the least that a published"
            f" program spent beside its final runs is {least.share:.0%} ({least.name}: {least.source})"
        )


def _overhead(line: str, given: Given, notes: AssumptionLog) -> ProgramOverhead:
    if "published" in given:
        found = overhead_shares()[line]
        notes.assume(f"overhead.{line}", found.share, f"{found.source}, {found.date}")
        return ProgramOverhead(line, f"{found.source}, {found.date}", share=found.share)
    return ProgramOverhead(line, given.get("basis", "stated"), given.get("share"), given.get("usd"), given.get("tier"))


def _storage(request: Given, runs: Sequence[EstimatedRun], months: float, notes: AssumptionLog) -> list[OtherLine]:
    """Data sets, checkpoints and logs: each from the program's start until its retention is over."""
    given = request.get("storage")
    if given is None:
        return []
    price, retention = (notes.choose(given, f"storage.{name}") for name in ("usd_per_tb_month", "retention_months"))
    held = {
        "dataset": notes.choose(given, "storage.dataset_tb"),
        "checkpoints": _checkpoints_tb(given, runs, notes),
        "logs": notes.choose(given, "storage.logs_tb"),
    }
    lasting = months + retention
    return [
        OtherLine(f"storage: {name}", cents(tb * lasting * price), f"{tb:,.2f} TB x {lasting:.1f} months x {price:g} USD")
        for name, tb in held.items()
    ]


def _checkpoints_tb(given: Given, runs: Sequence[EstimatedRun], notes: AssumptionLog) -> float:
    """What is kept of all runs: a number of checkpoints of each, or as many as its hours are times a cadence."""
    every: float | None = given.get("checkpoint_every_hours")
    if every and "checkpoints_kept" in given:
        raise InvalidRequest("state how many are kept, or checkpoint_every_hours, one of the two", "/storage/checkpoints_kept")
    fixed = 0 if every else notes.choose(given, "storage.checkpoints_kept")
    held = 0.0
    for one in runs:
        kept = max(1.0, one.run.wall_clock_hours.p50 / every) if every else fixed
        held += one.answer.estimate.reliability.checkpoint_tb * kept * run_equivalents(one.run.repetition)
    return held


def _network(request: Given, notes: AssumptionLog) -> list[OtherLine]:
    given = request.get("network")
    if given is None:
        return []
    tb, price = (notes.choose(given, f"network.{name}") for name in ("egress_tb", "usd_per_tb"))
    return [OtherLine("network", cents(tb * price), f"{tb:,.1f} TB x {price:g} USD")]


def _personnel(request: Given, notes: AssumptionLog) -> list[OtherLine]:
    given = request.get("personnel")
    if given is None:
        return []
    price = notes.choose(given, "personnel.usd_per_hour")
    hours = {name: given.get(f"{name}_hours", 0.0) for name in ("evaluation", "analysis", "oncall")}
    return [OtherLine(f"personnel: {name}", cents(time * price), f"{time:,.1f} h x {price:g} USD") for name, time in hours.items()]


def _labelling(request: Given) -> list[OtherLine]:
    given = request.get("labelling")
    if given is None:
        return []
    basis = f"{given['items']:,} items x {given['usd_per_item']:g} USD"
    return [OtherLine("labelling", cents(given["items"] * given["usd_per_item"]), basis, given.get("tier"))]


def _purchase(request: Given) -> list[OtherLine]:
    return [OtherLine("data purchase", _exact(request.get("data", {}).get("purchase_usd")), "stated")]


def _evaluation(request: Given, tiers: Sequence[Tier]) -> list[OtherLine]:
    """Evaluation and safety testing of the result, which the last tier makes."""
    usd = _exact(request.get("outcome", {}).get("evaluation_usd"))
    return [OtherLine("outcome evaluation", usd, "evaluation and safety testing of the outcome, stated", tiers[-1].tier)]


def _exact(usd: Decimal | None) -> Decimal:
    return Decimal("0.00") if usd is None else usd.quantize(Decimal("0.01"))


def _choose(given: Given, path: str, notes: AssumptionLog) -> Any:
    fallback = find_program_default(path.rpartition(".")[2])
    return notes.take(given, path, fallback.value, fallback.source)


def hours_to_months(hours: float) -> float:
    """Hours on the wall clock as months."""
    return hours / HOURS_PER_MONTH
