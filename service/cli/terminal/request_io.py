"""From the request of a file and options to the answer on standard output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal.context import error_line, make_context, report_errors
from service.cli.terminal.options import FIELDS, parse_value

if TYPE_CHECKING:
    from service.context import AppContext
    from service.schemas.fields import Schema

YAML_SUFFIXES = (".yaml", ".yml")
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
    return request


def _put(request: dict[str, Any], path: str, value: Any) -> None:
    """Set a field by its dotted path, creating objects on the way."""
    *above, last = path.split(".")
    for name in above:
        request = request.setdefault(name, {})
        if not isinstance(request, dict):
            raise click.BadParameter(f"{name} in {path} is no object", param_hint="--set")
    request[last] = value


def read_request(file: Path) -> dict[str, Any]:
    """A request from a file, as JSON where it is JSON (as strictly as over HTTP), else as YAML."""
    from service.schemas.strict_json import BadJson, parse

    content = file.read_bytes()
    try:
        request = parse(content)
    except BadJson as error:
        if content.lstrip().startswith(b"{") and file.suffix.lower() not in YAML_SUFFIXES:
            placed = [entry for entry in error.errors if entry["pointer"]]
            raise click.ClickException(f"{file}: {error.detail}\n{error_lines(placed)}".rstrip()) from error
        request = _read_yaml(file, content)
    if not isinstance(request, dict):
        raise click.ClickException(f"{file}: the request must be an object with model, data and hardware")
    return request


def _read_yaml(file: Path, content: bytes) -> Any:
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
        raise click.ClickException(f"{file}: not JSON or YAML: {error}") from error


def load_request(schema: Schema, request: dict[str, Any]) -> dict[str, Any]:
    """The request loaded by the schema. Raises ClickException with one line for each error."""
    from marshmallow import ValidationError

    from service.schemas.base import pointers

    try:
        loaded: dict[str, Any] = schema.load(request)
    except ValidationError as error:
        raise click.ClickException(error_lines(pointers(error.messages, schema))) from error
    return loaded


def error_lines(errors: Sequence[Mapping[str, Any]]) -> str:
    """One line for each error."""
    return "\n".join(error_line(entry["pointer"], entry["message"]) for entry in errors)


def answer_to(usecase: Callable[[AppContext, dict[str, Any]], object], loaded: dict[str, Any]) -> Any:
    """The use case's answer to a loaded request, as JSON values. Raises ClickException with the pointer into the request."""
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
