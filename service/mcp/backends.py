"""Who answers the tools: this process, or a running service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import quote

from service.mcp.tools import TOOLS, Body

if TYPE_CHECKING:
    from service.context import AppContext
    from service.domain.teams import Principal
    from service.remote.transport import Server

_Found = TypeVar("_Found")
LISTED = 100
"""Kept results that are listed, the newest."""


class ToolError(Exception):
    """Why a tool has no answer; `errors` are entries of pointer and message."""

    def __init__(self, detail: str, errors: list[Body] | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []


class Backend(Protocol):
    """What tools and resources ask. All raise ToolError."""

    def answer(self, tool: str, arguments: Body) -> Body:
        """The answer to a tool's arguments."""

    def accelerators(self) -> list[Body]:
        """All known accelerators."""

    def results(self) -> list[Body]:
        """The newest kept results, without their answers."""

    def result(self, result_id: str) -> Body:
        """A kept result with its answer."""


@dataclass(frozen=True, slots=True)
class RemoteBackend:
    """A running service."""

    server: Server

    def answer(self, tool: str, arguments: Body) -> Body:
        """The answer of the tool's address."""
        if tool == "explain":
            return self.result(str(arguments["result_id"]))
        path = TOOLS[tool].path
        if tool == "program_status":
            address = path.format(program_id=quote(str(arguments["program_id"]), safe=""))
            return self._asked(lambda: self.server.get(address, {"as_of": arguments.get("as_of")}))
        return self._asked(lambda: self.server.post(path, arguments))

    def accelerators(self) -> list[Body]:
        """All pages of the list."""
        return self._asked(lambda: self.server.items("/v1/accelerators"))

    def results(self) -> list[Body]:
        """The first page of the list."""
        found: list[Body] = self._asked(lambda: self.server.get("/v1/results", {"limit": LISTED}))["items"]
        return found

    def result(self, result_id: str) -> Body:
        """The result at its address."""
        return self._asked(lambda: self.server.get(f"/v1/results/{quote(result_id, safe='')}"))

    def _asked(self, ask: Callable[[], _Found]) -> _Found:
        from service.remote.problems import RemoteProblem

        try:
            return ask()
        except RemoteProblem as problem:
            raise ToolError(problem.detail, [dict(error) for error in problem.errors]) from problem


@dataclass(frozen=True, slots=True)
class LocalBackend:
    """This process, on the database of its settings, as the default team."""

    context: AppContext

    def answer(self, tool: str, arguments: Body) -> Body:
        """The answer of the tool's use case."""
        answers: Mapping[str, Callable[[Body], Body]] = {
            "ask": self._ask,
            "program_status": self._status,
            "explain": lambda stated: self.result(str(stated["result_id"])),
        }
        return self._asked(lambda: answers[tool](arguments) if tool in answers else self._question(tool, arguments))

    def accelerators(self) -> list[Body]:
        """Those of the data files."""
        from service.schemas.listings import accelerator_entry
        from service.usecases.prices.known_names import find_accelerators

        return [accelerator_entry(accelerator) for accelerator in find_accelerators({})]

    def results(self) -> list[Body]:
        """Those of the database; none where there is none."""
        from service.domain.results import ResultFilter
        from service.schemas.results.presenters import entry_body
        from service.usecases.results.keep import list_results

        if self.context.store.absent():
            return []
        return self._asked(
            lambda: [entry_body(row) for row in list_results(self.context, self._who(), ResultFilter(None, None), 0, LISTED)]
        )

    def result(self, result_id: str) -> Body:
        """One of the database."""
        from service.schemas.results.presenters import result_body
        from service.usecases.results.keep import find_result

        self._check_present()
        return self._asked(lambda: result_body(find_result(self.context, self._who(), result_id)))

    def _question(self, tool: str, arguments: Body) -> Body:
        from service.schemas.results.kinds import KINDS

        kind = KINDS[str(TOOLS[tool].kind)]
        return kind.answer(self._team_context(), kind.schema.load(arguments))

    def _ask(self, arguments: Body) -> Body:
        from service.schemas.ask import AskRequestSchema, ask_body

        loaded = AskRequestSchema().load(arguments)
        return ask_body(self._team_context(), self._who(), loaded["text"], with_answer=loaded["answer"])

    def _status(self, arguments: Body) -> Body:
        from service.schemas.fields import Moment
        from service.schemas.tracking.presenters import status_body
        from service.usecases.tracking.programs import find_program
        from service.usecases.tracking.status import program_status

        self._check_present()
        as_of = Moment().deserialize(arguments["as_of"]) if "as_of" in arguments else None
        return status_body(program_status(self.context, find_program(self.context, self._who(), str(arguments["program_id"])), as_of))

    def _team_context(self) -> AppContext:
        from service.usecases.resolution.feedback import FeedbackCache, context_for_team

        return context_for_team(self.context, FeedbackCache(self.context.store), self._who())

    def _who(self) -> Principal:
        from service.domain.teams import DEFAULT_TEAM, EVERYBODY, SCOPES, Principal

        return EVERYBODY if self.context.store.absent() else Principal(DEFAULT_TEAM, None, SCOPES, DEFAULT_TEAM)

    def _check_present(self) -> None:
        if self.context.store.absent():
            raise ToolError("nothing is kept or tracked on this machine yet; `outlay mcp --server URL` asks a running service")

    def _asked(self, ask: Callable[[], _Found]) -> _Found:
        from marshmallow import ValidationError

        from service.domain.errors import DomainError, StoreUnavailable
        from service.schemas.base import pointers

        try:
            return ask()
        except ValidationError as error:
            raise ToolError("the arguments cannot be answered", pointers(error.messages)) from error
        except DomainError as error:
            raise ToolError(error.message, [{"pointer": error.pointer, "message": error.message}] if error.pointer else []) from error
        except StoreUnavailable as error:
            raise ToolError(error.public_message) from error
