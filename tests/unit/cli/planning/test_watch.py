"""`outlay plan FILE --watch` in a real process: the plan again after every change of its file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.config import Settings
from tests.support.servers import DEADLINE_S
from tests.unit.cli.invoke import run

ROOT = Path(__file__).parents[4]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """What this process starts is ended by Ctrl-C, also where it runs in the background, which ignores it and hands that on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_change_of_the_file_is_planned_and_priced(settings: Settings, tmp_path: Path) -> None:
    """What cannot be read is said and waited for; Ctrl-C ends it well."""
    file = tmp_path / "program.json"
    program = json.loads((ROOT / "examples" / "program-1b-64.json").read_text(encoding="utf-8"))
    file.write_text(json.dumps(program), encoding="utf-8")
    environment = {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT), "PATH": ""}
    command = [sys.executable, "-m", "service.cli", "plan", str(file), "--watch"]
    with subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().startswith("1B base model")
            replace(file, json.dumps({**program, "colour": 1}))
            assert process.stdout.readline().startswith(f"Error: {file}, colour: unknown field")
            replace(file, json.dumps({**program, "personnel": {"evaluation_hours": 9000, "usd_per_hour": 90}}))
            assert process.stdout.readline().startswith("1B base model")
            assert " more: $" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=DEADLINE_S)
        finally:  # it watches for ever, also where a line was not as expected
            process.kill()
    assert process.returncode == 0


def replace(file: Path, text: str) -> None:
    """Write the whole file at once, as editors do."""
    part = file.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def test_standard_input_is_not_watched(settings: Settings) -> None:
    """It does not change."""
    assert run(settings, "plan", "-", "--watch").exit_code == 2
