"""Pictures of the documentation: charts of the service's own answers. `python -m tools.pictures`, part of `make readme`, draws them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import altair as alt
from flask.testing import FlaskClient

from bench.harness import offline_client
from bench.session import SHOWN_AT, Session, session
from service.domain.quantities import Range
from service.formats.documents.charts import COLOURS, data, svg, titled
from service.formats.documents.procurement.charts import curves_chart
from service.formats.documents.procurement.model import cash_model
from service.formats.documents.program.charts import budget_chart, gantt_chart
from service.formats.documents.report.forecast_charts import bridge_chart
from service.formats.documents.results.comparison_charts import options_chart
from service.formats.documents.results.estimate_charts import cost_chart, memory_chart
from service.formats.documents.scenario_charts import cost_chart as chances_chart
from service.formats.slack.range_image import range_chart as card_chart

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
EXAMPLES = FOLDER.parents[1] / "examples" / "tutorials"
RUN: Mapping[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "training": {"method": "pretrain", "seq_len": 4096, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "A100-80GB", "count": 1024},
    "price": {"usd_per_accelerator_hour": 2.0},
}
"""The run of the tour."""
AROUND: Mapping[str, Any] = {
    "overhead": {"evaluation": 0.05, "reruns": 0.08},
    "personnel": {"analysis_hours": 240, "oncall_hours": 80, "usd_per_hour": 120},
}
"""What the tour adds to it."""
CHOICE: Mapping[str, Any] = {
    "workload": {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}},
    "candidates": {"accelerators": ["H100", "H200", "B200"], "counts": [128, 256]},
}
PROGRAMS = (EXAMPLES / "three-tiers.json", EXAMPLES.parent / "program-1b-64.json")
"""Of the researcher's tutorial, and of the operator's."""
WIDTH, HEIGHT = 480, 130
REPORTED_HOURS = 184_320
"""Accelerator-hours of Llama 2 7B: Touvron et al. 2023 (arXiv 2307.09288), table 2."""


def range_chart(hours: Mapping[str, float]) -> alt.TopLevelMixin:
    """A range as every page draws it: a thin line from p10 to p90, a tick at p50; the reported figure is a dashed line."""
    ends, middle = [_end(hours, "p10", "takes less"), _end(hours, "p90", "takes more")], {"x": hours["p50"]}
    across = alt.X(
        "x:Q", title="accelerator-hours", scale=alt.Scale(domain=[0, hours["p90"] * 1.3]), axis=alt.Axis(tickCount=5, format=",d")
    )
    place = alt.value(HEIGHT / 2)
    line = data([{"x": hours["p10"], "x2": hours["p90"]}]).mark_rule(color=COLOURS[0], strokeWidth=2).encode(x=across, x2="x2:Q", y=place)
    tick = data([middle]).mark_tick(color=COLOURS[0], thickness=3, size=18, orient="vertical").encode(x="x:Q", y=place)
    said = [_said(ends[0], "right", -8), _said(ends[1], "left", 8)]
    median = data([{**middle, "text": f"p50: {hours['p50']:,.0f}\nhalf take less"}])
    said.append(median.mark_text(baseline="top", lineBreak="\n").encode(x="x:Q", y=alt.value(HEIGHT / 2 + 30), text="text:N"))
    reported = data([{"x": REPORTED_HOURS, "text": f"Meta reported {REPORTED_HOURS:,}"}])
    goal = reported.mark_rule(strokeDash=[4, 3], color=COLOURS[1]).encode(x="x:Q")
    label = reported.mark_text(align="left", dx=5, color=COLOURS[1]).encode(x="x:Q", y=alt.value(12), text="text:N")
    title = "The reported hours of Llama 2 7B lie within the range of its plan"
    return titled(alt.layer(goal, line, tick, *said, label), width=WIDTH, height=HEIGHT, title=title)


def _said(end: Mapping[str, Any], align: Literal["left", "right"], dx: float) -> Any:
    text = data([end]).mark_text(align=align, dx=dx, fontSize=11, lineBreak="\n")
    return text.encode(x="x:Q", y=alt.value(HEIGHT / 2 - 6), text="text:N")


def _end(hours: Mapping[str, float], name: str, means: str) -> dict[str, Any]:
    return {"x": hours[name], "text": f"{name}: {hours[name]:,.0f}\none run in ten\n{means}"}


def fleet_answer(client: FlaskClient, owned: int) -> dict[str, Any]:
    """What the tutorial on procurement is answered when it buys that many accelerators."""
    quotes, mapping, fleet = ((EXAMPLES / name).read_text(encoding="utf-8") for name in ("quotes.csv", "quotes-mapping.json", "fleet.json"))
    sheet = {"file_name": "quotes.csv", "content_base64": base64.b64encode(quotes.encode()).decode(), "mapping": json.loads(mapping)}
    proposal = client.post("/v1/price-files", json=sheet).get_json()
    client.post("/v1/price-files", json={**sheet, "confirm": True, "sha256": proposal["sha256"]})
    request = json.loads(fleet)
    request["own"][0]["count"] = owned
    answer: dict[str, Any] = client.post("/v1/buy-or-rent", json=request).get_json()
    return answer


def read_json(file: Path) -> Any:
    """What a file has."""
    return json.loads(file.read_text(encoding="utf-8"))


def followed() -> dict[str, alt.TopLevelMixin]:
    """By their names the charts of what readers of tutorials have made on the service: tracked programs and a scenario."""
    with session() as reader:
        reader.run("export OUTLAY_SERVER=http://127.0.0.1:8080")
        reader.run("export SPENT=$(python examples/tutorials/tracked_program.py)")
        reader.run("export RUN=$(cat examples/tutorials/run.json)")
        asked = '{\\"kind\\": \\"monte_carlo\\", \\"trials\\": 2000, \\"seed\\": 1, \\"base\\": $RUN}'
        reader.run(f'export TRIALS=$(curl -s $OUTLAY_SERVER/v1/scenarios -H "Content-Type: application/json" -d "{asked}")')
        trials = json.loads(reader.environment["TRIALS"])["id"]
        charts = {
            "bridge": bridge_chart(fetched(reader, "track/programs/$SPENT/report?as_of=2026-02-02T12:00:00Z")),
            "chances": chances_chart(fetched(reader, f"scenarios/{trials}")["result"], 200_000),
        }
    return {name: chart for name, chart in charts.items() if chart is not None}


def fetched(reader: Session, path: str) -> dict[str, Any]:
    """What the reader's service answers."""
    answer: dict[str, Any] = json.loads(reader.run(f'curl -s "http://127.0.0.1:8080/v1/{path}"')[0])
    return answer


def drawn() -> dict[str, str]:
    """By their names in FOLDER the pictures as SVG, of the service's present answers."""
    with patch("service.container.utc_now", lambda: SHOWN_AT), offline_client() as client:
        planned = client.post("/v1/estimate", json=RUN).get_json()
        whole = client.post("/v1/estimate", json={**RUN, **AROUND}).get_json()
        compared = client.post("/v1/compare", json=CHOICE).get_json()
        program, base = (client.post("/v1/estimate/program", json=read_json(file)).get_json() for file in PROGRAMS)
        bought = fleet_answer(client, 168)
    charts = {
        "range": range_chart(planned["time"]["accelerator_hours"]),
        "cost": cost_chart(whole),
        "memory": memory_chart(planned),
        "options": options_chart(compared),
        "program": gantt_chart(program),
        "budget": budget_chart(base),
        "fleet": curves_chart(cash_model(bought)),
        "card": card_chart(Range(**planned["cost"]["total_usd"]), None),
        **followed(),
    }
    return {name: svg(chart) for name, chart in charts.items()}


def words(picture: str) -> list[str]:
    """What stands in a picture: places differ with the fonts of a machine, words do not."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, picture in drawn().items():
        (FOLDER / f"{name}.svg").write_text(picture, encoding="utf-8")
