"""Web pages: the same use cases as over HTTP, rendered on the server. A page works without scripts and is better with them.

To add a page: write its module with views on `blueprint` (see service.web.blueprint), name it in PAGES, and put its template into the
folder of its subject.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask

PAGES: tuple[str, ...] = (
    "service.web.pages.assets",
    "service.web.pages.home",
    "service.web.pages.estimate",
    "service.web.pages.compare",
    "service.web.pages.buy_or_rent",
    "service.web.pages.quotes",
    "service.web.pages.program_new",
    "service.web.pages.programs",
    "service.web.pages.program_plan",
    "service.web.pages.program_first_plan",
    "service.web.pages.program_pivot",
    "service.web.pages.program_run",
    "service.web.pages.trials",
    "service.web.pages.scenarios",
    "service.web.pages.prices",
    "service.web.pages.price_files",
    "service.web.pages.result_links",
    "service.web.pages.settings",
    "service.web.pages.alert_rules",
    "service.web.pages.sign_in",
    "service.web.pages.openid",
    "service.web.pages.sign_out",
)


def register(app: Flask) -> None:
    """Register the pages on `app`, after the HTTP interface."""
    from service.web import problem_pages
    from service.web.blueprint import blueprint

    for name in PAGES:
        import_module(name)
    app.register_blueprint(blueprint)
    problem_pages.register(app)
