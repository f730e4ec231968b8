"""Names at the ends of a report's lines, and times below them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from service.formats.documents.charts import svg
from service.formats.documents.report.charts import HIGH, spend_chart
from service.formats.documents.report.run_charts import position_chart

DAYS = ("2026-01-05T00:00:00+00:00", "2026-01-06T00:00:00+00:00")


def report(earned_usd: float, spent_usd: float) -> dict[str, Any]:
    """As much of a report as the S-curve reads."""
    series = [
        {"at": at, "planned_usd": 100.0 * place, "earned_usd": earned_usd * place, "spent_usd": spent_usd * place}
        for place, at in enumerate(DAYS)
    ]
    value = {"bac_usd": 200.0, "pv_usd": 100.0, "ev_usd": earned_usd, "ac_usd": spent_usd}
    status = {"earned_value": value, "forecast": {"cost_usd": None, "finish": None}, "as_of": DAYS[-1]}
    return {"time_series": series, "program": {"deadline": None}, "status": status}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of what is known by now alone are drawn."""
    monkeypatch.setattr("service.formats.documents.report.charts._measured_words", lambda _: "runs")
    monkeypatch.setattr("service.formats.documents.report.charts.forecast_fan", lambda _: [])


def heights(earned: float, actual: float) -> dict[str, float]:
    """Where the names of the lines stand in the S-curve, from its top [px]."""
    drawn = svg(spend_chart(report(earned, actual)))  # type: ignore[arg-type]
    return {name: float(y) for y, name in re.findall(r'transform="translate\([\d.]+,([\d.]+)\)"[^>]*>(earned|actual)<', drawn)}


@pytest.mark.parametrize(("earned", "actual"), [(90.0, 80.0), (80.0, 90.0)])
def test_the_higher_line_has_the_higher_name(earned: float, actual: float) -> None:
    """Earned value and cost end close to each other: the names would stand on each other, or at the other line."""
    height = heights(earned, actual)
    assert (height["earned"] < height["actual"]) == (earned > actual)
    assert abs(height["earned"] - height["actual"]) > 14


@pytest.mark.parametrize(("earned", "actual"), [(0.0, 0.0), (0.0, 4.0), (3.0, 0.0), (0.0, 60.0)])
def test_no_name_covers_the_axis(earned: float, actual: float) -> None:
    """Where little is spent or earned both names stand above the axis, one above the other."""
    height = heights(earned, actual)
    assert max(height.values()) <= HIGH - 4
    assert abs(height["earned"] - height["actual"]) >= 11
    assert earned == actual or (height["earned"] < height["actual"]) == (earned > actual)


def test_ticks_within_a_day_have_its_time() -> None:
    """Else several ticks of a short run would be of one day."""
    points = [{"at": at, "tokens": 1e9 * place, "tokens_per_s": 1e4} for place, at in enumerate(DAYS)]
    drawn = position_chart({"points": points, "plan": {"tokens": 2e9}})
    assert drawn is not None
    labels = re.findall(r">(\d+ Jan[^<]*)<", svg(drawn))
    assert len(labels) > 2
    assert len(set(labels)) == len(labels), labels
