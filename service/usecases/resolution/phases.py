"""A request in phases, taken apart: the request of each phase, its problems' place, and what is assumed of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from service.domain.errors import DomainError, InvalidRequest
from service.presets.hardware.accelerators import find_accelerator
from service.usecases.resolution.assumption_log import AssumptionLog

Request = Mapping[str, Any]

# What a phase says of more than its training, by the section that it replaces.
OWN_SECTIONS = ("hardware", "price", "efficiency")


def has_phases(request: Request) -> bool:
    """Whether a request's run is in phases."""
    return "phases" in request.get("training", {})


def phase_requests(request: Request) -> tuple[dict[str, Any], ...]:
    """The request of each phase: the run's, with what the phase states. Raises InvalidRequest, with pointers into the request."""
    _check(request)
    return tuple(_phase_request(request, phase) for phase in request["training"]["phases"])


def shared_tokens(request: Request, members: Sequence[Request]) -> dict[str, Any]:
    """A phase's request with the tokens of all phases on its machine, which its price is chosen for."""
    return {**request, "data": {**request["data"], "tokens": sum(member["data"]["tokens"] for member in members)}}


def machine_key(request: Request) -> str:
    """Text of a machine and its price, equal for equal ones."""
    return f"{request['hardware']!r} {request.get('price')!r}"


@contextmanager
def phase_problems(request: Request, index: int) -> Iterator[None]:
    """Name the phase in its problems, and point to what it states."""
    phase = request["training"]["phases"][index]
    try:
        yield
    except DomainError as problem:
        path = problem.pointer.removeprefix("/training").removeprefix("/data")
        if path.split("/")[1:2] and path.split("/")[1] in phase:
            problem.pointer = f"/training/phases/{index}{path}"
        problem.message = f"phase {phase['name']}: {problem.message}"
        problem.args = (problem.message,)
        raise


def merge_phase_notes(phases: Sequence[tuple[str, AssumptionLog]], notes: AssumptionLog) -> None:
    """Add the phases' notes: what is the same in all once, the rest by phase."""
    if len(phases) == 1:
        notes.add(phases[0][1])
        return
    said = Counter(repr(each) for _, log in phases for each in log.assumptions)
    warned = Counter(warning for _, log in phases for warning in set(log.warnings))
    for index, (name, log) in enumerate(phases):
        for each in log.assumptions:
            if said[repr(each)] < len(phases):
                notes.assume(f"training.phases.{index}.{each.field.removeprefix('training.')}", each.value, each.source)
            elif index == 0:
                notes.assume(each.field, each.value, each.source)
        for warning in log.warnings:
            if warned[warning] < len(phases):
                notes.warn(f"phase {name}: {warning}")
            elif index == 0:
                notes.warn(warning)


def _check(request: Request) -> None:
    """Refuse phases that do not make up the run."""
    phases, data, pointer = request["training"]["phases"], request["data"], "/training/phases"
    if request["training"].get("method") == "rl":
        raise InvalidRequest("a run of method rl has no phases: plan each part as a run of its own", pointer)
    repeated = [name for name, count in Counter(phase["name"] for phase in phases).items() if count > 1]
    if repeated:
        raise InvalidRequest(f"several phases are called {repeated[0]}: names tell them apart", pointer)
    if "tokens" not in data:
        raise InvalidRequest("phases divide data.tokens: state it, in place of raw_tokens or samples", "/data")
    total = sum(phase["tokens"] for phase in phases)
    if total != data["tokens"]:
        raise InvalidRequest(f"the phases' tokens add up to {total:,}, data.tokens is {data['tokens']:,}: they are to be the same", pointer)


def _phase_request(request: Request, phase: Request) -> dict[str, Any]:
    training = {name: value for name, value in request["training"].items() if name != "phases"}
    own = {name: value for name, value in phase.items() if name not in ("name", "tokens", *OWN_SECTIONS)}
    sections = {name: phase[name] for name in OWN_SECTIONS if name in phase}
    whole = {**request, "training": training | own, "data": {**request["data"], "tokens": phase["tokens"]}, **sections}
    if "price" in request and "price" not in phase and _another_accelerator(request, whole):
        whole["price"] = {name: value for name, value in request["price"].items() if name != "usd_per_accelerator_hour"}
    return whole


def _another_accelerator(request: Request, whole: Request) -> bool:
    """Whether a phase has another accelerator than the run, whose stated price is not its own."""
    names = {find_accelerator(each["hardware"]["accelerator"]).accelerator.name for each in (request, whole)}
    return len(names) > 1
