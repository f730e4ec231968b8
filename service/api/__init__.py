"""The HTTP interface: one module for each resource, and the HTTP layer that they share.

To add an endpoint: write its module with a `blueprint` (see service.api.http.blueprint) and add its name to RESOURCES.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from service.api.http.openapi import Api

RESOURCES: tuple[str, ...] = (
    "service.api.resources.training.estimate",
    "service.api.resources.programs",
    "service.api.resources.portfolio",
    "service.api.resources.inverse",
    "service.api.resources.training.reprice",
    "service.api.resources.comparison",
    "service.api.resources.ask",
    "service.api.resources.procurement",
    "service.api.resources.serving",
    "service.api.resources.scaling",
    "service.api.resources.tracking.programs",
    "service.api.resources.tracking.reports",
    "service.api.resources.tracking.imports",
    "service.api.resources.tracking.alerts",
    "service.api.resources.scenarios",
    "service.api.resources.results.results",
    "service.api.resources.results.links",
    "service.api.resources.results.pages",
    "service.api.resources.prices.catalog",
    "service.api.resources.prices.providers",
    "service.api.resources.prices.price_files",
    "service.slack.http",
    "service.api.resources.operations.health",
    "service.api.resources.operations.docs",
    "service.api.resources.operations.audit",
    "service.api.resources.operations.usage",
)


def register(app: Flask) -> Api:
    """Register the HTTP interface on `app`, whose extensions hold the context. Returns the Api, to register further blueprints."""
    from service.api.http import auth, errors, idempotency, json_provider, openapi, request_body, request_ids
    from service.api.http.metrics import MetricsPage
    from service.api.resources.operations import health
    from service.runtime import metrics

    app.json = json_provider.StrictProvider(app)
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.extensions["probes"] = health.make_probes(app.extensions["context"])
    metrics.start()
    request_ids.register(app)
    auth.register(app)
    app.extensions["metrics"] = MetricsPage(app.extensions["context"], app.extensions["counts"])
    request_body.register(app)
    api = openapi.register(app)
    errors.register(app)
    idempotency.register(app)
    for name in RESOURCES:
        api.register_blueprint(import_module(name).blueprint)
    return api
