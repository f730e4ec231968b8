"""`outlay compare`: the answers of POST /v1/compare, as a table, as CSV or whole."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from flask.testing import FlaskClient

from service.api.resources.comparison import COMPARISON as EXAMPLE
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.unit.cli.invoke import output_of, run

ROOT = Path(__file__).parents[4]
FLAGS = [
    *("--params", "7B", "--tokens", "1T", "--method", "pretrain", "--seq-len", "4096", "--precision", "bf16"),
    *("--accelerators", "H100,A100-80GB, H200", "--counts", "64,128,256", "--pricing", "on_demand,spot,reserved_1y"),
    *("--start", "2027-01-04", "--deadline", "2027-06-30", "--max-days", "60", "--objective", "cost", "--limit", "50"),
]
pytestmark = pytest.mark.usefixtures("at_noon")


def outlay(settings: Settings, *arguments: str) -> Result:
    return run(settings, "compare", *arguments)


def printed(settings: Settings, *arguments: str) -> str:
    return output_of(settings, "compare", *arguments)


def served(client: FlaskClient, request: dict[str, Any]) -> str:
    answer = client.post("/v1/compare", json=request)
    assert answer.status_code == 200
    return answer.get_data(as_text=True)


def test_flags_answer_what_http_answers(client: FlaskClient, settings: Settings) -> None:
    """Every field and digit; the flags are the contract's example without owned hardware."""
    request = {name: part for name, part in EXAMPLE.items() if name != "on_prem"}
    assert dumps(json.loads(printed(settings, *FLAGS, "--json"))) == served(client, request)


@pytest.mark.parametrize("name", ["compare.json", "compare.yaml"])
def test_a_file_answers_what_http_answers(client: FlaskClient, settings: Settings, tmp_path: Path, name: str) -> None:
    """As JSON or YAML; flags and settings lie over it."""
    file = tmp_path / name
    file.write_text(yaml.safe_dump(EXAMPLE) if name.endswith("yaml") else json.dumps(EXAMPLE), encoding="utf-8")
    assert dumps(json.loads(printed(settings, str(file), "--json"))) == served(client, EXAMPLE)
    laid_over = EXAMPLE | {"limit": 3, "workload": EXAMPLE["workload"] | {"failures": {"restart_minutes": 10}}}
    found = printed(settings, str(file), "--limit", "3", "--set", "workload.failures.restart_minutes=10", "--json")
    assert dumps(json.loads(found)) == served(client, laid_over)


def test_the_table_has_a_line_an_option(settings: Settings, tmp_path: Path) -> None:
    """Rank, dollars with their range, days, carbon, what is rented where, how it is sold and when that was read; then owned hardware."""
    file = tmp_path / "compare.json"
    file.write_text(json.dumps(EXAMPLE), encoding="utf-8")
    whole = json.loads(printed(settings, str(file), "--json"))
    text = printed(settings, str(file))
    sentence, *lines = text.splitlines()
    assert sentence == whole["summary"]["text"]
    assert re.split(r"  +", lines[0].strip())[:7] == ["USD", "days", "p90 days", "finish", "in time", "tCO2e", "provider"]
    for line, option in zip(lines[1 : len(whole["options"]) + 1], whole["options"], strict=True):
        offer, cost = option["offer"], option["cost_usd"]
        cells = re.split(r"  +", line)
        rank = str(option["rank"]) if option["feasible"] else "-"
        assert cells[:3] == [rank, f"{cost['p50']:,.0f}", f"{cost['p10']:,.0f} - {cost['p90']:,.0f}"]
        assert cells[5:7] == [option["time"]["finish"]["p50"], f"{option['time']['deadline_probability']:.0%}"]
        assert cells[8:10] == [offer["provider"], offer["region"]]
        assert {f"{option['nodes']} x {offer['instance_type']} ({option['count']} {offer['accelerator']})", offer["pricing"]} <= set(cells)
        assert offer["observed_at"] is None or offer["observed_at"][:10] in cells
        marks = cells[-1].split()
        assert ("*" in marks, "stale" in marks) == (option["on_pareto_front"], offer["stale"])
    assert f"{len(whole['options'])} of {whole['considered']} options" in text
    assert f"splits_nodes {whole['infeasible']['splits_nodes']}" in text
    assert re.search(r"^on_prem:dc1: 1\.\d{4} USD for each used accelerator-hour, [\d,]+ USD a year$", text, re.MULTILINE)
    for pricing in (r"(on_demand|reserved_\dy)", "spot"):
        verdict = rf"^on_prem:dc1: against \d+\.\d{{4}} USD \({pricing}\) of .* wins with probability \d+%$"
        assert len(re.findall(verdict, text, re.MULTILINE)) == 1
    assert "-v lists them" in text
    assert "  candidates.providers = all" in printed(settings, str(file), "-v")


def test_what_is_ruled_out_says_why(settings: Settings) -> None:
    """Nothing feasible stands first; what cannot run has no rank and no figures, and its reasons are whole."""
    text = printed(settings, "--model", "llama-3.1-405b", "--tokens", "1T", "--accelerators", "A100-80GB", "--counts", "8", "--limit", "2")
    sentence, *lines = text.splitlines()
    assert sentence.startswith("None of ")
    assert lines[0].startswith("No option meets all constraints. The nearest one, ")
    first = re.split(r"  +", lines[2])
    assert first[:2] == ["-", "-"]
    assert first[-1].startswith(("no layout fits", "stale no layout fits"))
    assert "What would fit" in first[-1]


def test_variants_have_a_line_each(settings: Settings) -> None:
    """With what each costs more than the cheapest."""
    variants = '[{"name": "short", "workload": {"data": {"tokens": "100B"}}}, {"name": "long", "workload": {}}]'
    asked = (*FLAGS, "--set", f"variants={variants}", "--limit", "1")
    short, long = json.loads(printed(settings, *asked, "--json"))["variants"]
    text = printed(settings, *asked)
    assert re.search(
        rf"^variant short: .* days, the cheapest; {short['feasible']} feasible, the best {re.escape(short['best'])}$", text, re.M
    )
    share = (long["cost_usd"] - short["cost_usd"]) / short["cost_usd"]
    assert re.search(rf"^variant long: .* USD \({share:.0%}\) more than the cheapest; .*{re.escape(long['best'])}$", text, re.M)


def test_a_probability_and_an_age_may_be_asked_for(settings: Settings) -> None:
    """As their fields are over HTTP."""
    answer = json.loads(printed(settings, *FLAGS, "--min-probability", "0.95", "--max-age-days", "300", "--json"))
    feasible = [option for option in answer["options"] if option["feasible"]]
    assert feasible
    assert all(option["time"]["deadline_probability"] >= 0.95 and option["offer"]["observed_at"] >= "2026-01-25" for option in feasible)


def test_a_reservation_shows_how_much_of_it_is_used(settings: Settings) -> None:
    """Beside a cost that holds the whole term; as columns of the CSV too."""
    asked = ("--model", "llama-2-7b", "--tokens", "1T", "--counts", "64", "--pricing", "reserved_1y", "--limit", "1")
    (option,) = json.loads(printed(settings, *asked, "--json"))["options"]
    commitment = option["commitment"]
    assert 0 < commitment["used_share"] < 1
    assert f"uses {commitment['used_share']:.0%} of what is reserved" in printed(settings, *asked).splitlines()[2]
    (row,) = csv.DictReader(io.StringIO(printed(settings, *asked, "--csv")))
    figures = {name: commitment[name] for name in ("term_hours", "paid_hours", "used_share")}
    assert {name: float(row[name]) for name in figures} == pytest.approx(figures, rel=1e-5)
    assert json.loads(row["holds_capacity"]) is commitment["holds_capacity"] is False


def test_csv_has_a_line_an_option_and_a_column_a_figure(settings: Settings) -> None:
    """The same figures as the JSON to six digits, empty where there is none; flags as JSON has them."""
    rows = list(csv.DictReader(io.StringIO(printed(settings, *FLAGS, "--csv"))))
    options = json.loads(printed(settings, *FLAGS, "--json"))["options"]
    assert [row["id"] for row in rows] == [option["id"] for option in options]
    assert [float(row["cost_usd_p50"]) for row in rows] == pytest.approx([option["cost_usd"]["p50"] for option in options], rel=1e-5)
    chances = [option["time"]["deadline_probability"] for option in options]
    assert [float(row["deadline_probability"]) for row in rows] == pytest.approx(chances, rel=1e-5)
    assert [row["finish_p90"] for row in rows] == [option["time"]["finish"]["p90"] for option in options]
    speeds = [(option["throughput"]["tokens_per_s_per_accelerator"]["p50"], option["throughput"]["inter_node_gbps"]) for option in options]
    told = [(float(row["tokens_per_s_per_accelerator_p50"]), float(row["inter_node_gbps"])) for row in rows]
    assert told == [pytest.approx(speed, rel=1e-5) for speed in speeds]
    assert [(row["feasible"] == "true", row["stale"] == "true") for row in rows] == [
        (option["feasible"], option["offer"]["stale"]) for option in options
    ]
    assert all(len(row["cost_usd_p50"].replace(".", "")) <= max(6, len(row["cost_usd_p50"].partition(".")[0])) for row in rows)
    assert {row["variant"] for row in rows} == {""}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--params", "7B"], "--tokens or --samples: this field is required"),
        ([*FLAGS, "--counts", "64,many"], "--counts: not a count"),
        ([*FLAGS, "--pricing", "on-demand"], "--pricing: must be one of"),
        ([*FLAGS, "--accelerators", "H1000"], "--accelerators: unknown accelerator 'H1000'"),
        ([*FLAGS, "--snapshot", "never"], "--snapshot: no price snapshot is called 'never'"),
        ([*FLAGS, "--jurisdictions", "EU,Atlantis"], "--jurisdictions: unknown jurisdiction 'Atlantis'"),
        ([*FLAGS, "--csv", "--json"], "take --csv or --json"),
        ([*FLAGS, "--providers", "awss"], "--providers: no offer has the provider 'awss' (did you mean aws?)"),
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
        "import sys; from service.cli import main; main(['compare', '-h'], standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--accelerators" in done.stdout
    assert set(done.stderr.split()).isdisjoint({"numpy", "flask", "sqlalchemy", "marshmallow"})
