"""Errors of an estimate that say which of the known names is meant."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

RUN: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 256},
}


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"training": {"method": "grpo"}}, "/training/method", "'grpo' is 'rl' here"),
        ({"training": {"method": "PPO"}}, "/training/method", "'ppo' is 'rl' here"),
        ({"training": {"method": "sft"}}, "/training/method", "'sft' is 'full_finetune' here"),
        ({"training": {"method": "full"}}, "/training/method", "'full' is 'full_finetune' here"),
        ({"training": {"method": "pretian"}}, "/training/method", "did you mean 'pretrain'?"),
        ({"hardware": {**RUN["hardware"], "gpus": 8}}, "/hardware/gpus", "unknown field; known: accelerator, count"),
        ({"constraints": {"budget_usd": 3}}, "/constraints", "unknown field; known: model, "),
        ({"data": {"tokens": "1e30"}}, "/data/tokens", "must lie between 1 and 1e+18"),
        ({"price": {"provider": "amazon"}}, "/price", "for provider amazon (did you mean aws?) is known in"),
        ({"price": {"provider": "gcpp"}}, "/price", "(did you mean gcp?)"),
        ({"model": {"preset": "jamba-1.5-large"}}, "/model/preset", "has Mamba-1 layers beside attention, which are not modelled"),
        ({"model": {"preset": "ai21labs/Jamba-v0.1"}}, "/model/preset", "near models: nemotron-h-56b"),
    ],
)
def test_the_meant_name_is_said(client: FlaskClient, changes: dict[str, Any], pointer: str, words: str) -> None:
    """Of a method its name here, of a field those there are, of a provider and a model the nearest."""
    answer = client.post("/v1/estimate", json=RUN | changes)
    (error,) = answer.get_json()["errors"]
    assert (answer.status_code, error["pointer"]) == (422, pointer)
    assert words in error["message"]


def test_all_providers_that_have_a_price_are_listed(client: FlaskClient) -> None:
    """Each once with its kinds of pricing, and the snapshot once."""
    answer = client.post("/v1/estimate", json=RUN | {"price": {"provider": "nobody"}}).get_json()
    snapshot = client.post("/v1/estimate", json=RUN).get_json()["price_snapshot"]
    again = client.post("/v1/estimate", json=RUN | {"price": {"provider": "nobody", "snapshot": snapshot}}).get_json()
    text = answer["errors"][0]["message"]
    assert "aws (on_demand, spot), azure" in text
    assert "verda (" in text
    assert text == again["errors"][0]["message"]
    assert text.count(snapshot) == 1
