"""POST /v1/compare: what the contract promises, and what bad input is told."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.api.resources.comparison import COMPARISON as EXAMPLE
from service.domain.answer_fields import Doc, annotated_fields
from service.domain.comparison.options import BreakEvenVerdict, Commitment, InputSensitivity, OptionTime, OwnedClusterCost
from service.schemas.base import ProblemSchema
from service.schemas.comparison.answer import CompareAnswerSchema
from service.schemas.comparison.request import CompareRequestSchema
from tests.contract.http.test_fuzz import RUBBISH, numbers, values

FIELDS = {
    "": {
        *("options", "considered", "infeasible", "break_even", "prices_as_of", "stale_providers", "assumptions", "warnings"),
        *("price_snapshot", "engine_version", "variants"),
    },
    "option": {
        "rank",
        "id",
        "offer",
        "count",
        "nodes",
        "throughput",
        "time",
        "cost_usd",
        "energy",
        "feasible",
        "reasons",
        "on_pareto_front",
    },
    "offer": {
        *("provider", "region", "instance_type", "accelerator", "pricing", "usd_per_accelerator_hour", "availability"),
        *("observed_at", "source", "stale"),
    },
    "time": {"wall_clock_hours", "accelerator_hours"},
    "days": {"finish", "deadline_probability"},
    "energy": {"mwh", "tco2e"},
    "range": {"p10", "p50", "p90"},
    "break_even": {"on_prem", "against", "utilisation", "months", "usd_per_accelerator_hour"},
}
AVAILABILITIES = {"unknown", "listed", "offered", "advisory", "live"}


def changed(**sections: Any) -> dict[str, Any]:
    """The contract's example with fields of its sections set."""
    request = copy.deepcopy(EXAMPLE)
    for name, value in sections.items():
        request[name] = request[name] | value if isinstance(value, dict) and name in request else value
    return request


def ask(client: FlaskClient, request: object) -> dict[str, Any]:
    answer = client.post("/v1/compare", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def told(client: FlaskClient, request: object) -> dict[str, str]:
    """What is wrong where."""
    answer = client.post("/v1/compare", json=request)
    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    return {entry["pointer"]: entry["message"] for entry in answer.get_json()["errors"]}


def test_the_answer_has_every_field_the_contract_names(client: FlaskClient) -> None:
    """In every option and every break-even, and the whole answer is what the specification describes."""
    body = ask(client, changed(constraints={"jurisdictions": ["EU"]}))
    assert FIELDS[""] <= set(body)
    assert CompareAnswerSchema().validate(body) == {}
    assert {option["offer"]["pricing"] for option in body["options"]} >= {"spot", "owned"}
    for option in body["options"]:
        assert FIELDS["option"] <= set(option)
        assert FIELDS["offer"] <= set(option["offer"])
        assert option["offer"]["availability"] in AVAILABILITIES
        assert FIELDS["time"] | FIELDS["days"] <= set(option["time"])
        assert FIELDS["energy"] <= set(option["energy"])
        assert all(
            set(quantity) == FIELDS["range"] for quantity in (option["cost_usd"], *(option["time"][name] for name in FIELDS["time"]))
        )
    assert body["break_even"]
    assert all(FIELDS["break_even"] <= set(each) for each in body["break_even"])
    assert sum(option["offer"]["provider"] == "on_prem:dc1" for option in body["options"]) == 1


def test_infeasible_options_come_last_with_their_reasons(client: FlaskClient) -> None:
    """Null figures where a machine cannot run; counted by reason over all that were considered."""
    body = ask(
        client,
        changed(
            workload={"model": {"preset": "llama-3.1-405b"}},
            candidates={"accelerators": ["A100-80GB"], "counts": [64, 1024]},
            constraints={"max_wall_clock_days": 1e6, "deadline": "2090-01-01"},
            on_prem=[],
            limit=1000,
        ),
    )
    flags = [option["feasible"] for option in body["options"]]
    assert flags == sorted(flags, reverse=True)
    assert body["infeasible"]["cannot_run"] == sum(option["cost_usd"] is None for option in body["options"]) > 0
    assert all(bool(option["reasons"]) != option["feasible"] for option in body["options"])
    assert CompareAnswerSchema().validate(body) == {}


def test_every_figure_of_a_verdict_is_described() -> None:
    """With its unit, in the description of the interface."""
    verdicts = (BreakEvenVerdict, InputSensitivity, OwnedClusterCost, Commitment, OptionTime)
    bare = {
        f"{verdict.__name__}.{name}"
        for verdict in verdicts
        for name, (_, marks) in annotated_fields(verdict).items()
        if not any(isinstance(mark, Doc) and mark.text for mark in marks)
    }
    assert bare == set()


def test_without_candidates_all_offers_are_compared(client: FlaskClient) -> None:
    """A model and data are enough."""
    body = ask(client, {"workload": {"model": {"preset": "llama-2-7b"}, "data": {"tokens": "1B"}}})
    assert len(body["options"]) == 50
    assert body["considered"] > 10_000
    assert {"candidates.accelerators", "candidates.counts", "candidates.providers"} <= {each["field"] for each in body["assumptions"]}


def test_a_comparison_is_repeated_by_its_snapshot(client: FlaskClient) -> None:
    """The answer names it, and is the same."""
    body = ask(client, EXAMPLE)
    assert ask(client, EXAMPLE | {"snapshot": body["price_snapshot"]}) == body


def test_figures_stay_finite_at_the_edges(client: FlaskClient) -> None:
    """The most tokens, the dearest surroundings and the largest machine: still JSON numbers."""
    edge = changed(
        workload={
            "data": {"tokens": 10**18},
            "storage": {"dataset_tb": 1e6, "usd_per_tb_month": 1e4},
            "overhead": {"reruns": 1.0},
        },
        candidates={"accelerators": ["H100"], "counts": [8, 2**23]},
        constraints={"start": "2027-01-04", "deadline": None, "max_wall_clock_days": None},
    )
    body = ask(client, edge)
    assert CompareAnswerSchema().validate(body) == {}


@pytest.mark.parametrize(
    ("request_part", "pointer"),
    [
        ({"workload": {"hardware": {}}}, "/workload/hardware"),
        ({"workload": {"price": {}}}, "/workload/price"),
        ({"candidates": {"counts": []}}, "/candidates/counts"),
        ({"candidates": {"counts": [0]}}, "/candidates/counts/0"),
        ({"candidates": {"counts": [1.5]}}, "/candidates/counts/0"),
        ({"candidates": {"counts": list(range(1, 34))}}, "/candidates/counts"),
        ({"candidates": {"pricing": ["on-demand"]}}, "/candidates/pricing/0"),
        ({"candidates": {"accelerator": ["H100"]}}, "/candidates/accelerator"),
        ({"constraints": {"max_cost_usd": 0}}, "/constraints/max_cost_usd"),
        ({"constraints": {"deadline": "soon"}}, "/constraints/deadline"),
        ({"constraints": {"require_available": "yes"}}, "/constraints/require_available"),
        ({"objective": "speed"}, "/objective"),
        ({"limit": 1001}, "/limit"),
        ({"limit": 0}, "/limit"),
        ({"on_prem": [{"name": "x", "accelerator": "H100"}]}, "/on_prem/0/count"),
        ({"on_prem": [{"name": "x", "accelerator": "H100", "count": 8, "pue": 0.9}]}, "/on_prem/0/pue"),
        ({"variants": [{"workload": {}}]}, "/variants/0/name"),
    ],
)
def test_bad_input_is_told_where_it_is(client: FlaskClient, request_part: dict[str, Any], pointer: str) -> None:
    """By its pointer; unknown fields are an error at every depth."""
    assert pointer in told(client, changed(**request_part))


def test_a_workload_is_needed(client: FlaskClient) -> None:
    """Nothing is compared with nothing."""
    assert set(told(client, {})) == {"/workload"}


def fields_of(schema: Any, path: str) -> dict[str, Any]:
    return {f"{path}/{name}": field for name, field in schema.fields.items()}


SECTIONS = CompareRequestSchema().fields
CHANGES: dict[str, Any] = {
    **fields_of(SECTIONS["constraints"].schema, "constraints"),
    **fields_of(SECTIONS["on_prem"].inner.schema, "on_prem/0"),
    **{
        path: field
        for section in ("failures", "storage", "network", "personnel", "energy", "overhead", "schedule", "training", "data")
        for path, field in fields_of(SECTIONS["workload"].schema.fields[section].schema, f"workload/{section}").items()
    },
    **{name: SECTIONS[name] for name in ("objective", "limit")},
}


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    """The example with a few fields set to something else that they take, or to rubbish."""
    request = copy.deepcopy(EXAMPLE)
    request["candidates"] |= {"counts": draw(st.lists(st.sampled_from([1, 8, 100, 2**23]), min_size=1, max_size=2, unique=True))}
    for path in draw(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=4, unique=True)):
        *above, last = path.split("/")
        node: Any = request
        for name in above:
            node = node[0] if name == "0" else node.setdefault(name, {})
        node[last] = draw(values(CHANGES[path]) | values(CHANGES[path]) | RUBBISH)
    return request


@given(request=requests())
def test_no_request_gets_an_error_of_ours_or_a_figure_that_is_none(client: FlaskClient, request: dict[str, Any]) -> None:
    """An answer of the described shape with finite figures in order, or a problem."""
    answer = client.post("/v1/compare", json=request)
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    if answer.status_code != 200:
        assert (answer.status_code, ProblemSchema().validate(body)) == (422, {})
        return
    assert CompareAnswerSchema().validate(body) == {}
    assert [path for path, number in numbers(body) if not math.isfinite(number)] == []
    for option in body["options"]:
        assert bool(option["reasons"]) != option["feasible"]
        assert option["cost_usd"] is None or option["cost_usd"]["p10"] >= 0
