"""Imports between the project's modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("service", "providers", "workers", "tools", "bench", "outlay_client")


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement below a node, without its expressions, which are most of a file."""
    for blocks in ("body", "handlers", "orelse", "finalbody", "cases"):
        for below in getattr(node, blocks, ()):
            yield below
            if not isinstance(below, ast.Expr):
                yield from statements(below)


def imported(file: Path, modules: set[str]) -> set[str]:
    """The project's modules that a file imports anywhere in its text, also inside functions and for type checking alone."""
    found = set()
    for node in statements(ast.parse(file.read_text(encoding="utf-8"))):
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


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    """In functions, classes, branches, handlers and cases."""
    file = tmp_path / "module.py"
    file.write_text(
        "import a\n"
        "def f():\n  try:\n    from b import c\n  except E:\n    import d\n  else:\n    import e\n  finally:\n    import f\n"
        "class C:\n  if x:\n    import g\n  else:\n    import h\n"
        "match y:\n  case 1:\n    with z:\n      import i\n"
        "for n in m:\n  while n:\n    import j\n"
    )
    assert imported(file, {"a", "b.c", *"defghijk"}) == {"a", "b.c", *"defghij"}
