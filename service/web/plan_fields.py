"""The fields of a tracked program's plan that people change, by the names of `PATCH /v1/track/programs/{id}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.programs.tiers import TIERS
from service.formats.reading_order import in_order
from service.schemas.fields import Text
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.tracking.programs import STATES, ProgramChangeSchema
from service.web.forms import Fields, FormField, field_at, value_of

Body = dict[str, Any]
CHANGE, PLAN = ProgramChangeSchema(), ProgramRequestSchema()
ABOVE = "plan."
"""Before the names of the plan's fields."""
REMOVE = "remove."
"""Before the name of an entry that is to be taken out."""
MOST_FIELDS = 2000
MOST_RUNS, MOST_RISKS = 40, 40
"""Entries of a tier and of the risks that the form has; those after them are changed over the API."""
NO_PLAN = "The form says no plan: open the page again, and change the plan there."
_REMOVED = re.compile(r"(tiers\.\d{1,3}\.runs|risks)\.\d{1,3}", re.ASCII)
TERM_FIELDS = (
    FormField("name", "Name"),
    FormField("budget_usd", "Budget", "left out: what the plan costs", "USD"),
    FormField("start", "Start", kind="date"),
    FormField("deadline", "Deadline", kind="date"),
    FormField("caps.program_usd", "Alert above, program", "no cap", "USD"),
    FormField("caps.run_usd", "Alert above, each run", "no cap", "USD"),
    FormField("state", "State", choices=STATES),
)
TOKENS_FIELD = FormField("planned_tokens", "Tokens", "1T")
"""Of a program without a plan; with one the scope is the plan's."""
SHARED_FIELDS = (
    FormField("defaults.hardware.accelerator", "Accelerator of all runs", "H100", known="accelerators"),
    FormField("defaults.hardware.count", "How many for each", "64"),
    FormField("defaults.price.usd_per_accelerator_hour", "Your price", "list prices", "USD per accelerator-hour"),
)
RUN_FIELDS = (
    FormField("name", "Name"),
    FormField("estimate.model.params", "Parameters", "as all runs"),
    FormField("estimate.data.tokens", "Tokens", "20B"),
    FormField("estimate.hardware.accelerator", "Accelerator", "as all runs", known="accelerators"),
    FormField("estimate.hardware.count", "How many", "as all runs"),
    FormField("repeat", "Runs of it", "1"),
)
GATE_FIELDS = (
    FormField("gate.decides", "Decides"),
    FormField("gate.pass_probability", "Chance to pass", "0.8"),
    FormField("gate.continue_if.metric_at_least", "Continue if the metric is at least", "no bound"),
    FormField("gate.continue_if.cpi_at_least", "Continue if CPI is at least", "no bound"),
    FormField("gate.stop_if.cpi_below", "Stop if CPI is below", "no bound"),
)
RISK_FIELDS = (
    FormField("name", "Name"),
    FormField("probability", "Probability", "0.2"),
    FormField("tier", "Of the runs of", choices=TIERS),
    FormField("cost_share_of_tier", "Costs more", "0.1", "share of these runs"),
    FormField("cost_usd", "Other costs", "0", "USD"),
    FormField("days", "Takes", "that share", "days"),
)
RESERVE_FIELDS = (
    FormField("reserves.contingency", "Contingency", "0.1, or from_risks", "share"),
    FormField("reserves.confidence", "Contingency covers with", "0.8", "probability"),
    FormField("reserves.evaluation_and_debugging", "Evaluation and debugging", "0.05", "share of the runs"),
)
PEOPLE_FIELDS = (
    FormField("personnel.evaluation_hours", "Evaluation", "160", "h"),
    FormField("personnel.analysis_hours", "Analysis", "120", "h"),
    FormField("personnel.oncall_hours", "On call", "0", "h"),
    FormField("personnel.usd_per_hour", "An hour of work", "90", "USD"),
)


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """Fields that belong together. `remove`: name of the box that takes the entry out; empty where there is none to take out."""

    title: str
    fields: tuple[FormField, ...]
    remove: str = ""
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class FormSection:
    """A part of the form that opens by itself. `more`: entries that it leaves out."""

    title: str
    groups: tuple[FieldGroup, ...]
    more: int = 0


def term_fields(request: Mapping[str, Any] | None) -> tuple[FormField, ...]:
    """The fields that every program has."""
    return TERM_FIELDS if request is not None else (*TERM_FIELDS[:2], TOKENS_FIELD, *TERM_FIELDS[2:])


def plan_sections(request: Body) -> Iterator[FormSection]:
    """The parts of the form of a plan: machine, tiers with their runs and gates, risks, reserve, people; each list has a place more."""
    yield FormSection("Machine and price", (FieldGroup("", _below("", SHARED_FIELDS)),))
    tiers = request.get("tiers", [])
    for at, tier in enumerate(tiers):
        place = f"tiers.{at}."
        entries = _entries(f"{place}runs", tier.get("runs", [])[:MOST_RUNS], RUN_FIELDS, "Another run")
        gate = FieldGroup("Gate after it", _below(place, GATE_FIELDS))
        yield FormSection(f"Runs of {tier.get('tier', 'a tier')}", (*entries, gate), max(0, len(tier.get("runs", [])) - MOST_RUNS))
    if missing := tuple(name for name in TIERS if name not in {tier.get("tier") for tier in tiers}):
        tier_field = FormField("tier", "Tier", choices=missing)
        place = f"tiers.{len(tiers)}."
        fields = (*_below(place, (tier_field,)), *_below(f"{place}runs.0.", RUN_FIELDS))
        yield FormSection("Another tier", (FieldGroup("Its first run", fields, is_new=True),))
    risks = request.get("risks", [])
    yield FormSection("Risks", tuple(_entries("risks", risks[:MOST_RISKS], RISK_FIELDS, "Another risk")), max(0, len(risks) - MOST_RISKS))
    yield FormSection("Reserve", (FieldGroup("", _below("", RESERVE_FIELDS)),))
    yield FormSection("People", (FieldGroup("", _below("", PEOPLE_FIELDS)),))


def values_of(body: Mapping[str, Any], fields: Iterable[FormField]) -> dict[str, str]:
    """What a form shows in its fields; nothing for what is not stated, or is more than a field holds."""
    return {field.name: _text(_at(body, field.name)) for field in fields}


def laid_over(request: Body, sent: Fields) -> Body:
    """A plan's request with what a form has sent: filled fields count, blank ones are left out, marked entries are taken out.

    What the form does not show stays. Raises InvalidRequest for a field that no plan has.
    """
    made = deepcopy(request)
    if not _is_listed(made.get("tiers", []), "runs") or not _is_listed(made.get("risks", [])):
        raise InvalidRequest(NO_PLAN)
    for name, text in sent.items():
        if name.startswith(ABOVE):
            field = field_at(PLAN, path := name.removeprefix(ABOVE))
            if field is None:
                raise InvalidRequest(NO_PLAN)
            shown = _text(_at(made, path))
            if text.strip() != in_order(shown).strip():
                _put(made, path.split("."), _value(text.strip(), field))
    for name in sent:
        if _REMOVED.fullmatch(path := name.removeprefix(f"{REMOVE}{ABOVE}")):
            _put(made, path.split("."), None)
    return _without_empty(made)


def _value(text: str, field: Any) -> Any:
    """What a field says; None where it is blank."""
    return None if not text else text if isinstance(field, Text) else value_of(text)


def _without_empty(request: Body) -> Body:
    """The request without the places that were not filled, its tiers in their order."""
    for tier in request.get("tiers", []):
        tier["runs"] = [run for run in tier.get("runs", []) if run]
    tiers = [tier for tier in request.get("tiers", []) if tier["runs"]]
    request["tiers"] = sorted(tiers, key=lambda tier: TIERS.index(tier["tier"]) if tier.get("tier") in TIERS else len(TIERS))
    if "risks" in request:
        request["risks"] = [risk for risk in request["risks"] if risk]
    return request


def _put(node: Any, path: list[str], value: Any) -> None:
    """Put a value at a path, making what is missing on the way; with None take out what is there, and what holds nothing then."""
    if isinstance(node, list) and not path[0].isdecimal():
        raise InvalidRequest(NO_PLAN)
    key: Any = int(path[0]) if isinstance(node, list) else path[0]
    is_there = key < len(node) if isinstance(node, list) else key in node
    if not is_there and value is None:
        return
    if isinstance(node, list) and not is_there:
        node.extend({} for _ in range(key + 1 - len(node)))
    if len(path) == 1:
        node[key] = {} if value is None else value
    else:
        if not is_there or not isinstance(node[key], dict | list):
            node[key] = [] if path[1].isdecimal() else {}
        _put(node[key], path[1:], value)
    if isinstance(node, dict) and value is None and node[key] == {}:
        del node[key]


def _is_listed(entries: Any, below: str = "") -> bool:
    """Whether a value is a list of objects, each of which has one below."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return False
    return not below or all(_is_listed(entry.get(below, [])) for entry in entries)


def _entries(above: str, entries: list[Body], members: tuple[FormField, ...], another: str) -> Iterator[FieldGroup]:
    """A group of fields for each entry of a list, and one for another."""
    for at, entry in enumerate(entries):
        place = f"{above}.{at}"
        yield FieldGroup(str(entry.get("name", "")), _below(f"{place}.", members), f"{REMOVE}{ABOVE}{place}")
    yield FieldGroup(another, _below(f"{above}.{len(entries)}.", members), is_new=True)


def _below(place: str, members: tuple[FormField, ...]) -> tuple[FormField, ...]:
    return tuple(replace(field, name=f"{ABOVE}{place}{field.name}") for field in members)


def _at(body: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(body, list):
            body = body[int(part)] if part.isdecimal() and int(part) < len(body) else None
        else:
            body = body.get(part) if isinstance(body, Mapping) else None
    return body


def _text(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
