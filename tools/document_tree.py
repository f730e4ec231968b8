"""Write the tree of packages and modules into docs/explanation/architecture.md: `python -m tools.document_tree`, part of `make readme`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from bench.readme import put

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "explanation" / "architecture.md"
PACKAGES = ("service", "providers", "workers", "outlay_client", "tools", "bench")
LINE = 120


def filled(text: str) -> str:
    """The document's text with the tree as it is."""
    return put(text, "tree", "```\n" + "\n".join(line for name in PACKAGES for line in lines(ROOT / name)) + "\n```\n")


def lines(package: Path) -> Iterator[str]:
    """A package with the first sentence of its docstring, its modules, then the packages below it."""
    yield f"{package.relative_to(ROOT).as_posix()}/  {summary(package / '__init__.py')}"
    row = "   "
    for module in sorted(path.stem for path in package.glob("*.py") if not path.stem.startswith("__")):
        if len(row) + len(module) >= LINE:
            yield row
            row = "   "
        row += f" {module}"
    if row.strip():
        yield row
    for below in sorted(path for path in package.iterdir() if (path / "__init__.py").is_file()):
        yield from lines(below)


def summary(module: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


if __name__ == "__main__":
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
