"""Request and answer schemas of scenarios. Distributions and axes are read by the kinds themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from marshmallow import ValidationError, validates_schema

from service.domain.deliveries import MAX_URL_CHARACTERS
from service.domain.errors import InvalidRequest
from service.domain.jobs import JobState
from service.domain.scenarios import ScenarioDetail, ScenarioRecord
from service.schemas.base import SentRequestSchema, make_schema, pointers
from service.schemas.compound_fields import FreeObject, Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Flag, Moment, NotNegative, Number, OwnField, Schema, Text
from service.schemas.paging import PageQuerySchema
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.scenarios.optimisation import OptimizeSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.scenarios.end_messages import ENDED
from service.usecases.scenarios.registry import Body, ScenarioRequest, Shape

MOST_TRIALS = 10**10
MOST_SEED = 2**63 - 1
MOST_POINTS = 10**6
MOST_NAMED = 100
MOST_CHANGES = 20_000
MOST_PAIRS = 1000
PROGRAM_MARK = "tiers"
"""Section that only a program has."""
SCHEMAS: Mapping[Shape, Schema] = {"estimate": EstimateRequestSchema(), "program": ProgramRequestSchema()}
COMMON_FIELDS = ("kind", "base", "notify")
KIND_FIELDS: Mapping[str, tuple[str, ...]] = {
    "monte_carlo": ("trials", "seed", "early_stop", "distributions", "correlations", "budget_usd"),
    "sensitivity": ("inputs", "swing", "points", "seed"),
    "sweep": ("axes", "changes"),
    "optimize": tuple(OptimizeSchema().fields),
}
"""Fields of each kind, besides those of all kinds."""


@dataclass(frozen=True, slots=True)
class BaseRequest:
    """A base request: its shape, as JSON, and as the use cases take it."""

    shape: Shape
    written: Body
    read: Body


class BaseField(OwnField):
    """A request of an estimate, or of a program, which has tiers."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> BaseRequest:  # noqa: ARG002
        if not isinstance(value, dict):
            raise ValidationError("must be an object: a request for an estimate or a program")
        shape: Shape = "program" if PROGRAM_MARK in value else "estimate"
        return BaseRequest(shape, value, SCHEMAS[shape].load(value))

    def openapi(self) -> dict[str, Any]:
        """Either schema."""
        return {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("EstimateRequest", "ProgramRequest")]}


class CorrelationSchema(Schema):
    """Correlation of two inputs' normal scores."""

    between = Items(Text(), required=True, min_items=2, max_items=2, description="Two of the names in `distributions`")
    correlation = Number(required=True, minimum=-1.0, maximum=1.0, description="Correlation of their normal scores [1]")


class NotifySchema(Schema):
    """A webhook that is called when the scenario has ended."""

    url = Text(required=True, max_length=MAX_URL_CHARACTERS, description="https address that is POSTed to, signed as in Standard Webhooks")
    secret = Text(description="`whsec_` and the base64 of 24 to 64 random bytes; left out: generated, and shown in this answer only")


class ScenarioRequestSchema(OptimizeSchema):
    """Many evaluations of a base request, by workers."""

    kind = Choice(tuple(KIND_FIELDS), required=True, description="Kind of evaluation")
    base = BaseField(required=True, description="Request of an estimate or of a program that is varied")
    notify = Part(NotifySchema, description="Who is told when it has ended, however it ends; left out: nobody")
    trials = Count(maximum=MOST_TRIALS, description="monte_carlo: trials at most; left out: 100,000")
    seed = Count(minimum=0, maximum=MOST_SEED, suffixes=False, description="The same request with the same seed has the same result")
    early_stop = Flag(description="monte_carlo: stop at fixed numbers of trials when the quantiles are precise enough; left out: true")
    distributions = FreeObject(
        max_members=MOST_NAMED,
        description="monte_carlo: by path in the base, such as hardware.count, one of uniform [low, high], triangular and pert [low, mode, "
        "high], normal {mean, sd}, lognormal {median, sigma}, p10 with p50 and p90, choice [values] with weights; queue {slots, "
        "arrivals_per_hour, mean_hours}; of a price regimes {calm_factor, scarce_factor, calm_hours, scarce_hours}",
    )
    correlations = Items(Part(CorrelationSchema), max_items=MOST_PAIRS, description="monte_carlo; left out: none")
    budget_usd = NotNegative(description="monte_carlo: budget whose probability is estimated [USD]")
    inputs = FreeObject(max_members=MOST_NAMED, description="sensitivity: as `distributions`")
    swing = Number(above=0.0, maximum=0.99, description="sensitivity: share by which every other number is moved down and up [1]")
    points = Count(minimum=0, maximum=MOST_POINTS, description="sensitivity: points of the Sobol' design; 0: only the tornado")
    axes = FreeObject(max_members=MOST_NAMED, description="sweep: values by path in the base; every combination is evaluated")
    changes = Items(
        FreeObject(max_members=MOST_NAMED), max_items=MOST_CHANGES, description="sweep: instead of axes, rows of values by path"
    )

    @validates_schema(skip_on_field_errors=True)
    def _of_its_kind(self, data: Mapping[str, Any], **_: Any) -> None:
        for name in data:
            if name not in COMMON_FIELDS and name not in KIND_FIELDS[data["kind"]]:
                raise ValidationError(f"not taken by a scenario of kind {data['kind']}", name)


def build_request(loaded: Mapping[str, Any]) -> ScenarioRequest:
    """A scenario's request as the use cases take it."""
    base: BaseRequest = loaded["base"]
    options = {name: value for name, value in loaded.items() if name not in COMMON_FIELDS}
    return ScenarioRequest(loaded["kind"], base.shape, base.written, base.read, options, _reader(base.shape))


def _reader(shape: Shape) -> Any:
    def read(body: Body) -> Body:
        try:
            found: Body = SCHEMAS[shape].load(body)
        except ValidationError as error:
            first = pointers(error.messages, SCHEMAS[shape])[0]
            raise InvalidRequest(first["message"], f"/base{first['pointer']}") from None
        return found

    return read


class ProgressSchema(Schema):
    """Number of trials, cells or evaluations that are done, and their maximum."""

    done = Count(required=True, minimum=0, suffixes=False, description="Trials, cells or evaluations that are done")
    total = Count(required=True, suffixes=False, description="Trials, cells or evaluations at most")


class ScenarioQuerySchema(PageQuerySchema):
    """Filters of the team's scenarios."""

    state = Choice(get_args(JobState), description="Only those in this state")


KINDS = {"kind": {"choices": tuple(KIND_FIELDS)}}
PROGRESS = {"progress": Part(ProgressSchema, required=True, description="Evaluations that are done")}
ScenarioEntrySchema = derive(ScenarioRecord, "ScenarioEntry", limits=KINDS, extra=PROGRESS)
ScenarioSchema = derive(ScenarioDetail, "Scenario", limits=KINDS, parts={"request": SentRequestSchema}, extra=PROGRESS)


class SubmittedNoticeSchema(Schema):
    """Where the end of the scenario is told, with the secret that signs the message."""

    host = Text(required=True, max_length=MAX_URL_CHARACTERS, description="Host of the address")
    secret = Text(required=True, description="Signing secret; in this answer only")


SUBMITTED = {"notify": Part(SubmittedNoticeSchema, required=True, allow_none=True, description="Who is told of its end; null: nobody")}
SubmittedScenarioSchema = make_schema("SubmittedScenario", SUBMITTED, ScenarioEntrySchema)
ENDED_AT = {"url": Text(required=True, description="Path of the scenario with its result on this service")}
EndedScenarioSchema = make_schema("EndedScenario", ENDED_AT, ScenarioEntrySchema)


class ScenarioEndSchema(Schema):
    """The message about the end of a scenario, an event of the Standard Webhooks specification."""

    type = Choice((ENDED,), required=True, description="Kind of event")
    timestamp = Moment(required=True, description="When the scenario ended")
    data = Part(EndedScenarioSchema, required=True, description="The scenario without request and result")
