"""The command line: the same answers as over HTTP, readable by default, whole with --json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from flask.testing import FlaskClient

from service.cli import main
from service.config import Settings
from service.schemas.strict_json import dumps
from tests.support.specification import read_yaml

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.usefixtures("at_noon")
HEAVY = ("numpy", "scipy", "flask", "flask_smorest", "sqlalchemy", "alembic", "celery", "marshmallow", "redis", "requests", "yaml")
REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "training": {"method": "pretrain", "seq_len": 4096, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "A100-80GB", "count": 1024},
    "price": {"usd_per_accelerator_hour": 2.0},
}
FLAGS = [
    *("--model", "llama-2-7b", "--tokens", "2T", "--method", "pretrain", "--seq-len", "4096", "--batch-tokens", "4194304"),
    *("--precision", "bf16", "--accelerator", "A100-80GB", "--count", "1024", "--usd-per-hour", "2.0"),
]


@pytest.fixture
def environment(settings: Settings) -> dict[str, str]:
    """What a shell would have set."""
    return {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1"}


def outlay(environment: dict[str, str], *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env=environment)


def answered(environment: dict[str, str], *arguments: str) -> Any:
    """What `--json` prints."""
    result = outlay(environment, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(environment: dict[str, str], *arguments: str) -> str:
    """What is said to a mistake: on the error stream, without a traceback."""
    result = outlay(environment, *arguments)
    assert result.exit_code in (1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["estimate", "--help"], ["offers", "-h"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """So it answers at once."""
    script = f"import sys; from service.cli import main; main({arguments!r}, standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    assert set(done.stderr.split()).isdisjoint(HEAVY)


def test_an_estimate_without_a_database_imports_no_library_of_databases(tmp_path: Path) -> None:
    """Nor what tracks programs: it answers within a second."""
    arguments = ["estimate", *FLAGS]
    script = f"import sys; from service.cli import main; main({arguments!r}, standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    environment = {**os.environ, "OUTLAY_DATA_DIR": str(tmp_path / "none"), "OUTLAY_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert {"sqlalchemy", "service.store", "service.engine.tracking.status"}.isdisjoint(done.stderr.split())


class TestEstimate:
    """`outlay estimate`."""

    def test_flags_answer_what_http_answers(self, client: FlaskClient, environment: dict[str, str]) -> None:
        """Byte for byte once written the same way: the fields, their order and every digit."""
        served = client.post("/v1/estimate", json=REQUEST)
        assert served.status_code == 200
        assert dumps(answered(environment, "estimate", *FLAGS)) == served.get_data(as_text=True)

    @pytest.mark.parametrize("name", ["run.json", "run.yaml", "run"])
    def test_a_file_answers_what_http_answers(self, client: FlaskClient, environment: dict[str, str], tmp_path: Path, name: str) -> None:
        """As JSON or YAML, by its content; the price is the cheapest known one here."""
        request = {name: part for name, part in REQUEST.items() if name != "price"}
        file = tmp_path / name
        file.write_text(yaml.safe_dump(request) if name.endswith("yaml") else json.dumps(request), encoding="utf-8")
        found = answered(environment, "estimate", str(file))
        assert dumps(found) == client.post("/v1/estimate", json=request).get_data(as_text=True)
        assert found["price"]["provider"] is not None

    def test_yaml_means_what_json_means(self, environment: dict[str, str], tmp_path: Path) -> None:
        """A bare date is a date for the calendar, 2e12 a number of tokens, null no value."""
        file = tmp_path / "run.yaml"
        file.write_text(
            "model: {preset: llama-2-7b}\ndata: {tokens: 2e12}\nhardware: {accelerator: A100-80GB, count: 1024}\n"
            "schedule: {start: 2027-01-04, deadline: 2027-06-30}\nenergy: {region: null, pue: ~}\n",
            encoding="utf-8",
        )
        found = answered(environment, "estimate", str(file))
        assert found["tokens"]["trained"] == 2e12
        assert found["time"]["finish"]["p50"].startswith("2027-")

    def test_flags_and_set_lie_over_the_file(self, environment: dict[str, str], tmp_path: Path) -> None:
        """Any field can be set by its path, as JSON where it is JSON, else as text."""
        file = tmp_path / "run.json"
        file.write_text(json.dumps(REQUEST), encoding="utf-8")
        settings = [
            "failures.restart_minutes=10",
            "storage.dataset_tb=40",
            'training.parallelism={"tensor": 8}',
            "energy.region=country:FRA",
        ]
        arguments = [argument for setting in settings for argument in ("--set", setting)]
        found = answered(environment, "estimate", str(file), "--count", "512", *arguments)
        assert found["throughput"]["parallelism"]["tensor"] == 8
        assert found["energy"]["grid_gco2_per_kwh"] < 100
        assumed = {item["field"] for item in found["assumptions"]}
        assert assumed.isdisjoint({"failures.restart_minutes", "storage.dataset_tb", "energy.region"})
        line = next(line for line in found["cost"]["lines"] if line["line"] == "compute")
        assert line["basis"].startswith("512 accelerators")

    @pytest.mark.parametrize(("tokens", "trained"), [("2T", 2e12), ("2e12", 2e12), ("2000000000000", 2e12), ("1.5M", 1.5e6)])
    def test_counts_are_taken_as_json_takes_them(self, environment: dict[str, str], tokens: str, trained: float) -> None:
        """With a suffix, an exponent or all their digits."""
        found = answered(environment, "estimate", *FLAGS, "--tokens", tokens)
        assert found["tokens"]["trained"] == trained

    def test_the_sentence_comes_first_and_at_most_twelve_lines_follow(self, environment: dict[str, str]) -> None:
        """Dollars, days, hours, what limits and the first warning; the rest is asked for."""
        found, lines = answered(environment, "estimate", *FLAGS), outlay(environment, "estimate", *FLAGS).stdout.splitlines()
        assert lines[0] == found["summary"]["text"]
        assert len(lines) <= 1 + 12
        for label in ("dollars ", "days ", "accelerator-hours ", "limited by ", "moved by ", "published run "):
            assert any(line.startswith(label) for line in lines), label
        assert f"warning: {found['warnings'][0]}" in lines
        assert f"{len(found['assumptions'])} assumed values: -v shows them" in lines[-1]

    def test_everything_behind_it_is_shown_where_it_is_asked_for(self, environment: dict[str, str]) -> None:
        """Cost, time, memory, price, carbon, every warning, and every assumption with its source."""
        result = outlay(environment, "estimate", *FLAGS, "-v")
        assert result.exit_code == 0
        found = answered(environment, "estimate", *FLAGS)
        assert result.stdout.startswith(found["summary"]["text"])
        for word in ("compute ", "MFU ", "goodput", "tCO2e", "2.0000 USD an accelerator-hour, yours", found["price_snapshot"], "2T tokens"):
            assert word in result.stdout, word
        for item in found["assumptions"]:
            assert f"  {item['field']} = " in result.stdout
        for warning in found["warnings"]:
            assert f"warning: {warning}" in result.stdout
        assert f"{found['cost']['total_usd']['p50']:,.0f}" in result.stdout

    def test_a_calendar_is_shown_with_its_probability(self, environment: dict[str, str]) -> None:
        """Only where there is one."""
        dated = outlay(environment, "estimate", *FLAGS, "--set", "schedule.start=2027-01-04", "--set", "schedule.deadline=2027-02-01")
        assert "deadline met with probability" in dated.stdout
        assert "finish" not in outlay(environment, "estimate", *FLAGS).stdout

    def test_every_mistake_is_named_on_a_line_of_its_own(self, environment: dict[str, str]) -> None:
        """With the pointer that HTTP gives."""
        assert refused(environment, "estimate").splitlines() == [
            "Error: --model or --params or --active-params: this field is required",
            "--tokens or --samples: this field is required",
            "--accelerator or --count: this field is required",
        ]

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--accelerator", "H10"], ["--accelerator: ", "H100"]),
            (["--model", "llama-2-8b"], ["--model: ", "llama-2-7b"]),
            (["--tokens", "12Q"], ["--tokens: ", "K, M, B or T"]),
            (["--tokens", "-5"], ["--tokens: "]),
            (["--count", "1.5"], ["--count: "]),
            (["--mfu", "1.5"], ["--mfu: "]),
            (["--mfu", "nan"], ["--mfu: "]),
            (["--provider", "aws"], ["--provider: "]),
            (["--params", "7B"], ["--params: "]),
            (["--set", "training.parallelism.tensor=3"], ["--set training.parallelism.tensor: "]),
            (["--set", "failures.restart_minute=3"], ["--set failures.restart_minute: unknown field; did you mean 'restart_minutes'?"]),
            (["--set", "price.snapshot=nope"], ["--set price.snapshot: ", "the current one is"]),
            (["--set", "nonsense"], ["--set", "PATH=VALUE"]),
            (["--set", "model.preset.name=3"], ["--set", "no object"]),
            (["--pricing", "free"], ["--pricing"]),
        ],
    )
    @pytest.mark.usefixtures("client")
    def test_mistakes_are_readable(self, environment: dict[str, str], arguments: list[str], words: list[str]) -> None:
        """A pointer, what is wrong, and near names where there are any; never a traceback."""
        said = refused(environment, "estimate", *FLAGS, *arguments)
        assert all(word in said for word in words), said

    @pytest.mark.parametrize(
        ("content", "word"),
        [
            (b"", "it is empty"),
            (b"[1, 2]", "must be an object"),
            (b"just words", "must be an object"),
            (b'{"model": {"params": 7e9, "params": 8e9}}', ", model.params (--params): "),
            (b'{"model": {"params": NaN}}', ", model.params (--params): "),
            (b'{"model": {', "run:"),
            (b"model: [", "not JSON or YAML"),
            (b"\xff\xfe\x00", "not JSON or YAML"),
            (b"model: !!python/object:os.system {}", "not JSON or YAML"),
            (b"[" * 100_000, "run:"),
        ],
    )
    def test_a_file_that_is_no_request_is_refused(self, environment: dict[str, str], tmp_path: Path, content: bytes, word: str) -> None:
        """JSON as strictly as over HTTP, YAML without anything but data."""
        file = tmp_path / "run"
        file.write_bytes(content)
        assert word in refused(environment, "estimate", str(file))

    def test_a_missing_file_is_refused(self, environment: dict[str, str], tmp_path: Path) -> None:
        """With its name."""
        assert "missing.json" in refused(environment, "estimate", str(tmp_path / "missing.json"))

    def test_bad_settings_are_refused(self, environment: dict[str, str]) -> None:
        """The setting is named."""
        assert "OUTLAY_PORT" in refused(environment | {"OUTLAY_PORT": "many"}, "estimate", *FLAGS)


class TestCatalogue:
    """`outlay offers`, `accelerators` and `models`."""

    def test_offers_are_those_of_http_cheapest_first(self, client: FlaskClient, environment: dict[str, str]) -> None:
        """The same entries."""
        query = {"accelerator": "H100", "pricing": "on_demand", "provider": "aws", "limit": "1000"}
        served = client.get("/v1/offers", query_string=query).json
        found = answered(environment, "offers", "--accelerator", "H100", "--pricing", "on_demand", "--provider", "aws", "--limit", "100000")
        assert found == sorted(served["items"], key=lambda entry: entry["usd_per_accelerator_hour"])
        assert found

    def test_the_table_of_offers_dates_every_price(self, environment: dict[str, str]) -> None:
        """A row an offer, then how many there are and in which snapshot, and what it lacks of commitments."""
        result = outlay(environment, "offers", "--accelerator", "H100", "--max-usd", "5", "--limit", "3")
        lines = result.stdout.splitlines()
        assert result.exit_code == 0
        assert len(lines) == 6
        assert lines[0].split()[:3] == ["USD/acc-h", "accelerator", "provider"]
        assert all("-" in line and "NVIDIA-H100" in line for line in lines[1:4])
        assert lines[4].startswith("3 of ")
        assert "offers in snapshot-" in lines[4]
        assert "has no reserved price of NVIDIA-H100-80GB-SXM" in lines[5]

    def test_names_nobody_knows_are_told_with_near_ones(self, environment: dict[str, str]) -> None:
        """A slip is no empty table."""
        for said, near in (
            ("offers --region us-est-1", "us-east-1"),
            ("offers --provider awss", "aws"),
            ("models --developer mta", "Meta"),
        ):
            result = outlay(environment, *said.split())
            assert result.exit_code == 1
            assert near in result.stderr.partition("near names: ")[2]

    def test_offers_nobody_has_are_an_empty_table(self, environment: dict[str, str]) -> None:
        """Not an error."""
        result = outlay(environment, "offers", "--provider", "vast", "--region", "us-east-1")
        assert (result.exit_code, len(result.stdout.splitlines())) == (0, 2)
        assert result.stdout.splitlines()[1].startswith("0 of 0 offers")

    def test_accelerators_are_those_of_http(self, client: FlaskClient, environment: dict[str, str]) -> None:
        """The same entries with --json; else a row each."""
        assert answered(environment, "accelerators", "--vendor", "amd") == client.get("/v1/accelerators?vendor=amd").json["items"]
        table = outlay(environment, "accelerators").stdout
        assert len(table.splitlines()) == 1 + len(client.get("/v1/accelerators?limit=1000").json["items"])
        assert "bf16 989.4" in table

    def test_models_are_those_of_http(self, client: FlaskClient, environment: dict[str, str]) -> None:
        """The same entries with --json; else a row each."""
        served = client.get("/v1/models?developer=meta&architecture=transformer&limit=1000").json["items"]
        assert answered(environment, "models", "--developer", "meta", "--architecture", "transformer") == served
        table = outlay(environment, "models").stdout
        assert len(table.splitlines()) == 1 + len(client.get("/v1/models?limit=1000").json["items"])
        assert "llama-2-7b " in table

    def test_unknown_names_are_refused(self, environment: dict[str, str]) -> None:
        """With near ones, or with those there are."""
        assert "H100" in refused(environment, "offers", "--accelerator", "H10")
        assert "encoder_decoder" in refused(environment, "models", "--architecture", "transformers")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("track show nobodys", "there is no program of this id"),
        ("track report nobodys", "there is no program of this id"),
        ("scenario watch nobodys", "there is no scenario of this id"),
        ("offers --provider awss", "--provider: no provider is called 'awss'; near names: aws"),
        ("models --developer mta", "--developer: no developer is called 'mta'; near names: Meta"),
        ("track start {file}", "{file}, tiers: this field is required"),
        ("plan {file}", "{file}, tiers: this field is required"),
        ("estimate {broken}", "{broken}: the body holds values that are not taken\n{broken}, model.params (--params): NaN is not JSON"),
        ("estimate {cut}", "{cut}: not JSON: Expecting value at line 1, column 11"),
    ],
)
@pytest.mark.usefixtures("client")
def test_every_command_tells_problems_alike(environment: dict[str, str], tmp_path: Path, arguments: str, told: str) -> None:
    """With the pointer in what was handed over; what is no part of it has none, and is told once."""
    contents = {"file": '{"name": "p"}', "broken": '{"model": {"params": NaN}}', "cut": '{"model": '}
    files = {name: str(tmp_path / f"{name}.json") for name in contents}
    for name, content in contents.items():
        Path(files[name]).write_text(content, encoding="utf-8")
    assert refused(environment, *arguments.format(**files).split()) == f"Error: {told.format(**files)}\n"


def test_openapi_prints_what_is_served(client: FlaskClient, environment: dict[str, str]) -> None:
    """The same description as at /openapi.json, in YAML and nothing beside it."""
    result = outlay(environment, "openapi")
    assert result.exit_code == 0
    assert read_yaml(result.stdout) == client.get("/openapi.json").json


def test_the_version_is_the_packages(environment: dict[str, str]) -> None:
    """Not a number of its own."""
    from importlib.metadata import version

    assert version("outlay") in outlay(environment, "--version").stdout


@pytest.mark.parametrize("arguments", [["models"], ["accelerators"], ["completion", "bash"]])
def test_what_needs_no_engine_imports_neither_it_nor_the_database(arguments: list[str]) -> None:
    """So it answers in less than half a second."""
    script = f"import sys; from service.cli import main; main({arguments!r}, standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert imported.isdisjoint({"sqlalchemy", "numpy", "scipy", "marshmallow", "flask", "service.context", "urllib.request"})


def test_what_a_server_answers_imports_no_engine() -> None:
    """Only the transport and the tables."""
    arguments = ["estimate", "--model", "llama-2-7b", "--server", "http://127.0.0.1:9"]
    call = f"main({arguments!r}, standalone_mode=False)"
    script = f"import sys\nfrom service.cli import main\ntry: {call}\nexcept Exception as error: print(type(error), *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "ClickException" in done.stdout
    assert set(done.stdout.split()).isdisjoint({"sqlalchemy", "numpy", "marshmallow", "requests", "service.context"})
