"""The code before the newest migration and this code, on one database that is migrated already: both read and change the same things."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from service.store import Store
from service.store.tables import HEAD
from tests.contract.store.test_migrations_expand import BEFORE_THE_RULE
from tests.support.servers import DEADLINE_S, find_free_port, wait_for

ROOT = Path(__file__).parents[2]
GUNICORN = [sys.executable, "-m", "gunicorn", "-c", "python:service.runtime.gunicorn_conf", "service:create_app()"]
ESTIMATE = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "10B"},
    "hardware": {"accelerator": "h100", "count": 8},
    "price": {"usd_per_accelerator_hour": 2.0},
}


def previous_code(folder: Path) -> Path:
    """The tree before the commit that made this schema; a named skip without the project's history."""
    found = git("log", "-1", "--format=%H", "-G^HEAD = ", "--", "service/store/tables.py")
    if not found or not git("cat-file", "-t", f"{found}^"):
        pytest.skip("needs the project's history, as a full clone has it")
    archive = subprocess.run(["git", "archive", f"{found}^"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
        tree.extractall(folder, filter="data")
    assert f'HEAD = "{HEAD}"' not in (folder / "service/store/tables.py").read_text()
    return folder


def git(*words: str) -> str:
    """What git prints; empty where it fails or is not there."""
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of this release's schema."""
    url = str(request.getfixturevalue("postgres_url")) if request.param == "postgresql" else f"sqlite:///{tmp_path}/outlay.db"
    with closing(Store(url)) as store:
        store.migrate()
    return url


@pytest.fixture
def services(database: str, tmp_path: Path) -> Iterator[list[str]]:
    """Addresses of a service of the previous code and of one of this."""
    trees = [previous_code(tmp_path / "previous"), ROOT]
    with ExitStack() as stack:
        addresses = []
        for number, tree in enumerate(trees):
            port, log = find_free_port(), stack.enter_context((tmp_path / f"{number}.log").open("wb"))
            stated = {
                "OUTLAY_DATABASE_URL": database,
                "OUTLAY_DATA_DIR": str(tmp_path),
                "OUTLAY_PORT": str(port),
                "OUTLAY_WEB_WORKERS": "1",
            }
            env = os.environ | stated | {"OUTLAY_OFFLINE": "1", "PYTHONPATH": str(tree)}
            process = subprocess.Popen(GUNICORN, cwd=tree, env=env, stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            addresses.append(f"http://127.0.0.1:{port}")
            wait_for(lambda url=addresses[-1]: answers(url), f"the service of {tree}")
        yield addresses


def answers(url: str) -> bool:
    """Whether the service is up."""
    try:
        return bool(ask(f"{url}/healthz"))
    except OSError:
        return False


def ask(url: str, body: object = None, method: str | None = None) -> Any:
    """The answer of a request that succeeds."""
    headers = {"Content-Type": "application/json", **({"If-Match": "*"} if method == "PATCH" else {})}
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
        text = answer.read()
        return json.loads(text) if text else None


@pytest.mark.soak
@pytest.mark.own_database
@pytest.mark.skipif(HEAD <= BEFORE_THE_RULE, reason="no migration since the rule that they only expand")
def test_old_and_new_code_serve_from_one_database(services: list[str]) -> None:
    """Whatever one makes the other shows and changes, and the first shows the change."""
    for one, other in (services, services[::-1]):
        program = f"/v1/track/programs/{ask(f'{one}/v1/track/programs', {'name': 'p', 'budget_usd': 1e6})['id']}"
        run = f"/v1/track/runs/{ask(f'{other}{program}/runs', {'name': 'main', 'planned': {'tokens': 1e12}})['id']}"
        event = {"type": "progress", "tokens_done": 1e9, "accelerator_hours": 10, "cost_usd": 20}
        for number, place in enumerate((one, other, one)):
            at = f"2026-02-01T0{number}:00:00Z"
            told = ask(f"{place}{run}/events", {"events": [event | {"id": f"e{number}", "at": at, "tokens_done": (number + 1) * 1e9}]})
            assert told["accepted"] == 1
        status = [ask(f"{place}{program}/status?as_of=2026-02-02T00:00:00Z")["spend"] for place in (one, other)]
        assert status[0] == status[1]
        ask(f"{other}{program}", {"budget_usd": 5.0}, "PATCH")
        assert ask(f"{one}{program}")["budget_usd"] == 5.0
        rule = ask(f"{one}{program}/alert-rules", {"kind": "budget", "shares": [0.5], "targets": [{"webhook": "https://example.com/"}]})
        ask(f"{other}/v1/track/alert-rules/{rule['id']}", method="DELETE")
        assert ask(f"{one}{program}/alert-rules")["items"] == []
        kept = ask(f"{one}/v1/results", {"kind": "estimate", "request": ESTIMATE})
        assert re.fullmatch(r"[0-9a-f]{64}", ask(f"{other}/v1/results/{kept['id']}")["sha256"])
        begun = ask(f"{one}/v1/scenarios", {"kind": "monte_carlo", "base": ESTIMATE, "trials": 1000, "seed": 1})
        assert ask(f"{other}/v1/scenarios/{begun['id']}", method="DELETE")["state"] == "cancelled"
        assert ask(f"{one}/v1/scenarios/{begun['id']}")["state"] == "cancelled"
