"""`outlay fit` and `outlay loss-curve`: the answers of their addresses, as text or whole."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from flask.testing import FlaskClient

from service.api.resources.scaling import LAW_FIT as LAW
from service.api.resources.scaling import LOSS_CURVE as CURVE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of, run

FIT_FLAGS = ["--predict", "13B:257B", "--next-flops", "1e21"]
CURVE_FLAGS = [
    *("--plan-tokens", "20B", "--plan-loss", "2.78", "--decay", "cosine", "--warmup", "500M", "--final-share", "0.1"),
    *("--params", "400M", "--accelerator", "H100", "--count", "8", "--usd-per-hour", "2.5"),
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The example's runs as CSV, with a column more."""
    rows = [f"{point['params']},{point['tokens']},x,{point['loss']}" for point in LAW["points"]]
    return written(tmp_path / "runs.csv", "params,tokens,name,loss", rows)


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    """The example's curve as CSV."""
    return written(tmp_path / "curve.csv", "tokens,loss", [f"{point['tokens']},{point['loss']}" for point in CURVE["points"]])


def written(file: Path, head: str, rows: list[str]) -> Path:
    file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return file


def outlay(settings: Settings, *arguments: str) -> Result:
    return run(settings, *arguments)


def printed(settings: Settings, *arguments: str) -> str:
    return output_of(settings, *arguments)


def served(client: FlaskClient, path: str, request: dict[str, Any]) -> str:
    answer = client.post(path, json=request)
    assert answer.status_code == 200
    return answer.get_data(as_text=True)


def test_runs_as_csv_answer_what_http_answers(client: FlaskClient, settings: Settings, runs: Path) -> None:
    """Every digit; sizes may have suffixes, and flags ask for predictions and a design, whose target is the first prediction."""
    request = {name: part for name, part in LAW.items() if name != "form"}
    found = printed(settings, "fit", str(runs), *FIT_FLAGS, "--json")
    assert dumps(json.loads(found)) == served(client, "/v1/scaling-laws/fit", request)


def test_a_request_file_answers_what_http_answers(client: FlaskClient, settings: Settings, tmp_path: Path) -> None:
    """As JSON; flags lie over it."""
    file = tmp_path / "fit.json"
    file.write_text(json.dumps(LAW), encoding="utf-8")
    found = printed(settings, "fit", str(file), "--seed", "3", "--bootstraps", "30", "--json")
    assert dumps(json.loads(found)) == served(client, "/v1/scaling-laws/fit", LAW | {"seed": 3, "bootstraps": 30})


def test_the_law_is_told_with_its_intervals(settings: Settings, runs: Path) -> None:
    """A line a parameter, the exponents of the optimum, each prediction, each run to make next, and the warnings."""
    whole = json.loads(printed(settings, "fit", str(runs), *FIT_FLAGS, "--json"))
    text = printed(settings, "fit", str(runs), *FIT_FLAGS)
    for name, (low, high) in whole["intervals"].items():
        assert f"{low:.5g} - {high:.5g}" in next(line for line in text.splitlines() if line.startswith(f"{name} "))
    run = whole["predictions"][0]
    assert f"{run['p50']:.4g} ({run['p10']:.4g} - {run['p90']:.4g})" in text
    assert text.count("%\n") >= len(whole["design"]["runs"])
    assert "optimal params grow with compute" in text
    assert "warning: 9 runs for five parameters" in text
    assert "5 values were assumed" in text
    assert "  seed = 0" in printed(settings, "fit", str(runs), "-v")


def test_a_curve_as_csv_answers_what_http_answers(client: FlaskClient, settings: Settings, curve: Path) -> None:
    """Every digit; the flags are the example's."""
    found = printed(settings, "loss-curve", str(curve), *CURVE_FLAGS, "--json")
    assert dumps(json.loads(found)) == served(client, "/v1/loss-curves/extrapolate", CURVE)


def test_the_end_is_told_with_advice_and_every_option(settings: Settings, curve: Path) -> None:
    """Advice first; then where the run is, how likely the planned loss is, and a line an end with loss and dollars."""
    whole = json.loads(printed(settings, "loss-curve", str(curve), *CURVE_FLAGS, "--json"))
    lines = printed(settings, "loss-curve", str(curve), *CURVE_FLAGS).splitlines()
    assert lines[0].startswith(f"{whole['advice']['action']} to ")
    assert "60% of the plan" in lines[1]
    assert any(f"reached with probability {whole['against_plan']['probability']:.0%}" in line for line in lines)
    for option in whole["options"]:
        assert any(line.startswith(option["action"]) and f"{option['loss']['p50']:.4g}" in line for line in lines)


def test_other_ends_and_losses_that_are_none(settings: Settings, tmp_path: Path) -> None:
    """--ends names the alternatives; nan in a log is left out with a warning, and nothing is priced without a machine."""
    rows = [f"{point['tokens']},{point['loss']}" for point in CURVE["points"]]
    file = written(tmp_path / "curve.csv", "tokens,loss", [*rows, "12.5B,nan"])
    text = printed(settings, "loss-curve", str(file), "--plan-tokens", "20B", "--decay", "cosine", "--ends", "16B,3e10")
    assert [line.split()[:2] for line in text.splitlines() if line.startswith(("shrink", "extend"))] == [
        ["shrink", "16B"],
        ["extend", "30B"],
    ]
    assert "warning: 1 losses that are not positive numbers" in text
    assert "not priced" in text


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("params,loss\n1B,2.0\n", ["fit"], "no column tokens; the first line has to name params, tokens, loss"),
        ("params,tokens,loss\n1B,2B,low\n", ["fit"], "line 2: 'low' is no number"),
        ("params,tokens,loss\n1B,2B,2.1\n", ["fit"], ", points: must have 6 to 1,000 entries, not 1"),
        ("params,tokens,loss\n", ["fit", "--predict", "13B"], "'13B' is not PARAMS:TOKENS"),
        ("params,tokens,loss\n", ["fit", "--next-flops", "1e21"], "state the run to predict better with --target"),
        ("params,tokens,loss\n", ["fit", "--target", "1B:2B"], "--target belongs to --next-flops"),
        ("params,tokens,loss\n", ["fit", "--next-flops", "many", "--target", "1B:2B"], "'many' is no number"),
        ("tokens,loss\n1e9,3\n", ["loss-curve", "--plan-tokens", "2B", "--decay", "cosine"], ", points: 1 finite losses"),
        ("tokens,loss\n1e9,3\n", ["loss-curve"], ", plan (--plan-tokens or --plan-loss): this field is required"),
    ],
)
def test_mistakes_are_told_where_they_are(settings: Settings, tmp_path: Path, text: str, arguments: list[str], said: str) -> None:
    """On the error stream, without a traceback."""
    file = tmp_path / "points.csv"
    file.write_text(text, encoding="utf-8")
    result = outlay(settings, arguments[0], str(file), *arguments[1:])
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_runs_and_law_are_drawn(settings: Settings, runs: Path, tmp_path: Path) -> None:
    """Curves of equal FLOPs with their bands, a point a run, a diamond a run foretold; a folder that is not there holds no file."""
    file = tmp_path / "fit.svg"
    text = printed(settings, "fit", str(runs), "--predict", "13B:257B", "--plot", str(file))
    assert "best fit" in text
    drawn = ET.fromstring(file.read_text(encoding="utf-8"))
    words = " ".join(element.text for element in drawn.iter() if element.text)
    for word in ("parameters", "loss, nats a token", "FLOPs", "diamonds: predicted runs", "alpha 0.3898"):
        assert word in words
    marks = [group for group in drawn.iter() if "role-mark" in group.get("class", "")]
    points = [len(group) for group in marks if "mark-symbol" in group.get("class", "")]
    assert sorted(points)[-1] == len(LAW["points"])
    nowhere = outlay(settings, "fit", str(runs), "--plot", str(tmp_path / "none" / "fit.svg"))
    assert nowhere.exit_code == 1
    assert "is not drawn" in nowhere.stderr
