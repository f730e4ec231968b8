"""Request and answer of a portfolio: several programs on shared accelerators."""

from __future__ import annotations

from service.domain.programs.portfolio import MAX_POOLS, MAX_PROGRAMS, PortfolioAnswer, PortfolioPool, PortfolioProgram, ProgramRun
from service.schemas.compound_fields import Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Count, Day, Schema, Text
from service.schemas.programs.answer import MAX_ACTIVITIES
from service.schemas.programs.request import PoolSchema, ProgramRequestSchema
from service.schemas.training.evaluation_answer import ProgramRangeSchema


class PortfolioPoolSchema(PoolSchema):
    """Accelerators that all programs share. Entries of one name add up."""

    provider = Text(description="Provider whose quota it is: runs with this price.provider take it")
    region = Text(description="Region of the quota: runs with this price.region take it")


class PortfolioProgramSchema(ProgramRequestSchema):
    """A program as POST /v1/estimate/program takes it, with its priority among the others."""

    priority = Count(
        minimum=0,
        maximum=1000,
        suffixes=False,
        description="Rank of the program: the lowest goes first, equal ones in turn; left out: 0",
    )


class PortfolioRequestSchema(Schema):
    """Several programs that share accelerators."""

    programs = Items(
        Part(PortfolioProgramSchema), required=True, min_items=1, max_items=MAX_PROGRAMS, description="Programs, each with its own name"
    )
    pools = Items(
        Part(PortfolioPoolSchema),
        min_items=1,
        max_items=MAX_POOLS,
        description="Accelerators that all programs share; left out: the largest machine of any program",
    )
    start = Day(description="First day of the programs that state none")


derive(ProgramRun, "PortfolioRun")
derive(PortfolioPool, "PortfolioPoolAnswer")
derive(PortfolioProgram, "PortfolioProgramAnswer", ranges=ProgramRangeSchema, limits={"calendar": {"max_items": MAX_ACTIVITIES}})
PortfolioAnswerSchema = derive(PortfolioAnswer)
