"""Events: JSON to domain and back."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, get_args

from marshmallow import ValidationError, post_load, validates_schema

from service.domain.programs.risks import RiskState
from service.domain.tracking.events import API_NAMES, EVENT_FIELDS, Event, EventFields, EventType, Verdict
from service.domain.tracking.records import LoggedEvent
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Moment, NotNegative, Number, Schema, Share, Text
from service.schemas.programs.fields import MAX_DAYS
from service.schemas.tracking.event_reader import Plan, plan_of, read
from service.serialization import to_builtins
from service.usecases.tracking.events import AppendResult, RejectedEvent

MAX_EVENTS = 1000
MAX_USD = 1e12
MICRO = 1_000_000
EXACT_MICROS, CLEAR_OF_HALF = 10**13, 0.49
"""Below so many micro-dollars a float's product differs by less than 0.01 from the number as written: such a fraction is rounded alike."""
NOT_FINITE = ("nan", "inf", "-inf")


def _micros(usd: float) -> int:
    """Micro-dollars of an amount, rounded as it is written."""
    product = usd * MICRO
    nearest = round(product)
    if -EXACT_MICROS < nearest < EXACT_MICROS and abs(product - nearest) < CLEAR_OF_HALF:
        return nearest  # in a third of the time
    return round(Decimal(repr(float(usd))) * MICRO)


OF_DOMAIN = {name: domain for domain, name in API_NAMES.items()}
"""Domain names, in micro-dollars, by API name."""
_DOMAIN = {name: (domain, _micros) for name, domain in OF_DOMAIN.items()}
_ALWAYS = ("id", "type", "at")
_RULES = {
    kind: EventFields(*(tuple(API_NAMES.get(name, name) for name in names) for names in (rule.takes, rule.required, rule.any_of)))
    for kind, rule in EVENT_FIELDS.items()
}
_SETS = {
    kind: (frozenset((*_ALWAYS, *rule.takes)), frozenset((*_ALWAYS, *rule.required)), frozenset(rule.any_of or _ALWAYS))
    for kind, rule in _RULES.items()
}
"""By type of event: allowed fields, required fields, and fields of which one is required."""


class LossField(Number):
    """A number, or the name of a value that JSON cannot write: NaN and infinities."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> float:
        if isinstance(value, str):
            if value not in NOT_FINITE:
                raise ValidationError(f"must be a number, or one of {', '.join(NOT_FINITE)}")
            return float(value)
        return super()._deserialize(value, attr, data, **kwargs)

    def openapi(self) -> dict[str, Any]:
        """A number or one of three texts."""
        return {"anyOf": [super().openapi(), {"type": "string", "enum": list(NOT_FINITE)}]}


class EventSchema(Schema):
    """An event of a run."""

    id = Text(required=True, description="The sender's own id: the same id of a run counts once")
    type = Choice(get_args(EventType), required=True, description="What happened")
    at = Moment(required=True, description="Time of the event; any time back, at most 24 h ahead of the server's clock")
    step = Count(minimum=0, suffixes=False, description="Optimizer step")
    tokens_done = Count(minimum=0, description="Position in the plan [tokens]; falls after a rollback")
    accelerator_hours = NotNegative(maximum=1e12, description="Running total of the run")
    cost_usd = NotNegative(maximum=MAX_USD, description="Running total of the run")
    accelerators = Count(minimum=0, maximum=10**7, suffixes=False, description="Number of accelerators in use by the run")
    loss = LossField(description="Training loss [nats per token]; NaN and infinities are the texts nan, inf or -inf")
    mfu = Share(description="Model FLOPs utilisation as measured by the run [1]")
    share = Share(description="utilisation: share of the accelerators' time in use [1]")
    cause = Text(description="interruption, rollback: cause, such as hardware, network, software, preemption, maintenance, loss")
    bytes = Count(minimum=0, suffixes=False, description="checkpoint: size [bytes], left out where unknown")
    to_step = Count(minimum=0, suffixes=False, description="rollback: the step returned to")
    from_step = Count(minimum=0, suffixes=False, description="branch: the step of the checkpoint it starts from")
    name = Text(description="branch: its name")
    metric = Text(description="evaluation: name of the metric")
    value = Number(description="evaluation: value of the metric")
    standard_error = NotNegative(description="evaluation: standard error of the value [unit of the metric]")
    samples = Count(minimum=1, suffixes=False, description="evaluation: items behind a value that is a share of correct ones")
    usd = Number(
        minimum=-MAX_USD,
        maximum=MAX_USD,
        description="cost: amount in addition to the running total, credits are negative; note: what a risk that occurred costs [USD]",
    )
    line = Text(description="cost: cost line, such as storage, network, personnel, or compute for an invoice")
    billed_until = Moment(description="cost: end of the invoiced period; until then the invoice replaces the running total")
    gate = Text(description="decision: the gate, such as midpoint or a tier")
    verdict = Choice(get_args(Verdict), description="decision: the verdict")
    text = Text(max_length=2000, lines=True, description="note, decision, restart, cost: text")
    risk = Text(description="note: name of the risk that it is about")
    state = Choice(get_args(RiskState), description="note: state of the risk; left out: occurred")
    days = NotNegative(maximum=MAX_DAYS, description="note: delay by the risk that occurred; left out: as planned [days]")
    supersedes = Text(description="correction: the id of the event that it retracts, or changes where it has fields of that event's type")

    @validates_schema(skip_on_field_errors=True)
    def _fields_of_its_type(self, data: Mapping[str, Any], **_: Any) -> None:
        kind: EventType = data["type"]
        rule = _RULES[kind]
        for name in data:
            if name not in rule.takes and name not in _ALWAYS:
                raise ValidationError(f"not taken by an event of type {kind}, which takes {', '.join(sorted(rule.takes))}", name)
        for name in rule.required:
            if name not in data:
                raise ValidationError(f"an event of type {kind} needs it", name)
        if rule.any_of and not any(name in data for name in rule.any_of):
            raise ValidationError(f"an event of type {kind} needs at least one of {', '.join(rule.any_of)}")

    @post_load
    def _event(self, data: dict[str, Any], **_: Any) -> Event:
        for name, domain in OF_DOMAIN.items():
            if name in data:
                data[domain] = _micros(data.pop(name))
        return Event(**data)


class EventPart(Part):
    """An event of a batch. Valid events are read directly, in a quarter of the time; marshmallow reports what is wrong with the others."""

    def _bind_to_schema(self, field_name: str, parent: Any) -> None:
        super()._bind_to_schema(field_name, parent)
        members = self.schema.fields
        self._read = {name: members[name]._deserialize for name in ("id", "type")}  # noqa: SLF001 - as marshmallow's List does
        self._plans: dict[str, Plan] = {kind: plan_of(members, may, _DOMAIN) for kind, (may, _, _) in _SETS.items()}

    def deserialize(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """The event; one of an unknown type, which a later client may send, is rejected by its id. Raises ValidationError."""
        return self._good(value) or self._of_unknown_type(value) or super().deserialize(value, *args, **kwargs)

    def _of_unknown_type(self, given: Any) -> RejectedEvent | None:
        """The rejection of an event with an id and a text for a type that is unknown; None for others."""
        if not isinstance(given, dict) or not isinstance(given.get("type"), str):
            return None
        try:
            self._read["type"](given["type"], "type", given)
        except ValidationError as unknown:
            try:
                return RejectedEvent(self._read["id"](given.get("id"), "id", given), f"type: {unknown.messages[0]}")
            except ValidationError:  # there is nothing to name it by
                return None
        return None

    def _good(self, given: Any) -> Event | None:
        """The event, None where it is invalid."""
        if type(given) is not dict:
            return None
        kind: Any = given.get("type")
        plan = self._plans.get(kind) if type(kind) is str else None
        if plan is None:
            return None
        _, must, one_of = _SETS[kind]
        if not must <= given.keys() or one_of.isdisjoint(given):
            return None
        try:
            return Event(**read(given, plan))
        except (KeyError, ValidationError):
            return None


class EventsSchema(Schema):
    """A batch of a run's events."""

    events = Items(EventPart(EventSchema), min_items=1, max_items=MAX_EVENTS, required=True, description="Events of the run, in any order")


AppendResultSchema = derive(AppendResult, limits={"rejected": {"max_items": MAX_EVENTS}})


def event_body(logged: LoggedEvent) -> dict[str, Any]:
    """A logged event as its JSON object, without absent fields."""
    given = {name: value for name, value in logged.event._asdict().items() if value is not None}
    for domain, name in API_NAMES.items():
        if domain in given:
            given[name] = given.pop(domain) / MICRO
    if not isfinite(given.get("loss", 0.0)):
        given["loss"] = str(given["loss"])
    return {"position": logged.position, **to_builtins(given), "received_at": to_builtins(logged.received_at)}


class LoggedEventSchema(EventSchema):
    """An event in the log."""

    position = Count(required=True, suffixes=False, description="Number of the event in the run's log, in the order of arrival")
    received_at = Moment(required=True, description="When it was stored")
