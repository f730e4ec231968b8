"""Fields of a program's runs that are set for all of them: the path of a name, and the runs that it reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from service.domain.errors import InvalidRequest
from service.usecases.programs.runs import PROGRAM_SECTIONS
from service.usecases.scenarios.changes.request_paths import is_stated, read_value
from service.usecases.scenarios.registry import Body, ScenarioRequest


def resolve_path(request: ScenarioRequest, path: str, sample: float) -> str:
    """The path itself, or `defaults.<path>` for a field that an estimate has and the program itself has not.

    `sample`: a value that the field may have.
    """
    if request.shape == "estimate" or path.startswith(("defaults.", "tiers.")) or _is_field(request, path, sample):
        return path
    shared = f"defaults.{path}"
    return shared if _is_field(request, shared, sample) else path


def check_scope(base: Body, path: str, others: Collection[str], pointer: str) -> str | None:
    """A warning where a field of the defaults reaches only some runs. `others`: all paths that get values.

    Raises InvalidRequest where it reaches none, or where a section of the program replaces the runs' field.
    """
    field = _run_field(path)
    if field is None:
        return None
    replacement = _program_field(base, field)
    if replacement is not None:
        raise InvalidRequest(f"the program states {replacement}, which replaces every run's {field}: vary {replacement} instead", pointer)
    if not path.startswith("defaults."):
        return None
    own = [is_stated(run, field) or f"{section}.{field}" in others for section, run in list_run_estimates(base)]
    reached = own.count(False)
    if reached == len(own):
        return None
    if not reached and not (field == "hardware.count" and _splits_accelerators(base)):
        raise InvalidRequest(
            f"{path} applies to no run, because each run states its own {field}: leave it out of the runs, or vary"
            f" tiers.0.runs.0.estimate.{field}",
            pointer,
        )
    return f"{path} applies to {reached} of {len(own)} runs: the others state their own {field}"


def _is_field(request: ScenarioRequest, path: str, sample: float) -> bool:
    """Whether the base can have this value, or the nearest whole number, at the path."""
    for value in (sample, round(sample)):
        try:
            read_value(request, path, value, "")
        except InvalidRequest:
            continue
        return True
    return False


def _run_field(path: str) -> str | None:
    """The field of an estimate that a path in a program refers to; None for a field of the program itself."""
    match path.split("."):
        case ["defaults", *field] | ["tiers", _, "runs", _, "estimate", *field]:
            return ".".join(field)
    return None


def _program_field(base: Body, field: str) -> str | None:
    """The field of the program that replaces this field of its runs; None where there is none."""
    section, _, _ = field.partition(".")
    if section in PROGRAM_SECTIONS and section in base:
        return section
    return "schedule.queue_days" if field == "schedule.queue_hours" and is_stated(base, "schedule.queue_days") else None


def list_run_estimates(base: Body) -> Iterator[tuple[str, Body]]:
    """Path and estimate of each of a program's runs."""
    for tier_index, tier in enumerate(base["tiers"]):
        for run_index, run in enumerate(tier["runs"]):
            yield f"tiers.{tier_index}.runs.{run_index}.estimate", run["estimate"]


def _splits_accelerators(base: Body) -> bool:
    """Whether the program's number of accelerators decides how many repeats of some run are concurrent."""
    return any(
        "concurrency" not in run and (run.get("repeat", 1) > 1 or run.get("seeds", 1) > 1 or run.get("grid"))
        for tier in base["tiers"]
        for run in tier["runs"]
    )
