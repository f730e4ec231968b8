"""The uncertain fields of a Monte Carlo scenario: read and checked when it is asked for, and taken up again by its workers.

Beside the distributions of `scenario_inputs` a field may have `{"queue": {"slots", "arrivals_per_hour", "mean_hours"}}`, hours of waiting
in an M/M/c queue; a price `{"regimes": {"calm_factor", "scarce_factor", "calm_hours", "scarce_hours"}}`, or `{"history": {"days"}}`, the
prices that its offer had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.scenarios import Discrete, Distribution, Floats, QueueWait, Regimes
from service.engine.scenarios.distributions import correlation_factor, normal_quantile, quantile_at_score
from service.engine.scenarios.trials import UncertainField
from service.serialization import plain
from service.usecases.scenarios.changes.path_scope import check_scope, resolve_path
from service.usecases.scenarios.changes.request_paths import check_path, is_stated, read_numbers, takes_whole_numbers, with_values
from service.usecases.scenarios.distributions import bounds, parse_distribution
from service.usecases.scenarios.price_history import load_price_history
from service.usecases.scenarios.registry import ScenarioRequest
from service.usecases.scenarios.trial_models import has_trial_values

Body = Mapping[str, Any]

MOST_NODES, MOST_COMBINATIONS = 33, 300
LONGEST_HOURS = 1e6
PRICE = "price.usd_per_accelerator_hour"
PRICE_FILTERS = ("provider", "region", "pricing")


def read_fields(context: AppContext, given: ScenarioRequest) -> list[dict[str, Any]]:
    """The uncertain fields, ready for the workers. Raises InvalidRequest with a pointer into the scenario's request."""
    stated = given.options.get("distributions") or {}
    for at, pair in enumerate(given.options.get("correlations") or ()):
        _check_pair(pair, stated, f"/correlations/{at}")
    names = {name: _meant(given, name, stated[name]) for name in sorted(stated)}
    _check_once(names)
    limit = _nodes_each(given, {path: stated[name] for name, path in names.items()})
    return [
        {"name": name, **_field(given, path, _seen(context, given, name, stated[name]), limit, f"/distributions/{name}")}
        for name, path in names.items()
    ]


def check_scopes(base: Body, fields: Sequence[Body]) -> list[str]:
    """Which fields of a program's defaults reach some of its runs only. Raises InvalidRequest for one that reaches none."""
    paths = {one["path"] for one in fields}
    found = (check_scope(base, one["path"], paths, f"/distributions/{one['name']}") for one in fields)
    return [warning for warning in found if warning is not None]


def load_fields(stated: Sequence[Body]) -> tuple[UncertainField, ...]:
    """The fields that trials draw."""
    return tuple(
        UncertainField(
            one["path"],
            _distribution(one["stated"], ""),
            tuple(float(number) for number in one["nodes"]),
            tuple(one["cuts"]),
            1.0 if one["path"].endswith("probability") else math.inf,
        )
        for one in _scored(stated)
    )


def _scored(stated: Sequence[Body]) -> list[Body]:
    """Those that are drawn by a score; a price of regimes is not."""
    return [one for one in stated if "regimes" not in one["stated"]]


def load_regimes(stated: Sequence[Body]) -> dict[str, Regimes]:
    """Prices that switch between regimes, by their paths."""
    return {one["path"]: Regimes(**one["stated"]["regimes"]) for one in stated if "regimes" in one["stated"]}


def factor_correlations(correlations: Sequence[Body], stated: Sequence[Body]) -> Floats | None:
    """What correlates the fields' scores; None where they are independent. Raises InvalidRequest where they cannot be so."""
    if not correlations:
        return None
    at = {one["name"]: place for place, one in enumerate(_scored(stated))}
    matrix = np.eye(len(at))
    for pair in correlations:
        one, other = (at[name] for name in pair["between"])
        matrix[one, other] = matrix[other, one] = pair["correlation"]
    return correlation_factor(matrix)


def median_base(base: Body, fields: Sequence[Body]) -> dict[str, Any]:
    """The base with each field at its median, so that what is planned is the middle of what can happen.

    A price that the request has chosen from offers stays: it cannot be stated beside a filter.
    """
    return with_values(base, {one["path"]: one["median"] for one in fields if one["median"] is not None})


def list_assumptions(options: Body, fields: Sequence[Body], trials: int, seed: int, relative_error: float) -> list[dict[str, Any]]:
    """What the caller did not choose of the trials, what names of a run's fields stand for, and what every trial takes for granted."""
    usual = {
        "trials": (trials, "usual number"),
        "seed": (seed, "the same request and seed give the same result"),
        "early_stop": (
            True,
            f"trials end when mean, p10, p50 and p90 are known to {relative_error:.2%}, shares to as much of 1",
        ),
    }
    found = [{"field": name, "value": value, "source": source} for name, (value, source) in usual.items() if name not in options]
    found += [
        {"field": f"distributions.{one['name']}", "value": one["path"], "source": "of a program: the field of every run that states none"}
        for one in fields
        if one["name"] != one["path"]
    ]
    taken = {
        "trials.failures": "exponential, each repeats work since the last checkpoint; the interval stays as planned (docs/scenarios.md)",
        "trials.calendar": "hours, finish and deadline_probability are of a program whose gates are all passed; cost_usd and"
        " accelerator_hours end at a gate that is not",
        "trials.contingency": "not spent: what it is held for is drawn",
    }
    return found + [{"field": name, "value": "model", "source": source} for name, source in taken.items()]


def _field(given: ScenarioRequest, path: str, stated: Any, limit: int, pointer: str) -> dict[str, Any]:
    if isinstance(stated, Mapping) and "regimes" in stated:
        return {"path": path, "stated": _regimes(given, path, stated, pointer), "nodes": [], "cuts": [], "median": None}
    distribution = _distribution(stated, pointer)
    if has_trial_values(given.shape, given.base, path):
        low, high = bounds(distribution)
        middle = float(quantile_at_score(distribution, np.zeros(1))[0])
        _, median, _ = read_numbers(given, path, _whole(given, path, [low, middle, high]), pointer)
        if not _statable(given, path):
            median = None
        elif path == f"defaults.{PRICE}":
            _check_filters(given.base, pointer)
        return {"path": path, "stated": plain(stated), "nodes": [], "cuts": [], "median": median}
    nodes, cuts = _nodes(distribution, limit)
    read = read_numbers(given, path, nodes if isinstance(distribution, Discrete) else _whole(given, path, nodes), pointer)
    return {"path": path, "stated": plain(stated), "nodes": read, "cuts": cuts, "median": read[len(read) // 2]}


def _meant(given: ScenarioRequest, name: str, stated: Any) -> str:
    """The path of the field that a name stands for. Raises InvalidRequest for one that is no path."""
    pointer = f"/distributions/{name}"
    path = check_path(name, pointer)
    if not isinstance(stated, Mapping) or set(stated) & {"regimes", "history"}:
        return resolve_path(given, path, 1.0)
    return resolve_path(given, path, float(quantile_at_score(_distribution(stated, pointer), np.zeros(1))[0]))


def _check_once(names: Mapping[str, str]) -> None:
    """Raises InvalidRequest where two names stand for the same field."""
    for name, path in names.items():
        if name != path and path in names:
            raise InvalidRequest(
                f"{name} is {path} of a program, which has a distribution too: leave one of them out", f"/distributions/{name}"
            )


def _seen(context: AppContext, given: ScenarioRequest, path: str, stated: Any) -> Any:
    """What is stated, with a history as the prices that were seen."""
    if not (isinstance(stated, Mapping) and set(stated) == {"history"}):
        return stated
    if path != PRICE:
        raise InvalidRequest(f"only a price has a history here: {PRICE}", f"/distributions/{path}")
    return load_price_history(context, given, stated["history"], f"/distributions/{path}")


def _whole(given: ScenarioRequest, path: str, values: list[float]) -> list[float]:
    """Values to the nearest whole number where the field counts."""
    return [float(round(value)) for value in values] if takes_whole_numbers(given, path, values[0]) else values


def _distribution(stated: Any, pointer: str) -> Distribution:
    """The distribution that is stated. Raises InvalidRequest."""
    if not isinstance(stated, Mapping):
        raise InvalidRequest('must be an object such as {"uniform": [low, high]}', pointer)
    return _queue(stated["queue"], pointer) if set(stated) == {"queue"} else parse_distribution(stated, pointer)


def _queue(stated: Any, pointer: str) -> QueueWait:
    names = {"slots", "arrivals_per_hour", "mean_hours"}
    if not isinstance(stated, Mapping) or set(stated) != names or not all(_above_zero(stated[name]) for name in names):
        raise InvalidRequest("queue takes slots, arrivals_per_hour and mean_hours, each above 0", pointer)
    slots = round(stated["slots"])
    if slots != stated["slots"] or slots > 100_000:
        raise InvalidRequest("slots is a whole number of at most 100,000", pointer)
    queue = QueueWait(slots, float(stated["arrivals_per_hour"]), float(stated["mean_hours"]))
    load = queue.arrivals_per_hour * queue.mean_hours / slots
    if load >= 1 - 1e-6:
        raise InvalidRequest(f"the queue's load is {load:.3g}: at 1 and above it grows for ever; it has to be below", pointer)
    return queue


def _regimes(given: ScenarioRequest, path: str, stated: Body, pointer: str) -> dict[str, Any]:
    names = {"calm_factor", "scarce_factor", "calm_hours", "scarce_hours"}
    inside = stated["regimes"]
    if not has_trial_values(given.shape, given.base, path) or not path.endswith(PRICE):
        raise InvalidRequest("regimes are of a price: price.usd_per_accelerator_hour", pointer)
    if set(stated) != {"regimes"} or not isinstance(inside, Mapping) or set(inside) != names or not all(map(_above_zero, inside.values())):
        raise InvalidRequest("regimes takes calm_factor, scarce_factor, calm_hours and scarce_hours, each above 0", pointer)
    return {"regimes": {name: float(inside[name]) for name in sorted(names)}}


def _above_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_HOURS


def _check_pair(pair: Body, stated: Body, pointer: str) -> None:
    for at, path in enumerate(pair["between"]):
        if path not in stated:
            raise InvalidRequest(f"{path[:80]!r} is not one of the distributions", f"{pointer}/between/{at}")
        if isinstance(stated[path], Mapping) and "regimes" in stated[path]:
            raise InvalidRequest(
                "a price of regimes has no score to be correlated: give it another distribution", f"{pointer}/between/{at}"
            )
    if pair["between"][0] == pair["between"][1]:
        raise InvalidRequest("a field's correlation with itself is 1: name two of them", f"{pointer}/between")


def _nodes_each(given: ScenarioRequest, stated: Body) -> int:
    """At how many values of each continuous field the model is made, where trials have none of their own. Raises InvalidRequest."""
    others = [path for path in stated if not has_trial_values(given.shape, given.base, path)]
    choices = [
        len(stated[path]["choice"]) for path in others if isinstance(stated[path], Mapping) and isinstance(stated[path].get("choice"), list)
    ]
    free = len(others) - len(choices)
    left = MOST_COMBINATIONS // max(1, math.prod(choices))
    each = min(MOST_NODES, math.floor(left ** (1 / free) + 1e-9)) if free else MOST_NODES
    if left < 1 or each < 2:
        raise InvalidRequest(
            f"{len(others)} of these fields change the estimate itself, which is made at most {MOST_COMBINATIONS} times: two values of each"
            f" are more; leave some out, or give choices fewer values ({', '.join(others[:5])})",
            "/distributions",
        )
    return each


def _nodes(distribution: Distribution, limit: int) -> tuple[list[float], list[float]]:
    """Values that the model is made at, and the scores that divide them: all of a choice, else the middles of equally probable parts."""
    if isinstance(distribution, Discrete):
        return list(distribution.values), []
    scores = np.array([normal_quantile((place + 0.5) / limit) for place in range(limit)])
    return quantile_at_score(distribution, scores).tolist(), [normal_quantile(place / limit) for place in range(1, limit)]


def _statable(given: ScenarioRequest, path: str) -> bool:
    """Whether the field can be set in the base: a price cannot beside a filter."""
    if not path.endswith(PRICE):
        return True
    section = path.removesuffix(".usd_per_accelerator_hour")
    sections = {section, "defaults.price"} if given.shape == "program" else {section}
    return not any(is_stated(given.base, f"{one}.{name}") for one in sections for name in PRICE_FILTERS)


def _check_filters(base: Body, pointer: str) -> None:
    """Raises InvalidRequest where a run chooses its price by a filter of its own, beside which the defaults' price cannot be stated."""
    for at, tier in enumerate(base["tiers"]):
        for place, run in enumerate(tier["runs"]):
            for name in PRICE_FILTERS:
                if is_stated(run["estimate"], f"price.{name}"):
                    section = f"tiers.{at}.runs.{place}.estimate.price"
                    raise InvalidRequest(
                        f"{section}.{name} chooses that run's price from offers, beside which defaults.{PRICE} cannot be stated: leave the"
                        f" filter out, or vary {section}.usd_per_accelerator_hour in its place",
                        pointer,
                    )
