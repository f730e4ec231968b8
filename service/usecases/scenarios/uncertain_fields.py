"""The uncertain fields of a Monte Carlo scenario: checked when it is submitted, and loaded by its workers.

Besides the distributions of `distributions` a field may have `{"queue": {"slots", "arrivals_per_hour", "mean_hours"}}`, hours of waiting in
an M/M/c queue; a price `{"regimes": {"calm_factor", "scarce_factor", "calm_hours", "scarce_hours"}}`, or `{"history": {"days"}}`, the
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
from service.serialization import to_builtins
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.scenarios.changes.path_scope import check_scope, list_run_estimates, resolve_path
from service.usecases.scenarios.changes.request_paths import check_path, is_stated, read_numbers, takes_whole_numbers, with_values
from service.usecases.scenarios.distributions import bounds, parse_distribution
from service.usecases.scenarios.price_history import load_price_history
from service.usecases.scenarios.registry import Body, ScenarioRequest
from service.usecases.scenarios.trial_models import has_trial_values

MOST_NODES, MOST_COMBINATIONS = 33, 300
LONGEST_HOURS = 1e6
MOST_SLOTS = 100_000
PRICE = "price.usd_per_accelerator_hour"
PRICE_FILTERS = ("provider", "region", "pricing")
MODEL_ASSUMPTIONS = {
    "trials.failures": "exponential; each failure repeats the work since the last checkpoint, and the checkpoint interval stays as planned"
    " (docs/reference/scenarios.md)",
    "trials.calendar": "hours, finish and deadline_probability assume that all gates are passed; cost_usd and accelerator_hours"
    " stop at a gate that is not passed",
    "trials.contingency": "not added to the cost: the trials draw the events for which it is reserved",
}


def read_fields(context: AppContext, request: ScenarioRequest) -> list[dict[str, Any]]:
    """The uncertain fields in the form that workers load. Raises InvalidRequest with a pointer into the scenario's request."""
    stated = request.options.get("distributions") or {}
    for index, pair in enumerate(request.options.get("correlations") or ()):
        _check_pair(pair, stated, f"/correlations/{index}")
    names = {name: _resolve_name(request, name, stated[name]) for name in sorted(stated)}
    _check_distinct(names)
    limit = _count_nodes(request, {path: stated[name] for name, path in names.items()})
    return [
        {"name": name, **_read_field(request, path, _load_history(context, request, name, stated[name]), limit, f"/distributions/{name}")}
        for name, path in names.items()
    ]


def check_scopes(base: Body, fields: Sequence[Body]) -> list[str]:
    """Warnings for fields of a program's defaults that reach only some of its runs. Raises InvalidRequest for one that reaches none."""
    paths = {field["path"] for field in fields}
    warnings = (check_scope(base, field["path"], paths, f"/distributions/{field['name']}") for field in fields)
    return [warning for warning in warnings if warning is not None]


def load_fields(stated: Sequence[Body]) -> tuple[UncertainField, ...]:
    """The fields that trials draw."""
    return tuple(
        UncertainField(
            field["path"],
            _parse_distribution(field["stated"], ""),
            tuple(float(number) for number in field["nodes"]),
            tuple(field["cuts"]),
            1.0 if field["path"].endswith("probability") else math.inf,
        )
        for field in _with_scores(stated)
    )


def _with_scores(stated: Sequence[Body]) -> list[Body]:
    """Fields that are drawn from a score; a price with regimes is not."""
    return [field for field in stated if "regimes" not in field["stated"]]


def load_regimes(stated: Sequence[Body]) -> dict[str, Regimes]:
    """Prices that switch between regimes, by path."""
    return {field["path"]: Regimes(**field["stated"]["regimes"]) for field in stated if "regimes" in field["stated"]}


def factor_correlations(correlations: Sequence[Body], stated: Sequence[Body]) -> Floats | None:
    """Factor of the fields' correlation matrix; None where they are independent. Raises InvalidRequest for an impossible matrix."""
    if not correlations:
        return None
    rows = {field["name"]: row for row, field in enumerate(_with_scores(stated))}
    matrix = np.eye(len(rows))
    for pair in correlations:
        row, column = (rows[name] for name in pair["between"])
        matrix[row, column] = matrix[column, row] = pair["correlation"]
    return correlation_factor(matrix)


def median_base(base: Body, fields: Sequence[Body]) -> dict[str, Any]:
    """The base with each field at its median, so that the plan is the median case.

    A price that the request selects from offers stays: it cannot be stated together with a filter.
    """
    return with_values(base, {field["path"]: field["median"] for field in fields if field["median"] is not None})


def note_model(fields: Sequence[Body], notes: AssumptionLog) -> None:
    """Record the paths of names of a run's fields, and the assumptions of the trial model."""
    for field in fields:
        if field["name"] != field["path"]:
            source = "in a program: the field of each run that does not state its own"
            notes.assume(f"distributions.{field['name']}", field["path"], source)
    for name, source in MODEL_ASSUMPTIONS.items():
        notes.assume(name, "model", source)


def _read_field(request: ScenarioRequest, path: str, stated: Any, limit: int, pointer: str) -> dict[str, Any]:
    if isinstance(stated, Mapping) and "regimes" in stated:
        return {"path": path, "stated": _read_regimes(request, path, stated, pointer), "nodes": [], "cuts": [], "median": None}
    distribution = _parse_distribution(stated, pointer)
    if has_trial_values(request.shape, request.base, path):
        low, high = bounds(distribution)
        middle = float(quantile_at_score(distribution, np.zeros(1))[0])
        _, median, _ = read_numbers(request, path, _round_counts(request, path, [low, middle, high]), pointer)
        if not _can_be_set(request, path):
            median = None
        elif path == f"defaults.{PRICE}":
            _check_run_filters(request.base, pointer)
        return {"path": path, "stated": to_builtins(stated), "nodes": [], "cuts": [], "median": median}
    nodes, cuts = _place_nodes(distribution, limit)
    read = read_numbers(request, path, nodes if isinstance(distribution, Discrete) else _round_counts(request, path, nodes), pointer)
    return {"path": path, "stated": to_builtins(stated), "nodes": read, "cuts": cuts, "median": read[len(read) // 2]}


def _resolve_name(request: ScenarioRequest, name: str, stated: Any) -> str:
    """The path of the field that a name refers to. Raises InvalidRequest for a malformed path."""
    pointer = f"/distributions/{name}"
    path = check_path(name, pointer)
    if not isinstance(stated, Mapping) or set(stated) & {"regimes", "history"}:
        return resolve_path(request, path, 1.0)
    return resolve_path(request, path, float(quantile_at_score(_parse_distribution(stated, pointer), np.zeros(1))[0]))


def _check_distinct(names: Mapping[str, str]) -> None:
    """Raises InvalidRequest where two names refer to the same field."""
    for name, path in names.items():
        if name != path and path in names:
            raise InvalidRequest(
                f"in a program {name} means {path}, which has a distribution too: leave one of them out", f"/distributions/{name}"
            )


def _load_history(context: AppContext, request: ScenarioRequest, path: str, stated: Any) -> Any:
    """What is stated, a price history replaced by its distribution."""
    if not (isinstance(stated, Mapping) and set(stated) == {"history"}):
        return stated
    if path != PRICE:
        raise InvalidRequest(f"only {PRICE} can take its distribution from a history", f"/distributions/{path}")
    return load_price_history(context, request, stated["history"], f"/distributions/{path}")


def _round_counts(request: ScenarioRequest, path: str, values: list[float]) -> list[float]:
    """Values rounded where the field takes whole numbers."""
    return [float(round(value)) for value in values] if takes_whole_numbers(request, path, values[0]) else values


def _parse_distribution(stated: Any, pointer: str) -> Distribution:
    """The distribution that is stated. Raises InvalidRequest."""
    if not isinstance(stated, Mapping):
        raise InvalidRequest('must be an object such as {"uniform": [low, high]}', pointer)
    return _parse_queue(stated["queue"], pointer) if set(stated) == {"queue"} else parse_distribution(stated, pointer)


def _read_numbers(kind: type[QueueWait | Regimes], stated: Any, name: str, pointer: str) -> dict[str, float]:
    """The fields of a queue or of regimes. Raises InvalidRequest unless all are stated, each above 0."""
    *names, last = kind.__dataclass_fields__
    if not isinstance(stated, Mapping) or set(stated) != {*names, last} or not all(map(_is_positive, stated.values())):
        raise InvalidRequest(f"{name} takes {', '.join(names)} and {last}, each above 0", pointer)
    return {field: float(value) for field, value in stated.items()}


def _parse_queue(stated: Any, pointer: str) -> QueueWait:
    numbers = _read_numbers(QueueWait, stated, "queue", pointer)
    slots = round(numbers["slots"])
    if slots != numbers["slots"] or slots > MOST_SLOTS:
        raise InvalidRequest(f"slots is a whole number of at most {MOST_SLOTS:,}", pointer)
    queue = QueueWait(slots, numbers["arrivals_per_hour"], numbers["mean_hours"])
    load = queue.arrivals_per_hour * queue.mean_hours / slots
    if load >= 1 - 1e-6:
        raise InvalidRequest(f"the queue's load is {load:.3g}; it must be below 1, or the queue grows without limit", pointer)
    return queue


def _read_regimes(request: ScenarioRequest, path: str, stated: Body, pointer: str) -> dict[str, Any]:
    if not has_trial_values(request.shape, request.base, path) or not path.endswith(PRICE):
        raise InvalidRequest("only price.usd_per_accelerator_hour can have regimes", pointer)
    only_regimes = stated["regimes"] if set(stated) == {"regimes"} else None
    return {"regimes": _read_numbers(Regimes, only_regimes, "regimes", pointer)}


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LONGEST_HOURS


def _check_pair(pair: Body, stated: Body, pointer: str) -> None:
    for index, path in enumerate(pair["between"]):
        if path not in stated:
            raise InvalidRequest(f"{path[:80]!r} is not one of the distributions", f"{pointer}/between/{index}")
        if isinstance(stated[path], Mapping) and "regimes" in stated[path]:
            raise InvalidRequest("a price with regimes cannot be correlated: give it another distribution", f"{pointer}/between/{index}")
    if pair["between"][0] == pair["between"][1]:
        raise InvalidRequest("a field's correlation with itself is always 1: name two different fields", f"{pointer}/between")


def _count_nodes(request: ScenarioRequest, stated: Body) -> int:
    """Number of nodes of each continuous field that has no value per trial. Raises InvalidRequest for too many fields."""
    others = [path for path in stated if not has_trial_values(request.shape, request.base, path)]
    choices = [
        len(stated[path]["choice"]) for path in others if isinstance(stated[path], Mapping) and isinstance(stated[path].get("choice"), list)
    ]
    free = len(others) - len(choices)
    left = MOST_COMBINATIONS // max(1, math.prod(choices))
    nodes = min(MOST_NODES, math.floor(left ** (1 / free) + 1e-9)) if free else MOST_NODES
    if left < 1 or nodes < 2:
        raise InvalidRequest(
            f"{len(others)} of these fields need a new estimate for each combination of their values, and at most {MOST_COMBINATIONS} are"
            f" made: leave some fields out, or give choices fewer values ({', '.join(others[:5])})",
            "/distributions",
        )
    return nodes


def _place_nodes(distribution: Distribution, limit: int) -> tuple[list[float], list[float]]:
    """Nodes, and the scores that separate them: all values of a choice, else the medians of equally probable parts."""
    if isinstance(distribution, Discrete):
        return list(distribution.values), []
    scores = np.array([normal_quantile((part + 0.5) / limit) for part in range(limit)])
    return quantile_at_score(distribution, scores).tolist(), [normal_quantile(part / limit) for part in range(1, limit)]


def _can_be_set(request: ScenarioRequest, path: str) -> bool:
    """Whether the field can be set in the base: a price cannot be together with a filter."""
    if not path.endswith(PRICE):
        return True
    section = path.removesuffix(".usd_per_accelerator_hour")
    sections = {section, "defaults.price"} if request.shape == "program" else {section}
    return not any(is_stated(request.base, f"{section}.{name}") for section in sections for name in PRICE_FILTERS)


def _check_run_filters(base: Body, pointer: str) -> None:
    """Raises InvalidRequest where a run selects its price by its own filter: the defaults' price cannot be stated then."""
    for section, run in list_run_estimates(base):
        for name in PRICE_FILTERS:
            if is_stated(run, f"price.{name}"):
                raise InvalidRequest(
                    f"{section}.price.{name} selects that run's price from offers, so defaults.{PRICE} cannot be stated: leave"
                    f" the filter out, or vary {section}.{PRICE} instead",
                    pointer,
                )
