"""Fields of a program's runs given for all of them at once: what a path stands for, and which runs it reaches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from service.domain.errors import InvalidRequest
from service.usecases.programs.runs import PROGRAM_SECTIONS
from service.usecases.scenarios.changes.request_paths import is_stated, read_value
from service.usecases.scenarios.registry import ScenarioRequest

Body = Mapping[str, Any]


def resolve_path(given: ScenarioRequest, path: str, sample: float) -> str:
    """The path itself, or `defaults.<path>`: of a program, what an estimate has and the program has not is that field of every run.

    `sample`: a value that the field may have.
    """
    if given.shape == "estimate" or path.startswith(("defaults.", "tiers.")) or _is_field(given, path, sample):
        return path
    shared = f"defaults.{path}"
    return shared if _is_field(given, shared, sample) else path


def check_scope(base: Body, path: str, others: Collection[str], pointer: str) -> str | None:
    """How many runs a field of the defaults reaches, as a warning where it is not all of them. `others`: paths that have values beside it.

    Raises InvalidRequest where it reaches none, or where the program's own section stands in the place of a run's field.
    """
    field = _run_field(path)
    if field is None:
        return None
    instead = _stated_instead(base, field)
    if instead is not None:
        raise InvalidRequest(f"the program states {instead}, which stands in the place of every run's {field}: vary that", pointer)
    if not path.startswith("defaults."):
        return None
    own = list(_own(base, field, others))
    reached = own.count(False)
    if reached == len(own):
        return None
    if not reached and not (field == "hardware.count" and _shared_out(base)):
        raise InvalidRequest(
            f"{path} reaches no run, as each has its own {field}: leave it out of the runs, or vary tiers.0.runs.0.estimate.{field}",
            pointer,
        )
    return f"{path} reaches {reached} of {len(own)} runs: the others have their own {field}"


def _is_field(given: ScenarioRequest, path: str, sample: float) -> bool:
    """Whether the base may have such a value there; whole where it counts."""
    for value in (sample, round(sample)):
        try:
            read_value(given, path, value, "")
        except InvalidRequest:
            continue
        return True
    return False


def _run_field(path: str) -> str | None:
    """The field of an estimate that a path of a program leads to; None for one of the program's own."""
    match path.split("."):
        case ["defaults", *field] | ["tiers", _, "runs", _, "estimate", *field]:
            return ".".join(field)
    return None


def _stated_instead(base: Body, field: str) -> str | None:
    """What the program says of itself as a whole that its runs' own field is left aside for."""
    section, _, _ = field.partition(".")
    if section in PROGRAM_SECTIONS and section in base:
        return section
    return "schedule.queue_days" if field == "schedule.queue_hours" and is_stated(base, "schedule.queue_days") else None


def _own(base: Body, field: str, others: Collection[str]) -> Iterator[bool]:
    """Whether each run has its own value of a field."""
    for at, tier in enumerate(base["tiers"]):
        for place, run in enumerate(tier["runs"]):
            yield is_stated(run["estimate"], field) or f"tiers.{at}.runs.{place}.estimate.{field}" in others


def _shared_out(base: Body) -> bool:
    """Whether the program's number of accelerators says how many repeats of some run are made side by side."""
    return any(
        "concurrency" not in run and (run.get("repeat", 1) > 1 or run.get("seeds", 1) > 1 or run.get("grid"))
        for tier in base["tiers"]
        for run in tier["runs"]
    )
