"""Workbooks as LibreOffice calculates them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from openpyxl import Workbook, load_workbook

from tests.support.servers import DEADLINE_S, missing


def recalculate(workbooks: Mapping[str, Workbook], folder: Path) -> dict[str, Workbook]:
    """Return the workbooks with the values of their formulas, all calculated by one LibreOffice: it starts in seconds.

    A workbook that openpyxl writes has formulas alone, so no value that was saved with them is taken over.
    """
    program = shutil.which("soffice")
    if program is None:
        missing("LibreOffice (soffice)")
    for name, made in workbooks.items():
        made.save(folder / f"{name}.xlsx")
    command = [str(program), f"-env:UserInstallation={(folder / 'profile').as_uri()}", "--headless", "--convert-to", "xlsx"]
    files = [str(folder / f"{name}.xlsx") for name in workbooks]
    subprocess.run([*command, "--outdir", str(folder / "out"), *files], check=True, capture_output=True, timeout=DEADLINE_S)
    return {name: load_workbook(folder / "out" / f"{name}.xlsx", data_only=True) for name in workbooks}
