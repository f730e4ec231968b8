"""Request and answer of an inverse question: the most within a budget, a machine and a deadline."""

from __future__ import annotations

from service.domain.programs.inverse import FINDS
from service.schemas.compound_fields import Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Day, NotNegative, Number, Schema
from service.schemas.programs.fields import MAX_DAYS
from service.schemas.scaling.optimum_request import MOST_SPENT
from service.schemas.training.answer import EstimateAnswerSchema  # noqa: F401  (describes estimates first)
from service.schemas.training.machine import MAX_ACCELERATORS
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.programs.inverse import InverseAnswer

SYNONYMS = {"ablations": "repeats", "runs": "repeats", "context": "seq_len", "sweep": "sweep_points", "refresh": "refresh_days"}


class InverseBudgetSchema(Schema):
    """What may be spent, by the medians of the estimate; all that is stated is kept."""

    usd = Number(minimum=1.0, maximum=MOST_SPENT, description="Cost of all runs [USD]")
    usd_per_month = Number(minimum=1.0, maximum=MOST_SPENT, description="Cost of the refreshes of a month [USD]")
    days = Number(minimum=0.01, maximum=MAX_DAYS, description="Time of all runs on the clock [days]")
    deadline = Day(description="Last day; counted from schedule.start, or today, without schedule.queue_hours")


class HalvingSchema(Schema):
    """Successive halving of the candidates."""

    factor = Number(required=True, above=1.0, maximum=100.0, description="One of this many candidates goes on at each rung")
    least_share = Number(required=True, minimum=0.0001, maximum=1.0, description="Part of a run before the first judgement [1]")


class InverseRequestSchema(EstimateRequestSchema):
    """One training run as POST /v1/estimate takes it, what is asked of it, and within what."""

    find = Choice(
        FINDS,
        synonyms=SYNONYMS,
        required=True,
        description="repeats and sweep_points: the most runs; seq_len: the longest context; refresh_days: the shortest time from one"
        " training to the next",
    )
    budget = Part(InverseBudgetSchema, description="What may be spent; for seq_len left out: memory alone limits it")
    accelerators = Count(maximum=MAX_ACCELERATORS, description="Of the whole machine, for runs side by side; left out: hardware.count")
    seeds = Count(maximum=1000, suffixes=False, description="Runs of each candidate with another seed; left out: 1")
    early_stopping = Part(HalvingSchema, description="Stops candidates early")
    new_tokens_per_day = NotNegative(maximum=1e15, description="Tokens that come each day, and that the next refresh has more")


InverseAnswerSchema = derive(InverseAnswer)
