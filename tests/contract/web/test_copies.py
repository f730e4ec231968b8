"""What pages offer to copy asks the same again: as a command, with curl, in Python, whatever the names in it are."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import requests
from click.testing import CliRunner
from flask.testing import FlaskClient

from service.cli import main
from tests.contract.web.test_buy_or_rent_page import FIELDS
from tests.contract.web.visitor import text_of

HARM = "a'; touch harm #\"\\n $(touch harm) `touch harm` \u202e %s"
QUESTIONS = {
    "estimate": {
        "model": "llama-3-8b",
        "data.tokens": "1T",
        "hardware.accelerator": "H100",
        "hardware.count": "256",
        "training.flash_attention": "yes",
    },
    "compare": {"model": "7B", "workload.data.tokens": "100B", "candidates.accelerators": "H100", "candidates.counts": "64", "limit": "3"},
    "buy-or-rent": FIELDS | {"own.0.name": HARM, "rent.providers": "none"},
}
SERVER = "http://outlay.test"


@pytest.fixture(params=QUESTIONS)
def name(request: pytest.FixtureRequest) -> str:
    """The address of a page, and of the API below /v1/."""
    return str(request.param)


@pytest.fixture
def copied(client: FlaskClient, name: str) -> dict[str, str]:
    """The texts of its page by title, as they are pasted."""
    text = text_of(client.get(f"/{name}?{urlencode(QUESTIONS[name])}"))
    found = re.findall(r"<summary>(As [^<]*)</summary>\s*<pre tabindex=\"0\"><code>(.*?)</code>", text, re.DOTALL)
    assert [title for title, _ in found] == ["As a command", "As curl", "As Python"]
    return {title: unescape(each) for title, each in found}


@pytest.fixture
def answer(client: FlaskClient, name: str) -> Any:
    """What the page answers."""
    return client.get(f"/{name}?{urlencode(QUESTIONS[name] | {'format': 'json'})}").get_json()


def test_the_command_answers_as_the_page(copied: dict[str, str], answer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell passes the question on as it is, and the command reads it from there."""
    piped, _, command = copied["As a command"].rpartition(" | ")
    said = subprocess.run(["/bin/sh", "-c", piped], capture_output=True, check=True, cwd=tmp_path, text=True)
    assert not list(tmp_path.iterdir())
    program, *arguments = shlex.split(command)
    assert program == "outlay"
    monkeypatch.setenv("OUTLAY_OFFLINE", "1")
    monkeypatch.setenv("OUTLAY_DATA_DIR", str(tmp_path / "data"))
    done = CliRunner().invoke(main, [*arguments, "--json"], input=said.stdout)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["summary"] == answer["summary"]


def test_curl_sends_the_question(client: FlaskClient, copied: dict[str, str], answer: Any, name: str, tmp_path: Path) -> None:
    """With the address, the type and the body that the service takes."""
    (tmp_path / "curl").write_text('#!/bin/sh\nfor each; do printf "%s\\0" "$each"; done\n')
    (tmp_path / "curl").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "OUTLAY_SERVER": SERVER}
    ran = subprocess.run(["/bin/sh", "-c", copied["As curl"]], capture_output=True, check=True, env=environment, cwd=tmp_path, text=True)
    assert [path.name for path in tmp_path.iterdir()] == ["curl"]
    silent, address, flag, header, data, body = ran.stdout.split("\0")[:-1]
    assert (silent, address, flag, data) == ("-s", f"{SERVER}/v1/{name}", "-H", "--data-raw")
    sent = client.post(f"/v1/{name}", data=body, headers=dict([header.split(": ")]))
    assert sent.get_json()["summary"] == answer["summary"]


def test_python_prints_the_answer(
    client: FlaskClient, copied: dict[str, str], answer: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The request is a literal of Python; requests are sent to the service under test."""

    def send(_: Any, request: requests.PreparedRequest, **__: Any) -> requests.Response:
        assert request.url is not None
        found = client.post(request.url.removeprefix(SERVER), data=request.body, content_type=request.headers["Content-Type"])
        response = requests.Response()
        response.status_code, response.url, response._content = found.status_code, request.url, found.data
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send)
    monkeypatch.setenv("OUTLAY_SERVER", SERVER)
    exec(compile(copied["As Python"], "copied", "exec"), {})
    assert capsys.readouterr().out == answer["summary"]["text"] + "\n"
