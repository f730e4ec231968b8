"""Which inputs matter: a tornado, one input at a time at its low and its high, and Sobol' indices, all of them at once.

The base request is evaluated anew each time, by the estimate's or the program's own use case: nothing is approximated but the indices.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.engine.scenarios.sensitivity import Floats, SobolIndices, count_evaluations, estimate_indices, saltelli_design
from service.presets.version import engine_version
from service.serialization import plain
from service.usecases.scenarios.base_check import check_base
from service.usecases.scenarios.changes.request_paths import (
    RequestOutputs,
    at_time,
    check_path,
    convert_like,
    evaluate_request,
    get_value,
    is_number,
    pin_prices,
    read_numbers,
    read_value,
    takes_whole_numbers,
    with_values,
)
from service.usecases.scenarios.distributions import bounds, parse_distribution, quantiles
from service.usecases.scenarios.registry import PreparedScenario, ScenarioKind, ScenarioRequest, Step, never_sufficient

Body = Mapping[str, Any]

OUTPUTS = ("cost_usd", "wall_clock_hours", "accelerator_hours", "hours_to_finish", "tco2e")
MOST_EVALUATIONS = {"estimate": 100_000, "program": 10_000}
MOST_INPUTS = 50
# Changed inputs mean a layout searched anew, some 10 ms; a program with its schedule takes ten times that.
EVALUATIONS_A_CHUNK = {"estimate": 50, "program": 5}
USUAL_POINTS = 256
USUAL_SEED = 1
LOW_AND_HIGH = np.array([0.1, 0.9])
# Above this share of points without an answer indices are of another, smaller question.
MOST_LEFT_OUT = 0.2


def prepare(context: AppContext, given: ScenarioRequest) -> PreparedScenario:
    """The inputs with how they are distributed. Raises DomainErrors with a pointer into the request, the base's among them."""
    options = given.options
    stated, swing = options.get("inputs") or {}, options.get("swing")
    if not stated and swing is None:
        raise InvalidRequest("state inputs with their distributions, or swing: by which share every number is moved", "/inputs")
    points = _points(options) if stated else 0
    swung = _swung(given, stated, swing)
    _check_limits(given, len(stated), len(swung), points)
    inputs = {path: _input(given, path, stated[path]) for path in sorted(stated)}
    base, snapshot = pin_prices(context, given)
    check_base(context, given.shape, base)
    units = _tornado_evaluations(inputs, swung) + (count_evaluations(len(inputs), points) if inputs else 0)
    a_chunk = EVALUATIONS_A_CHUNK[given.shape]
    return PreparedScenario(
        kind="sensitivity",
        chunks=math.ceil(units / a_chunk),
        units_per_chunk=a_chunk,
        units=units,
        checkpoints=(),
        request={
            "shape": given.shape,
            "base": base,
            "now": context.clock(),
            "inputs": inputs,
            "swung": swung,
            "points": points,
            "seed": options.get("seed", USUAL_SEED),
            "assumptions": _assumptions(options, points),
            "warnings": _unstated(given, inputs),
        },
        snapshot=snapshot,
    )


def run_chunk(context: AppContext, prepared: PreparedScenario, index: int, step: Step) -> dict[str, Any]:
    """The outputs of one chunk of evaluations, None where there is no answer, with the first reason."""
    asked, context = prepared.request, at_time(context, prepared.request["now"])
    values: list[list[float] | None] = []
    problem = None
    for settings in _settings(asked, index * prepared.units_per_chunk, prepared.units_after(index + 1)):
        step()
        if None in settings.values():
            values.append(None)
            continue
        try:
            values.append(_outputs(evaluate_request(context, asked["shape"], with_values(asked["base"], settings))))
        except DomainError as found:
            values.append(None)
            problem = problem or f"{found.pointer}: {found.message}".removeprefix(": ")
    return {"values": values, "problem": problem}


def finish(context: AppContext, prepared: PreparedScenario, tallies: Iterable[Body]) -> dict[str, Any]:
    """The tornado and the indices. Raises InvalidRequest where the base request itself has no answer."""
    del context
    asked, rows, problems = prepared.request, [], []
    for tally in tallies:
        rows += [[math.nan] * len(OUTPUTS) if row is None else row for row in tally["values"]]
        problems += [tally["problem"]] if tally["problem"] else []
    if math.isnan(rows[0][0]):
        raise InvalidRequest(f"the base request has no answer: {problems[0]}", "/base")
    first_of_design = _tornado_evaluations(asked["inputs"], asked["swung"])
    found, warnings = _indices(asked, np.array(rows[first_of_design:]), problems)
    return {
        "base": _named(rows[0]),
        "tornado": _tornado(asked, rows[1:first_of_design]),
        "sobol": found,
        "price_snapshot": prepared.snapshot,
        "engine_version": engine_version(),
        "assumptions": asked["assumptions"],
        "warnings": [*asked["warnings"], *warnings],
    }


def _points(options: Body) -> int:
    """Points of the design: a power of two."""
    stated = options.get("points", USUAL_POINTS)
    return 0 if stated == 0 else 1 << (int(stated) - 1).bit_length()


def _check_limits(given: ScenarioRequest, inputs: int, swung: int, points: int) -> None:
    most = MOST_EVALUATIONS[given.shape]
    if inputs + swung > MOST_INPUTS:
        raise InvalidRequest(f"{inputs + swung} inputs are more than {MOST_INPUTS}: state those of interest in inputs", "/inputs")
    if points and count_evaluations(inputs, points) > most:
        raise InvalidRequest(
            f"{points:,} points of {inputs} inputs are {count_evaluations(inputs, points):,} evaluations, more than the {most:,} of one"
            f" sensitivity over a base of the shape {given.shape}",
            "/points",
        )


def _input(given: ScenarioRequest, path: str, distribution: Body) -> dict[str, Any]:
    """An input's distribution, its ends read by the request's schema: what lies between them is as good."""
    pointer = f"/inputs/{path}"
    low, high = bounds(parse_distribution(distribution, pointer))
    if takes_whole_numbers(given, check_path(path, pointer), high):
        low, high = round(low), round(high)
    return {"distribution": dict(distribution), "sample": read_numbers(given, path, (low, high), pointer)[0]}


def _swung(given: ScenarioRequest, stated: Body, swing: float | None) -> dict[str, list[Any]]:
    """Low and high of every other number that the base request states, a share below and above it; those it is not taken at are left."""
    if swing is None:
        return {}
    numbers = {path: value for path, value in _numbers(given.base, "") if path not in stated and value}
    if len(numbers) > MOST_INPUTS:
        message = f"the base states {len(numbers)} numbers, more than {MOST_INPUTS}: state those of interest in inputs"
        raise InvalidRequest(message, "/swing")
    bounds = [_moved(given, {path: numbers[path] for path in sorted(numbers)}, factor) for factor in (1 - swing, 1 + swing)]
    pairs = {path: [taken[path] for taken in bounds] for path in bounds[0]}
    return {path: pair for path, pair in pairs.items() if pair != [None, None]}


def _moved(given: ScenarioRequest, numbers: Mapping[str, Any], factor: float) -> dict[str, Any]:
    """Every number times a factor as the use cases take it, None where the request's schema does not; all read at once if they can be."""
    moved = {path: _times(value, factor) for path, value in numbers.items()}
    try:
        body = given.read(with_values(given.base_json, moved))
        return {path: get_value(body, path) for path in moved}
    except (DomainError, KeyError):
        return {path: _taken(given, path, value) for path, value in moved.items()}


def _times(value: int | float | Decimal, factor: float) -> float:
    """The product, whole where the value is, in cents where it is an amount."""
    if isinstance(value, Decimal):
        return round(float(value) * factor, 2)
    return round(value * factor) if isinstance(value, int) else value * factor


def _taken(given: ScenarioRequest, path: str, value: float) -> Any:
    """The value as the use cases take it, None where the request's schema does not."""
    try:
        return read_value(given, path, value, "")
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


def _assumptions(options: Body, points: int) -> list[dict[str, Any]]:
    """What the caller did not say, or not so."""
    found = []
    if points and options.get("points") != points:
        found.append({"field": "points", "value": points, "source": "a power of two, as a Sobol' sequence is balanced for"})
    if "seed" not in options:
        found.append({"field": "seed", "value": USUAL_SEED, "source": "not stated"})
    if points:
        found.append({"field": "inputs", "value": "independent", "source": "Sobol' indices are of independent inputs"})
    return found


def _unstated(given: ScenarioRequest, inputs: Iterable[str]) -> list[str]:
    """Which inputs the base request leaves to be assumed: then it is no point between their ends."""
    missing = []
    for path in inputs:
        try:
            get_value(given.base, path)
        except KeyError:
            missing.append(path)
    if not missing:
        return []
    return [f"the base request does not state {', '.join(missing)}: what it assumes there may be another thing than any value of these"]


def _tornado_evaluations(inputs: Body, swung: Body) -> int:
    """The base, and each input at its low and its high."""
    return 1 + 2 * (len(inputs) + len(swung))


def _settings(asked: Body, first: int, end: int) -> Iterator[dict[str, Any]]:
    """What each evaluation of a chunk sets: the tornado's first, then the design's."""
    tornado = [{}, *({path: value} for path, pair in _pairs(asked) for value in pair)]
    yield from tornado[first:end]
    if end > len(tornado):
        yield from _designed(asked, max(0, first - len(tornado)), end - len(tornado))


def _pairs(asked: Body) -> list[tuple[str, Sequence[Any]]]:
    """Every input with its low and high: the 10th and 90th percentile of those with a distribution. None is not taken."""
    stated = [(path, _values(each, LOW_AND_HIGH)) for path, each in asked["inputs"].items()]
    return [*stated, *asked["swung"].items()]


def _values(given: Body, shares: Floats) -> list[Any]:
    """An input's quantiles as the use cases take them."""
    return [convert_like(given["sample"], value) for value in quantiles(parse_distribution(given["distribution"], ""), shares).tolist()]


def _designed(asked: Body, first: int, end: int) -> Iterator[dict[str, Any]]:
    rows = _design(len(asked["inputs"]), asked["points"], asked["seed"])[first:end]
    columns = [_values(each, rows[:, at]) for at, each in enumerate(asked["inputs"].values())]
    for values in zip(*columns, strict=True):
        yield dict(zip(asked["inputs"], values, strict=True))


@functools.lru_cache(maxsize=2)
def _design(inputs: int, points: int, seed: int) -> Floats:
    """The whole design; a chunk needs some rows of it, and the next chunk the next."""
    return saltelli_design(inputs, points, seed)


def _outputs(found: RequestOutputs) -> list[float]:
    return [found.cost_usd.p50, found.wall_clock_hours.p50, found.accelerator_hours.p50, found.hours_to_finish, found.tco2e]


def _named(row: Sequence[float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in zip(OUTPUTS, row, strict=True)}


def _tornado(asked: Body, rows: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """A bar for each input, the one that moves the cost most first; a side without an answer is null."""
    bars = []
    for at, (path, (low, high)) in enumerate(_pairs(asked)):
        below, above = rows[2 * at], rows[2 * at + 1]
        swing = abs(above[0] - below[0])
        bars.append(
            {
                "input": path,
                "low": plain(low),
                "high": plain(high),
                "at_low": _named(below),
                "at_high": _named(above),
                "swing_usd": None if math.isnan(swing) else swing,
            }
        )
    return sorted(bars, key=lambda bar: (math.inf if bar["swing_usd"] is None else -bar["swing_usd"], bar["input"]))


def _indices(asked: Body, values: Floats, problems: Sequence[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """Indices of every output, None where none were asked for; and what to be careful about."""
    inputs, points = asked["inputs"], asked["points"]
    if not inputs or not points:
        return None, [f"a value has no answer: {problems[0]}"] if problems else []
    by_point = values.reshape(points, len(inputs) + 2, len(OUTPUTS))
    left_out = int(np.isnan(by_point).any(axis=(1, 2)).sum())
    warnings = [f"{left_out} of {points} points have no answer and are left out, the first because {problems[0]}"] if left_out else []
    if left_out > MOST_LEFT_OUT * points:
        return None, [*warnings, "too few points have an answer for indices: narrow the distributions"]
    shown = {name: _shown(estimate_indices(by_point[:, :, at], asked["seed"]), list(inputs)) for at, name in enumerate(OUTPUTS)}
    return {"points": points, "evaluations": len(values), "outputs": shown}, warnings


def _shown(found: SobolIndices, paths: Sequence[str]) -> dict[str, Any]:
    """One output's indices, the greatest total first."""
    rows = [
        {
            "input": path,
            "first_order": float(found.first[at]),
            "first_order_interval": found.first_interval[:, at].tolist(),
            "total": float(found.total[at]),
            "total_interval": found.total_interval[:, at].tolist(),
        }
        for at, path in enumerate(paths)
    ]
    rows.sort(key=lambda row: (-row["total"], row["input"]))
    return {"mean": found.mean, "standard_deviation": math.sqrt(found.variance), "inputs": rows}


KIND = ScenarioKind(prepare, run_chunk, never_sufficient, finish)
