"""Operator changes in the engine, tried one at a time against the unit tests of the changed module's subject.

`python -m tests.mutation.mutants 60 7` tries 60 changes with seed 7 and prints which of them a test noticed.
"""

from __future__ import annotations

import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
ENGINE = "service/engine"
COPIED = ("service", "providers", "tests", "pyproject.toml")
LIMIT_S = 600
"""How long the tests of one change may take: one that loops for ever is noticed."""
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


@dataclass(frozen=True)
class Mutant:
    """One change: the module, its source with the change, and what to print of it."""

    module: Path
    source: str
    told: str

    def tests(self) -> list[str]:
        """The tests of the module's subject, those named after the module first."""
        folder = Path("tests/unit/engine") / self.module.parent.relative_to(ENGINE)
        files = sorted((ROOT / folder).glob("test_*.py"), key=lambda file: self.module.stem not in file.stem)
        return [str(file.relative_to(ROOT)) for file in files]


def places(tree: ast.AST) -> Iterator[Callable[[], None]]:
    """A function for every change that can be made in the tree; each makes its own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPERATORS:
            yield lambda node=node: setattr(node, "op", OPERATORS[type(node.op)]())
        elif isinstance(node, ast.Compare):
            for index, operator in enumerate(node.ops):
                if type(operator) in OPERATORS:
                    yield lambda node=node, index=index: node.ops.__setitem__(index, OPERATORS[type(node.ops[index])]())
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
            yield lambda node=node: setattr(node.func, "id", NAMES[node.func.id])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NAMES:
            yield lambda node=node: setattr(node.func, "attr", NAMES[node.func.attr])


def changed(module: Path, index: int) -> Mutant:
    """The module with its index-th place changed."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    before = copy.deepcopy(tree)
    list(places(tree))[index]()
    source, old = ast.unparse(tree), ast.unparse(before)
    pairs = [(a, b) for a, b in zip(old.splitlines(), source.splitlines(), strict=True) if a != b]
    return Mutant(module, source, f"{module}: {pairs[0][0].strip()}  →  {pairs[0][1].strip()}")


def sample(count: int, seed: int) -> list[Mutant]:
    """Return `count` changes in the engine, all as likely."""
    modules = [file.relative_to(ROOT) for file in sorted((ROOT / ENGINE).rglob("*.py"))]
    everywhere = [
        (module, index) for module in modules for index, _ in enumerate(places(ast.parse((ROOT / module).read_text(encoding="utf-8"))))
    ]
    return [changed(*place) for place in random.Random(seed).sample(everywhere, count)]


def is_noticed(mutant: Mutant, tree: Path) -> bool:
    """Whether a unit test fails in a copy of the project with the change."""
    target = tree / mutant.module
    original = target.read_text(encoding="utf-8")
    target.write_text(mutant.source, encoding="utf-8")
    try:
        return not passes(tree, mutant.tests())
    finally:
        target.write_text(original, encoding="utf-8")


def passes(tree: Path, tests: Sequence[str]) -> bool:
    """Whether the tests pass in a copy of the project, in time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:schemathesis", "--hypothesis-profile", "mutation", *tests]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        return subprocess.run(command, cwd=tree, env=env, check=False, capture_output=True, timeout=LIMIT_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def unnoticed(mutants: Sequence[Mutant], processes: int = os.cpu_count() or 1) -> list[Mutant]:
    """Return the changes that no unit test notices; each process has its own copy of the project.

    Raises AssertionError where a unit test of the engine fails without any change.
    """
    with tempfile.TemporaryDirectory(prefix="outlay-mutants-") as folder, ThreadPoolExecutor(processes) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(processes):
            trees.put(copied(Path(folder) / str(number)))
        assert passes(Path(folder) / "0", ["tests/unit/engine"])

        def tried(mutant: Mutant) -> bool:
            tree = trees.get()
            try:
                noticed = is_noticed(mutant, tree)
            finally:
                trees.put(tree)
            sys.stdout.write(f"{'noticed' if noticed else 'NOT NOTICED'}: {mutant.told}\n")
            sys.stdout.flush()
            return noticed

        return [mutant for mutant, noticed in zip(mutants, pool.map(tried, mutants), strict=True) if not noticed]


def copied(tree: Path) -> Path:
    """A copy of what the unit tests of the engine need."""
    tree.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def main(count: int, seed: int) -> None:
    """Print of every change in a sample whether it is noticed, and how many are."""
    alive = unnoticed(sample(count, seed))
    sys.stdout.write(f"{count - len(alive)} of {count} noticed\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
