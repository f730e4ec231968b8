"""Checks of a base request when a scenario is submitted: what no worker could evaluate is refused with a pointer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest, UnpricedAccelerator
from service.presets.hardware.accelerators import find_accelerator
from service.presets.hardware.regions import find_region
from service.usecases.programs.estimates import EstimateCache
from service.usecases.programs.resolve import resolve_program
from service.usecases.programs.runs import locate_problem, request_key, run_request
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import find_offers, find_stated_price
from service.usecases.scenarios.registry import Body, Shape
from service.usecases.scenarios.trial_models import count_runs
from service.usecases.training.estimate import estimate

MACHINE, MODEL, REGION = NAMED_PARTS = ("machine", "model", "region")
"""Parts of a request that name something: accelerator and price filter, model preset, region of the energy."""
COST = "cost"
"""A price of the accelerator, without which all but the cost is answered: looked up for questions about dollars."""
# An estimate takes some 4 ms, and 20 to 150 ms where its layout was not searched before.
MOST_ESTIMATED = 8


@dataclass(frozen=True, slots=True)
class LocatedRun:
    """A run's whole request, and the part of it at `pointer`; the rest comes from the program's defaults."""

    pointer: str
    request: Body
    stated: Body


def check_base(context: AppContext, shape: Shape, base: Body) -> None:
    """Raises the DomainError that every evaluation of the base would raise, its pointer below `/base`.

    A program of many runs is not planned: its runs are estimated where few of them differ in more than their data, else only their names
    are looked up.
    """
    try:
        if shape == "estimate":
            estimate(context, base)
        elif count_runs(shape, base) <= MOST_ESTIMATED:
            resolve_program(EstimateCache(context), base, context.clock().date(), AssumptionLog())
        else:
            _check_runs(context, base)
    except DomainError as problem:
        raise problem.below("/base") from problem


def check_names(context: AppContext, shape: Shape, base: Body, parts: Collection[str] = NAMED_PARTS, swept: Collection[str] = ()) -> None:
    """Raises the DomainError of an unknown name in the base, or of a price that no offer has, its pointer below `/base`.

    `swept`: paths of fields that get other values; a run that lacks what they may supply is skipped.
    """
    if not parts:
        return
    try:
        runs = [LocatedRun("", base, base)] if shape == "estimate" else _distinct(_runs(base, swept))
        _look_up(context, base, runs, parts)
    except DomainError as problem:
        raise problem.below("/base") from problem


def unchanged_parts(paths: Iterable[str]) -> set[str]:
    """The parts whose names stay as in the base when fields at these paths get other values."""
    changed = {part for path in paths for part in _parts_at(path)}
    return set(NAMED_PARTS) - changed


def _parts_at(path: str) -> Collection[str]:
    """The parts whose names a field decides."""
    match path.split("."):
        case ["tiers", _, "runs", _, "estimate", *field] | ["defaults", *field] | [*field]:
            pass
    match field:
        case [] | ["tiers", *_]:
            return NAMED_PARTS
        case ["price", *_] | ["hardware"] | ["hardware", "accelerator"]:
            return (MACHINE,)
        case ["model", *_]:
            return (MODEL,)
        case ["energy"] | ["energy", "region"]:
            return (REGION,)
    return ()


def _check_runs(context: AppContext, base: Body) -> None:
    runs = list(_distinct(_runs(base)))
    if len(runs) > MOST_ESTIMATED:
        _look_up(context, base, runs, NAMED_PARTS)
        return
    estimates = EstimateCache(context)
    for run in runs:
        _locate_error(base, run, estimates.estimate)


def _runs(base: Body, swept: Collection[str] = ()) -> Iterator[LocatedRun]:
    """A program's runs merged with the defaults. Raises InvalidRequest where one lacks what no swept path supplies."""
    for tier_index, tier in enumerate(base["tiers"]):
        for run_index, run in enumerate(tier["runs"]):
            pointer = f"/tiers/{tier_index}/runs/{run_index}"
            try:
                request = run_request(base, run, pointer, AssumptionLog())
            except InvalidRequest as lacking:
                if not _is_supplied(lacking.pointer, f"{pointer}/estimate", swept):
                    raise
                continue
            yield LocatedRun(f"{pointer}/estimate", request, run["estimate"])


def _is_supplied(lacking: str, estimate: str, swept: Collection[str]) -> bool:
    """Whether a swept path contains, or lies in, what a run's estimate lacks, in the run itself or in the defaults."""
    places = (lacking, lacking.replace(estimate, "/defaults", 1))
    return any(_is_nested(f"/{path.replace('.', '/')}", place) for path in swept for place in places)


def _is_nested(left: str, right: str) -> bool:
    """Whether two pointers are equal or one contains the other."""
    return f"{left}/".startswith(f"{right}/") or f"{right}/".startswith(f"{left}/")


def _distinct(runs: Iterable[LocatedRun]) -> Iterator[LocatedRun]:
    """The first of each set of runs that differ only in their data."""
    seen = set()
    for run in runs:
        key = request_key({**run.request, "data": None})
        if key not in seen:
            seen.add(key)
            yield run


def _look_up(context: AppContext, base: Body, runs: Iterable[LocatedRun], parts: Collection[str]) -> None:
    """Look up every name once."""
    seen = set()
    for run in runs:
        for part in parts:
            key = request_key({part: _names(run.request, part)})
            if key not in seen:
                seen.add(key)
                _locate_error(base, run, partial(_find, context, part))


def _names(request: Body, part: str) -> Any:
    """The fields that a part's names depend on."""
    if part in (MACHINE, COST):
        return request["hardware"]["accelerator"], request.get("price")
    return request["model"] if part == MODEL else request.get("energy", {}).get("region")


def _find(context: AppContext, part: str, request: Body) -> None:
    """Raises the DomainError of a part's names."""
    names = _names(request, part)
    if part in (MACHINE, COST):
        price = request.get("price", {})
        accelerator = find_accelerator(request["hardware"]["accelerator"]).accelerator.name
        if find_stated_price(price, accelerator) is None:
            with suppress(*([UnpricedAccelerator] if part == MACHINE else [])):
                find_offers(price, accelerator, context.book(price.get("snapshot")))
    elif part == MODEL:
        resolve_model(names, AssumptionLog())
    elif names is not None:
        find_region(names)


def _locate_error(base: Body, run: LocatedRun, find: Callable[[Body], object]) -> None:
    """Raises the DomainError of a run's request with a pointer to where the invalid field is stated."""
    try:
        find(run.request)
    except DomainError as problem:
        raise problem.below(locate_problem(problem, base, run.stated, run.pointer)) from problem
