"""Request of a program: how it evaluates."""

from __future__ import annotations

from service.domain.programs.tiers import TIERS
from service.schemas.compound_fields import Items, Part
from service.schemas.fields import Choice
from service.schemas.programs.fields import MAX_NAMES
from service.schemas.training.evaluation import RunCheckSchema, RunEvaluationSchema, RunSuiteSchema


class SuiteSchema(RunSuiteSchema):
    """A set of questions that checkpoints are evaluated on."""

    tier = Choice(TIERS, description="Tier whose runs it evaluates; left out: every tier")


class EvaluationCheckSchema(RunCheckSchema):
    """A holdout that is made and kept, or a search for test data in the training data."""

    tier = Choice(TIERS, description="Tier it is spent with; left out: the whole program")


class EvaluationSchema(RunEvaluationSchema):
    """How the program evaluates."""

    suites = Items(Part(SuiteSchema), max_items=MAX_NAMES, description="What checkpoints are evaluated on; instead of overhead.evaluation")
    checks = Items(Part(EvaluationCheckSchema), max_items=MAX_NAMES, description="Holdouts and contamination checks")
