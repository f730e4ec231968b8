"""`Outlay`: questions to a service, and its lists and jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, Self, TypeVar, cast

from outlay_sdk.connection import TIMEOUT_S, connect
from outlay_sdk.errors import ScenarioFailed, ScenarioRunning
from outlay_sdk.generated.api.ask import ask_question
from outlay_sdk.generated.api.catalogue import list_accelerators, list_models, list_offers
from outlay_sdk.generated.api.comparison import compare_options
from outlay_sdk.generated.api.estimate import estimate_run
from outlay_sdk.generated.api.procurement import compare_buying_renting
from outlay_sdk.generated.api.program import estimate_program
from outlay_sdk.generated.api.results import list_results
from outlay_sdk.generated.api.scaling import find_optimum, fit_law
from outlay_sdk.generated.api.scenarios import get_scenario, list_scenarios, start_scenario
from outlay_sdk.generated.api.serving import plan_serving
from outlay_sdk.generated.api.track import add_events, list_events, list_programs, list_runs, start_program, start_run
from outlay_sdk.generated.api.track_reports import get_program_status
from outlay_sdk.generated.models import (
    Accelerator,
    AppendResult,
    AskAnswer,
    AskRequest,
    BuyOrRent,
    BuyOrRentRequest,
    CompareRequest,
    Comparison,
    EstimateAnswer,
    EstimateRequest,
    Event,
    Events,
    LawFitAnswer,
    LawFitRequest,
    LoggedEvent,
    ModelEntry,
    NewProgram,
    NewRun,
    Offer,
    OptimalAnswer,
    OptimalRequest,
    Problem,
    ProgramAnswer,
    ProgramRequest,
    ProgramStatus,
    ResultEntry,
    Scenario,
    ScenarioEntry,
    ScenarioRequest,
    ServingAnswer,
    ServingRequest,
    SubmittedScenario,
    TrackedProgram,
    TrackedRun,
)
from outlay_sdk.generated.types import UNSET, Unset
from outlay_sdk.notebook import Picture

PAGE = 1000
"""Entries asked for at once, the most that a list answers."""
POLL_S = 2.0
"""Seconds between two looks at a scenario where the service states none."""
OPEN_STATES = ("queued", "running")

Body = Mapping[str, Any]
_Model = TypeVar("_Model")
_Item_co = TypeVar("_Item_co", covariant=True)
_Item = TypeVar("_Item")


class Page(Protocol[_Item_co]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[_Item_co]:
        """Its entries."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins; None at the end."""


class Outlay:
    """A service by its address and an API key, by default those of OUTLAY_SERVER and OUTLAY_API_KEY.

    Requests are mappings, as the HTTP interface takes them, or the generated classes of the same name. Answers are generated classes.
    `connection` is for `outlay_sdk.generated.api`: what this class has no method for. Every method raises OutlayError.
    """

    def __init__(self, server: str | None = None, key: str | None = None, *, timeout_s: float = TIMEOUT_S) -> None:
        self.connection = connect(server, key, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to the service."""
        self.connection.get_httpx_client().close()

    def estimate(self, request: EstimateRequest | Body) -> EstimateAnswer:
        """What one training run takes and costs."""
        return _answer(estimate_run.sync(client=self.connection, body=_body(request)))

    def program(self, request: ProgramRequest | Body) -> ProgramAnswer:
        """The budget and the schedule of a training program."""
        return _answer(estimate_program.sync(client=self.connection, body=_body(request)))

    def compare(self, request: CompareRequest | Body) -> Comparison:
        """Where a run is best made: offers and owned clusters, the best first."""
        return _answer(compare_options.sync(client=self.connection, body=_body(request)))

    def buy_or_rent(self, request: BuyOrRentRequest | Body) -> BuyOrRent:
        """Whether to buy, reserve or rent a fleet."""
        return _answer(compare_buying_renting.sync(client=self.connection, body=_body(request)))

    def optimal(self, request: OptimalRequest | Body) -> OptimalAnswer:
        """The best model and data for a budget."""
        return _answer(find_optimum.sync(client=self.connection, body=_body(request)))

    def fit_law(self, request: LawFitRequest | Body) -> LawFitAnswer:
        """A scaling law of finished runs, and the loss of runs to come."""
        return _answer(fit_law.sync(client=self.connection, body=_body(request)))

    def serving(self, request: ServingRequest | Body) -> ServingAnswer:
        """What it takes to serve a model."""
        return _answer(plan_serving.sync(client=self.connection, body=_body(request)))

    def ask(self, question: str) -> AskAnswer:
        """The answer to a question in words, with what was understood and what was not."""
        return _answer(ask_question.sync(client=self.connection, body=AskRequest(text=question, answer=True)))

    def scenario(self, request: ScenarioRequest | Body, *, timeout_s: float = 3600.0) -> Scenario:
        """Start a scenario and wait for its result. Raises ScenarioFailed, and ScenarioRunning after `timeout_s`."""
        return self.wait(self.start_scenario(request).id, timeout_s=timeout_s)

    def start_scenario(self, request: ScenarioRequest | Body) -> SubmittedScenario:
        """Start a scenario, which a worker of the service evaluates."""
        return _answer(start_scenario.sync(client=self.connection, body=_body(request)))

    def wait(self, scenario_id: str, *, timeout_s: float = 3600.0) -> Scenario:
        """The scenario when it has succeeded. Raises ScenarioFailed, and ScenarioRunning after `timeout_s`."""
        begun = time.monotonic()
        while True:
            response = get_scenario.sync_detailed(scenario_id, client=self.connection)
            found = _answer(response.parsed)
            if found.state == "succeeded":
                return found
            if found.state not in OPEN_STATES:
                raise ScenarioFailed(found)
            pause_s = float(response.headers.get("Retry-After", POLL_S))
            if time.monotonic() + pause_s > begun + timeout_s:
                raise ScenarioRunning(found, time.monotonic() - begun)
            time.sleep(pause_s)

    def start_program(self, request: NewProgram | Body) -> TrackedProgram:
        """Start to track a program."""
        return _answer(start_program.sync(client=self.connection, body=_body(request)))

    def start_run(self, program_id: str, request: NewRun | Body) -> TrackedRun:
        """Start to track a run of a program."""
        return _answer(start_run.sync(program_id, client=self.connection, body=_body(request)))

    def add_events(self, run_id: str, events: Sequence[Event | Body]) -> AppendResult:
        """Add at most 1,000 events to a run; each counts once by its id."""
        entries = [event.to_dict() if isinstance(event, Event) else event for event in events]
        body: Events = _body({"events": entries})
        return _answer(add_events.sync(run_id, client=self.connection, body=body))

    def program_status(self, program_id: str, *, as_of: datetime | None = None) -> ProgramStatus:
        """Spend, forecast and health of a tracked program, now or at an earlier time."""
        return _answer(get_program_status.sync(program_id, client=self.connection, as_of=as_of or UNSET))

    def picture(self, address: str, fields: Body | None = None) -> Picture:
        """A chart of the service's pages by its address, such as /buy-or-rent/curves.svg; `fields`: the request that the page asks."""
        return Picture(self.connection.get_httpx_client().get(address, params=dict(_dotted(fields or {}))).text)

    def programs(self) -> Iterator[TrackedProgram]:
        """Tracked programs of the key's team."""
        return self.items(lambda cursor: _answer(list_programs.sync(client=self.connection, limit=PAGE, cursor=cursor)))

    def runs(self, program_id: str) -> Iterator[TrackedRun]:
        """Runs of a tracked program."""
        return self.items(lambda cursor: _answer(list_runs.sync(program_id, client=self.connection, limit=PAGE, cursor=cursor)))

    def events(self, run_id: str) -> Iterator[LoggedEvent]:
        """Events of a run, in the order in which they came."""
        return self.items(lambda cursor: _answer(list_events.sync(run_id, client=self.connection, limit=PAGE, cursor=cursor)))

    def scenarios(self) -> Iterator[ScenarioEntry]:
        """Scenarios of the key's team."""
        return self.items(lambda cursor: _answer(list_scenarios.sync(client=self.connection, limit=PAGE, cursor=cursor)))

    def results(self) -> Iterator[ResultEntry]:
        """Kept results of the key's team."""
        return self.items(lambda cursor: _answer(list_results.sync(client=self.connection, limit=PAGE, cursor=cursor)))

    def offers(self, accelerator: str | None = None) -> Iterator[Offer]:
        """Known prices, of one accelerator or of all."""
        wanted = accelerator or UNSET
        return self.items(lambda cursor: _answer(list_offers.sync(client=self.connection, limit=PAGE, cursor=cursor, accelerator=wanted)))

    def accelerators(self) -> Iterator[Accelerator]:
        """Known accelerators."""
        return self.items(lambda cursor: _answer(list_accelerators.sync(client=self.connection, limit=PAGE, cursor=cursor)))

    def models(self) -> Iterator[ModelEntry]:
        """Known models."""
        return self.items(lambda cursor: _answer(list_models.sync(client=self.connection, limit=PAGE, cursor=cursor)))

    @staticmethod
    def items(page: Callable[[str | Unset], Page[_Item]]) -> Iterator[_Item]:
        """The entries of all pages of a list; `page` asks for the one at a cursor."""
        cursor: str | Unset | None = UNSET
        while cursor is not None:
            found = page(cursor)
            yield from found.items
            cursor = found.next_cursor


class _Sent(dict[str, Any]):
    """A request as the caller wrote it: a misspelt field reaches the service, which names it."""

    def to_dict(self) -> dict[str, Any]:
        """The request."""
        return dict(self)


def _dotted(part: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """A request as the fields of a page: `demand.count`, `own.0.name`; values of a list with commas, and `none` for an empty one."""
    if isinstance(part, Mapping):
        entries = [(str(below), value) for below, value in part.items()]
    elif isinstance(part, Sequence) and any(isinstance(entry, Mapping) for entry in part):
        entries = [(str(place), entry) for place, entry in enumerate(part)]
    else:
        yield name, str(part) if isinstance(part, str) or not isinstance(part, Sequence) else ", ".join(map(str, part)) or "none"
        return
    for below, value in entries:
        yield from _dotted(value, f"{name}.{below}" if name else below)


def _body(request: _Model | Body) -> _Model:
    """The request in the form that the generated operations take."""
    return cast(_Model, _Sent(request)) if isinstance(request, Mapping) else request


def _answer(found: _Model | Problem | None) -> _Model:
    """The answer; errors were raised by the connection before."""
    if found is None or isinstance(found, Problem):
        raise TypeError("an error that the connection did not raise")
    return found
