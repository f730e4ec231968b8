"""No two classes of one layer share a name: a name means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "service"
LAYERS = (
    *(folder for folder in sorted(SERVICE.iterdir()) if folder.is_dir() and folder.name != "__pycache__"),
    *(ROOT / name for name in ("providers", "workers", "tools", "outlay_client", "bench")),
)


def shared_names(layer: Path) -> set[str]:
    places = defaultdict(set)
    for file in layer.rglob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].add((file, node.lineno))
    return {name for name, where in places.items() if len(where) > 1}


def test_no_two_classes_of_a_layer_share_a_name() -> None:
    found = {layer.relative_to(ROOT).as_posix(): names for layer in LAYERS if (names := shared_names(layer))}
    assert found == {}
