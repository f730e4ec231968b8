"""The kinds of question whose answers are kept: by kind, the schema of its request and the function that answers it as JSON values.

To add a kind, add its line to KINDS, and its tables to `service.formats.documents.results`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from service.context import AppContext
from service.schemas.comparison.request import CompareRequestSchema
from service.schemas.fields import Schema
from service.schemas.procurement.request import BuyOrRentRequestSchema
from service.schemas.programs.presenters import present_program
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.scaling.optimum_request import OptimalRequestSchema
from service.schemas.serving import ServingRequestSchema
from service.schemas.training.presenters import answered
from service.schemas.training.request import EstimateRequestSchema
from service.serialization import to_builtins
from service.usecases.comparison.compare import compare
from service.usecases.procurement.buy_or_rent import buy_or_rent
from service.usecases.programs.plan import plan_program
from service.usecases.scaling.optimum import optimal
from service.usecases.serving.serve import serve

Body = dict[str, Any]
Loaded = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultKind:
    """The schema of a kind's request, and its answer to a loaded one as JSON values."""

    schema: Schema
    answer: Callable[[AppContext, Loaded], Body]


KINDS: Mapping[str, ResultKind] = {
    "estimate": ResultKind(EstimateRequestSchema(), answered),
    "compare": ResultKind(CompareRequestSchema(), lambda context, request: to_builtins(compare(context, request))),
    "program": ResultKind(ProgramRequestSchema(), lambda context, request: present_program(plan_program(context, request))),
    "buy_or_rent": ResultKind(BuyOrRentRequestSchema(), lambda context, request: to_builtins(buy_or_rent(context, request))),
    "optimal": ResultKind(OptimalRequestSchema(), lambda context, request: to_builtins(optimal(context, request))),
    "serving": ResultKind(ServingRequestSchema(), lambda context, request: to_builtins(serve(context, request))),
}
