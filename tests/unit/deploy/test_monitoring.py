"""Alert rules and dashboards: they ask for metrics that exist, and the rules fire for what they are made for and for nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.domain.metrics import METRICS
from tests.support.rows import for_each

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yaml"
DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
DOCS = DEPLOY.parent / "docs" / "reference" / "observability.md"
PROMETHEUS_OWN = {"up": {"job", "instance"}}
ADDED = {"instance", "job", "le", "alertname"}
"""Labels that Prometheus or a histogram adds."""
KNOWN = {metric.name: set(metric.labels) for metric in METRICS} | PROMETHEUS_OWN
SELECTOR = re.compile(r"\b((?:outlay|http_server)_[a-z_]+|up)\b(?:\{([^}]*)\})?")
GROUPING = re.compile(r"\b(?:by|on) \(([^)]*)\)")

Series = dict[str, str]
REQUESTS = 'http_server_request_duration_seconds_{}{{instance="web",http_route="/v1/estimate",{}}}'
PROGRAM = '{{team="t",program="1",name="7B"{}}}'
DAY = 1440
"""Minutes."""


def rules() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> Iterator[tuple[str, str]]:
    """Every expression with what it belongs to."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for file in DASHBOARDS:
        board = json.loads(file.read_text())
        for panel in board["panels"]:
            yield from ((f"{file.stem}: {panel['title']}", target["expr"]) for target in panel.get("targets", ()))


def known_name(name: str) -> str:
    """The metric of a series: histograms add to its name."""
    shorter = re.sub(r"_(bucket|count|sum)$", "", name)
    return shorter if shorter in KNOWN else name


@for_each(("where", "expression"), list(expressions()))
def test_every_metric_and_label_that_is_asked_for_exists(where: str, expression: str) -> None:
    """Metrics of the catalogue, which a test compares with the answer of /metrics."""
    asked = SELECTOR.findall(expression)
    assert asked
    labels = set(ADDED)
    for name, selection in asked:
        assert known_name(name) in KNOWN, name
        labels |= KNOWN[known_name(name)]
        assert {part.partition("=")[0].strip().rstrip("~!") for part in selection.split(",") if part} <= KNOWN[known_name(name)] | ADDED
    grouped = {label.strip() for part in GROUPING.findall(expression) for label in part.split(",")}
    assert grouped <= labels, grouped - labels


def test_what_all_hosts_read_of_the_database_is_not_added_up() -> None:
    """Each web host shows the same jobs, prices and programs: a sum over them would count them as often as there are hosts."""
    for where, expression in expressions():
        assert not re.search(r"sum(?: by \([^)]*\))? ?\(outlay_(program|jobs|deliveries|price|events|workers|database)", expression), where


def test_dashboards_can_be_imported_beside_each_other() -> None:
    """An id each, every panel at a place of its own, and a data source that is chosen at the import."""
    boards = [json.loads(file.read_text()) for file in DASHBOARDS]
    assert len({board["uid"] for board in boards}) == len(boards) == 3
    for board in boards:
        places = [panel["gridPos"] for panel in board["panels"]]
        cells = [
            (x, y)
            for place in places
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24
        assert len({panel["id"] for panel in board["panels"]}) == len(places)
        assert all(panel["datasource"]["uid"] == "${datasource}" for panel in board["panels"] if panel["type"] != "row")


def test_every_alert_is_documented_with_what_to_do() -> None:
    """A summary for the message, a description that says what to do, and a line in the documentation."""
    text = DOCS.read_text()
    for rule in rules():
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert f"`{rule['alert']}`" in text


def well() -> Series:
    """A service, and a program, with which all is well: values a minute."""
    return {
        'up{job="outlay",instance="web"}': "1+0",
        'outlay_database_up{instance="web"}': "1+0",
        'outlay_reading_age_seconds{instance="web"}': "1+0",
        REQUESTS.format("count", 'http_response_status_code="200"'): "0+100",
        REQUESTS.format("count", 'http_response_status_code="503"'): "0+1",
        REQUESTS.format("bucket", 'le="0.25"'): "0+99",
        REQUESTS.format("bucket", 'le="1.0"'): "0+100",
        REQUESTS.format("bucket", 'le="2.5"'): "0+100",
        REQUESTS.format("bucket", 'le="+Inf"'): "0+100",
        'outlay_web_requests_refused_total{instance="web",reason="overload"}': "5+0",
        'outlay_web_requests_running{instance="web"}': "3+0",
        'outlay_web_threads{instance="web"}': "8+0",
        'outlay_keys_refused_total{instance="web",reason="invalid"}': "0+1",
        'outlay_redis_up{instance="web"}': "1+0",
        'outlay_disk_free_bytes{instance="web"}': "50000000000+0",
        'outlay_disk_size_bytes{instance="web"}': "100000000000+0",
        'outlay_workers_alive{instance="web"}': "1+0",
        'outlay_jobs_oldest_waiting_seconds{instance="web"}': "2+0",
        'outlay_job_attempts_total{instance="web",kind="scenario",outcome="failed"}': "7+0",
        'outlay_job_attempts_total{instance="web",kind="scenario",outcome="lease_lost"}': "1+0",
        'outlay_events_unprojected{instance="web"}': "50+0",
        'outlay_deliveries_overdue_seconds{instance="web"}': "3+0",
        'outlay_delivery_attempts_total{instance="web",outcome="dead"}': "2+0",
        'outlay_price_age_seconds{provider="aws"}': "3600+0",
        'outlay_price_fresh_for_seconds{provider="aws"}': "86400+0",
        'outlay_price_provider_state{provider="aws",state="failing"}': "0+0",
        **program(spend="50", p50="90", finish="1000", gate="0", drift="-0.05", silent="0", evaluated="0+60"),
    }


def program(*, spend: str, p50: str, finish: str, gate: str, drift: str, silent: str, evaluated: str) -> Series:
    """A program with a budget of 100 and a deadline at 2000."""
    return {
        "outlay_program_spend_usd" + PROGRAM.format(""): f"{spend}+0",
        "outlay_program_budget_usd" + PROGRAM.format(""): "100+0",
        "outlay_program_forecast_cost_usd" + PROGRAM.format(',quantile="0.5"'): f"{p50}+0",
        "outlay_program_forecast_finish_timestamp_seconds" + PROGRAM.format(',quantile="0.5"'): f"{finish}+0",
        "outlay_program_deadline_timestamp_seconds" + PROGRAM.format(""): "2000+0",
        "outlay_program_gate_due" + PROGRAM.format(""): f"{gate}+0",
        "outlay_program_drift_ratio" + PROGRAM.format(',quantity="throughput"'): f"{drift}+0",
        "outlay_program_silent_runs" + PROGRAM.format(""): f"{silent}+0",
        "outlay_program_evaluated_timestamp_seconds" + PROGRAM.format(""): evaluated,
    }


WEB = '{instance="web"}'
BAD_PROGRAM = {"p50": "130", "finish": "3000", "gate": "1", "drift": "-0.2", "silent": "1"}
CASES: tuple[tuple[Series, int, tuple[str, ...]], ...] = (
    ({}, 120, ()),
    ({'up{job="outlay",instance="web"}': "0+0"}, 10, ("OutlayDown",)),
    (
        {"outlay_database_up" + WEB: "0+0", "outlay_reading_age_seconds" + WEB: "0+60", "outlay_redis_up" + WEB: "0+0"},
        30,
        ("OutlayDatabaseDown", "OutlayReadingsOld", "OutlayRedisDown"),
    ),
    (
        {
            REQUESTS.format("count", 'http_response_status_code="503"'): "0+5",
            REQUESTS.format("bucket", 'le="0.25"'): "0+10",
            REQUESTS.format("bucket", 'le="1.0"'): "0+50",
            'outlay_web_requests_refused_total{instance="web",reason="overload"}': "0+10",
            "outlay_web_requests_running" + WEB: "8+0",
            'outlay_keys_refused_total{instance="web",reason="invalid"}': "0+20",
        },
        30,
        ("OutlayErrors", "OutlayEstimatesSlow", "OutlayKeysGuessed", "OutlayOverloaded", "OutlayThreadsBusy"),
    ),
    ({"outlay_disk_free_bytes" + WEB: "45000000000-60000000"}, 420, ("OutlayDiskFilling",)),
    ({"outlay_disk_free_bytes" + WEB: "100000000+0"}, 60, ("OutlayDiskFilling", "OutlayDiskFull")),
    (
        {
            "outlay_workers_alive" + WEB: "0+0",
            "outlay_jobs_oldest_waiting_seconds" + WEB: "0+60",
            "outlay_events_unprojected" + WEB: "200000+100",
            "outlay_deliveries_overdue_seconds" + WEB: "0+60",
        },
        30,
        ("OutlayDeliveriesLate", "OutlayEventsBehind", "OutlayJobsWaiting", "OutlayNoWorker"),
    ),
    (
        {
            'outlay_job_attempts_total{instance="web",kind="scenario",outcome="failed"}': "0+1",
            'outlay_job_attempts_total{instance="web",kind="scenario",outcome="lease_lost"}': "0+1",
            'outlay_delivery_attempts_total{instance="web",outcome="dead"}': "0+1",
        },
        60,
        ("OutlayDeliveriesDead", "OutlayJobsFailing", "OutlayLeasesLost"),
    ),
    (
        {
            'outlay_price_age_seconds{provider="aws"}': "200000+60",
            'outlay_price_provider_state{provider="aws",state="failing"}': "1+0",
        },
        120,
        ("OutlayPriceSourceFailing", "OutlayPricesStale"),
    ),
    (
        program(spend="110", evaluated="0+0", **BAD_PROGRAM),
        DAY + 60,
        (
            "OutlayProgramDrift",
            "OutlayProgramFiguresOld",
            "OutlayProgramForecastOverBudget",
            "OutlayProgramGateDue",
            "OutlayProgramLate",
            "OutlayProgramOverBudget",
            "OutlayProgramSilent",
        ),
    ),
    (program(spend="50", evaluated="0+60", **BAD_PROGRAM), 30, ()),
)
"""What is not well, after how many minutes, and the alerts that fire then."""


def test_every_rule_has_a_case() -> None:
    """And each case names rules that exist."""
    assert {alert for _, _, fired in CASES for alert in fired} == {rule["alert"] for rule in rules()}
    assert all(set(changed) <= set(well()) for changed, _, _ in CASES)


def test_the_rules_fire_for_what_they_are_made_for_and_for_nothing_else(tmp_path: Path) -> None:
    """Prometheus' own tool evaluates them on made-up series."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    files = [
        rule_tests(tmp_path / "rules.test.yaml", [case for case in CASES if case[1] < DAY], "1m"),
        rule_tests(tmp_path / "long.test.yaml", [case for case in CASES if case[1] >= DAY], "5m"),
    ]
    for command in (["check", "rules", str(RULES)], ["test", "rules", *files]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def rule_tests(file: Path, cases: Sequence[tuple[Series, int, tuple[str, ...]]], evaluated_every: str) -> str:
    """Write a file of tests for Prometheus' tool; return its path. What takes a day is evaluated less often, which takes its time."""
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": f"{value}x{minutes + 5}"} for name, value in (well() | changed).items()],
            "promql_expr_test": [
                {
                    "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                    "eval_time": f"{minutes}m",
                    "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in fired],
                }
            ],
        }
        for changed, minutes, fired in cases
    ]
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": evaluated_every, "tests": tests}))
    return str(file)
