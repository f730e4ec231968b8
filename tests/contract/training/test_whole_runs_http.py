"""Hours of whole runs over HTTP: physical at every percentile, as stated where stated, and of the software's year."""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from service.engine.training.reliability import daly_interval_hours, goodput
from service.presets.hardware.accelerators import load_accelerators

STATED = {"mttf_hours_per_accelerator": 50_000, "detection_minutes": 5, "restart_minutes": 15, "checkpoint_write_minutes": 2}


def ask(client: FlaskClient, accelerator: str = "H100", count: int = 1024, tokens: float = 1e12, **changed: Any) -> dict[str, Any]:
    """The estimate of a 7B at a stated price, with sections added or replaced."""
    request = {
        "model": {"preset": "llama-2-7b"},
        "data": {"tokens": tokens},
        "hardware": {"accelerator": accelerator, "count": count},
        "price": {"usd_per_accelerator_hour": 2.0},
        **changed,
    }
    answer = client.post("/v1/estimate", json=request)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    body: dict[str, Any] = answer.get_json()
    return body


def assumed(body: dict[str, Any]) -> dict[str, Any]:
    return {one["field"]: one["value"] for one in body["assumptions"]}


@pytest.mark.parametrize("count", [8, 512])
@pytest.mark.parametrize(
    "name", ["NVIDIA-A100-80GB-SXM", "NVIDIA-H100-80GB-SXM", "NVIDIA-B200-SXM", "Google-TPU-v5e", "AMD-MI300X", "NVIDIA-L40S"]
)
def test_no_percentile_needs_more_than_the_peak(client: FlaskClient, name: str, count: int) -> None:
    """The shortest hours are no shorter than the fastest speed gives, which is under the dense peak; money follows from hours."""
    body = ask(client, name, count)
    hours, speed = body["time"]["accelerator_hours"], body["throughput"]["tokens_per_s_per_accelerator"]
    peak = load_accelerators()[name].peak_tflops["bf16"] * 1e12
    assert hours["p10"] * 3600 * peak >= body["flops"]["total"]
    assert hours["p10"] >= body["tokens"]["trained"] / speed["p90"] / 3600 * 0.999
    assert body["throughput"]["mfu"]["p90"] <= 1
    for edge in ("p10", "p50", "p90"):
        compute = 2 * hours[edge]
        assert body["cost"]["total_usd"][edge] == pytest.approx(compute, rel=0.02)


@pytest.mark.parametrize(("count", "warned"), [(8, False), (1024, True)])
def test_a_stated_efficiency_is_said_to_be_the_whole_runs(client: FlaskClient, count: int, warned: bool) -> None:
    """An assumption wherever one is stated, and a warning where planned runs of that size lose more than measurements are off by."""
    body = ask(client, count=count, efficiency={"mfu": 0.45})
    (said,) = (one["source"] for one in body["assumptions"] if one["field"] == "efficiency")
    assert "whole run" in said
    assert "efficiency.measured_on" in said
    assert any("lose" in text and "outside of steps" in text for text in body["warnings"]) is warned
    assert "efficiency" not in assumed(ask(client, count=count))


def test_what_is_not_measured_has_the_wider_hours(client: FlaskClient) -> None:
    """A TPU v4 has rows, an MI355X none: the slow side of its hours reaches further."""
    slow = {
        name: body["time"]["accelerator_hours"]["p90"] / body["time"]["accelerator_hours"]["p50"]
        for name in ("A100-80GB", "H100", "TPU-v6e", "MI355X", "Gaudi3")
        for body in (ask(client, name, 64),)
    }
    assert min(slow["MI355X"], slow["Gaudi3"]) > max(slow["A100-80GB"], slow["H100"], slow["TPU-v6e"])


def test_the_year_of_the_software_is_the_clocks_unless_stated(client: FlaskClient) -> None:
    """It is noted, later years only let kernels mature as those of families before, and older software takes longer."""
    today = ask(client)
    assert assumed(today)["training.software_year"] >= 2026
    old, next_decade = (ask(client, training={"software_year": year}) for year in (2021, 2035))
    assert "training.software_year" not in assumed(old)
    assert 0.95 < next_decade["time"]["accelerator_hours"]["p50"] / today["time"]["accelerator_hours"]["p50"] <= 1
    assert old["time"]["accelerator_hours"]["p50"] > 1.2 * today["time"]["accelerator_hours"]["p50"]
    assert assumed(old)["failures.checkpoint_blocking_share"] == 1
    assert assumed(today)["failures.checkpoint_blocking_share"] < 0.1
    assert old["reliability"]["goodput"] < today["reliability"]["goodput"]


@pytest.mark.parametrize("year", [2020, 2026])
def test_failures_are_taken_as_stated(client: FlaskClient, year: int) -> None:
    """Goodput is Daly's of the stated minutes, whatever the software; training waits for a stated write."""
    found = ask(client, count=4096, failures=STATED, training={"software_year": year})["reliability"]
    mttf = 50_000 / 4096
    interval = daly_interval_hours(2 / 60, mttf)
    assert found["checkpoint_interval_minutes"] == pytest.approx(interval * 60)
    assert found["goodput"] == pytest.approx(goodput(1 / mttf, interval, 2 / 60, 20 / 60))


def test_the_largest_machines_have_a_plan(client: FlaskClient) -> None:
    """Goodput falls to about 0.9 on 16,384 and no less than two thirds on 100,000, where p90 is at most three times p10."""
    large = {"model": {"preset": "llama-3.1-405b"}}
    found = {count: ask(client, "H100", count, 15.6e12, **large) for count in (1024, 16_384, 100_000)}
    shares = [body["reliability"]["goodput"] for body in found.values()]
    assert shares == sorted(shares, reverse=True)
    assert 0.88 < shares[1] < 0.96
    assert shares[2] > 2 / 3
    hours = found[100_000]["time"]["accelerator_hours"]
    assert hours["p90"] < 3 * hours["p10"]


def test_more_tokens_take_longer_at_every_percentile(client: FlaskClient) -> None:
    """Hours and dollars of ten times the tokens are more, p10 to p90."""
    few, many = (ask(client, tokens=tokens) for tokens in (1e11, 1e12))
    for edge in ("p10", "p50", "p90"):
        assert many["time"]["accelerator_hours"][edge] == pytest.approx(10 * few["time"]["accelerator_hours"][edge], rel=1e-3)
        assert many["cost"]["total_usd"][edge] > few["cost"]["total_usd"][edge]
