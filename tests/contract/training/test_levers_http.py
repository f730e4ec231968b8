"""Levers over HTTP: on a single estimate and in a batch, only where they are asked for."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from service.schemas.training.answer import EstimateAnswerSchema

REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "training": {"method": "pretrain", "seq_len": 4096, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "H100", "count": 1024},
}
FIELDS = {
    *("lever", "title", "change", "saves_usd", "saves_days", "saves_tco2e"),
    *("total_usd", "wall_clock_days", "risk", "source"),
}


def ask(client: FlaskClient, request: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/v1/estimate", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


@pytest.mark.parametrize("unasked", [{}, {"levers": False}])
def test_an_estimate_has_none_unless_asked(client: FlaskClient, unasked: dict[str, Any]) -> None:
    """The block is absent, and with it nothing else of the answer changes."""
    plain = ask(client, REQUEST | unasked)
    assert "levers" not in plain
    asked = ask(client, REQUEST | {"levers": True})
    assert {name: block for name, block in asked.items() if name != "levers"} == plain


def test_levers_are_what_the_specification_describes(client: FlaskClient) -> None:
    """Every field of every lever, the most dollars first."""
    answer = ask(client, REQUEST | {"levers": True})
    assert EstimateAnswerSchema().validate(answer) == {}
    assert answer["levers"]
    assert all(set(lever) == FIELDS for lever in answer["levers"])
    savings = [lever["saves_usd"] for lever in answer["levers"]]
    assert savings == sorted(savings, reverse=True)


def test_a_change_can_be_sent(client: FlaskClient) -> None:
    """Laid over the request at the same price snapshot it costs what the lever says, to the cent."""
    answer = ask(client, REQUEST | {"levers": True})
    for lever in answer["levers"]:
        request: dict[str, Any] = {name: dict(section) for name, section in REQUEST.items()}
        request["price"] = {"snapshot": answer["price_snapshot"]}
        for path, value in lever["change"].items():
            section, _, name = path.partition(".")
            if name:
                request.setdefault(section, {})[name] = value
            else:
                request[section] = value
        total = ask(client, request)["cost"]["total_usd"]["p50"]
        assert (total, round(answer["cost"]["total_usd"]["p50"] - total, 2)) == (lever["total_usd"], lever["saves_usd"]), lever


def test_entries_of_a_batch_ask_for_themselves(client: FlaskClient) -> None:
    """Each for its own; a problem stays one."""
    entries = [REQUEST, REQUEST | {"levers": True}, REQUEST | {"levers": True, "data": {}}]
    plain, asked, problem = client.post("/v1/estimate/batch", json={"requests": entries}).get_json()["answers"]
    assert "levers" not in plain
    assert asked["levers"] == ask(client, REQUEST | {"levers": True})["levers"]
    assert problem["status"] == 422


@pytest.mark.parametrize("value", ["yes", 1, None, []])
def test_only_a_flag_is_taken(client: FlaskClient, value: object) -> None:
    """Anything else is told at its pointer."""
    answer = client.post("/v1/estimate", json=REQUEST | {"levers": value})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.get_json()["errors"]] == ["/levers"]
