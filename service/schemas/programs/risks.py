"""Request of a program: its risk register."""

from __future__ import annotations

from typing import Any, get_args

from marshmallow import ValidationError

from service.domain.programs.risks import RiskState
from service.domain.programs.tiers import TIERS
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, Flag, Number, OwnField, Schema, Share, Text
from service.schemas.programs.fields import MAX_NAME_LENGTH, MAX_NAMES, DaysField, short_name, usd_amount


class MitigationSchema(Schema):
    """Work against a risk, before the runs of its tier."""

    usd = usd_amount(description="What it costs [USD]; left out: 0")
    days = DaysField(description="Time that it takes, or its percentiles; left out: none [days]")
    probability_after = Share(description="Probability of the risk after it; left out: as before [1]")
    cost_share_after = Share(description="Cost where it still happens, as part of what the tier's runs cost; left out: as before [1]")
    taken = Flag(description="Whether budget and calendar count it; left out: false, it is weighed only")


class ProgramRiskSchema(Schema):
    """An event with its probability and cost."""

    name = Text(required=True, description="Name of the risk")
    probability = Share(required=True, description="Probability that it happens [1]")
    tier = Choice(TIERS, description="Tier whose runs it makes more expensive; left out: all tiers")
    cost_share_of_tier = Share(description="Cost where it happens, as part of what the tier's runs cost [1]")
    cost_usd = usd_amount(description="Cost where it happens, in addition to that share [USD]")
    days = DaysField(description="Time that it takes where it happens, or its percentiles; left out: that share of the runs' time [days]")
    addressed_by = Text(max_length=MAX_NAME_LENGTH, description="The spend choice that makes it less likely")
    mitigation = Part(MitigationSchema, description="What is done against it")
    owner = short_name(description="Who watches it")
    trigger = Text(max_length=500, description="Sign by which it is known to happen")
    state = Choice(get_args(RiskState), description="An occurred risk is certain, a closed one happens no more; left out: open")


class RiskPairSchema(Schema):
    """Correlation of two risks."""

    risks = Items(Text(max_length=MAX_NAME_LENGTH), required=True, min_items=2, max_items=2, description="Names of two risks")
    correlation = Number(required=True, minimum=-1.0, maximum=1.0, description="Correlation of their causes [1]")


class RiskCorrelationField(OwnField):
    """One correlation of all risks, or those of pairs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.number, self.pairs = Share(), Items(Part(RiskPairSchema), max_items=MAX_NAMES)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        if isinstance(value, list):
            return self.pairs.deserialize(value)
        if isinstance(value, dict):
            raise ValidationError("must be a number, or a list of pairs")
        return self.number.deserialize(value)

    def openapi(self) -> dict[str, Any]:
        """A number or a list of objects."""
        name = {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH}
        pair = {
            "type": "object",
            "properties": {
                "risks": {"type": "array", "items": name, "minItems": 2, "maxItems": 2, "description": "Names of two risks"},
                "correlation": {"type": "number", "minimum": -1, "maximum": 1, "description": "Correlation of their causes [1]"},
            },
            "required": ["risks", "correlation"],
            "additionalProperties": False,
        }
        return {"anyOf": [self.number.openapi(), {"type": "array", "items": pair, "maxItems": MAX_NAMES}]}
