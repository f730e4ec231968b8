"""No two classes of one layer share a name: a name means one thing."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "service"
LAYERS = (
    *(folder for folder in sorted(SERVICE.iterdir()) if folder.is_dir() and folder.name != "__pycache__"),
    *(ROOT / name for name in ("providers", "workers", "tools", "outlay_client", "bench")),
)
CLASS = re.compile(r"^class (\w+)[(:\[]", flags=re.MULTILINE)
"""A class that stands alone in a module, not in another."""


def shared_names(layer: Path) -> set[str]:
    places = defaultdict(set)
    for file in layer.rglob("*.py"):
        for found in CLASS.finditer(file.read_text(encoding="utf-8")):
            places[found[1]].add((file, found.start()))
    return {name for name, where in places.items() if len(where) > 1}


def test_no_two_classes_of_a_layer_share_a_name() -> None:
    found = {layer.relative_to(ROOT).as_posix(): names for layer in LAYERS if (names := shared_names(layer))}
    assert found == {}
