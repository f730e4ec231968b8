"""What an estimated run costs at each provider: the cheapest offer of each, compared as /compare does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from service.context import AppContext
from service.serialization import to_builtins
from service.usecases.comparison.compare import compare
from service.web.asking import Asked, ask, read_fields
from service.web.compare_form import REQUEST
from service.web.form_address import form_address
from service.web.forms import Fields
from service.web.rendering import query_string

PRICING = "on_demand"
MOST_OPTIONS = 1000
NOT_OF_A_WORKLOAD = ("hardware", "price", "levers")
Body = dict[str, Any]


def sellers_request(asked: Asked, answer: Mapping[str, Any]) -> Body:
    """The comparison of the estimated run on its machine, by its kind of pricing."""
    price, machine = answer["price"] or {}, asked.request["hardware"]
    return {
        "workload": {name: part for name, part in asked.request.items() if name not in NOT_OF_A_WORKLOAD},
        "candidates": {
            "accelerators": [machine["accelerator"]],
            "counts": [machine["count"]],
            "pricing": [price.get("pricing") or PRICING],
        },
        "limit": MOST_OPTIONS,
    }


def sellers_content(asked: Asked, answer: Mapping[str, Any]) -> Body:
    """The cheapest offer of each provider, fresh before old, with the address of the estimate at that provider."""
    request = sellers_request(asked, answer)
    found = ask(read_fields(asked.fields, request, REQUEST), REQUEST, _compared).answer
    sellers = _cheapest(option for option in (found or {"options": []})["options"] if option["feasible"] and option["cost_usd"])
    ends = [option["cost_usd"][point] for option in sellers for point in ("p10", "p90")]
    return {
        "sellers": [option | {"query": _at(asked.fields, option["offer"])} for option in sellers],
        "taken": (answer["price"] or {}).get("provider"),
        "pricing": request["candidates"]["pricing"][0],
        "lowest": min(ends, default=0.0),
        "highest": max(ends, default=0.0),
        "comparison": form_address("compare", request | {"limit": None}),
    }


def _compared(context: AppContext, loaded: Any) -> Body:
    found: Body = to_builtins(compare(context, loaded))
    return found


def _cheapest(options: Iterable[Body]) -> list[Body]:
    """Each provider's option that costs least, by a price that is not old where there is one."""
    best: dict[str, Body] = {}
    for option in sorted(options, key=_place):
        best.setdefault(option["offer"]["provider"], option)
    return [*best.values()]


def _place(option: Body) -> tuple[bool, float]:
    return option["offer"]["stale"], option["cost_usd"]["p50"]


def _at(fields: Fields, offer: Mapping[str, Any]) -> str:
    """The estimate's query at an offer's provider."""
    kept = {name: value for name, value in fields.items() if not name.startswith("price.")}
    return query_string({**kept, "price.provider": offer["provider"], "price.pricing": offer["pricing"]})
