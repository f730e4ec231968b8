"""The clients as their users have them: built from the specification, installed, and asking a service that runs. `make clients`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from service.container import build_context
from service.usecases.keys import make_key
from tests.integration.test_serve import ROOT, spaced_in, starting, status
from tests.support.servers import missing, wait_for

pytestmark = pytest.mark.clients

CLIENTS = ROOT / "clients"
PYTHON = CLIENTS / "python"
LONGEST_S = 300.0
"""A command that takes longer hangs."""


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """An environment with the address of a running service and a key of it."""
    folder = tmp_path_factory.mktemp("served")
    settings = spaced_in(folder)
    with starting(folder) as start:
        start(settings)
        wait_for(lambda: status(settings, "/readyz") == 200, "/readyz to answer 200")
        context = build_context(settings)
        with closing(context.store):
            key = make_key(context, "research", "laptop", ["read", "write"], "1d")[1]
        yield {**os.environ, "OUTLAY_SERVER": f"http://127.0.0.1:{settings.port}", "OUTLAY_API_KEY": key}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an empty environment with the client's wheel."""
    folder = tmp_path_factory.mktemp("installed")
    run(PYTHON, sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, ".")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    run(folder, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *folder.glob("*.whl"))
    return python


def documented(language: str) -> str:
    """The example of a language in docs/how-to/clients.md."""
    return (ROOT / "docs" / "how-to" / "clients.md").read_text(encoding="utf-8").split(f"```{language}\n")[1].split("```")[0]


def shown_of(command: str) -> str:
    """What the tutorial of tool developers says that a command prints."""
    page = (ROOT / "docs" / "tutorials" / "tool-developer.md").read_text(encoding="utf-8")
    return page.split(f"```console\n$ {command}\n")[1].split("```")[0]


def run(folder: Path, *command: str | Path, env: Mapping[str, str] | None = None) -> str:
    """What a command prints; a failure shows all of it."""
    ended = subprocess.run(list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    assert ended.returncode == 0, f"{' '.join(map(str, command))}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def npm(folder: Path, script: str, env: Mapping[str, str] | None = None) -> str:
    """What a script of a package prints; its locked dependencies are installed where they are not."""
    if shutil.which("npm") is None:
        missing("npm")
    wanted, present = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if not present.exists() or present.stat().st_mtime < wanted.stat().st_mtime:
        run(folder, "npm", "ci", "--silent")
    return run(folder, "npm", "run", "--silent", script, env=env)


def test_the_python_client_asks_a_running_service(installed: Path, reached: Mapping[str, str], tmp_path: Path) -> None:
    """Questions, lists, a tracked program, errors and a scenario that is waited for."""
    printed = run(tmp_path, installed, PYTHON / "tests" / "end_to_end.py", env=reached)
    assert printed.count("\n") >= 10
    assert "$" in run(tmp_path, installed, "-c", documented("python"), env=reached)
    script = "examples/tutorials/ask_service.py"
    assert run(ROOT, installed, script, env=reached) == shown_of(f"python {script}")


def test_the_python_client_bears_a_service_in_trouble(installed: Path, tmp_path: Path) -> None:
    """Repeats what may be repeated, and says in exceptions what went wrong."""
    run(tmp_path, installed, PYTHON / "tests" / "faults.py")


def test_the_python_client_and_its_users_are_typed(installed: Path) -> None:
    """mypy's strictest, for the package and for scripts that import it as installed."""
    run(PYTHON, sys.executable, "-m", "mypy", "--package", "outlay_sdk")
    run(PYTHON / "tests", sys.executable, "-m", "mypy", "--strict", "--python-executable", installed, "end_to_end.py", "faults.py")


def test_the_typescript_client_compiles_and_asks_a_running_service(reached: Mapping[str, str]) -> None:
    """Types of the specification, TypeScript's strictest, and a program that runs."""
    folder = CLIENTS / "typescript"
    (folder / "src" / "documented.ts").write_text(documented("ts"), encoding="utf-8")
    npm(folder, "generate")
    npm(folder, "build")
    assert npm(folder, "end-to-end", env=reached).count("\n") >= 5
    assert "$" in npm(folder, "documented", env=reached)
    assert run(folder, "node", "build/ask_service.js", env=reached) == shown_of("node build/ask_service.js")


def test_linters_find_no_error_in_the_specification() -> None:
    """Redocly's recommended rules, and Spectral's for OpenAPI."""
    npm(CLIENTS / "lint", "lint")
