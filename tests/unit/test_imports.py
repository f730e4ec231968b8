"""Imports between the project's modules."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("service", "providers", "workers", "tools", "bench", "outlay_client")


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(file: Path, modules: set[str]) -> set[str]:
    """The project's modules that a file imports anywhere in its text, also inside functions and for type checking alone."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & modules) | ({str(node.module)} if names - modules else set())
    return found & modules


def graph_of(folders: tuple[Path, ...]) -> dict[str, set[str]]:
    files = {module_name(file): file for folder in folders for file in folder.rglob("*.py")}
    return {name: imported(file, set(files)) - {name} for name, file in files.items()}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = graph_of(tuple(ROOT / package for package in PACKAGES))
    assert len(graph) > 300
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
