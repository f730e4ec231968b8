"""What a comparison compares: workloads, the offers that match its candidates, and owned hardware."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from service.context import AppContext
from service.domain.comparison.options import Constraints, Objective
from service.domain.errors import InvalidRequest, UnknownName
from service.prices.book import BUILT_IN_PROVIDER, PriceBook
from service.prices.offer_table import Ints
from service.usecases.comparison.capacity import Quota, resolve_quotas, warn_unmatched_quotas
from service.usecases.comparison.constraints import resolve_constraints
from service.usecases.comparison.empty_result import check_names_known, explain_no_offer, recent_rows
from service.usecases.comparison.offer_selection import (
    check_unique_names,
    matching_rows,
    note_candidates,
    note_networks,
    resolve_accelerators,
    warn_unsold_pricing,
    without_stock,
)
from service.usecases.comparison.option_table import OfferGroup, group_offers
from service.usecases.comparison.owned_hardware import OwnedHardware, reserved_utilisation, resolve_owned_hardware
from service.usecases.comparison.timed_configurations import Workload, check_measured_steps, resolve_workload
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]

# Fields measured on one accelerator that do not hold for others.
ACCELERATOR_FIELDS = (
    *("efficiency.mfu", "efficiency.tokens_per_s_per_accelerator", "efficiency.tflops_per_accelerator"),
    "energy.watts_per_accelerator",
)
DEFAULT_LIMIT = 50
DEFAULT_OBJECTIVE: Objective = "cost"


@dataclass(frozen=True, slots=True)
class Selection:
    """What is compared: workloads on the `rows` of a book that match the candidates, in groups, and on owned hardware."""

    book: PriceBook
    candidates: Request
    accelerators: tuple[str, ...]
    constraints: Constraints
    quotas: Sequence[Quota]
    rows: Ints
    owned_hardware: Sequence[OwnedHardware]
    workloads: Sequence[Workload]
    offer_groups: Sequence[OfferGroup]

    @property
    def offered(self) -> set[str]:
        """Accelerators with an offer."""
        return {group.accelerator for group in self.offer_groups}


def select(context: AppContext, request: Request, notes: AssumptionLog, now: datetime) -> Selection:
    """What a request compares, with its defaults noted. Raises NoOffer where nothing is left."""
    book, candidates = _book(context, request), request.get("candidates", {})
    quotas = resolve_quotas(candidates)
    warn_unmatched_quotas(book.columns, quotas, notes)
    accelerators = resolve_accelerators(candidates, book.columns, notes)
    candidates = {**candidates, "accelerators": accelerators} if candidates.get("machines") else candidates
    check_names_known(candidates, book, notes)
    constraints = resolve_constraints(context, request, notes)
    rows = recent_rows(matching_rows(candidates, accelerators, book), candidates, book, now)
    owned_hardware = resolve_owned_hardware(request)
    if not len(rows) and not owned_hardware:
        raise explain_no_offer(candidates, accelerators, book, now)
    offer_groups = group_offers(book.columns, rows, constraints, reserved_utilisation(owned_hardware, notes))
    selection = Selection(
        book, candidates, accelerators, constraints, quotas, rows, owned_hardware, resolve_workloads(request), offer_groups
    )
    note_candidates(candidates, sorted(selection.offered), notes)
    _note_stock(constraints, book, rows, notes)
    warn_unsold_pricing(candidates, book.columns, rows, notes)
    note_networks(book.columns, rows, notes)
    _note_surroundings(request, notes)
    _note_measured(selection.workloads, selection.offered | {hardware.cluster.accelerator for hardware in owned_hardware}, notes)
    return selection


def _book(context: AppContext, request: Request) -> PriceBook:
    """The current prices, or those of the named snapshot."""
    try:
        return context.book(request.get("snapshot"))
    except UnknownName as problem:
        raise UnknownName(problem.message, "/snapshot", problem.near) from problem


def _note_stock(constraints: Constraints, book: PriceBook, rows: Ints, notes: AssumptionLog) -> None:
    """Warns where no price source reports availability."""
    live = any(policy.provider != BUILT_IN_PROVIDER for policy in book.policies.values())
    if constraints.require_available and not live and without_stock(book.columns, rows).all():
        notes.warn(
            "require_available leaves no rented option: no live price source has answered yet; GET /v1/providers lists the sources"
            " and what each needs"
        )


def _note_surroundings(request: Request, notes: AssumptionLog) -> None:
    """Notes the order of options and the source of their energy, and warns of power that is counted twice."""
    if "objective" not in request:
        notes.assume("objective", DEFAULT_OBJECTIVE, "not stated: the cheapest first")
    if "limit" not in request:
        notes.assume("limit", DEFAULT_LIMIT, "not stated")
    workloads = (request["workload"], *(variant["workload"] for variant in request.get("variants", ())))
    energies = [workload.get("energy", {}) for workload in workloads]
    if all(energy.get("region") is None for energy in energies):
        notes.assume("energy.region", "each offer's own", "PUE and grid of its region, of its country or the world where that is not known")
    if any(energy.get("usd_per_kwh") for energy in energies):
        notes.warn("a cloud's price includes power, so workload.energy.usd_per_kwh counts it twice; owned hardware has its own usd_per_kwh")


def _note_measured(workloads: Sequence[Workload], accelerators: Collection[str], notes: AssumptionLog) -> None:
    """Warns of figures measured on one accelerator that are used for others. Raises InvalidRequest for measured steps of one of several."""
    stated = [path for path in ACCELERATOR_FIELDS if any(_stated(workload.request, path) for workload in workloads)]
    for workload in workloads:
        check_measured_steps(workload.request, accelerators, workload.pointer)
    if stated and len(accelerators) > 1:
        notes.warn(
            f"{', '.join(stated)} is used for all {len(accelerators)} accelerators in every count: compare those it was measured on,"
            " or leave it out to model each of them"
        )


def _stated(request: Request, path: str) -> bool:
    section, _, name = path.partition(".")
    return request.get(section, {}).get(name) is not None


def resolve_workloads(request: Request) -> list[Workload]:
    """The workload, or each variant: the workload with the variant's changes."""
    base, variants = request["workload"], request.get("variants")
    if not variants:
        return [resolve_workload(None, base, "/workload")]
    check_unique_names(variants, "/variants")
    _check_calendar(variants)
    return [
        resolve_workload(variant["name"], _merge_sections(base, variant["workload"]), f"/variants/{index}/workload")
        for index, variant in enumerate(variants)
    ]


def _check_calendar(variants: Sequence[Request]) -> None:
    """Raises InvalidRequest where a variant has its own dates: the constraints hold for all."""
    for index, variant in enumerate(variants):
        for name in ("start", "deadline"):
            if variant["workload"].get("schedule", {}).get(name) is not None:
                message = f"{name} holds for the whole comparison: state it in constraints"
                raise InvalidRequest(message, f"/variants/{index}/workload/schedule/{name}")


def _merge_sections(base: Request, change: Request) -> dict[str, Any]:
    """`change` merged into `base` by section. A stated model or data section replaces the whole section."""
    replaced_whole = ("model", "data")
    return {**base, **{name: value if name in replaced_whole else {**base.get(name, {}), **value} for name, value in change.items()}}
