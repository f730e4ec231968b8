"""A base request with some of its fields changed, and the figures that come of it: what sweeps and sensitivities are made of.

A field is named by its path, "price.usd_per_accelerator_hour"; entries of lists by their position, "tiers.0.runs.0.estimate.data.tokens".
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.quantities import Range
from service.domain.training.estimate import FinishDates
from service.serialization import plain
from service.usecases.programs.plan import plan_program
from service.usecases.scenarios.registry import ScenarioRequest, Shape
from service.usecases.training.estimate import estimate

Body = Mapping[str, Any]

MOST_DEPTH = 12
LONGEST_PATH = 200
NUMBERS = (int, float, Decimal)
RUN_PATH = re.compile(r"tiers\.(?P<tier>\d{1,4})\.runs\.(?P<run>\d{1,4})\.")


@dataclass(frozen=True, slots=True)
class RequestOutputs:
    """What one request takes. Of a program hours are its tiers' added up, all at the same percentile, and hours to the finish whole days.

    `hours_to_finish` runs from the start, or from the order where there is none.
    """

    cost_usd: Range
    wall_clock_hours: Range
    accelerator_hours: Range
    tco2e: float
    hours_to_finish: float
    finish: FinishDates | None
    deadline_probability: float | None
    problem: str | None = None


def get_value(body: Any, path: str) -> Any:
    """The value of a field. KeyError where the request does not state it."""
    for part in path.split("."):
        body = body[_position(body, part)] if isinstance(body, list | tuple) else _member(body, part)
    return body


def is_stated(body: Any, path: str) -> bool:
    """Whether the request states a field; null states nothing."""
    try:
        return get_value(body, path) is not None
    except KeyError:
        return False


def with_values(body: Body, values: Mapping[str, Any]) -> dict[str, Any]:
    """The request with these fields set, sections that were not stated made; what is not on a path is shared with the original.

    A path that leads into another is set after it. Raises InvalidRequest where a path leads into no section.
    """
    found: dict[str, Any] = dict(body)
    for path in sorted(values, key=lambda each: (each.count("."), each)):
        found = _set(found, path.split("."), values[path], path)
    return found


def check_path(path: str, pointer: str) -> str:
    """The path, if it is one. Raises InvalidRequest."""
    parts = path.split(".")
    if len(path) > LONGEST_PATH or len(parts) > MOST_DEPTH or not all(parts):
        raise InvalidRequest(
            f'a field is named by the names on the way to it, as "price.usd_per_accelerator_hour": at most {MOST_DEPTH} names and'
            f" {LONGEST_PATH} characters",
            pointer,
        )
    return path


def read_value(given: ScenarioRequest, path: str, value: Any, pointer: str) -> Any:
    """A value as the use cases take it at a path, checked by the base request's own schema. Raises InvalidRequest, pointers as given."""
    body, inside = _alone(given.base_json, path)
    try:
        return get_value(given.read(with_values(body, {inside: value})), inside)
    except KeyError as error:
        raise InvalidRequest(f"{path} cannot be set by itself: state the whole section it lies in", pointer) from error
    except DomainError as problem:
        raise InvalidRequest(f"{path} = {str(value)[:60]}: {problem.message}{_of_runs(given, path, value)}", pointer) from problem


def _alone(base: Body, path: str) -> tuple[Body, str]:
    """A program with the one run that a path leads to, and the path there: hundreds take a tenth of a second to read.

    Where it leads past the runs each tier keeps its first, as a tier has one.
    """
    found = RUN_PATH.match(path)
    tiers = base.get("tiers", ())
    if tiers and "runs" not in path.split("."):
        return {**base, "tiers": [{**tier, "runs": tier["runs"][:1]} for tier in tiers]}, path
    if found is None or int(found["tier"]) >= len(tiers) or int(found["run"]) >= len(tiers[int(found["tier"])]["runs"]):
        return base, path
    tier = tiers[int(found["tier"])]
    return {**base, "tiers": [{**tier, "runs": [tier["runs"][int(found["run"])]]}]}, f"tiers.0.runs.0.{path[found.end() :]}"


def _of_runs(given: ScenarioRequest, path: str, value: Any) -> str:
    """Where a program's runs have the field that a single run's request has at this path."""
    if given.shape != "program" or path.startswith("defaults."):
        return ""
    body, inside = _alone(given.base_json, f"defaults.{path}")
    try:
        given.read(with_values(body, {inside: value}))
    except DomainError:
        return ""
    return f"; of a program it is defaults.{path} for its runs, and tiers.0.runs.0.estimate.{path} for one of them"


def read_numbers(given: ScenarioRequest, path: str, values: Sequence[float], pointer: str) -> list[Any]:
    """Numbers as the use cases take them at a path: the schema sees the least and the greatest, which vouch for those between.

    Whole numbers where the field counts. Raises InvalidRequest.
    """
    least, *_ = (read_value(given, path, value, pointer) for value in sorted({min(values), max(values)}))
    if type(least) is int:
        for value in values:
            if value != math.floor(value):
                read_value(given, path, value, pointer)
    return [convert_like(least, value, pointer) for value in values]


def takes_whole_numbers(given: ScenarioRequest, path: str, value: float) -> bool:
    """Whether the field at a path takes whole numbers only, such as the one nearest to `value`."""
    try:
        return type(read_value(given, path, round(value), "")) is int
    except InvalidRequest:
        return False


def convert_like(sample: Any, value: float, pointer: str = "") -> Any:
    """A number in the form of another that was read: whole, in cents, a range, a share. Raises InvalidRequest where that is none."""
    match sample:
        case bool():
            pass
        case int():
            return round(value)
        case float():
            return float(value)
        case Decimal():
            return Decimal(f"{value:.2f}")
        case Range():
            return Range.exactly(float(value))
        case {"share": float()}:
            return {**sample, "share": float(value)}
    raise InvalidRequest("this field is no number", pointer)


def is_number(value: Any) -> bool:
    """Whether it is a plain number; true and false are none."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def pin_prices(context: AppContext, given: ScenarioRequest) -> tuple[dict[str, Any], str]:
    """The base request with the price book it is evaluated against, and that book's name. Raises UnknownName for one nobody knows."""
    path = "price.snapshot" if given.shape == "estimate" else "defaults.price.snapshot"
    try:
        stated = get_value(given.base, path)
    except KeyError:
        stated = None
    try:
        name = context.book(stated).name
    except DomainError as problem:
        raise problem.below("/base" if given.shape == "estimate" else "/base/defaults") from problem
    return with_values(given.base, {path: name}), name


def at_time(context: AppContext, now: datetime) -> AppContext:
    """The context at that time: a scenario's "today" is the day it was asked for, whenever a worker comes to it."""
    return replace(context, clock=lambda: now)


def evaluate_request(context: AppContext, shape: Shape, base: Body) -> RequestOutputs:
    """The figures of a request, by the estimate's or the program's use case. Raises DomainErrors."""
    return _of_run(context, base) if shape == "estimate" else _of_program(context, base)


def evaluate_row(context: AppContext, shape: Shape, base: Body) -> dict[str, Any]:
    """The figures of a request as JSON has them; one that cannot be is a row with its problem."""
    try:
        found = evaluate_request(context, shape, base)
    except DomainError as problem:
        return {"feasible": False, "problem": f"{problem.pointer}: {problem.message}".removeprefix(": ")}
    row: dict[str, Any] = plain(found)
    return {"feasible": found.problem is None, **row}


def _of_run(context: AppContext, base: Body) -> RequestOutputs:
    found = estimate(context, base).estimate
    hours = found.time.wall_clock_hours
    return RequestOutputs(
        cost_usd=found.cost.total_usd,
        wall_clock_hours=hours,
        accelerator_hours=found.time.accelerator_hours,
        tco2e=found.energy.tco2e,
        hours_to_finish=hours.p50 + base.get("schedule", {}).get("queue_hours", 0.0),
        finish=found.time.finish,
        deadline_probability=found.time.deadline_probability,
        problem=None if found.memory.fits else "the layout does not fit into the accelerators' memory",
    )


def _of_program(context: AppContext, base: Body) -> RequestOutputs:
    found = plan_program(context, base)
    tiers, dates = found.plan.tiers, found.schedule
    return RequestOutputs(
        cost_usd=found.plan.total_usd,
        wall_clock_hours=_added([tier.use.wall_clock_hours for tier in tiers]),
        accelerator_hours=_added([tier.use.accelerator_hours for tier in tiers]),
        tco2e=sum(tier.use.tco2e for tier in tiers),
        hours_to_finish=24.0 * (dates.finish.p50 - dates.start).days,
        finish=dates.finish,
        deadline_probability=dates.deadline_probability,
    )


def _added(ranges: Sequence[Range]) -> Range:
    return Range(*(sum(getattr(each, name) for each in ranges) for name in ("p10", "p50", "p90")))


def _member(body: Any, name: str) -> Any:
    if not isinstance(body, Mapping):
        raise KeyError(name)
    return body[name]


def _position(entries: Sequence[Any], part: str) -> int:
    """A list's position. KeyError where there is none."""
    if not (part.isascii() and part.isdigit() and len(part) < 7 and int(part) < len(entries)):
        raise KeyError(part)
    return int(part)


def _set(body: Any, parts: Sequence[str], value: Any, path: str) -> Any:
    """A copy of `body` with one field set."""
    if not parts:
        return value
    first, rest = parts[0], parts[1:]
    if isinstance(body, list | tuple):
        return _set_entry(list(body), first, rest, value, path)
    if body is not None and not isinstance(body, Mapping):
        raise InvalidRequest(f"{path}: {first} lies in no section of the request")
    section = body or {}
    return {**section, first: _set(section.get(first), rest, value, path)}


def _set_entry(entries: list[Any], first: str, rest: Sequence[str], value: Any, path: str) -> list[Any]:
    try:
        position = _position(entries, first)
    except KeyError as error:
        raise InvalidRequest(f"{path}: there is no entry {first}, the list has {len(entries)}") from error
    entries[position] = _set(entries[position], rest, value, path)
    return entries
