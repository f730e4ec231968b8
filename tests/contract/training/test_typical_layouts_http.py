"""A plan from the goal alone holds the speed that teams reach, and names that of the fastest layout found."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-3-8b"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "h100", "count": 64},
}
BEST = "best_tokens_per_s_per_accelerator"
FIELD = "throughput.typical_share"


def ask(client: FlaskClient, **sections: Any) -> dict[str, Any]:
    answer = client.post("/v1/estimate", json=REQUEST | sections)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def typical_share(answer: dict[str, Any]) -> float | None:
    """The assumed share, or None where the answer assumes none."""
    return next((float(item["value"]) for item in answer["assumptions"] if item["field"] == FIELD), None)


def test_both_speeds_are_told_with_the_share_between_them(client: FlaskClient) -> None:
    found = ask(client)
    share, speed = typical_share(found), found["throughput"]["tokens_per_s_per_accelerator"]
    assert share is not None
    assert 0.5 < share < 1
    assert speed["p50"] == pytest.approx(share * found["throughput"][BEST], rel=1e-3)
    assert speed["p50"] < found["throughput"][BEST] < speed["p90"]


def test_the_layout_taken_is_as_fast_as_the_best_where_it_is_stated(client: FlaskClient) -> None:
    """Whoever knows their layout plans with its own speed."""
    found = ask(client)["throughput"]
    layout = dict(found["parallelism"])
    stated = {name: layout.pop(name) for name in ("micro_batch", "zero_stage", "activation_recompute")}
    own = ask(client, training=stated | {"parallelism": layout})
    assert own["throughput"]["tokens_per_s_per_accelerator"]["p50"] == pytest.approx(found[BEST])
    assert own["throughput"][BEST] is None
    assert typical_share(own) is None


@pytest.mark.parametrize(
    "sections",
    [
        {"hardware": {"accelerator": "h100", "count": 8}},
        {"efficiency": {"mfu": 0.4}},
        {"efficiency": {"mfu": 0.4, "measured_on": {"count": 64}}},
        {"training": {"method": "lora"}},
    ],
    ids=["one node", "stated efficiency", "measured step", "fine-tuning"],
)
def test_elsewhere_there_is_one_speed(client: FlaskClient, sections: dict[str, Any]) -> None:
    """Where there is one node, a figure of the team's own, or a speed that is fitted to steps in layouts that teams ran."""
    found = ask(client, **sections)
    assert found["throughput"][BEST] is None
    assert typical_share(found) is None
