"""Request of a run or a program: how it is evaluated."""

from __future__ import annotations

from service.domain.programs.evaluation import CADENCES, CHECK_KINDS
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice, Count, Flag, NotNegative, Number, Schema, Text
from service.schemas.programs.fields import MAX_DAYS, MAX_NAMES, short_name, usd_amount
from service.schemas.training.machine import MAX_ACCELERATORS, MAX_HOURS

MAX_SAMPLE_TOKENS = 100_000_000


class SignOffSchema(Schema):
    """Who approves the results, after the evaluation."""

    name = short_name(required=True, description="Who signs off")
    days = NotNegative(required=True, maximum=MAX_DAYS, description="Working days of this person; in a program, at each tier [days]")


class RunSuiteSchema(Schema):
    """A set of questions that checkpoints are evaluated on."""

    name = short_name(required=True, description="Name of the suite; in a program, one that has the outcome metric's name measures it")
    samples = Count(description="Questions of one evaluation; state these or tokens")
    tokens = Count(description="Tokens of one evaluation, all of them scored; state these or samples")
    generated = Flag(description="Whether answers are generated; left out: given answers are scored in one pass")
    prompt_tokens = Count(maximum=MAX_SAMPLE_TOKENS, description="Tokens of a prompt, with its examples, documents and images")
    output_tokens = Count(maximum=MAX_SAMPLE_TOKENS, description="Tokens of an answer")
    every_tokens = Count(description="Evaluated each time a run has trained on this many tokens more")
    at = Choice(CADENCES, description="Evaluated once when a run is over, or at each checkpoint that is kept; left out: gates")
    blocking = Flag(description="Whether the machine waits for it, which takes time and all of its accelerators; left out: true")
    accelerators = Count(
        maximum=MAX_ACCELERATORS, description="Accelerators of one that runs beside; left out: a node, at most the run's own"
    )
    metric = Text(description="What it measures; left out: the suite's name")
    difference = Number(
        above=0.0,
        description="Smallest difference it is to see; left out: from a program's baseline to its target [unit of the metric]",
    )
    deviation = Number(
        above=0.0, description="Standard deviation of one sample's score; left out: of a share, binomial [unit of the metric]"
    )
    seed_deviation = NotNegative(description="Standard deviation of the metric between training seeds [unit of the metric]")
    sign_off = Part(SignOffSchema, description="Who approves its results")


class RunCheckSchema(Schema):
    """A holdout that is made and kept, or a search for test data in the training data."""

    name = short_name(required=True, description="Name of the check")
    kind = Choice(CHECK_KINDS, required=True, description="What it is")
    usd = usd_amount(description="Fixed amount [USD]")
    hours = NotNegative(maximum=MAX_HOURS, description="Hours of people [h]")


class RunEvaluationSchema(Schema):
    """How a run is evaluated."""

    suites = Items(
        Part(RunSuiteSchema), max_items=MAX_NAMES, description="What checkpoints are evaluated on; instead of overhead.evaluation"
    )
    checks = Items(Part(RunCheckSchema), max_items=MAX_NAMES, description="Holdouts and contamination checks")
    power = Number(minimum=0.5, maximum=0.999, description="Probability with which the difference is to be seen [1]")
    significance = Number(
        minimum=0.0001, maximum=0.5, description="Accepted probability to find a difference where there is none, two-sided [1]"
    )
    start_minutes = NotNegative(maximum=10_000, description="Time to load weights and start the engine, at each evaluation [min]")
    busy_share = Number(
        minimum=0.001,
        maximum=1.0,
        description="Part of the rest that is inference at a serving engine's speed; a harness without one: 0.02 [1]",
    )
    sign_off_hours_per_day = NotNegative(maximum=24, description="Hours of a working day of who signs off [h]")
    checkpoint_months = NotNegative(maximum=1200, description="How long weights are kept that were evaluated [months]")
