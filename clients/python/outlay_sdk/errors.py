"""What can go wrong, as exceptions."""

from __future__ import annotations

import httpx

from outlay_sdk.generated.models import Problem, Scenario


class OutlayError(Exception):
    """The base of all errors of this package."""


class Unreachable(OutlayError):
    """No answer came: the address is wrong, the service is away, or it took longer than the timeout."""


class Refused(OutlayError):
    """The service answered with an error. `problem` is what it says; None where the answer is none of Outlay's."""

    def __init__(self, status: int, problem: Problem | None, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.problem = problem

    @property
    def request_id(self) -> str | None:
        """The id under which the service's log has the request."""
        return self.problem.request_id if self.problem else None


class InvalidRequest(Refused):
    """The request is wrong: `problem.errors` points at each place (400, 422)."""


class NotAllowed(Refused):
    """The key is missing, unknown, or has not the scope (401, 403)."""


class NotFound(Refused):
    """There is no such thing, or it is another team's (404)."""


class Unavailable(Refused):
    """The service takes no requests now, not even after those that were sent again (429, 503)."""


class ScenarioFailed(OutlayError):
    """A scenario ended without a result: `scenario` says why."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(f"scenario {scenario.id} ended as {scenario.state}: {scenario.error or 'no reason is given'}")
        self.scenario = scenario


class ScenarioRunning(OutlayError):
    """A scenario takes longer than was to be waited; it goes on, and `Outlay.wait` waits for it again."""

    def __init__(self, scenario: Scenario, waited_s: float) -> None:
        super().__init__(f"scenario {scenario.id} is {scenario.state} after {waited_s:,.0f} s")
        self.scenario = scenario


KINDS: dict[int, type[Refused]] = {
    400: InvalidRequest,
    422: InvalidRequest,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    429: Unavailable,
    503: Unavailable,
}


def refusal(response: httpx.Response) -> Refused:
    """The exception of an answer whose status is an error."""
    kind = KINDS.get(response.status_code, Refused)
    try:
        problem = Problem.from_dict(response.json())
    except (ValueError, KeyError, TypeError, AttributeError):
        return kind(response.status_code, None, f"{response.status_code} {response.reason_phrase}, which is no answer of Outlay")
    errors = problem.errors or []
    # a single error is told in the detail
    places = [f"{error.pointer or '/'}: {error.message}" for error in errors if len(errors) > 1]
    return kind(response.status_code, problem, "\n".join([f"{problem.status} {problem.title}: {problem.detail}", *places]))
