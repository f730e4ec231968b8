"""`outlay serving`: the answers of POST /v1/serving, as a table, as CSV or whole."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from flask.testing import FlaskClient

from service.api.resources.serving import EXAMPLE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of, run

ROOT = Path(__file__).parents[4]
FLAGS = [
    *("--model", "llama-3.1-70b", "--prompt", "1500", "--output", "400", "--rate", "20", "--lifetime-tokens", "1T"),
    *("--ttft", "2", "--tpot", "60", "--formats", "bf16, fp8", "--accelerators", "H100,H200,MI300X", "--training-usd", "2e6", "--levers"),
]
pytestmark = pytest.mark.usefixtures("at_noon")


def outlay(settings: Settings, *arguments: str) -> Result:
    return run(settings, "serving", *arguments)


def printed(settings: Settings, *arguments: str) -> str:
    return output_of(settings, "serving", *arguments)


def over_http(client: FlaskClient, request: dict[str, Any]) -> str:
    answer = client.post("/v1/serving", json=request)
    assert answer.status_code == 200
    return answer.get_data(as_text=True)


def test_flags_answer_what_http_answers(client: FlaskClient, settings: Settings) -> None:
    """Every field and digit; the flags are the example."""
    assert dumps(json.loads(printed(settings, *FLAGS, "--json"))) == over_http(client, EXAMPLE)


@pytest.mark.parametrize("name", ["serving.json", "serving.yaml"])
def test_a_file_answers_what_http_answers(client: FlaskClient, settings: Settings, tmp_path: Path, name: str) -> None:
    """As JSON or YAML; flags and settings lie over it."""
    file = tmp_path / name
    file.write_text(yaml.safe_dump(EXAMPLE) if name.endswith("yaml") else json.dumps(EXAMPLE), encoding="utf-8")
    laid_over = EXAMPLE | {"limit": 3, "traffic": EXAMPLE["traffic"] | {"cached_share": 0.5}}
    found = printed(settings, str(file), "--limit", "3", "--set", "traffic.cached_share=0.5", "--json")
    assert dumps(json.loads(found)) == over_http(client, laid_over)


def test_the_table_tells_the_best_the_others_and_the_levers(settings: Settings) -> None:
    """The replica with what it takes and gives, a line an option, a line a lever, warnings and what was assumed."""
    whole = json.loads(printed(settings, *FLAGS, "--json"))
    text = printed(settings, *FLAGS)
    best, (sentence, *lines) = whole["best"], text.splitlines()
    assert sentence == whole["summary"]["text"]
    configuration = best["configuration"]
    assert lines[0].startswith("replica ")
    assert f"{configuration['accelerators']} x {configuration['accelerator']} in {configuration['format']}" in lines[0]
    for start in ("memory", "throughput", "prefill", "first token", "later tokens", "fleet", "input", "output", "month", "life", "price"):
        assert any(line.startswith(f"{start} ") for line in lines), start
    for option in (best, *whole["alternatives"]):
        shown = next(line.split() for line in lines if line.split()[:1] == [str(option["rank"])])
        assert shown[1] == f"{option['cost']['usd_per_million_tokens']['p50']:.4g}"
        assert {option["price"]["provider"], option["price"]["observed_at"][:10]} <= set(shown)
    assert f"{1 + len(whole['alternatives'])} of {whole['considered']} options" in lines
    assert sum(line.startswith(lever["title"]) for lever in whole["levers"] for line in lines) >= len(whole["levers"])
    assert "-v lists them" in text
    assert "  utilisation = 0.6" in printed(settings, *FLAGS, "-v")


def test_what_is_not_asked_is_not_shown(settings: Settings) -> None:
    """Without a rate there is no fleet and no month, at one's own price no other option."""
    text = printed(settings, "--params", "8B", "--prompt", "100", "--output", "10", "--accelerators", "H100", "--usd-per-hour", "2")
    starts = {line.split(" ")[0] for line in text.splitlines()}
    assert {"replica", "price"} <= starts
    assert not {"fleet", "month", "life", "quality", "lever"} & starts
    assert "2.0000 USD an accelerator-hour, yours" in text


def test_csv_has_a_line_an_option_and_a_column_a_figure(settings: Settings) -> None:
    """The same figures as the JSON, empty where there is none."""
    rows = list(csv.DictReader(io.StringIO(printed(settings, *FLAGS, "--csv"))))
    whole = json.loads(printed(settings, *FLAGS, "--json"))
    options = [whole["best"], *whole["alternatives"]]
    assert [row["format"] for row in rows] == [option["configuration"]["format"] for option in options]
    assert [float(row["usd_per_month_p90"]) for row in rows] == [option["cost"]["usd_per_month"]["p90"] for option in options]
    assert [float(row["replicas_p50"]) for row in rows] == [option["fleet"]["replicas"]["p50"] for option in options]
    bare = printed(settings, "--params", "8B", "--prompt", "100", "--output", "10", "--limit", "1", "--csv")
    assert {row["usd_per_month_p50"] for row in csv.DictReader(io.StringIO(bare))} == {""}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--params", "8B", "--prompt", "100"], "--output: this field is required"),
        ([*FLAGS, "--formats", "bf16,fp12"], "--formats: must be one of"),
        ([*FLAGS, "--counts", "4,many"], "--counts: not a count"),
        ([*FLAGS, "--accelerators", "H1000"], "--accelerators: unknown accelerator 'H1000'"),
        ([*FLAGS, "--snapshot", "never"], "--snapshot: no price snapshot is called 'never'"),
        ([*FLAGS, "--tpot", "0.1"], "--ttft or --tpot: nothing meets these latencies"),
        ([*FLAGS, "--set", "limit"], "'limit' is not PATH=VALUE"),
    ],
)
def test_mistakes_are_told_where_they_are(settings: Settings, client: FlaskClient, arguments: list[str], said: str) -> None:
    """On the error stream, as over HTTP, without a traceback."""
    del client  # its database is needed where a snapshot is looked up
    result = outlay(settings, *arguments)
    assert result.exit_code in (1, 2)
    assert result.stdout == ""
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_help_imports_nothing_heavy() -> None:
    """So it answers at once."""
    script = (
        "import sys; from service.cli import main; main(['serving', '-h'], standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--tpot" in done.stdout
    assert set(done.stderr.split()).isdisjoint({"numpy", "flask", "sqlalchemy", "marshmallow"})


def test_options_are_drawn_with_their_limit(settings: Settings, tmp_path: Path) -> None:
    """A point an option by its rank, with its accelerator and the latency that it has to keep to."""
    file = tmp_path / "serving.svg"
    whole = json.loads(printed(settings, *FLAGS, "--json", "--plot", str(file)))
    words = [element.text for element in ET.fromstring(file.read_text(encoding="utf-8")).iter() if element.text]
    options = [whole["best"], *whole["alternatives"]]
    assert {option["configuration"]["accelerator"] for option in options} <= set(words)
    assert {str(option["rank"]) for option in options} <= set(words)
    assert any("the limit of 60 ms" in word for word in words)
