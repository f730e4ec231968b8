"""The HTTP door: one module a resource, and what all of them share.

Adding an endpoint: write its module with a `blueprint` (see service.api.blueprint) and add its name to RESOURCES.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from service.api.openapi import Api

RESOURCES: tuple[str, ...] = (
    "service.api.estimate",
    "service.api.program",
    "service.api.reprice",
    "service.api.compare",
    "service.api.serving",
    "service.api.optimal",
    "service.api.approaches",
    "service.api.scaling_laws",
    "service.api.loss_curves",
    "service.api.track",
    "service.api.track_status",
    "service.api.track_report",
    "service.api.track_imports",
    "service.api.alerts",
    "service.api.scenarios",
    "service.api.catalogue",
    "service.api.providers",
    "service.api.health",
    "service.api.docs",
)


def register(app: Flask) -> Api:
    """Put the whole HTTP interface on `app`, whose extensions hold the desk. Returns the Api, to register further blueprints with."""
    from service.api import auth, bodies, health, idempotency, metrics, openapi, problems, provider, request_ids

    app.json = provider.StrictProvider(app)
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.extensions["probes"] = health.probes_of(app.extensions["desk"])
    metrics.start()
    request_ids.register(app)
    auth.register(app)
    bodies.register(app)
    api = openapi.register(app)
    problems.register(app)
    idempotency.register(app)
    for name in RESOURCES:
        api.register_blueprint(import_module(name).blueprint)
    return api
