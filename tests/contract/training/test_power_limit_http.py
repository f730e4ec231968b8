"""A power limit of the accelerators: time, energy, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

HARDWARE = {"accelerator": "H100", "count": 64}
REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-3-8b"},
    "data": {"tokens": "1T"},
    "hardware": HARDWARE,
    "price": {"usd_per_accelerator_hour": 2.0},
}


def limited(client: FlaskClient, watts: float, **sections: Any) -> dict[str, Any]:
    answer = client.post("/v1/estimate", json=REQUEST | sections | {"hardware": HARDWARE | {"power_limit_w": watts}})
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def test_less_power_is_more_time_and_less_power_drawn(client: FlaskClient) -> None:
    full, mild, strict = (limited(client, watts) for watts in (700, 560, 350))
    assert full["throughput"] == client.post("/v1/estimate", json=REQUEST).get_json()["throughput"]
    hours = [answer["time"]["wall_clock_hours"]["p50"] for answer in (full, mild, strict)]
    watts = [answer["energy"]["watts_per_accelerator"] for answer in (full, mild, strict)]
    assert hours[0] < hours[1] < 1.06 * hours[0] < hours[2] < 1.6 * hours[0]
    assert watts[0] > watts[1] > watts[2] > 350
    assert mild["energy"]["mwh"] < full["energy"]["mwh"]
    (said,) = (item for item in mild["assumptions"] if item["field"] == "throughput.power_limit")
    assert said["value"]["relative_time"] > 1 > said["value"]["relative_power"]
    assert "one card" in said["source"]


def test_measured_figures_are_those_at_the_limit(client: FlaskClient) -> None:
    """A stated efficiency and a stated power are not changed again."""
    found = limited(client, 560, efficiency={"mfu": 0.4}, energy={"watts_per_accelerator": 800})
    assert found["throughput"]["mfu"]["p50"] == pytest.approx(0.4)
    assert found["energy"]["watts_per_accelerator"] == 800


@pytest.mark.parametrize(
    ("accelerator", "watts", "text"),
    [("H100", 701, "700 W, the TDP"), ("H100", 200, "280 W, the lowest share"), ("tpu-v5p", 200, "no TDP of Google-TPU-v5p")],
)
def test_limits_that_nothing_is_known_of_are_refused(client: FlaskClient, accelerator: str, watts: float, text: str) -> None:
    hardware = {"accelerator": accelerator, "count": 64, "power_limit_w": watts}
    answer = client.post("/v1/estimate", json=REQUEST | {"hardware": hardware})
    assert answer.status_code == 422
    (error,) = answer.get_json()["errors"]
    assert error["pointer"] == "/hardware/power_limit_w"
    assert text in error["message"]
