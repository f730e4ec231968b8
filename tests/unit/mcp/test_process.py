"""`outlay mcp` as a real process, asked by the client of the official SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import jsonschema
import pytest
import requests

from service.config import Settings
from tests.support.servers import DEADLINE_S, find_free_port, listens, wait_for
from tests.unit.cli.invoke import output_of, run
from tests.unit.served import guarded_service

if TYPE_CHECKING:
    from mcp import Client

ROOT = Path(__file__).parents[3]
RUN: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "1T"},
    "hardware": {"accelerator": "H100", "count": 256},
    "price": {"usd_per_accelerator_hour": 2.0},
}
FLEET: dict[str, Any] = {
    "demand": {"accelerator": "H100", "count": 64, "years": 3, "utilisation": 0.7},
    "own": [{"name": "own", "capex_usd_per_accelerator": 32000}],
    "rent": {"quotes": [{"name": "quote", "pricing": "on_demand", "usd_per_accelerator_hour": 2.0}]},
}
TOOLS = {"estimate", "compare", "buy_or_rent", "optimal", "program_status", "ask", "explain"}
Talk = Callable[["Client"], Awaitable[None]]


def talk(settings: Settings, conversation: Talk, *arguments: str, **environment: str) -> None:
    """Hold a conversation with a process of its own."""
    from mcp import Client, StdioServerParameters

    variables = {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT), **environment}
    process = StdioServerParameters(command=sys.executable, args=["-m", "service.cli", "mcp", *arguments], env=variables, cwd=str(ROOT))

    async def hold() -> None:
        async with Client(process, read_timeout_seconds=DEADLINE_S) as client:
            await conversation(client)

    anyio.run(hold)


def text_of(result: Any) -> str:
    return str(result.content[0].text)


def test_tools_state_what_they_take_and_mistakes_are_said_to_the_assistant(settings: Settings) -> None:
    """In one conversation, because to start the process takes seconds; it keeps nothing."""

    async def ask(client: Client) -> None:
        await check_schemas(client)
        await check_mistakes(client)

    talk(settings, ask)
    assert not settings.data_dir.exists()


async def check_schemas(client: Client) -> None:
    """Each tool has a valid JSON schema, small enough for a conversation, that takes a real request."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == TOOLS
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert len(json.dumps(tool.input_schema)) < 20_000
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert len(json.dumps(tool.output_schema)) < 24_000
    jsonschema.validate(RUN, tools["estimate"].input_schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**RUN, "data": {"tokens": -1}}, tools["estimate"].input_schema)


def test_tools_answer_what_commands_answer(settings: Settings, tmp_path: Path) -> None:
    """The sentence as text, all of it as structured output; a kept result is explained and read."""
    file = tmp_path / "run.json"
    file.write_text(json.dumps(RUN), encoding="utf-8")
    kept = json.loads(output_of(settings, "results", "keep", "estimate", str(file), "--json"))
    expected = json.loads(output_of(settings, "estimate", str(file), "--json"))

    async def ask(client: Client) -> None:
        estimate = await client.call_tool("estimate", RUN)
        assert not estimate.is_error
        doubtful = text_of(await client.call_tool("ask", {"text": "llama 70b on 1T tokens, 64 h100"}))
        assert "'llama 70b': which model: one of these? (llama-2-70b, llama-3-70b, " in doubtful
        typed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        total = typed["estimate"]["$defs"]["CostBlock"]["properties"]["total_usd"]
        assert total["anyOf"][0]["$ref"] == "#/$defs/Range"
        assert text_of(estimate).splitlines()[0] == expected["summary"]["text"]
        assert estimate.structured_content["cost"]["total_usd"] == expected["cost"]["total_usd"]
        question = await client.call_tool("ask", {"text": "7B on 1T tokens, 256 h100"})
        assert question.structured_content["understood"]["kind"] == "estimate"
        assert question.structured_content["answer"] is not None
        compared = await client.call_tool("compare", {"workload": {name: RUN[name] for name in ("model", "data")}})
        assert len(compared.structured_content["options"]) < 15
        explained = await client.call_tool("explain", {"result_id": kept["id"]})
        assert explained.structured_content["cost_lines"] == kept["answer"]["cost"]["lines"]
        assert "values were assumed" in text_of(explained)
        answers = {"estimate": estimate, "ask": question, "compare": compared, "explain": explained}
        answers["optimal"] = await client.call_tool("optimal", {"budget": {"flops": 1e21}})
        answers["buy_or_rent"] = await client.call_tool("buy_or_rent", FLEET)
        for name, answer in answers.items():
            jsonschema.validate(answer.structured_content, typed[name])
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        assert uris == ["outlay://accelerators", "outlay://results", f"outlay://results/{kept['id']}"]
        read = json.loads((await client.read_resource(uris[2])).contents[0].text)
        assert read["answer"] == kept["answer"]
        names = {entry["name"] for entry in json.loads((await client.read_resource("outlay://accelerators")).contents[0].text)}
        assert "NVIDIA-H100-80GB-SXM" in names
        assert json.loads((await client.read_resource("outlay://schemas/estimate")).contents[0].text)["required"]

    talk(settings, ask)


async def check_mistakes(client: Client) -> None:
    """They are in the result with their place, so that it can be corrected; the process goes on."""
    from mcp.shared.exceptions import MCPError

    refused = await client.call_tool("estimate", {**RUN, "hardware": {"accelerator": "H1000", "count": 8}})
    assert refused.is_error
    assert "/hardware/accelerator: " in text_of(refused)
    assert "H100" in text_of(refused)
    for name, arguments, said in (
        ("estimate", {**RUN, "modle": 1}, "/modle: "),
        ("ask", {}, "/text: "),
        ("explain", {"result": "x"}, "/result: unknown argument"),
        ("explain", {"result_id": "none"}, "nothing is kept"),
        ("program_status", {"program_id": "none"}, "nothing is kept"),
    ):
        refused = await client.call_tool(name, arguments)
        assert refused.is_error, name
        assert said in text_of(refused)
    with pytest.raises(MCPError, match="no resource"):
        await client.read_resource("outlay://results/none")
    with pytest.raises(MCPError, match="no tool"):
        await client.call_tool("buy", {})
    assert not (await client.call_tool("optimal", {"budget": {"flops": 1e21}})).is_error


def test_a_server_is_asked_with_the_key_of_the_environment(settings: Settings) -> None:
    """The same tools; without the key the refusal says what to do."""

    async def ask(client: Client) -> None:
        assert not (await client.call_tool("optimal", {"budget": {"flops": 1e21}})).is_error
        refused = await client.call_tool("program_status", {"program_id": "none"})
        assert refused.is_error
        assert json.loads((await client.read_resource("outlay://results")).contents[0].text) == []

    async def ask_without(client: Client) -> None:
        refused = await client.call_tool("optimal", {"budget": {"flops": 1e21}})
        assert refused.is_error
        assert "OUTLAY_API_KEY" in text_of(refused)

    with guarded_service(settings) as (url, token):
        talk(settings, ask, "--server", url, OUTLAY_API_KEY=token)
        talk(settings, ask_without, "--server", url, XDG_CONFIG_HOME=str(settings.data_dir))


@contextmanager
def serving_http(settings: Settings, **environment: str) -> Iterator[str]:
    """The address of a process that serves HTTP."""
    port = find_free_port()
    variables = {**os.environ, "OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1", "PYTHONPATH": str(ROOT), **environment}
    process = subprocess.Popen([sys.executable, "-m", "service.cli", "mcp", "--http", str(port)], env=variables, cwd=ROOT)
    try:
        wait_for(lambda: listens(port), "the server")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def test_it_is_served_over_http_on_this_machine(settings: Settings) -> None:
    from mcp import Client

    async def ask(address: str) -> None:
        async with Client(address, read_timeout_seconds=DEADLINE_S) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
            question = await client.call_tool("ask", {"text": "7B on 1T tokens, 256 h100"})
            assert question.structured_content["understood"]["kind"] == "estimate"

    with serving_http(settings) as address:
        anyio.run(ask, address)
        foreign = requests.post(address, json={}, headers={"Host": "attacker.example"}, timeout=DEADLINE_S)
        assert foreign.status_code == 421


def test_a_key_is_required_where_one_is_set_and_beyond_this_machine(settings: Settings) -> None:
    import httpx2
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def ask(address: str) -> None:
        key = {"Authorization": "Bearer s3cr3t"}
        async with (
            httpx2.AsyncClient(headers=key, timeout=DEADLINE_S) as http,
            Client(streamable_http_client(address, http_client=http), read_timeout_seconds=DEADLINE_S) as client,
        ):
            assert len((await client.list_tools()).tools) == len(TOOLS)

    with serving_http(settings, OUTLAY_MCP_KEY="s3cr3t") as address:
        for headers in ({}, {"Authorization": "Bearer s3cr3"}):
            refused = requests.post(address, json={}, headers=headers, timeout=DEADLINE_S)
            assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        anyio.run(ask, address)
    for address in ("0.0.0.0:0", "[::]:0"):  # all addresses are what is refused
        assert "OUTLAY_MCP_KEY" in run(settings, "mcp", "--http", address).output
    assert "must be a port" in run(settings, "mcp", "--http", "x").output
