"""POST /v1/buy-or-rent: what the contract promises, and what bad input is told."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.api.resources.procurement import FLEET as EXAMPLE
from service.formats.option_words import option_words
from service.schemas.procurement.answer import BuyOrRentAnswerSchema

FIELDS = {
    "": {"options", "verdict", "mix", "summary", "assumptions", "warnings", "price_snapshot", "engine_version"},
    "option": {"name", "kind", "npv_usd", "usd_per_used_accelerator_hour", "years", "offer"},
    "year": {"year", "cash_usd", "used_accelerator_hours"},
    "offer": {"provider", "region", "pricing", "usd_per_accelerator_hour", "observed_at", "source", "stale"},
    "verdict": {
        *("choice", "npv_saved_usd", "probability_best", "break_even_utilisation", "break_even_month", "flips"),
    },
    "flip": {"variable", "from", "to"},
    "mix": {"reserved_count", "on_demand_share"},
}


def changed(**sections: Any) -> dict[str, Any]:
    """The contract's example with fields of its sections set."""
    request = copy.deepcopy(EXAMPLE)
    for name, value in sections.items():
        request[name] = request[name] | value if isinstance(value, dict) and isinstance(request.get(name), dict) else value
    return request


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    answer = client.post("/v1/buy-or-rent", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def told(client: FlaskClient, request: object) -> dict[str, str]:
    """What is wrong where."""
    answer = client.post("/v1/buy-or-rent", json=request)
    assert answer.status_code == 422, answer.get_data(as_text=True)
    assert answer.content_type == "application/problem+json"
    return {entry["pointer"]: entry["message"] for entry in answer.get_json()["errors"]}


def test_the_answer_has_every_field_the_contract_names(client: FlaskClient) -> None:
    """In every option, year and flip, and the whole answer is what the specification describes."""
    body = ask(client, EXAMPLE)
    assert FIELDS[""] <= set(body)
    assert BuyOrRentAnswerSchema().validate(body) == {}
    for option in body["options"]:
        assert FIELDS["option"] <= set(option)
        assert all(FIELDS["year"] <= set(year) for year in option["years"])
        assert option["offer"] is None or FIELDS["offer"] <= set(option["offer"])
    assert FIELDS["verdict"] <= set(body["verdict"])
    assert body["verdict"]["flips"]
    assert all(FIELDS["flip"] <= set(flip) for flip in body["verdict"]["flips"])
    assert FIELDS["mix"] <= set(body["mix"])
    assert {option["kind"] for option in body["options"]} >= {"own", "reserved", "on_demand", "spot", "mix"}


def test_options_are_ordered_by_their_cost(client: FlaskClient) -> None:
    """Cheapest first; years add up to the cash, discounted years to the present value."""
    options = ask(client, EXAMPLE)["options"]
    medians = [option["npv_usd"]["p50"] for option in options]
    assert medians == sorted(medians)
    for option in options:
        assert sum(year["discounted_usd"] for year in option["years"]) == pytest.approx(option["npv_usd"]["p50"], abs=0.01)
        assert all(sum(year["lines_usd"].values()) == pytest.approx(year["cash_usd"], abs=0.01) for year in option["years"])


def test_probabilities_add_up_to_one(client: FlaskClient) -> None:
    """Whatever may be the best is shown, and what takes no part never is."""
    body = ask(client, changed(limit=1))
    assert sum(option["probability_best"] for option in body["options"]) == pytest.approx(1)
    assert all(option["probability_best"] == 0 for option in body["options"] if option["ruled_out"])


def test_the_256_h100_are_bought(client: FlaskClient) -> None:
    """On one basis, against a quote of 1.89 USD for three years alone, buying saves about 2.46 million USD."""
    own = EXAMPLE["own"][0] | {"lead_time_months": 0}
    body = ask(client, changed(own=[own], rent={"providers": []}))
    assert body["verdict"]["choice"] == "dc1"
    assert body["verdict"]["npv_saved_usd"]["p50"] == pytest.approx(2.46e6, rel=0.02)
    assert body["summary"]["text"].startswith("Buying dc1 costs $8.67M over three years against $11.2M for lambda 3y")
    assert len(body["options"]) == 2
    assert body["mix"] is None


def test_a_stale_price_does_not_win_over_a_fresh_one(client: FlaskClient) -> None:
    """It is shown with its flag, takes no part, and is named where it would cost less."""
    body = ask(client, EXAMPLE)
    stale = [option for option in body["options"] if option["offer"] and option["offer"]["stale"]]
    assert stale
    assert all(option["ruled_out"] for option in stale)
    choice = next(option for option in body["options"] if option["name"] == body["verdict"]["choice"])
    assert choice["offer"] is None or not choice["offer"]["stale"]
    if stale[0]["npv_usd"]["p50"] < choice["npv_usd"]["p50"]:
        assert any(option_words(stale[0]) in warning for warning in body["warnings"])


def test_the_same_seed_gives_the_same_answer(client: FlaskClient) -> None:
    """To the last digit."""
    assert ask(client, EXAMPLE) == ask(client, EXAMPLE)
    assert ask(client, EXAMPLE)["verdict"] != ask(client, changed(seed=8))["verdict"]


def test_a_demand_alone_is_enough(client: FlaskClient) -> None:
    """Whatever was assumed is said."""
    body = ask(client, {"demand": {"accelerator": "H100", "count": 64}})
    assumed = {each["field"] for each in body["assumptions"]}
    assert assumed >= {"demand.years", "demand.start", "demand.utilisation", "cost_of_capital", "list_price_change_per_year", "uncertainty"}
    assert body["verdict"]["against"] is None


PROGRAM = {
    "name": "assistant",
    "outcome": {"metric": "helpdesk", "baseline": 0.61, "target": 0.7},
    "start": "2027-01-04",
    "defaults": {"hardware": {"accelerator": "H100", "count": 256}, "price": {"usd_per_accelerator_hour": 2.5}},
    "tiers": [
        {
            "tier": "production",
            "runs": [{"name": "main", "estimate": {"model": {"params": "7B"}, "data": {"tokens": "2T"}}}],
            "gate": {"decides": "release", "pass_probability": 0.8},
        }
    ],
}


def test_a_programs_plan_is_a_demand(client: FlaskClient) -> None:
    """All its accelerator-hours are demanded, in the months of the plan, of a planned and of a tracked program alike."""
    planned = client.post("/v1/estimate/program", json=PROGRAM).get_json()
    hours = sum(week["accelerator_hours"] for week in planned["burn_plan"])
    body = ask(client, {"demand": {"accelerator": "H100", "program": PROGRAM}, "rent": EXAMPLE["rent"]})
    assert sum(year["accelerator_hours"] for year in body["demand"]["years"]) == pytest.approx(hours, rel=1e-6)
    tracked = client.post("/v1/track/programs", json={"name": "assistant", "plan": PROGRAM}).get_json()
    again = ask(client, {"demand": {"accelerator": "H100", "tracked_program": tracked["id"]}, "rent": EXAMPLE["rent"]})
    assert again["demand"] == body["demand"]
    assert "whatever its runs are planned on" in next(each["source"] for each in body["assumptions"] if each["field"] == "demand.program")


def test_a_plan_that_ends_early_is_not_idle_enough_for_spot(client: FlaskClient) -> None:
    """Years of rest after it do not make its busy months a demand that spot can serve."""
    body = ask(client, {"demand": {"accelerator": "H100", "program": PROGRAM, "years": 3}, "own": EXAMPLE["own"]})
    assert body["demand"]["utilisation"] < 0.1
    assert body["verdict"]["kind"] != "spot"


@pytest.mark.parametrize(
    ("request_", "pointer"),
    [
        pytest.param(changed(demand={"accelerator": "H1000"}), "/demand/accelerator", id="unknown accelerator"),
        pytest.param(changed(demand={"utilisation": 1.2}), "/demand/utilisation", id="more than all hours"),
        pytest.param(changed(demand={"count": None}), "/demand/count", id="no count"),
        pytest.param(changed(demand={"tracked_program": "none", "utilisation": None}), "/demand/utilisation", id="null"),
        pytest.param(changed(own=[{"name": "dc1"}]), "/own/0/capex_usd_per_accelerator", id="free hardware"),
        pytest.param(changed(own=[EXAMPLE["own"][0] | {"accelerator": "H1000"}]), "/own/0/accelerator", id="unknown machine"),
        pytest.param(changed(own=[EXAMPLE["own"][0], EXAMPLE["own"][0]]), "/own/1/name", id="one name twice"),
        pytest.param(changed(own=[EXAMPLE["own"][0] | {"name": "lambda 3y"}]), "/rent/quotes/0/name", id="a name of both sides"),
        pytest.param(changed(own=[EXAMPLE["own"][0] | {"years": 3}]), "/own/0/years", id="unknown field"),
        pytest.param(changed(rent={"providers": ["nobody"]}), "/rent/providers", id="unknown provider"),
        pytest.param(changed(list_price_change_per_year={"p10": 0.1, "p50": 0.0, "p90": 0.2}), "/list_price_change_per_year", id="order"),
        pytest.param(changed(snapshot="none"), "/snapshot", id="unknown snapshot"),
        pytest.param(changed(demand={"years": 15}, trials=50_000), "/trials", id="too much work"),
        pytest.param(
            changed(own=[EXAMPLE["own"][0] | {"refresh": [{"after_years": 4}]}]), "/own/0/refresh", id="a refresh after the horizon"
        ),
        pytest.param({"demand": EXAMPLE["demand"], "own": EXAMPLE["own"], "rent": {"providers": []}}, "/rent/quotes", id="no bridge"),
        pytest.param({"demand": EXAMPLE["demand"], "rent": {"providers": []}}, "/rent", id="nothing to compare"),
    ],
)
def test_what_is_wrong_is_pointed_at(client: FlaskClient, request_: dict[str, Any], pointer: str) -> None:
    """Each error says where."""
    assert pointer in told(client, request_)


def test_a_quote_that_takes_no_part_may_be_paid_longer_than_all_that_do(client: FlaskClient) -> None:
    """Its years are shown all the same."""
    quotes = [
        {"name": "too large", "pricing": "reserved_3y", "usd_per_accelerator_hour": 0.5, "minimum_accelerators": 500, "term_months": 5},
        {"name": "hourly", "pricing": "on_demand", "usd_per_accelerator_hour": 4},
    ]
    body = ask(client, changed(rent={"providers": [], "quotes": quotes}))
    refused = next(option for option in body["options"] if option["name"] == "too large")
    assert refused["ruled_out"]
    assert len(refused["years"]) == 4
