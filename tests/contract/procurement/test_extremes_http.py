"""Every figure at the ends of what is taken: an answer that its schema describes, or a problem with a pointer."""

from __future__ import annotations

import math
from typing import Any

from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.schemas.fields import Count, Number
from service.schemas.procurement.answer import BuyOrRentAnswerSchema
from service.schemas.procurement.request import (
    BuyOrRentRequestSchema,
    DemandRequestSchema,
    FleetRefreshSchema,
    OwnFleetSchema,
    RentQuoteSchema,
)

PRICINGS = ("reserved_1y", "reserved_3y", "on_demand", "spot")


def figures(schema: Any, *required: str) -> st.SearchStrategy[dict[str, Any]]:
    """Some of a schema's numbers, each at an end of its bounds or between."""
    fields = {name: field for name, field in schema().load_fields.items() if isinstance(field, Number | Count)}
    strategies = {name: _figure(field) for name, field in fields.items()}
    return st.fixed_dictionaries(
        {name: strategies.pop(name) for name in required},
        optional={name: each for name, each in strategies.items() if name not in required},
    )


def _figure(field: Any) -> st.SearchStrategy[Any]:
    if isinstance(field, Count):
        return st.sampled_from((field.minimum, min(field.maximum, 10**6), min(field.maximum, 64)))
    low = field.minimum if field.above is None else math.nextafter(field.above, math.inf)
    return st.sampled_from((low, field.maximum)) | st.floats(low, min(field.maximum, low + 10))


requests = st.fixed_dictionaries(
    {
        "demand": figures(DemandRequestSchema, "count").map(lambda found: {"accelerator": "H100", **found}),
        "trials": st.just(100),
    },
    optional={
        "own": st.lists(
            st.tuples(
                figures(OwnFleetSchema, "capex_usd_per_accelerator"), st.lists(figures(FleetRefreshSchema, "after_years"), max_size=2)
            ),
            max_size=2,
        ).map(lambda found: [{"name": f"dc{at}", **own, "refresh": refresh} for at, (own, refresh) in enumerate(found)]),
        "rent": st.lists(st.tuples(st.sampled_from(PRICINGS), figures(RentQuoteSchema, "usd_per_accelerator_hour")), max_size=3).map(
            lambda found: {
                "providers": [],
                "quotes": [
                    {
                        "name": f"q{at}",
                        "pricing": pricing,
                        **{key: value for key, value in quote.items() if pricing[0] == "r" or key != "term_months"},
                    }
                    for at, (pricing, quote) in enumerate(found)
                ],
            }
        ),
        "cost_of_capital": st.sampled_from((0.0, 1.0)),
        "list_price_change_per_year": st.sampled_from((-0.9, 0.0, 3.0)),
    },
)


@given(request=requests)
def test_figures_at_their_bounds_are_answered(client: FlaskClient, request: dict[str, Any]) -> None:
    """No figure that is taken makes an error of ours, nor one that JSON does not have."""
    assert BuyOrRentRequestSchema().validate(request) == {}
    answer = client.post("/v1/buy-or-rent", json=request)
    assert answer.status_code in {200, 422}, answer.get_data(as_text=True)
    if answer.status_code == 200:
        body = answer.get_json()
        assert BuyOrRentAnswerSchema().validate(body) == {}
        assert sum(option["probability_best"] for option in body["options"]) > 0.999


def test_sums_beyond_any_fleet_are_refused(client: FlaskClient) -> None:
    """A million accelerators for 15 years, at prices that rise fourfold each year: more dollars than there are."""
    request = {
        "demand": {"accelerator": "H100", "count": 10**6, "years": 15},
        "rent": {"providers": [], "quotes": [{"name": "q", "pricing": "on_demand", "usd_per_accelerator_hour": 100}]},
        "list_price_change_per_year": 3.0,
        "trials": 100,
    }
    answer = client.post("/v1/buy-or-rent", json=request)
    assert answer.status_code == 422
    assert [entry["pointer"] for entry in answer.get_json()["errors"]] == ["/demand"]
    assert client.post("/v1/buy-or-rent", json=request | {"list_price_change_per_year": 0.0}).status_code == 200
