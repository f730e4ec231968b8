"""A base request with some fields changed, and its outputs, for sweeps and sensitivities.

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
from service.serialization import to_builtins
from service.usecases.programs.plan import plan_program
from service.usecases.scenarios.registry import Body, ScenarioRequest, Shape
from service.usecases.training.estimate import estimate

MOST_DEPTH = 12
LONGEST_PATH = 200
NUMBERS = (int, float, Decimal)
RUN_PATH = re.compile(r"tiers\.(?P<tier>\d{1,4})\.runs\.(?P<run>\d{1,4})\.")


@dataclass(frozen=True, slots=True)
class RequestOutputs:
    """Outputs of one evaluation. Hours of a program are the sum over its tiers, percentile by percentile.

    `hours_to_finish`: from the start, or from the order where no start is stated; of a program in whole days. `cost_usd` is None where no
    price is known.
    """

    cost_usd: Range | None
    wall_clock_hours: Range
    accelerator_hours: Range
    tco2e: float
    hours_to_finish: float
    finish: FinishDates | None
    deadline_probability: float | None
    problem: str | None = None


def get_value(body: Any, path: str) -> Any:
    """The value of a field. Raises KeyError where the request does not state it."""
    for part in path.split("."):
        if isinstance(body, list | tuple):
            body = body[_position(body, part)]
        elif isinstance(body, Mapping):
            body = body[part]
        else:
            raise KeyError(part)
    return body


def is_stated(body: Any, path: str) -> bool:
    """Whether the request states a field with a value other than null."""
    try:
        return get_value(body, path) is not None
    except KeyError:
        return False


def with_values(body: Body, values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the request with these fields set; missing sections are created, unchanged parts are shared with the original.

    A path inside another is set after it. Raises InvalidRequest for a path through something that is no section.
    """
    result: dict[str, Any] = dict(body)
    for path in sorted(values, key=lambda path: (path.count("."), path)):
        result = _set(result, path.split("."), values[path], path)
    return result


def check_path(path: str, pointer: str) -> str:
    """The path. Raises InvalidRequest for a malformed one."""
    parts = path.split(".")
    if len(path) > LONGEST_PATH or len(parts) > MOST_DEPTH or not all(parts):
        raise InvalidRequest(
            f'a field is named by its path, such as "price.usd_per_accelerator_hour": at most {MOST_DEPTH} names and'
            f" {LONGEST_PATH} characters",
            pointer,
        )
    return path


def read_value(request: ScenarioRequest, path: str, value: Any, pointer: str) -> Any:
    """A value as the use cases take it at a path, read by the base request's schema. Raises InvalidRequest at `pointer`."""
    body, inside = _reduce_program(request.base_json, path)
    try:
        return get_value(request.read(with_values(body, {inside: value})), inside)
    except KeyError as error:
        raise InvalidRequest(f"{path} cannot be set alone: state the whole section that it is in", pointer) from error
    except DomainError as problem:
        raise InvalidRequest(f"{path} = {str(value)[:60]}: {problem.message}{_default_hint(request, path, value)}", pointer) from problem


def _reduce_program(base: Body, path: str) -> tuple[Body, str]:
    """A program reduced to the run that a path is in, and the path there: hundreds of runs take a tenth of a second to read.

    For a path outside the runs each tier keeps its first run, as it needs one.
    """
    match = RUN_PATH.match(path)
    tiers = base.get("tiers", ())
    if tiers and "runs" not in path.split("."):
        return {**base, "tiers": [{**tier, "runs": tier["runs"][:1]} for tier in tiers]}, path
    if match is None or int(match["tier"]) >= len(tiers) or int(match["run"]) >= len(tiers[int(match["tier"])]["runs"]):
        return base, path
    tier = tiers[int(match["tier"])]
    return {**base, "tiers": [{**tier, "runs": [tier["runs"][int(match["run"])]]}]}, f"tiers.0.runs.0.{path[match.end() :]}"


def _default_hint(request: ScenarioRequest, path: str, value: Any) -> str:
    """A hint where a program's runs have the field at this path, empty for others."""
    if request.shape != "program" or path.startswith("defaults."):
        return ""
    body, inside = _reduce_program(request.base_json, f"defaults.{path}")
    try:
        request.read(with_values(body, {inside: value}))
    except DomainError:
        return ""
    return f"; in a program it is defaults.{path} for all runs, and tiers.0.runs.0.estimate.{path} for one run"


def read_numbers(request: ScenarioRequest, path: str, values: Sequence[float], pointer: str) -> list[Any]:
    """Numbers as the use cases take them at a path. The schema checks the smallest and the largest only, and whole numbers where needed.

    Raises InvalidRequest at `pointer`.
    """
    least, *_ = (read_value(request, path, value, pointer) for value in sorted({min(values), max(values)}))
    if type(least) is int:
        for value in values:
            if value != math.floor(value):
                read_value(request, path, value, pointer)
    return [convert_like(least, value, pointer) for value in values]


def takes_whole_numbers(request: ScenarioRequest, path: str, value: float) -> bool:
    """Whether the field at a path takes whole numbers only; `value` rounded is one that it may have."""
    try:
        return type(read_value(request, path, round(value), "")) is int
    except InvalidRequest:
        return False


def convert_like(sample: Any, value: float, pointer: str = "") -> Any:
    """A number in the type of another that was read: int, float, cents, range or share. Raises InvalidRequest for another type."""
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
    raise InvalidRequest("this field is not a number", pointer)


def is_number(value: Any) -> bool:
    """Whether the value is a number; true and false are not."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def pin_prices(context: AppContext, request: ScenarioRequest) -> tuple[dict[str, Any], str]:
    """The base request with its price book stated, and the book's name. Raises UnknownName for an unknown book."""
    path = "price.snapshot" if request.shape == "estimate" else "defaults.price.snapshot"
    try:
        name = context.book(get_value(request.base, path) if is_stated(request.base, path) else None).name
    except DomainError as problem:
        raise problem.below("/base" if request.shape == "estimate" else "/base/defaults") from problem
    return with_values(request.base, {path: name}), name


def at_time(context: AppContext, now: datetime) -> AppContext:
    """The context with a fixed clock: a scenario's "today" is the day it was submitted on."""
    return replace(context, clock=lambda: now)


def evaluate_request(context: AppContext, shape: Shape, base: Body) -> RequestOutputs:
    """Outputs of a request, by the estimate's or the program's use case. Raises DomainErrors."""
    return _evaluate_run(context, base) if shape == "estimate" else _evaluate_program(context, base)


def evaluate_row(context: AppContext, shape: Shape, base: Body) -> dict[str, Any]:
    """Outputs of a request as JSON; an infeasible request is a row with its problem."""
    try:
        outputs = evaluate_request(context, shape, base)
    except DomainError as problem:
        return {"feasible": False, "problem": f"{problem.pointer}: {problem.message}".removeprefix(": ")}
    row: dict[str, Any] = to_builtins(outputs)
    return {"feasible": outputs.problem is None, **row}


def _evaluate_run(context: AppContext, base: Body) -> RequestOutputs:
    answer = estimate(context, base).estimate
    hours = answer.time.wall_clock_hours
    return RequestOutputs(
        cost_usd=answer.cost.total_usd,
        wall_clock_hours=hours,
        accelerator_hours=answer.time.accelerator_hours,
        tco2e=answer.energy.tco2e,
        hours_to_finish=hours.p50 + base.get("schedule", {}).get("queue_hours", 0.0),
        finish=answer.time.finish,
        deadline_probability=answer.time.deadline_probability,
        problem=None if answer.memory.fits else "the layout does not fit into the accelerators' memory",
    )


def _evaluate_program(context: AppContext, base: Body) -> RequestOutputs:
    answer = plan_program(context, base)
    tiers, dates = answer.plan.tiers, answer.schedule
    return RequestOutputs(
        cost_usd=answer.plan.total_usd if answer.plan.priced else None,
        wall_clock_hours=_sum_ranges([tier.use.wall_clock_hours for tier in tiers]),
        accelerator_hours=_sum_ranges([tier.use.accelerator_hours for tier in tiers]),
        tco2e=sum(tier.use.tco2e for tier in tiers),
        hours_to_finish=24.0 * (dates.finish.p50 - dates.start).days,
        finish=dates.finish,
        deadline_probability=dates.deadline_probability,
    )


def _sum_ranges(ranges: Sequence[Range]) -> Range:
    return Range(*(sum(getattr(item, name) for item in ranges) for name in ("p10", "p50", "p90")))


def _position(entries: Sequence[Any], part: str) -> int:
    """Index of a list entry. Raises KeyError for a missing entry."""
    if not (part.isascii() and part.isdigit() and len(part) < 7 and int(part) < len(entries)):
        raise KeyError(part)
    return int(part)


def _set(body: Any, parts: Sequence[str], value: Any, path: str) -> Any:
    """A copy of `body` with one field set."""
    if not parts:
        return value
    first, rest = parts[0], parts[1:]
    if isinstance(body, list | tuple):
        try:
            position = _position(body, first)
        except KeyError as error:
            raise InvalidRequest(f"{path}: there is no entry {first}; the list has {len(body)} entries") from error
        return [*body[:position], _set(body[position], rest, value, path), *body[position + 1 :]]
    if body is not None and not isinstance(body, Mapping):
        raise InvalidRequest(f"{path}: {first} is in no section of the request")
    section = body or {}
    return {**section, first: _set(section.get(first), rest, value, path)}
