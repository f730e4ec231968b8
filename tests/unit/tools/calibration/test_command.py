"""`python -m tools.calibration`: the fitted shares as printed."""

from __future__ import annotations

import re

import pytest

from tools.calibration import __main__ as command
from tools.calibration import fit
from tools.calibration.finetuning import fit as finetuning_fit
from tools.calibration.other_accelerators import fit as other_accelerators_fit
from tools.calibration.rl import fit as rl_fit
from tools.calibration.write import FILE


def test_the_fit_is_shown_as_written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One row for each family and precision class with its shares and rows; the fits themselves take minutes and do not run here."""
    runs: list[bool] = []
    for part in (fit, finetuning_fit, other_accelerators_fit, rl_fit):
        monkeypatch.setattr(part, "main", lambda: runs.append(True))
    command.main()
    assert runs == [True, True, True, True]
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0].split()[0] == "family"
    assert len(lines) == 1 + FILE.read_text(encoding="utf-8").count("\n[[matmul]]\n")
    assert re.search(r"^hopper +16-bit +0\.\d{3} +0\.\d{3} +\d+$", printed, flags=re.MULTILINE)
