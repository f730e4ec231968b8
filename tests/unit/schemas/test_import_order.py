"""Schemas say the same whichever module is imported first."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "service" / "schemas").rglob("*.py")
    if file.stem != "__init__"
)


@pytest.mark.parametrize("seed", range(3))
def test_modules_of_schemas_can_be_imported_in_any_order(seed: int) -> None:
    """A part whose schema has a name or ranges of its own is described before the answers that hold it."""
    order = random.Random(seed).sample(MODULES, len(MODULES))
    script = "\n".join(f"import {module}" for module in order)
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)
