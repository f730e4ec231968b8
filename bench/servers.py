"""What an estimate is measured against: echoes of the same body on the bare stack."""

from __future__ import annotations

import socket
from typing import Any

from flask import Flask, request

from service.schemas.training.request import EstimateRequestSchema


def find_free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_flask() -> Flask:
    """Flask alone: parse the JSON, give it back."""
    app = Flask("bare")

    @app.post("/echo")
    def echo() -> Any:
        return request.get_json()

    return app


def smorest_echo() -> Flask:
    """Flask with flask-smorest and the estimate's own schema: parse, validate, give back what was sent."""
    from flask_smorest import Api, Blueprint

    app = Flask("smorest")
    app.config.update(API_TITLE="echo", API_VERSION="1", OPENAPI_VERSION="3.0.3")
    blueprint = Blueprint("echo", __name__)

    @blueprint.route("/echo", methods=["POST"])
    @blueprint.arguments(EstimateRequestSchema)
    def echo(_: dict[str, Any]) -> Any:
        return request.get_json()

    Api(app).register_blueprint(blueprint)
    return app
