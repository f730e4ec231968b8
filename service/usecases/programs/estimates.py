"""Estimates of a program's runs: equal estimates, and equal sections of their requests, are resolved once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from providers.offer import BY_THE_HOUR
from service.context import AppContext
from service.domain.errors import DomainError, InvalidRequest
from service.domain.training.model import Model
from service.domain.training.run import Cluster, Run, Training
from service.engine.training.search.several_shapes import search_ahead
from service.usecases.comparison.timed_configurations import search_weight
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.data import resolve_data
from service.usecases.resolution.machine import Machine, resolve_machine, trained_model
from service.usecases.resolution.phases import has_phases
from service.usecases.resolution.price import DEFAULT_PRICING
from service.usecases.resolution.resolve import ResolvedRun, resolve
from service.usecases.resolution.run_settings import resolve_settings
from service.usecases.resolution.utilisation import resolve_utilisation
from service.usecases.training.estimate import EstimateAnswer, estimate_run

Request = Mapping[str, Any]
Key = tuple[str, ...]
Part = TypeVar("Part")

# The sections that decide the model with its training.
TRAINING_SECTIONS = ("model", "training", "hardware", "price")
# The most layout search that one program may cost, in units of `search_weight`.
MAX_SEARCH_WORK = 600


@dataclass(frozen=True, slots=True)
class EstimateCache:
    """Makes each estimate, and resolves each section of a request, once."""

    context: AppContext
    _estimates: dict[Key, EstimateAnswer] = field(default_factory=dict)
    _resolved: dict[Key, tuple[ResolvedRun, AssumptionLog]] = field(default_factory=dict)
    _parts: dict[tuple[Hashable, Key], tuple[Any, AssumptionLog]] = field(default_factory=dict)
    _searches: dict[tuple[Model, Training, Cluster], int] = field(default_factory=dict)

    def estimate(self, request: Request) -> EstimateAnswer:
        """The estimate of a run's whole request. Raises DomainErrors, with pointers into it."""
        key = _key(request, request)
        if key not in self._estimates:
            self._estimates[key] = estimate_run(*self._resolve(request))
        return self._estimates[key]

    def run(self, request: Request) -> Run:
        """The resolved run of a request that was estimated."""
        return self._resolve(request)[0].run

    def search_ahead(self, requests: Iterable[Request]) -> None:
        """Search the layouts of several requests in one pass; of what is wrong with a request its own estimate tells."""
        questions = []
        for request in requests:
            try:
                resolved, _ = self._resolve(request)
            except DomainError:
                break
            each = [phase.resolved for phase in resolved.phases] or [resolved]
            questions += [(part.run.model, part.run.training, part.run.cluster, part.utilisation) for part in each]
        search_ahead(questions)

    def _resolve(self, request: Request) -> tuple[ResolvedRun, AssumptionLog]:
        """The run of a request, and what was assumed of it. Raises DomainErrors, with pointers into it."""
        key = _key(request, request)
        if key not in self._resolved:
            notes = AssumptionLog()
            resolved = resolve(self.context, request, notes) if has_phases(request) else self._resolve_by_part(request, notes)
            for part in [phase.resolved for phase in resolved.phases] or [resolved]:
                self._count_search(part.run)
            self._resolved[key] = resolved, notes
        return self._resolved[key]

    def _resolve_by_part(self, request: Request, notes: AssumptionLog) -> ResolvedRun:
        sections = _machine_sections(request)
        machine = self._part(("machine",), request, sections, lambda log: resolve_machine(self.context, request, log), notes)
        run = self._resolve_run(request, machine, notes)
        return ResolvedRun(request, run, machine, resolve_utilisation(self.context, run, notes), self.context.lessons_reference())

    def _resolve_run(self, request: Request, machine: Machine, notes: AssumptionLog) -> Run:
        """The run of a request, as `resolve` assembles it."""
        cluster, price = machine.cluster, machine.price
        model, training = self._part(
            ("trained", cluster), request, TRAINING_SECTIONS, lambda log: trained_model(self.context, request, machine, log), notes
        )
        data = resolve_data(request["data"], model, training.seq_len, notes)
        others, year = [name for name in request if name not in ("model", "data", "training")], training.software_year
        accelerator = cluster.accelerator
        settings = self._part(
            ("settings", year, price),
            request,
            others,
            lambda log: resolve_settings(self.context, request, accelerator, price, year, log),
            notes,
        )
        return Run(model=model, data=data, training=training, cluster=cluster, **settings)

    def _part(
        self, name: Hashable, request: Request, sections: Iterable[str], resolve: Callable[[AssumptionLog], Part], notes: AssumptionLog
    ) -> Part:
        """A part that depends on some sections of a request, and on what its name holds; its assumptions are added to `notes`."""
        key = name, _key(request, sections)
        if key not in self._parts:
            log = AssumptionLog()
            self._parts[key] = resolve(log), log
        part, log = self._parts[key]
        notes.add(log)
        return part  # type: ignore[no-any-return]

    def _count_search(self, run: Run) -> None:
        """Raises InvalidRequest where the layout searches of all runs are more work than one program may cost."""
        key = (run.model, run.training, run.cluster)
        if key in self._searches:
            return
        weight = search_weight(run.model)
        if sum(self._searches.values()) + weight > MAX_SEARCH_WORK:
            raise InvalidRequest(
                f"the layout search for {len(self._searches) + 1} combinations of model, training and machine needs more than the"
                f" {MAX_SEARCH_WORK} units of work that a program may use (a dense model needs 2; a mixture of experts needs 1, plus 1 for"
                " each divisor of its number of experts): let runs share a shape, or plan the program in parts",
                "/model",
            )
        self._searches[key] = weight


def shared_estimates(context: AppContext) -> EstimateCache:
    """An estimate cache that reads the user's measurements once for all runs."""
    return EstimateCache(replace(context, measurements=functools.cache(context.measurements)))


def _machine_sections(request: Request) -> list[str]:
    """The sections that decide the machine with its price: the run's length only where the price is that of a term."""
    by_hour = (request.get("price", {}).get("pricing") or DEFAULT_PRICING) in BY_THE_HOUR
    return [name for name in request if not (name == "data" and by_hour)]


def _key(request: Request, sections: Iterable[str]) -> Key:
    """Text of some sections, equal only for equal sections; the order of their fields counts."""
    return tuple(f"{name}={request.get(name)!r}" for name in sections)
