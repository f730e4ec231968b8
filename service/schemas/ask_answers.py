"""How each kind of question in words is answered, imported with the first question of its kind: a command asks one."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from marshmallow import Schema as MarshmallowSchema

from service.context import AppContext
from service.domain.ask import EXAMPLES, KINDS, Kind
from service.domain.summary import Summary
from service.domain.teams import Principal
from service.serialization import to_builtins

Body = dict[str, Any]
Answer = Callable[[AppContext, Principal, Any], Body]


@cache
def answer_of(kind: Kind) -> tuple[MarshmallowSchema | None, Answer]:
    """The schema that loads a request of this kind, None where it has none, and what answers the loaded request."""
    schema: MarshmallowSchema | None = None
    answer: Answer
    match kind:
        case "estimate":
            from service.schemas.training.request import EstimateRequestSchema
            from service.usecases.training.estimate import estimate

            schema, answer = EstimateRequestSchema(), _by_usecase(estimate)
        case "compare":
            from service.schemas.comparison.request import CompareRequestSchema
            from service.usecases.comparison.compare import compare

            schema, answer = CompareRequestSchema(), _by_usecase(compare)
        case "optimal":
            from service.schemas.scaling.optimum_request import OptimalRequestSchema
            from service.usecases.scaling.optimum import optimal

            schema, answer = OptimalRequestSchema(), _by_usecase(optimal)
        case "buy_or_rent":
            from service.schemas.procurement.request import BuyOrRentRequestSchema
            from service.usecases.procurement.buy_or_rent import buy_or_rent

            schema, answer = BuyOrRentRequestSchema(), _by_usecase(buy_or_rent)
        case "chance":
            from service.schemas.scenarios.request import ScenarioRequestSchema

            schema, answer = ScenarioRequestSchema(), _chance
        case "price":
            from service.schemas.prices import OfferQuerySchema

            schema, answer = OfferQuerySchema(), _price
        case "status":
            answer = _status
        case "help":
            answer = _help
    return schema, answer


def _by_usecase(usecase: Callable[[AppContext, Any], object]) -> Answer:
    def answer(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
        body: Body = to_builtins(usecase(context, request))
        return body

    return answer


def _chance(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
    from service.schemas.scenarios.request import build_request
    from service.usecases.ask.chance import chance

    return chance(context, build_request(request))


def _price(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
    from service.schemas.listings import offer_entry
    from service.usecases.ask.prices import quote_offers

    quoted = quote_offers(context, request)
    items = [offer_entry(offer, stale=quoted.book.is_stale(offer, quoted.now)) for offer in quoted.offers]
    summary = to_builtins(quoted.summary)
    return {"summary": summary, "items": items, "next_cursor": None, "found": quoted.found} | {
        "fleet": to_builtins(quoted.fleet),
        "price_snapshot": quoted.book.name,
    }


def _status(context: AppContext, who: Principal, request: Body) -> Body:
    from service.schemas.fields import Moment
    from service.schemas.tracking.presenters import status_body
    from service.usecases.tracking.programs import find_program
    from service.usecases.tracking.status import program_status

    as_of = None if "as_of" not in request else Moment().deserialize(request["as_of"])
    return status_body(program_status(context, find_program(context, who, request["id"]), as_of))


def _help(context: AppContext, who: Principal, request: Body) -> Body:  # noqa: ARG001 - as all answers
    text = f"Ask for {', '.join(KINDS[:-1])}; for example: {EXAMPLES[0]}."
    return {"summary": to_builtins(Summary(text=text)), "examples": list(EXAMPLES)}
