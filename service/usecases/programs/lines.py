"""The parts of a program's request around its runs: overheads, reserves, risks, outcome, and costs that belong to no run."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from service.domain.errors import InvalidRequest
from service.domain.programs.outcome import Guardrail, Outcome, OutcomeMetric, ServingSaving, ValuePoint
from service.domain.programs.plan import ProgramPlan
from service.domain.programs.program import GateCriteria, MidpointGate, OtherLine, Program, ProgramOverhead, Reserves, Tier
from service.engine.numerics.money import cents, share_usd, sum_usd
from service.engine.programs.budget import default_point, run_equivalents
from service.engine.programs.value import outcome_value_usd
from service.presets.programs import development_shares, find_program_default, overhead_shares
from service.usecases.evaluation.plan import evaluation_lines
from service.usecases.programs.defaults import take_or_default
from service.usecases.programs.estimates import Request
from service.usecases.programs.runs import EstimatedRun
from service.usecases.resolution.assumption_log import AssumptionLog


def resolve_overheads(request: Request, notes: AssumptionLog) -> tuple[ProgramOverhead, ...]:
    """The stated overheads, with a published share where one is requested."""
    section = request.get("overhead", {})
    if any("blocking" not in entry for entry in section.values()):
        blocking = find_program_default("blocking")
        notes.assume("overhead.blocking", blocking.value, blocking.source)
    return tuple(_overhead(line, entry, notes) for line, entry in section.items())


def resolve_reserves(request: Request, notes: AssumptionLog) -> Reserves:
    """The reserves, stated or by default."""
    section = request.get("reserves", {})
    share, confidence = (take_or_default(section, f"reserves.{name}", notes) for name in ("evaluation_and_debugging", "confidence"))
    contingency = notes.take(
        section, "reserves.contingency", "from_risks", "not stated: computed from the risks and the spread of the estimate"
    )
    return Reserves(share, confidence, None if contingency == "from_risks" else contingency)


def resolve_outcome(request: Request, notes: AssumptionLog) -> Outcome | None:
    """The metric that the program improves; None where it is not stated."""
    section = request.get("outcome")
    if section is None:
        return None
    outcome = Outcome(
        metric=section["metric"],
        baseline=section["baseline"],
        target=section["target"],
        point=_point(section, "outcome.point", notes),
        decision=section.get("decision"),
        value_usd_per_point=section.get("value_usd_per_point"),
        value_curve=tuple(ValuePoint(**point) for point in section.get("value_curve", ())),
        metrics=tuple(
            OutcomeMetric(**metric | {"point": _point(metric, f"outcome.metrics[{index}].point", notes)})
            for index, metric in enumerate(section.get("metrics", ()))
        ),
        saving=ServingSaving(**section["saving"]) if "saving" in section else None,
        delay_usd_per_day=section.get("delay_usd_per_day"),
        guardrails=tuple(Guardrail(**guardrail) for guardrail in section.get("guardrails", ())),
    )
    if outcome_value_usd(outcome) is not None:
        _note_gate_accuracy(request, notes)
    return outcome


def resolve_midpoint_gate(request: Request, notes: AssumptionLog) -> MidpointGate | None:
    """The midpoint gate; None where it is not stated."""
    section = request.get("midpoint_gate")
    if section is None:
        return None
    share = take_or_default(section, "midpoint_gate.at_spend_share", notes)
    go, stop = (GateCriteria(**section[name]) for name in ("continue_if", "stop_if"))
    pivot_to = section.get("pivot_to", section.get("pivot", {}).get("name"))
    return MidpointGate(share, go, stop, pivot_to, _exact_usd(section.get("committed_usd")))


def build_other_lines(
    request: Request, runs: Sequence[EstimatedRun], program: Program, months: float, notes: AssumptionLog
) -> tuple[OtherLine, ...]:
    """Storage, network, people, labelling, data and evaluation of the whole program, which lasts `months` [months]."""
    lines = [
        *(_storage(request["storage"], runs, months, notes) if "storage" in request else ()),
        *(_network(request["network"], notes) if "network" in request else ()),
        *(_personnel(request["personnel"], notes) if "personnel" in request else ()),
        *(_labelling(request["labelling"]) if "labelling" in request else ()),
        OtherLine("data purchase", _exact_usd(request.get("data", {}).get("purchase_usd")), "stated"),
        *evaluation_lines(program.evaluation),
        _outcome_evaluation(request, program.tiers),
    ]
    return tuple(line for line in lines if line.usd)


def warn_of_low_development_share(plan: ProgramPlan, notes: AssumptionLog) -> None:
    """Warn where earlier tiers and overheads are less, relative to the production runs, than in any published program."""
    final = plan.tiers[-1]
    if final.tier != "production" or not final.cost_usd:
        return
    development = sum_usd(tier.loaded_usd for tier in plan.tiers) - final.cost_usd
    least = min(development_shares(), key=lambda published: published.share)
    if development < share_usd(least.share, final.cost_usd):
        notes.warn(
            f"earlier tiers and overheads are {development / final.cost_usd:.0%} of the cost of the production runs; the lowest share"
            f" that is published is {least.share:.0%} ({least.name}: {least.source})"
        )


def _note_gate_accuracy(request: Request, notes: AssumptionLog) -> None:
    """The accuracy of gates that state none, which what deciding by them is worth rests on."""
    gates = [tier["gate"] for tier in request["tiers"] if "gate" in tier]
    for name in ("sensitivity", "specificity"):
        if any(name not in gate for gate in gates):
            default = find_program_default(name)
            notes.assume(f"tiers.gate.{name}", default.value, default.source)


def _point(section: Request, path: str, notes: AssumptionLog) -> float:
    """How much of a metric is called one point."""
    default = default_point(section["baseline"], section["target"])
    return notes.take(section, path, default, "a hundredth where baseline and target are shares, else 1")  # type: ignore[no-any-return]


def _overhead(line: str, entry: Request, notes: AssumptionLog) -> ProgramOverhead:
    before = line in find_program_default("overheads_before_runs").value
    blocking = entry.get("blocking", find_program_default("blocking").value)
    if "published" in entry:
        published = overhead_shares()[line]
        basis = f"{published.source}, {published.date}"
        share = notes.assume(f"overhead.{line}", published.share, basis)
        return ProgramOverhead(line, basis, share=share, before_runs=before, blocking=blocking)
    return ProgramOverhead(line, entry.get("basis", "stated"), entry.get("share"), entry.get("usd"), entry.get("tier"), before, blocking)


def _storage(section: Request, runs: Sequence[EstimatedRun], months: float, notes: AssumptionLog) -> list[OtherLine]:
    """Data sets, checkpoints and logs, each from the program's start to the end of its retention."""
    price, retention = (notes.choose(section, f"storage.{name}") for name in ("usd_per_tb_month", "retention_months"))
    stored_tb = {
        "dataset": notes.choose(section, "storage.dataset_tb"),
        "checkpoints": _checkpoints_tb(section, runs, notes),
        "logs": notes.choose(section, "storage.logs_tb"),
    }
    duration = months + retention
    return [
        OtherLine(f"storage: {name}", cents(tb * duration * price), f"{tb:,.2f} TB x {duration:.1f} months x {price:g} USD")
        for name, tb in stored_tb.items()
    ]


def _checkpoints_tb(section: Request, runs: Sequence[EstimatedRun], notes: AssumptionLog) -> float:
    """Checkpoints kept of all runs [TB]: a stated number of each run, or its hours over the stated interval."""
    every: float | None = section.get("checkpoint_every_hours")
    if every and "checkpoints_kept" in section:
        raise InvalidRequest("state either the number of checkpoints that are kept, or checkpoint_every_hours", "/storage/checkpoints_kept")
    fixed = 0 if every else notes.choose(section, "storage.checkpoints_kept")
    stored_tb = 0.0
    for estimated in runs:
        count = max(1.0, estimated.run.use.wall_clock_hours.p50 / every) if every else fixed
        stored_tb += estimated.answer.estimate.reliability.checkpoint_tb * count * run_equivalents(estimated.run.repetition)
    return stored_tb


def _network(section: Request, notes: AssumptionLog) -> list[OtherLine]:
    tb, price = (notes.choose(section, f"network.{name}") for name in ("egress_tb", "usd_per_tb"))
    return [OtherLine("network", cents(tb * price), f"{tb:,.1f} TB x {price:g} USD")]


def _personnel(section: Request, notes: AssumptionLog) -> list[OtherLine]:
    price = notes.choose(section, "personnel.usd_per_hour")
    hours = {name: section.get(f"{name}_hours", 0.0) for name in ("evaluation", "analysis", "oncall")}
    return [OtherLine(f"personnel: {name}", cents(time * price), f"{time:,.1f} h x {price:g} USD") for name, time in hours.items()]


def _labelling(section: Request) -> list[OtherLine]:
    basis = f"{section['items']:,} items x {section['usd_per_item']:g} USD"
    return [OtherLine("labelling", cents(section["items"] * section["usd_per_item"]), basis, section.get("tier"))]


def _outcome_evaluation(request: Request, tiers: Sequence[Tier]) -> OtherLine:
    """Evaluation and safety testing of the result, which the last tier makes."""
    usd = _exact_usd(request.get("outcome", {}).get("evaluation_usd"))
    return OtherLine("outcome evaluation", usd, "evaluation and safety testing of the outcome, stated", tiers[-1].tier)


def _exact_usd(usd: Decimal | None) -> Decimal:
    return Decimal("0.00") if usd is None else usd.quantize(Decimal("0.01"))
