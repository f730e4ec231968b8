"""gunicorn's configuration against what clients do."""

from __future__ import annotations

import subprocess
import sys

from service.api.http.blueprint import POLL_AFTER_S
from service.config import Settings, to_env
from tests.integration.test_serve import ROOT

CLIENTS_KEEP_S = 4
"""How long Node's fetch keeps an idle connection where the server says nothing of it (undici, keepAliveTimeout)."""


def test_a_connection_outlasts_the_pause_of_a_client_that_waits_for_a_job(settings: Settings) -> None:
    """Else it ends as it is used again: the client sees a closed connection where an answer was due."""
    script = "from service.runtime import gunicorn_conf; print(gunicorn_conf.keepalive)"
    ran = subprocess.run([sys.executable, "-c", script], env=to_env(settings), cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(ran.stdout) > max(2 * POLL_AFTER_S, CLIENTS_KEEP_S)


def test_gunicorn_gathers_nothing_for_an_access_log(settings: Settings) -> None:
    """The application writes a line of its own for each request; gunicorn would read every header for one that is dropped."""
    script = (
        "from gunicorn.app.wsgiapp import WSGIApplication\n"
        "settings = WSGIApplication().cfg\n"
        "print(settings.logger_class(settings).access_log_enabled)"
    )
    command = [sys.executable, "-c", script, "service:create_app()", "--config", "python:service.runtime.gunicorn_conf"]
    ran = subprocess.run(command, env=to_env(settings), cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False"]


def test_a_worker_that_starts_imports_no_resource_or_page_again(settings: Settings) -> None:
    """The arbiter has imported them before: a worker that follows another one answers in a fraction of a second."""
    script = (
        "import sys\n"
        "from service import create_app, load_modules\n"
        "load_modules()\n"
        "loaded = set(sys.modules)\n"
        "create_app()\n"
        "late = set(sys.modules) - loaded\n"
        "print(len(loaded), len(late), *(name for name in late if '.resources.' in name or '.pages.' in name))"
    )
    ran = subprocess.run([sys.executable, "-c", script], env=to_env(settings), cwd=ROOT, capture_output=True, text=True, check=True)
    before, after, *again = ran.stdout.split()
    assert again == []
    assert int(after) < 0.05 * int(before)
