"""The server of the Model Context Protocol, over standard input and output or HTTP, with the official SDK."""

from __future__ import annotations

import hmac
import json
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.mcp.backends import Backend, ToolError
from service.mcp.explanations import explained, explanation_text, short_text
from service.mcp.tools import OPTIONS, TOOLS, Body, full_schema, input_schema, output_schema

JSON = "application/json"
ACCELERATORS, RESULTS, SCHEMAS = "outlay://accelerators", "outlay://results", "outlay://schemas"
INSTRUCTIONS = (
    "Outlay plans, prices and tracks the compute of AI training. Use `ask` for a question in words and the other tools for exact requests."
    " Every quantity has its unit in its name, a range is p10, p50 and p90; tell the user the range, the warnings that matter, and what was"
    " assumed. A value that the user has not stated is left out, not guessed."
)
Context = ServerRequestContext[Any]


def serve(backend: Backend, version: str) -> None:
    """Serve until standard input ends."""
    anyio.run(_run, make_server(backend, version))


def serve_http(backend: Backend, version: str, host: str, port: int, key: str | None) -> None:
    """Serve at http://HOST:PORT/mcp until the process is stopped; with a key only requests that have it as their bearer token."""
    import uvicorn

    app = make_server(backend, version).streamable_http_app(host=host, stateless_http=True, json_response=True)
    uvicorn.run(app if key is None else guarded(app, key), host=host, port=port, log_level="warning")


def guarded(app: ASGIApp, key: str) -> ASGIApp:
    """The application behind a key; other requests are answered 401 before anything of them is read."""
    expected = f"Bearer {key}".encode()

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        sent = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(sent, expected):
            refusal = Response("the key of OUTLAY_MCP_KEY is required, as Authorization: Bearer", 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        await app(scope, receive, send)

    return checked


async def _run(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def make_server(backend: Backend, version: str) -> Server[Any]:
    """The server with its tools and resources; a backend's calls run in threads."""

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=await anyio.to_thread.run_sync(_tools))

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(call, backend, params.name, params.arguments or {})

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=await anyio.to_thread.run_sync(_resources, backend))

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=_templates())

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = await anyio.to_thread.run_sync(read, backend, str(params.uri))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, mime_type=JSON, text=text)])

    return Server(
        "outlay",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def call(backend: Backend, name: str, arguments: Body) -> types.CallToolResult:
    """A tool's answer as a short text and in full; what is wrong is said in the result, so that the assistant can correct it."""
    if name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
    try:
        _check_stated(name, arguments)
        answer = backend.answer(name, _with_defaults(name, arguments))
    except ToolError as error:
        lines = [f"{entry['pointer']}: {entry['message']}" for entry in error.errors] or [error.detail]
        return _result("\n".join(lines), {"detail": error.detail, "errors": error.errors}, is_error=True)
    if name == "explain":
        explanation = explained(answer)
        return _result(explanation_text(explanation), explanation)
    return _result(short_text(answer), answer)


def read(backend: Backend, uri: str) -> str:
    """A resource as JSON. Raises MCPError where there is none."""
    base, _, name = uri.removeprefix("outlay://").partition("/")
    try:
        found = _read(backend, base, name)
    except (ToolError, KeyError) as error:
        raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri}: {error}") from error
    return json.dumps(found, ensure_ascii=False)


def _read(backend: Backend, base: str, name: str) -> Any:
    if base == "accelerators":
        entries = backend.accelerators()
        return entries if not name else {entry["name"]: entry for entry in entries}[name]
    if base == "results":
        return backend.result(name) if name else backend.results()
    if base == "schemas" and name:
        return full_schema(name)
    raise KeyError(base)


def _check_stated(name: str, arguments: Body) -> None:
    """Refuse unknown and missing arguments of tools whose request no schema of ours checks."""
    properties = TOOLS[name].properties
    if properties is None:
        return
    required, unknown = next(iter(properties)), [stated for stated in arguments if stated not in properties]
    errors = [{"pointer": f"/{stated}", "message": f"unknown argument; known: {', '.join(properties)}"} for stated in unknown]
    if not arguments.get(required):
        errors.append({"pointer": f"/{required}", "message": "this argument is required"})
    if errors:
        raise ToolError("the arguments cannot be answered", errors)


def _with_defaults(name: str, arguments: Body) -> Body:
    defaults: dict[str, Body] = {"ask": {"answer": True}, "compare": {"limit": OPTIONS}}
    return {**defaults.get(name, {}), **arguments}


def _result(text: str, structured: Body, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured, is_error=is_error)


def _tools() -> list[types.Tool]:
    reads = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, destructive_hint=False)
    return [
        types.Tool(
            name=name, description=tool.description, input_schema=input_schema(name), output_schema=output_schema(name), annotations=reads
        )
        for name, tool in TOOLS.items()
    ]


def _resources(backend: Backend) -> list[types.Resource]:
    """The two lists, and every kept result; where results cannot be read, the lists alone."""
    lists = [
        types.Resource(uri=ACCELERATORS, name="accelerators", description="Known accelerators with peaks and memory", mime_type=JSON),
        types.Resource(uri=RESULTS, name="results", description="Kept results, the newest first", mime_type=JSON),
    ]
    try:
        kept = backend.results()
    except ToolError:
        kept = []
    return [*lists, *(types.Resource(uri=f"{RESULTS}/{row['id']}", name=row["id"], title=row["title"], mime_type=JSON) for row in kept)]


def _templates() -> list[types.ResourceTemplate]:
    described = {
        f"{ACCELERATORS}/{{name}}": "One accelerator",
        f"{RESULTS}/{{id}}": "A kept result with request and answer",
        f"{SCHEMAS}/{{kind}}": "The whole JSON schema of a tool's request: estimate, compare, buy_or_rent, optimal, program, serving",
    }
    return [types.ResourceTemplate(uri_template=uri, name=text, mime_type=JSON) for uri, text in described.items()]
