"""Schemas say the same whichever module is imported first."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
MODULES = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in (ROOT / "service" / "schemas").rglob("*.py")
    if file.stem != "__init__"
)


IN_TURN = """
import importlib, sys
for order in {orders}:
    for name in [name for name in sys.modules if name.partition(".")[0] == "service"]:
        del sys.modules[name]
    for name in order:
        importlib.import_module(name)
"""


def test_modules_of_schemas_can_be_imported_in_any_order() -> None:
    """A part whose schema has a name or ranges of its own is described before the answers that hold it.

    In one process, which imports libraries once and the service anew for each order. Two orders, one the other's reverse: of any two
    modules each comes first once.
    """
    order = random.Random(0).sample(MODULES, len(MODULES))
    orders = [order, order[::-1]]
    done = subprocess.run([sys.executable, "-c", IN_TURN.format(orders=orders)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
