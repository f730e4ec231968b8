"""`outlay check` and `outlay diff`: in pipelines, of requests, answers and kept results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.config import Settings
from tests.unit.cli.invoke import output_of, run

ROOT = Path(__file__).parents[4]
PROGRAM = str(ROOT / "examples" / "program-1b-64.json")
RUN: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.0},
}


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """A file with the run, changed."""

    def write(name: str = "run.json", **changes: Any) -> str:
        (tmp_path / name).write_text(json.dumps({**RUN, **changes}), encoding="utf-8")
        return str(tmp_path / name)

    return write


class TestCheck:
    """Exit codes: 0 within, 1 exceeded, 2 bad input."""

    @pytest.mark.parametrize(
        ("limits", "code"),
        [
            (["--max-usd", "1e9"], 0),
            (["--max-usd", "1"], 1),
            (["--max-days", "1000", "--max-usd", "1e9"], 0),
            (["--max-days", "0.1", "--max-usd", "1e9"], 1),
            ([], 2),
            (["--max-usd", "much"], 2),
            (["--max-usd", "1e9", "--set", "data.tokens=-1"], 2),
        ],
    )
    def test_the_exit_code_is_the_verdict(self, settings: Settings, file: Callable[..., str], limits: list[str], code: int) -> None:
        """Each limit counts; what cannot be judged is not within."""
        assert run(settings, "check", file(), *limits).exit_code == code

    @pytest.mark.parametrize("content", ["{", "[]", '{"model": 1}'])
    def test_bad_input_is_two(self, settings: Settings, tmp_path: Path, content: str) -> None:
        """As is a file that is not there."""
        (tmp_path / "bad.json").write_text(content, encoding="utf-8")
        assert run(settings, "check", str(tmp_path / "bad.json"), "--max-usd", "1").exit_code == 2
        assert run(settings, "check", str(tmp_path / "none.json"), "--max-usd", "1").exit_code == 2

    def test_an_unpriced_run_is_not_within_a_limit_of_dollars(self, settings: Settings, file: Callable[..., str]) -> None:
        """Nobody sells the accelerator; its days are known."""
        unpriced = file(hardware={"accelerator": "H800", "count": 256}, price={})
        assert run(settings, "check", unpriced, "--max-usd", "1e9").exit_code == 2
        assert run(settings, "check", unpriced, "--max-days", "1e6").exit_code == 0

    def test_the_percentile_is_stated(self, settings: Settings, file: Callable[..., str]) -> None:
        """Between the median and what is kept with 80 % the verdict differs."""
        checks = {
            at: json.loads(output_of(settings, "check", file(), "--max-usd", "1e9", "--at", at, "--json"))["checks"]
            for at in ("p50", "p80")
        }
        p50, p80 = (checks[at][0]["value"] for at in ("p50", "p80"))
        between = str((p50 + p80) / 2)
        assert p50 < p80
        assert run(settings, "check", file(), "--max-usd", between).exit_code == 0
        assert run(settings, "check", file(), "--max-usd", between, "--at", "p80").exit_code == 1

    def test_programs_and_answers_are_checked_too(self, settings: Settings, tmp_path: Path) -> None:
        """The answer of a file is not computed again."""
        answer = tmp_path / "answer.json"
        answer.write_text(output_of(settings, "plan", PROGRAM, "--json"), encoding="utf-8")
        shown = [output_of(settings, "check", name, "--max-usd", "1e9", "--max-days", "1e4") for name in (PROGRAM, str(answer))]
        assert shown[0] == shown[1]

    def test_a_real_process_ends_with_the_code(self, settings: Settings, file: Callable[..., str]) -> None:
        """And prints no traceback."""
        environment = {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1", "PATH": "", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "service.cli", "check", "-", "--max-usd"]
        for limit, code in (("1e9", 0), ("1", 1)):
            done = subprocess.run(
                [*command, limit], env=environment, cwd=ROOT, input=json.dumps(RUN), capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (code, "")


class TestDiff:
    """What changed, and what it costs."""

    @pytest.mark.parametrize("form", ["text", "md", "github"])
    def test_the_changed_field_and_the_dollars_are_shown(self, settings: Settings, file: Callable[..., str], form: str) -> None:
        """Before, after and their difference."""
        other = file("other.json", price={"usd_per_accelerator_hour": 3.0})
        shown = output_of(settings, "diff", file(), other, "--format", form)
        assert " more: $" in shown.splitlines()[0]
        assert "(+50.0%)" in shown.splitlines()[0]
        assert "days as before" in shown.splitlines()[0]
        assert "price.usd_per_accelerator_hour" in shown
        assert ("<details>" in shown) == (form == "github")
        assert ("|---|" in shown) == (form != "text")

    def test_the_same_twice_differs_in_nothing(self, settings: Settings, file: Callable[..., str]) -> None:
        """No field, no line."""
        shown = output_of(settings, "diff", file(), file("again.json"))
        assert "changed" not in shown
        assert {line.split()[-1] for line in shown.splitlines()[2:]} == {"same"}

    def test_kept_results_are_named_by_id(self, settings: Settings, file: Callable[..., str]) -> None:
        """Beside a file."""
        kept = json.loads(output_of(settings, "results", "keep", "estimate", file(), "--json"))["id"]
        shown = output_of(settings, "diff", kept, file("other.json", hardware={"accelerator": "H100", "count": 512}))
        assert "hardware.count" in shown
        assert output_of(settings, "check", kept, "--max-usd", "1e9")

    def test_a_run_and_a_program_are_not_compared(self, settings: Settings, file: Callable[..., str]) -> None:
        """They answer different questions."""
        refused = run(settings, "diff", file(), PROGRAM)
        assert refused.exit_code == 2
        assert "of kind estimate" in refused.stderr
