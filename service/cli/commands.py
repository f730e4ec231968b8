"""Commands: read a request, call the use case, print the answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from service.cli import tables
from service.context import AppContext
from service.domain.errors import DomainError, StoreUnavailable

if TYPE_CHECKING:
    from service.schemas.base import Schema

# Where each flag of `outlay estimate` stands in the request.
FLAG_PATHS = {
    "model": "model.preset",
    "params": "model.params",
    "active_params": "model.active_params",
    "tokens": "data.tokens",
    "samples": "data.samples",
    "method": "training.method",
    "seq_len": "training.seq_len",
    "batch_tokens": "training.global_batch_tokens",
    "precision": "training.precision",
    "accelerator": "hardware.accelerator",
    "count": "hardware.count",
    "usd_per_hour": "price.usd_per_accelerator_hour",
    "provider": "price.provider",
    "region": "price.region",
    "pricing": "price.pricing",
    "mfu": "efficiency.mfu",
}

# Flags whose text is a count: written as JSON writes numbers (1e12) it is one, else it is read as the schema reads texts ("2T").
COUNT_FLAGS = ("params", "active_params", "tokens", "samples", "batch_tokens", "count")
YAML_SUFFIXES = (".yaml", ".yml")
EXPONENT = re.compile(r"\d+(?:\.\d+)?[eE][+-]?\d+$")


def make_context() -> AppContext:
    """The context of the environment's settings."""
    from service.config import BadSetting, load_settings
    from service.container import build_context

    try:
        return build_context(load_settings(os.environ))
    except BadSetting as error:
        raise click.ClickException(str(error)) from error


def estimate(file: Path | None, flags: Mapping[str, Any], settings: Sequence[str], *, levers: bool, brief: bool, as_json: bool) -> None:
    """Estimate the run of a file, overridden by flags and settings."""
    from service.schemas.training.presenters import answered
    from service.schemas.training.request import EstimateRequestSchema

    request = read_request(file) if file else {}
    apply_settings(request, flags, FLAG_PATHS, settings)
    if levers:
        request["levers"] = True
    given = load_request(EstimateRequestSchema(), request)
    with report_errors():
        answer = answered(make_context(), given)
    click.echo(json.dumps(answer, indent=2) if as_json else tables.estimate(answer, brief=brief))


def offers(filters: Mapping[str, Any], limit: int, *, as_json: bool) -> None:
    """Show offers, cheapest first."""
    from service.schemas.training.presenters import offer_entry
    from service.usecases.prices.catalog import find_offers

    given = _stated(filters)
    if "max_usd" in given:
        given["max_usd_per_accelerator_hour"] = given.pop("max_usd")
    at = make_context()
    with report_errors():
        book, found = find_offers(at, given)
    now = at.clock()
    cheapest = sorted(found, key=lambda offer: offer.usd_per_accelerator_hour)[:limit]
    entries = [offer_entry(offer, stale=book.is_stale(offer, now)) for offer in cheapest]
    click.echo(json.dumps(entries, indent=2) if as_json else tables.offers(entries, len(found), book.name))


def accelerators(filters: Mapping[str, Any], *, as_json: bool) -> None:
    """Show accelerators."""
    from service.schemas.training.presenters import accelerator_entry
    from service.usecases.prices.catalog import find_accelerators

    with report_errors():
        entries = [accelerator_entry(accelerator) for accelerator in find_accelerators(_stated(filters))]
    click.echo(json.dumps(entries, indent=2) if as_json else tables.accelerators(entries))


def models(filters: Mapping[str, Any], *, as_json: bool) -> None:
    """Show model presets."""
    from service.schemas.training.presenters import model_entry
    from service.usecases.prices.catalog import find_models

    with report_errors():
        entries = [model_entry(preset) for preset in find_models(_stated(filters))]
    click.echo(json.dumps(entries, indent=2) if as_json else tables.models(entries))


def openapi() -> None:
    """Print the description of the HTTP interface as committed in openapi.yaml."""
    from service import create_app
    from service.api.http.openapi import to_yaml
    from service.config import load_settings

    click.echo(to_yaml(create_app(load_settings({}))), nl=False)


def split_list(text: str) -> list[str]:
    """Parts of a flag's text between commas."""
    return [item.strip() for item in text.split(",")]


def _stated(filters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value is not None}


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


def apply_settings(request: dict[str, Any], flags: Mapping[str, Any], paths: Mapping[str, str], settings: Sequence[str]) -> None:
    """Put the given flags into the request, each at its path, then the settings PATH=VALUE."""
    for name, value in flags.items():
        if value is not None:
            _put(request, paths[name], _value(value) if name in COUNT_FLAGS else value)
    for setting in settings:
        path, separator, text = setting.partition("=")
        if not separator:
            raise click.BadParameter(f"{setting!r} is not PATH=VALUE", param_hint="--set")
        _put(request, path, _value(text))


def _put(request: dict[str, Any], path: str, value: Any) -> None:
    """Set a field by its dotted path, creating objects on the way."""
    *above, last = path.split(".")
    for name in above:
        request = request.setdefault(name, {})
        if not isinstance(request, dict):
            raise click.BadParameter(f"{name} in {path} is no object", param_hint="--set")
    request[last] = value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def load_request(schema: Schema, request: dict[str, Any]) -> dict[str, Any]:
    """The request loaded by the schema. Raises ClickException with one line for each error."""
    from marshmallow import ValidationError

    from service.schemas.base import pointers

    try:
        loaded: dict[str, Any] = schema.load(request)
    except ValidationError as error:
        raise click.ClickException(error_lines(pointers(error.messages, schema))) from error
    return loaded


@contextmanager
def report_errors() -> Iterator[None]:
    """Context that reports errors of use cases in one line, with the pointer into the request."""
    try:
        yield
    except DomainError as problem:
        raise click.ClickException(_line(problem.pointer, problem.message)) from problem
    except StoreUnavailable as error:
        raise click.ClickException(f"the database cannot be read or written: {error}") from error


def error_lines(errors: Sequence[Mapping[str, Any]]) -> str:
    """One line for each error."""
    return "\n".join(_line(entry["pointer"], entry["message"]) for entry in errors)


def _line(pointer: str | None, message: str) -> str:
    return f"{pointer}: {message}" if pointer else message
