"""/: ask in words, what was asked lately, what is tracked, and how fresh the prices are."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import Response, request

from service.api.http.auth import principal, spend, team_context
from service.api.http.budgets import uses
from service.domain.ask import EXAMPLES
from service.domain.errors import InvalidRequest
from service.domain.results import ResultFilter
from service.schemas.ask import LONGEST_QUESTION, ask_body
from service.usecases.ask.completion import completed
from service.usecases.prices.providers import count_fresh, list_providers
from service.usecases.results.keep import list_results
from service.usecases.tracking.programs import list_programs
from service.web.assumptions import assumptions_of
from service.web.blueprint import blueprint
from service.web.form_address import form_address
from service.web.pages.compare import summary_parts
from service.web.program_standing import standings
from service.web.rendering import page, query_string
from service.web.verdicts import chance_verdict

MOST_LISTED = 8
OPENS = {
    "estimate": "Open the whole estimate",
    "compare": "Open the whole comparison",
    "buy_or_rent": "Open the whole verdict",
    "status": "Open the program",
}
"""What the page of an answered question has, by its kind."""


@blueprint.get("/")
@uses("estimates")
def show_home() -> Response:
    """The first page; with `text` the question's answer"""
    text = request.args.get("text", "").strip()[:LONGEST_QUESTION]
    found, error = _ask(text) if text else (None, "")
    content = {"text": text, "found": found, "error": error, "examples": EXAMPLES, "longest": LONGEST_QUESTION}
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
    return page("home.html", status, **content, **({} if text else _overview()), overview=not text)


def _ask(text: str) -> tuple[dict[str, Any] | None, str]:
    """What a question is read as with its answer and the page that takes it, or why nothing of it is understood."""
    spend("estimates", 1)
    try:
        body = ask_body(team_context(), principal(), text, with_answer=True)
    except InvalidRequest as error:
        return None, error.message
    understood = body["understood"]
    opens = OPENS.get(understood["kind"], "") if body["answer"] else "Open it as a form"
    of_run = None if body["figures_only"] else body["answer"]
    chance = _chance(of_run)
    sentence, said = _said(understood["kind"], body)
    more = {
        "sentence": sentence,
        "said": said,
        "opens": opens,
        "doubts": [(entry["question"], _choices(text, entry)) for entry in body["unclear"]],
        "address": _address(understood["kind"], understood["request"]),
        "usd": _usd(of_run),
        "chance": chance,
        "deadline": None if chance is None else chance_verdict(chance),
        "assumed": [(entry.label or entry.section, entry.value, entry.source) for entry in assumptions_of(body["assumptions"])],
        "wrong": _unsaid(body["problem"]),
    }
    return body | more, ""


def _choices(text: str, entry: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Candidates of what is asked back, each with the page of the question that has it, None where it cannot be put in."""
    found = [(candidate, completed(text, entry["text"], candidate)) for candidate in entry["candidates"]]
    return [(candidate, f"/?{query_string({'text': whole})}" if whole else None) for candidate, whole in found]


def _said(kind: str, body: dict[str, Any]) -> tuple[str, list[str]]:
    """The answer in one sentence, and what else a comparison says."""
    if kind == "compare" and body["answer"]:
        return summary_parts(body["answer"])
    return (body["summary"] or {}).get("text", ""), []


def _unsaid(problem: dict[str, Any] | None) -> list[str]:
    """What is wrong that the refusal's sentence does not say already."""
    messages = [entry["message"] for entry in problem["errors"]] if problem else []
    return [message for message in messages if problem and message.rstrip(".") not in problem["detail"]]


def _address(kind: str, asked: dict[str, Any]) -> str | None:
    """The page that takes a question's request, None where there is none."""
    if kind == "status":
        return f"/programs/{asked['id']}" if "id" in asked else None
    return form_address(kind, asked)


def _usd(answer: dict[str, Any] | None) -> dict[str, float] | None:
    """The range of the answer's cost, where it is of one estimate."""
    cost = (answer or {}).get("cost")
    found: dict[str, float] | None = cost.get("total_usd") if isinstance(cost, dict) else None
    return found


def _chance(answer: dict[str, Any] | None) -> float | None:
    """How probable the deadline of an estimate is, where it has one."""
    time = (answer or {}).get("time")
    found: float | None = time.get("deadline_probability") if isinstance(time, dict) else None
    return found


def _overview() -> dict[str, Any]:
    context, who = team_context(), principal()
    providers = list_providers(context)
    fresh, sources = count_fresh(providers)
    return {
        "results": list_results(context, who, ResultFilter(), 0, MOST_LISTED),
        "programs": standings(list_programs(context, who, None, 0, MOST_LISTED)),
        "fresh_sources": fresh,
        "sources": sources,
        "failing": sorted(entry.name for entry in providers if entry.state == "failing"),
        "snapshot": context.book().name,
    }
