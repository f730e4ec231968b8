"""Request of a program: its runs, and how often each is made."""

from __future__ import annotations

from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Count, Number, Schema, Share, Text
from service.schemas.programs.fields import GridField, references, short_name
from service.schemas.training.machine import MAX_ACCELERATORS, HardwareSchema
from service.schemas.training.request import PhasedTrainingSchema, RunSectionsSchema

MAX_RUNS = 300
MAX_REPEATS = 100_000


class ProgramHardwareSchema(HardwareSchema):
    """The hardware, or a part of it."""

    accelerator = Text(description="A name of GET /v1/accelerators, or any usual alias, case-blind")
    count = Count(maximum=MAX_ACCELERATORS, description="Accelerators")


class PartialEstimateSchema(RunSectionsSchema):
    """An estimate request, or a part of one: a run's is laid over `defaults`, deep, and must then be whole."""

    hardware = Part(ProgramHardwareSchema, description="Accelerators it is trained on")
    training = Part(PhasedTrainingSchema, description="How it is trained")


class RungSchema(Schema):
    """A point of early stopping."""

    at = Share(required=True, description="Share of a whole run")
    keep = Share(required=True, description="Share of the candidates that go on")


class EarlyStoppingSchema(Schema):
    """Stated rungs, or those of successive halving: one in `factor` goes on, from `least_share` of a run on."""

    rungs = Items(Part(RungSchema), min_items=1, max_items=50, description="Parts of a run after which candidates are judged, rising [1]")
    factor = Number(above=1.0, maximum=100.0, description="One of this many candidates goes on at each rung")
    least_share = Number(minimum=0.0001, maximum=1.0, description="Part of a run before the first judgement [1]")


class ProgramRunSchema(Schema):
    """A run, or a sweep of runs: the grid's points x repeats, each with every seed."""

    name = short_name(required=True, description="Name of the run, unique in its tier")
    estimate = Part(
        PartialEstimateSchema,
        load_default=dict,
        description="Request of the run as POST /v1/estimate takes it, without what the program's defaults state",
    )
    repeat = Count(maximum=MAX_REPEATS, suffixes=False, description="Repeats; left out: 1")
    grid = GridField(description="Axes of a sweep, each a list of values or how many there are")
    seeds = Count(maximum=1000, suffixes=False, description="Runs of each candidate with another seed")
    early_stopping = Part(EarlyStoppingSchema, description="Stops candidates early")
    concurrency = Count(maximum=MAX_REPEATS, suffixes=False, description="Runs side by side; left out: as the accelerators allow")
    pool = short_name(description="Pool whose accelerators it takes; left out: the one of its accelerator")
    priority = Count(minimum=0, maximum=1000, suffixes=False, description="Of runs that wait for a pool the lowest goes first; left out: 0")
    after = references("What it waits for: runs, milestones or tiers; left out: the run before it in its tier, empty: nothing in its tier")
