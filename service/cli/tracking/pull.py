"""Client of an MLflow server for `outlay track pull`: runs and metric histories in the form of POST /v1/track/imports?kind=mlflow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click

from providers.http import Http, Limits
from providers.offer import ProviderError
from service.formats.imports.metrics import known
from service.serialization import to_builtins

Fetch = Callable[[dict[str, Any]], object]
API = "/api/2.0/mlflow"
PAGE_RUNS = 100
PAGE_EXPERIMENTS = 1000
PAGE_POINTS = 25_000
MAX_PAGES = 1000
LIMITS = Limits(read_s=30.0, total_s=60.0)
TOKEN = "MLFLOW_TRACKING_TOKEN"  # noqa: S105 - the name of MLflow's own variable


def pull_mlflow(url: str, experiments: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Runs of the named experiments, or of all, with the histories of the metrics that an import reads.

    Uses the token of MLFLOW_TRACKING_TOKEN where that is set. Raises ClickException for an unknown experiment and for every error of the
    server, which it names.
    """
    server = _Server(url.rstrip("/"), environment.get(TOKEN, ""))
    try:
        runs = [run for experiment in server.experiments(experiments) for run in server.runs(experiment)]
        return {"runs": runs, "histories": {run["info"]["run_id"]: list(server.history(run)) for run in runs}}
    except ProviderError as error:
        raise click.ClickException(str(error)) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise click.ClickException(f"{url} does not answer as MLflow's REST API: {error!r}") from error


class _Server:
    """MLflow REST API 2.0, page by page."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.http = Http(LIMITS, configured=(url,))
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def experiments(self, names: Sequence[str]) -> list[str]:
        """Ids of the named experiments, or of all active ones."""
        rows = self._all("experiments", self._get("experiments/search"), {"max_results": str(PAGE_EXPERIMENTS)})
        ids = {row["name"]: row["experiment_id"] for row in rows}
        missing = [name for name in names if name not in ids]
        if missing:
            raise click.ClickException(f"{self.url} has no experiment {', '.join(missing)}; it has {', '.join(sorted(ids)) or 'none'}")
        return [ids[name] for name in names] if names else list(ids.values())

    def runs(self, experiment: str) -> Iterator[dict[str, Any]]:
        """The active runs of an experiment, oldest first."""
        search = {"experiment_ids": [experiment], "max_results": PAGE_RUNS, "order_by": ["attributes.start_time ASC"]}
        url = f"{self.url}{API}/runs/search"
        return self._all("runs", lambda query: self.http.post_json(url, query, headers=self.headers), search)

    def history(self, run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """All points of the metrics that an import reads."""
        for metric in run["data"].get("metrics", ()):
            if known(metric["key"]):
                query = {"run_id": run["info"]["run_id"], "metric_key": metric["key"], "max_results": str(PAGE_POINTS)}
                yield from self._all("metrics", self._get("metrics/get-history"), query)

    def _get(self, route: str) -> Fetch:
        return lambda query: self.http.get_json(f"{self.url}{API}/{route}", headers=self.headers, params=query)

    def _all(self, name: str, fetch: Fetch, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The entries `name` of all pages of the answer to a query."""
        for _ in range(MAX_PAGES):
            page = _object(fetch(query))
            yield from page.get(name, ())
            query["page_token"] = page.get("next_page_token") or ""
            if not query["page_token"]:
                return


def _object(answer: object) -> dict[str, Any]:
    """An answer with its numbers as JSON has them."""
    if not isinstance(answer, dict):
        raise TypeError(f"an answer is {type(answer).__name__} where an object was expected")
    value: dict[str, Any] = to_builtins(answer)
    return value
