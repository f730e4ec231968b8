"""The service's HTTP shell around a few addresses that exist only to try it out; also served by real gunicorn processes."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flask import Flask, Response
from sqlalchemy.exc import OperationalError
from werkzeug.exceptions import RequestEntityTooLarge, RequestURITooLarge, TooManyRequests

from service import api
from service.api.http import request_body
from service.api.http.blueprint import Blueprint, json_response
from service.api.http.paging import page_of, paginate
from service.domain.errors import DoesNotFit, InvalidRequest, NoOffer, StoreUnavailable, UnknownName
from service.schemas.compound_fields import Items, OrWord, Part
from service.schemas.fields import Choice, Count, Schema, Share, Text
from service.schemas.paging import PageQuerySchema
from tests.support.patience import wait_for_up_to

WAITS = "PROBE_WAITS"
"""Environment variable with waits for clients and parts [s], by where they stand."""
SECRET = "SELECT secret FROM keys -- /etc/shadow"
ERRORS: dict[str, Exception] = {
    "invalid": InvalidRequest("both cannot be", "/model/params"),
    "unknown-name": UnknownName("no accelerator 'H10'", "/hardware/accelerator", near=("H100", "H200")),
    "does-not-fit": DoesNotFit("fits nowhere; 64 would do"),
    "no-offer": NoOffer("nobody sells it", "/price"),
    "unexpected": RuntimeError(SECRET),
    "store": StoreUnavailable(SECRET),
    "sql": OperationalError(SECRET, {}, RuntimeError(SECRET)),
    "429": TooManyRequests(retry_after=7),
    "413": RequestEntityTooLarge(),
    "414": RequestURITooLarge(),
}

blueprint = Blueprint("probe", __name__)


class InnerSchema(Schema):
    """Something inside."""

    preset = Text()
    params = Count()


class EchoSchema(Schema):
    """What the echo takes."""

    model = Part(InnerSchema)
    layout = OrWord(Part(InnerSchema))
    shares = Items(Share(), max_items=3)
    method = Choice(("pretrain", "lora"))


@blueprint.route("/v1/probe/echo", methods=["POST"])
@blueprint.arguments(EchoSchema)
@blueprint.response(200, EchoSchema)
def echo(given: dict[str, Any]) -> Response:
    """Say it back"""
    return json_response(given)


@blueprint.route("/v1/probe/large", methods=["POST"])
@request_body.body_limit(request_body.LARGE_BODY_BYTES)
def large() -> Response:
    """Count bytes"""
    return json_response({"bytes": len(request_body.read_body())})


@blueprint.route("/v1/probe/items")
@blueprint.arguments(PageQuerySchema, location="query")
def items(query: dict[str, Any]) -> Response:
    """A list"""
    page, after = paginate(range(10), lambda number: (number,), page_of(query, (int,)))
    return json_response({"items": page, "next_cursor": after})


@blueprint.route("/v1/probe/errors/<kind>")
def fail(kind: str) -> Response:
    """Fail as told"""
    raise ERRORS[kind]


@blueprint.route("/v1/probe/hold")
def hold() -> Response:
    """Tell one named pipe that the request is here, answer when the other one says so"""
    folder = Path(os.environ["PROBE_PIPES"])
    (folder / "entered").write_text("here")
    return json_response({"released": (folder / "release").read_text()})


def context(**parts: Any) -> SimpleNamespace:
    """A context on which everything is well, apart from `parts`."""
    well = SimpleNamespace(ping=lambda timeout_s=0.2: True, last_beat=lambda: datetime.now(UTC), any_key=lambda: False)
    settings = SimpleNamespace(
        host="127.0.0.1", allowed_hosts=(), slack_signing_secret=None, metrics_key=None, oidc_issuer=None, data_dir=Path.cwd()
    )
    usual = {"store": well, "cache": well, "queue": well, "clock": lambda: datetime.now(UTC), "settings": settings}
    return SimpleNamespace(**usual | parts)


def build(**parts: Any) -> Flask:
    """The shell with the probe's addresses."""
    app = Flask("probe", static_folder=None)
    app.extensions["context"] = context(**parts)
    api.register(app).register_blueprint(blueprint)
    wait_for_up_to(json.loads(os.environ.get(WAITS, "{}")))
    return app
