"""`outlay calibrate --measure`: a measurement of this machine, stored where estimates find it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.cli import main
from service.presets.training.measured import read_measurements
from service.usecases.measurement import measure as module
from tests.unit.usecases.measurement.machine import bench

ROOT = Path(__file__).parents[4]
HAS_TORCH = importlib.util.find_spec("torch") is not None


def outlay(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1"})


def test_help_imports_nothing_heavy() -> None:
    """So it answers at once, with or without PyTorch."""
    script = (
        "import sys; from service.cli import main; main(['calibrate', '-h'], standalone_mode=False); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "--measure" in done.stdout
    assert set(done.stderr.split()).isdisjoint({"torch", "numpy", "flask", "sqlalchemy", "marshmallow"})


def test_a_measurement_is_shown_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates beside predictions with their error, then what estimates now use; the whole of it in a file where asked."""
    monkeypatch.setattr(module, "_bench", bench)
    out = tmp_path / "whole.json"
    result = outlay(tmp_path / "data", "calibrate", "--measure", "--steps", "3", "--out", str(out))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("NVIDIA-H100-80GB-SXM, bf16, torch 2.9.1, cuda 12.8, ")
    assert re.search(r"^4096 +4 +8 x 4096 .*%.* [+-]\d+\.\d%$", result.stdout, flags=re.MULTILINE)
    assert re.search(r"^yours +0\.49\d .*measured on this machine", result.stdout, flags=re.MULTILINE)
    (stored,) = read_measurements(tmp_path / "data").values()
    assert [shape.seconds for shape in stored.shapes] == [row["seconds"] for row in json.loads(out.read_text(encoding="utf-8"))["shapes"]]


def test_a_file_that_is_no_measurement_is_not_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be somebody's."""
    monkeypatch.setattr(module, "_bench", bench)
    (tmp_path / "measured.json").write_text("mine", encoding="utf-8")
    result = outlay(tmp_path, "calibrate", "--measure")
    assert result.exit_code == 1
    assert "measured.json is no JSON" in result.stderr
    assert (tmp_path / "measured.json").read_text(encoding="utf-8") == "mine"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the figures were shown: they are not lost."""
    monkeypatch.setattr(module, "_bench", bench)
    result = outlay(tmp_path, "calibrate", "--measure", "--out", str(tmp_path / "none" / "out.json"))
    assert result.exit_code == 1
    assert "out.json cannot be written: No such file or directory" in result.stderr
    assert "NVIDIA-H100-80GB-SXM" in result.stdout


@pytest.mark.parametrize("arguments", [[], ["--layers", "4"], ["--out", "x.json"], ["--accelerator", "H100"]])
def test_without_measure_it_names_the_fit(tmp_path: Path, arguments: list[str]) -> None:
    """The fit to published measurements is a command of the source checkout."""
    result = outlay(tmp_path, "calibrate", *arguments)
    assert result.exit_code == 2
    assert "python -m tools.calibration" in result.stderr


@pytest.mark.skipif(HAS_TORCH, reason="PyTorch is installed here: its absence cannot be shown")
def test_without_torch_it_says_what_to_install(tmp_path: Path) -> None:
    """And stores nothing."""
    result = outlay(tmp_path, "calibrate", "--measure")
    assert result.exit_code == 1
    assert "pip install 'torch>=2.5'" in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch, which is not installed: pip install 'torch>=2.5'")
def test_a_processor_is_measured_and_not_stored(tmp_path: Path) -> None:
    """Its times stand for no accelerator."""
    result = outlay(tmp_path, "calibrate", "--measure", "--steps", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("CPU, bf16, torch ")
    assert result.stdout.rstrip().endswith("not stored: a CPU is no accelerator the estimates know")
    assert list(tmp_path.iterdir()) == []
