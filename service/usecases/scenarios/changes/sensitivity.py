"""Sensitivity: a tornado, one input at a time at its low and its high value, and Sobol' indices, all inputs at once.

Each evaluation is a whole estimate or program plan by its use case: only the indices are estimates.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest, UnknownName
from service.domain.scenarios import Floats
from service.engine.scenarios.sensitivity import SobolIndices, count_evaluations, estimate_indices, saltelli_design
from service.presets.hardware.accelerators import find_accelerator
from service.presets.version import engine_version
from service.serialization import to_builtins
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.feedback import note_lessons
from service.usecases.scenarios.base_check import check_base
from service.usecases.scenarios.changes.request_paths import (
    RequestOutputs,
    at_time,
    check_path,
    convert_like,
    evaluate_request,
    get_value,
    is_number,
    is_stated,
    pin_prices,
    read_numbers,
    read_value,
    takes_whole_numbers,
    with_values,
)
from service.usecases.scenarios.distributions import bounds, parse_distribution, quantiles
from service.usecases.scenarios.registry import Body, PreparedScenario, ScenarioKind, ScenarioRequest, Step
from service.usecases.scenarios.summary import summarise_sensitivity

OUTPUTS = ("cost_usd", "wall_clock_hours", "accelerator_hours", "hours_to_finish", "tco2e")
COST, TIME = OUTPUTS.index("cost_usd"), OUTPUTS.index("hours_to_finish")
MOST_EVALUATIONS = {"estimate": 100_000, "program": 10_000}
MOST_INPUTS = 50
# A changed input needs a new layout search, some 10 ms; a program with its schedule takes ten times that.
EVALUATIONS_PER_CHUNK = {"estimate": 50, "program": 5}
DEFAULT_POINTS = 256
DEFAULT_SEED = 1
LOW_AND_HIGH = np.array([0.1, 0.9])
# With more points without an answer, the indices would describe another, smaller set of inputs.
LARGEST_SKIPPED_SHARE = 0.2


def prepare(context: AppContext, request: ScenarioRequest) -> PreparedScenario:
    """The inputs with their distributions. Raises DomainErrors with a pointer into the request, also for the base."""
    options = request.options
    stated, swing = options.get("inputs") or {}, options.get("swing")
    if not stated and swing is None:
        raise InvalidRequest("state inputs with their distributions, or swing, the share by which every number is moved", "/inputs")
    points = _points(options) if stated else 0
    swung = _swing_numbers(request, stated, swing)
    _check_limits(request, len(stated), len(swung), points)
    inputs = {path: _read_input(request, path, stated[path]) for path in sorted(stated)}
    base, snapshot = pin_prices(context, request)
    check_base(context, request.shape, base)
    units = _tornado_evaluations(inputs, swung) + (count_evaluations(len(inputs), points) if inputs else 0)
    per_chunk = EVALUATIONS_PER_CHUNK[request.shape]
    notes = AssumptionLog()
    note_lessons(context, notes)
    if points and options.get("points") != points:
        notes.assume("points", points, "a power of two, for which a Sobol' sequence is balanced")
    seed = notes.take(options, "seed", DEFAULT_SEED, "not stated")
    if points:
        notes.assume("inputs", "independent", "Sobol' indices assume independent inputs")
    return PreparedScenario(
        kind="sensitivity",
        chunks=math.ceil(units / per_chunk),
        units_per_chunk=per_chunk,
        units=units,
        checkpoints=(),
        request={
            "shape": request.shape,
            "base": base,
            "now": context.clock(),
            "inputs": inputs,
            "swung": swung,
            "points": points,
            "seed": seed,
            "assumptions": to_builtins(notes.assumptions),
            "warnings": _unstated_warnings(request, inputs),
        },
        snapshot=snapshot,
        lessons=context.lessons(),
    )


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """Outputs of one chunk of evaluations, None where there is no answer, with the first problem."""
    task, context = prepared.request, at_time(context, prepared.request["now"])
    values: list[list[float | None] | None] = []
    problem = None
    for settings in _settings(task, index * prepared.units_per_chunk, prepared.units_after(index + 1)):
        step()
        if None in settings.values():
            values.append(None)
            continue
        try:
            values.append(_outputs(evaluate_request(context, task["shape"], with_values(task["base"], settings))))
        except DomainError as error:
            values.append(None)
            problem = problem or f"{error.pointer}: {error.message}".removeprefix(": ")
    return {"values": values, "problem": problem}


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """The tornado and the indices. Raises InvalidRequest where the base request itself has no answer."""
    del context
    task, rows, problems = prepared.request, [], []
    for tally in tallies:
        rows += [[math.nan if value is None else value for value in row or [None] * len(OUTPUTS)] for row in tally["values"]]
        problems += [tally["problem"]] if tally["problem"] else []
    if math.isnan(rows[0][TIME]):
        raise InvalidRequest(f"the base request has no answer: {problems[0]}", "/base")
    first_of_design = _tornado_evaluations(task["inputs"], task["swung"])
    sobol, warnings = _present_sobol(task, np.array(rows[first_of_design:]), problems)
    base, tornado = _by_output(rows[0]), _tornado(task, rows[1:first_of_design])
    return {
        "summary": to_builtins(summarise_sensitivity(base, tornado)),
        "base": base,
        "tornado": tornado,
        "sobol": sobol,
        "price_snapshot": prepared.snapshot,
        "lessons": prepared.lessons_reference,
        "engine_version": engine_version(),
        "assumptions": task["assumptions"],
        "warnings": [*task["warnings"], *warnings],
    }


def _points(options: Body) -> int:
    """Number of points of the design, a power of two or 0."""
    stated = options.get("points", DEFAULT_POINTS)
    return 0 if stated == 0 else 1 << (int(stated) - 1).bit_length()


def _check_limits(request: ScenarioRequest, inputs: int, swung: int, points: int) -> None:
    most = MOST_EVALUATIONS[request.shape]
    if inputs + swung > MOST_INPUTS:
        raise InvalidRequest(f"{inputs + swung} inputs are more than {MOST_INPUTS}: state those of interest in inputs", "/inputs")
    if points and count_evaluations(inputs, points) > most:
        raise InvalidRequest(
            f"{points:,} points of {inputs} inputs are {count_evaluations(inputs, points):,} evaluations, more than the {most:,} of one"
            f" sensitivity over a base of the shape {request.shape}",
            "/points",
        )


def _read_input(request: ScenarioRequest, path: str, distribution: Body) -> dict[str, Any]:
    """An input's distribution, its bounds read by the request's schema: values between them are valid too."""
    pointer = f"/inputs/{path}"
    low, high = bounds(parse_distribution(distribution, pointer))
    if takes_whole_numbers(request, check_path(path, pointer), high):
        low, high = round(low), round(high)
    return {"distribution": dict(distribution), "sample": read_numbers(request, path, (low, high), pointer)[0]}


def _swing_numbers(request: ScenarioRequest, stated: Body, swing: float | None) -> dict[str, list[Any]]:
    """Low and high of every other number that the base states, a share below and above it; numbers valid at neither are left out."""
    if swing is None:
        return {}
    numbers = {path: value for path, value in _numbers(request.base, "") if path not in stated and value}
    if len(numbers) > MOST_INPUTS:
        message = f"the base states {len(numbers)} numbers, more than {MOST_INPUTS}: state those of interest in inputs"
        raise InvalidRequest(message, "/swing")
    sides = [_scale_numbers(request, {path: numbers[path] for path in sorted(numbers)}, factor) for factor in (1 - swing, 1 + swing)]
    pairs = {path: [values[path] for values in sides] for path in sides[0]}
    return {path: pair for path, pair in pairs.items() if pair != [None, None]}


def _scale_numbers(request: ScenarioRequest, numbers: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Every number times a factor as the use cases take it, None where it is invalid; all are read at once if possible."""
    scaled = {path: _scale(request, path, value, factor) for path, value in numbers.items()}
    try:
        body = request.read(with_values(request.base_json, scaled))
        return {path: get_value(body, path) for path in scaled}
    except (DomainError, KeyError):
        return {path: _read_or_none(request, path, value) for path, value in scaled.items()}


def _scale(request: ScenarioRequest, path: str, value: Any, factor: float) -> float:
    """The product; counts of accelerators on several nodes move by whole nodes, at least one: parts of nodes divide into bad layouts."""
    node = _node_size(request, path)
    if node is None or value < 2 * node or value % node:
        return _multiply(value, factor)
    moved = max(1, round(value // node * abs(factor - 1)))
    return int(value) + int(math.copysign(moved * node, factor - 1))


def _node_size(request: ScenarioRequest, path: str) -> int | None:
    """Accelerators of a node of the hardware whose count is at `path`; None for other paths, and where it is not known."""
    if path != "hardware.count" and not path.endswith(".hardware.count"):
        return None
    section = path.removesuffix(".count")
    for place in (section, "defaults.hardware"):
        hardware = get_value(request.base, place) if is_stated(request.base, place) else {}
        if hardware.get("accelerators_per_node"):
            return int(hardware["accelerators_per_node"])
        if "accelerator" in hardware:
            with suppress(UnknownName):  # refused with its own pointer where the base is checked
                return find_accelerator(hardware["accelerator"]).accelerator.accelerators_per_node
    return None


def _multiply(value: int | float | Decimal, factor: float) -> float:
    """The product, rounded to whole numbers for an int and to cents for an amount."""
    if isinstance(value, Decimal):
        return round(float(value) * factor, 2)
    return round(value * factor) if isinstance(value, int) else value * factor


def _read_or_none(request: ScenarioRequest, path: str, value: float) -> Any:
    """The value as the use cases take it, None where it is invalid."""
    try:
        return read_value(request, path, value, "")
    except InvalidRequest:
        return None


def _numbers(body: Any, prefix: str) -> Iterator[tuple[str, float]]:
    """Every number of a request with its path."""
    entries = body.items() if isinstance(body, Mapping) else enumerate(body) if isinstance(body, list | tuple) else ()
    for name, value in entries:
        path = f"{prefix}{name}"
        if is_number(value):
            yield path, value
        else:
            yield from _numbers(value, f"{path}.")


def _unstated_warnings(request: ScenarioRequest, inputs: Iterable[str]) -> list[str]:
    """A warning for inputs that the base request leaves to defaults: its value may lie outside their distribution."""
    missing = [path for path in inputs if not is_stated(request.base, path)]
    if not missing:
        return []
    return [f"the base request does not state {', '.join(missing)}: the values that it assumes may differ from all values tried here"]


def _tornado_evaluations(inputs: Body, swung: Body) -> int:
    """Number of evaluations of the tornado: the base, and each input at its low and its high."""
    return 1 + 2 * (len(inputs) + len(swung))


def _settings(task: Body, first: int, end: int) -> Iterator[dict[str, Any]]:
    """Fields that each evaluation of a chunk sets: the tornado's first, then the design's."""
    tornado = [{}, *({path: value} for path, pair in _pairs(task) for value in pair)]
    yield from tornado[first:end]
    if end > len(tornado):
        yield from _design_settings(task, max(0, first - len(tornado)), end - len(tornado))


def _pairs(task: Body) -> list[tuple[str, Sequence[Any]]]:
    """Every input with its low and high: 10th and 90th percentile of a distribution. None is an invalid value."""
    stated = [(path, _quantile_values(item, LOW_AND_HIGH)) for path, item in task["inputs"].items()]
    return [*stated, *task["swung"].items()]


def _quantile_values(item: Body, shares: Floats) -> list[Any]:
    """An input's quantiles as the use cases take them."""
    return [convert_like(item["sample"], value) for value in quantiles(parse_distribution(item["distribution"], ""), shares).tolist()]


def _design_settings(task: Body, first: int, end: int) -> Iterator[dict[str, Any]]:
    rows = _design(len(task["inputs"]), task["points"], task["seed"])[first:end]
    columns = [_quantile_values(item, rows[:, index]) for index, item in enumerate(task["inputs"].values())]
    for values in zip(*columns, strict=True):
        yield dict(zip(task["inputs"], values, strict=True))


@functools.lru_cache(maxsize=2)
def _design(inputs: int, points: int, seed: int) -> Floats:
    """The whole design, cached: each chunk needs some of its rows."""
    return saltelli_design(inputs, points, seed)


def _outputs(result: RequestOutputs) -> list[float | None]:
    usd = None if result.cost_usd is None else result.cost_usd.p50
    return [usd, result.wall_clock_hours.p50, result.accelerator_hours.p50, result.hours_to_finish, result.tco2e]


def _by_output(row: Sequence[float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in zip(OUTPUTS, row, strict=True)}


def _tornado(task: Body, rows: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """A bar for each input, largest change of the cost first, without a price of the time; a side without an answer is null."""
    bars: list[dict[str, Any]] = []
    for (path, (low, high)), below, above in zip(_pairs(task), rows[::2], rows[1::2], strict=True):
        swing = abs(above[COST] - below[COST])
        bars.append(
            {
                "input": path,
                "low": to_builtins(low),
                "high": to_builtins(high),
                "at_low": _by_output(below),
                "at_high": _by_output(above),
                "swing_usd": None if math.isnan(swing) else swing,
            }
        )
    return sorted(bars, key=_bar_order)


def _bar_order(bar: Body) -> tuple[float, float, str]:
    """Change of the cost and of the time, the largest first, those without an answer last."""
    ends = [bar[at]["hours_to_finish"] for at in ("at_low", "at_high")]
    hours = math.inf if None in ends else -abs(ends[1] - ends[0])
    return (math.inf if bar["swing_usd"] is None else -bar["swing_usd"], hours, bar["input"])


def _present_sobol(task: Body, values: Floats, problems: Sequence[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """Indices of every known output, None without inputs or points; and warnings."""
    inputs, points = task["inputs"], task["points"]
    if not inputs or not points:
        return None, [f"a value has no answer: {problems[0]}"] if problems else []
    by_point = values.reshape(points, len(inputs) + 2, len(OUTPUTS))
    skipped = int(np.isnan(by_point[:, :, TIME]).any(axis=1).sum())
    warnings = [f"{skipped} of {points} points have no answer and are left out, the first because {problems[0]}"] if skipped else []
    if skipped > LARGEST_SKIPPED_SHARE * points:
        return None, [*warnings, "too few points have an answer to calculate indices: narrow the distributions"]
    outputs = {
        name: _present_indices(estimate_indices(by_point[:, :, column], task["seed"]), list(inputs))
        for column, name in enumerate(OUTPUTS)
        if not np.isnan(values[:, column]).all()
    }
    return {"points": points, "evaluations": len(values), "outputs": outputs}, warnings


def _present_indices(indices: SobolIndices, paths: Sequence[str]) -> dict[str, Any]:
    """One output's indices, largest total first."""
    rows = [
        {
            "input": path,
            "first_order": float(indices.first[column]),
            "first_order_interval": indices.first_interval[:, column].tolist(),
            "total": float(indices.total[column]),
            "total_interval": indices.total_interval[:, column].tolist(),
        }
        for column, path in enumerate(paths)
    ]
    rows.sort(key=lambda row: (-row["total"], row["input"]))
    return {"mean": indices.mean, "standard_deviation": math.sqrt(indices.variance), "inputs": rows}


KIND = ScenarioKind(prepare, run_chunk, finish)
