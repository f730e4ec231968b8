"""Outlay: plans, prices and tracks the compute of AI training programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

    from service.config import Settings


def create_app(settings: Settings | None = None) -> Flask:
    """The web application.

    `settings` default to the environment's. Imports are inside, so that `import service` costs nothing.
    """
    import os

    from flask import Flask

    from service import api, web
    from service.api.http.client_address import trust_proxies
    from service.config import load_settings, secrets_of
    from service.container import build_context
    from service.runtime import logs, traces

    settings = load_settings(os.environ) if settings is None else settings
    logs.hide(secrets_of(settings, os.environ))
    logs.configure(settings.log_level.upper())
    app = Flask("outlay", static_folder=None, template_folder=None)
    app.ensure_sync = lambda func: func  # type: ignore[method-assign]  # none is asynchronous: to ask each takes a tenth of a request
    app.extensions["context"] = build_context(settings)
    traces.trace_app(app)
    api.register(app)
    web.register(app)
    app.wsgi_app = trust_proxies(app.wsgi_app, settings.trusted_proxies)  # type: ignore[assignment, method-assign]
    return app


def load_modules() -> None:
    """Import what the application consists of and read its words, for processes that are forked afterwards.

    They start in a fraction of a second instead of three, and share the memory. Nothing is opened or counted.
    """
    from importlib import import_module

    from service import api, web
    from service.formats.ask.lexing.vocabulary import load_lexicon

    for name in (*api.RESOURCES, *web.PAGES):
        import_module(name)
    load_lexicon()
