"""From the request of a file and options to the answer on standard output."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal.context import make_context, report_errors
from service.cli.terminal.options import FIELDS, parse_value
from service.cli.terminal.places import error_lines, note_file, note_place
from service.cli.terminal.server import report_problems, stated_server
from service.cli.terminal.waiting import waiting

if TYPE_CHECKING:
    from service.context import AppContext
    from service.schemas.fields import Schema

    UseCase = Callable[[AppContext, dict[str, Any]], object]

YAML_SUFFIXES = (".yaml", ".yml")
STANDARD_INPUT_READ = f"{__name__}.standard_input_read"
EXPONENT = re.compile(r"\d+(?:\.\d+)?[eE][+-]?\d+$")


def build_request(file: Path | None, settings: Sequence[str] = ()) -> dict[str, Any]:
    """The request of a file, overridden by the command's fields, then by the settings PATH=VALUE."""
    return override(read_request(file) if file else {}, settings)


def override(request: dict[str, Any], settings: Sequence[str] = ()) -> dict[str, Any]:
    """The request with the command's fields and then the settings PATH=VALUE put into it."""
    for path, value in click.get_current_context().meta.get(FIELDS, {}).items():
        _put(request, path, value)
    for setting in settings:
        path, separator, text = setting.partition("=")
        if not separator:
            raise click.BadParameter(f"{setting!r} is not PATH=VALUE", param_hint="--set")
        _put(request, path, parse_value(text))
        note_place(path, f"--set {path}")
    return request


def _put(request: dict[str, Any], path: str, value: Any) -> None:
    """Set a field by its dotted path, making objects on the way, and lists where the next part is a number."""
    parts = path.split(".")
    node: Any = request
    for part, following in itertools.pairwise(parts):
        below = _below(node, part, path)
        if below is None:
            below = [] if following.isdigit() else {}
            _set(node, part, below, path)
        node = below
    _set(node, parts[-1], value, path)


def _below(node: Any, part: str, path: str) -> Any:
    """What is at a part of the path; None where nothing is."""
    if isinstance(node, list):
        return node[int(part)] if part.isdigit() and int(part) < len(node) else None
    if isinstance(node, dict):
        return node.get(part)
    raise click.BadParameter(f"what is above {part} in {path} is no object and no list", param_hint="--set")


def _set(node: Any, part: str, value: Any, path: str) -> None:
    """Set one part; the place after the last of a list lengthens it."""
    if isinstance(node, dict):
        node[part] = value
    elif not isinstance(node, list):
        raise click.BadParameter(f"what is above {part} in {path} is no object and no list", param_hint="--set")
    elif not part.isdigit() or int(part) > len(node):
        raise click.BadParameter(f"{part} in {path} is no place of a list of {len(node)}", param_hint="--set")
    else:
        node[int(part) : int(part) + 1] = [value]


def read_request(file: Path) -> dict[str, Any]:
    """A request from a file or, of `-`, standard input, as JSON where it is JSON (as strictly as over HTTP), else as YAML."""
    from service.schemas.strict_json import BadJson, parse

    note_file(file)
    name = file_name(file)
    content = read_file(file)
    try:
        request = parse(content)
    except BadJson as error:
        if content.lstrip().startswith(b"{") and file.suffix.lower() not in YAML_SUFFIXES:
            placed = [entry for entry in error.errors if entry["pointer"]]
            raise click.ClickException(f"{name}: {error.detail}\n{error_lines(placed)}".rstrip()) from error
        request = _read_yaml(name, content)
    if not isinstance(request, dict):
        raise click.ClickException(f"{name}: {'the request must be an object of JSON or YAML' if content.strip() else 'it is empty'}")
    return request


def read_file(file: Path) -> bytes:
    """The bytes of a file, or of standard input where it is `-`. Raises UsageError where standard input has been read already."""
    if not is_standard_input(file):
        return file.read_bytes()
    meta = click.get_current_context().meta
    if meta.setdefault(STANDARD_INPUT_READ, False):
        raise click.UsageError("`-` can be one file only: standard input is read once")
    meta[STANDARD_INPUT_READ] = True
    return sys.stdin.buffer.read()


def is_standard_input(file: Path) -> bool:
    """Whether a file is `-`."""
    return str(file) == "-"


def file_name(file: Path) -> str:
    """A file as messages name it."""
    return "standard input" if is_standard_input(file) else str(file)


def _read_yaml(name: str, content: bytes) -> Any:
    """YAML with scalars of YAML 1.2, as in JSON: 1e12 is a number and 2027-01-04 a text."""
    import yaml

    class Loader(yaml.SafeLoader):
        """The safe one, without dates."""

    Loader.yaml_implicit_resolvers = {
        first: [rule for rule in rules if rule[0] != "tag:yaml.org,2002:timestamp"]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("0123456789"))
    try:
        return yaml.load(content, Loader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise click.ClickException(f"{name}: not JSON or YAML: {error}") from error


def load_request(schema: Schema, request: dict[str, Any]) -> dict[str, Any]:
    """The request loaded by the schema. Raises ClickException with one line for each error."""
    from marshmallow import ValidationError

    from service.schemas.base import pointers

    try:
        loaded: dict[str, Any] = schema.load(request)
    except ValidationError as error:
        raise click.ClickException(error_lines(pointers(error.messages, schema))) from error
    return loaded


def answer_to(path: str, request: dict[str, Any], embedded: Callable[[], tuple[Schema, UseCase]]) -> Any:
    """The answer to a request as JSON values, of the stated server's `path`, else of this process.

    `embedded` imports the request's schema and its use case. Raises ClickException, with the place of what is wrong in the request.
    """
    server = stated_server()
    with waiting():
        if server is not None:
            with report_problems():
                return server.post(path, request)
        schema, usecase = embedded()
        return answer_here(usecase, load_request(schema, request))


def answer_here(usecase: UseCase, loaded: dict[str, Any]) -> Any:
    """The use case's answer to a loaded request, as JSON values. Raises ClickException with the place of what is wrong in the request."""
    from service.domain.teams import EVERYBODY
    from service.serialization import to_builtins
    from service.usecases.resolution.feedback import FeedbackCache, context_for_team

    context = make_context()
    with report_errors():
        return to_builtins(usecase(context_for_team(context, FeedbackCache(context.store), EVERYBODY), loaded))


def show(answer: object, table: Callable[[], str], *, as_json: bool) -> None:
    """Print an answer as JSON, or as its table."""
    click.echo(json.dumps(answer, indent=2) if as_json else table())


def write_svg(file: Path, draw: Callable[[], str]) -> None:
    """Write the result of `draw`. Raises ClickException where there is nothing to draw or the file cannot be written."""
    try:
        file.write_text(draw(), encoding="utf-8")
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{file} is not drawn: {error}") from error


def write_output(content: bytes, out: Path | None) -> None:
    """Write to a file, or to standard output unchanged."""
    if out is None:
        click.echo(content, nl=False)
        return
    try:
        out.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from error
