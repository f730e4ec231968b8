"""`outlay ask`: the answers of POST /v1/ask, readable and whole."""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient

from service.config import Settings
from tests.unit.cli.invoke import output_of, run

pytestmark = pytest.mark.usefixtures("at_noon")
QUESTION = "7B on 1T tokens, 256 h100 at $2 by june"


def test_the_same_answer_comes_through_both_doors(settings: Settings, client: FlaskClient) -> None:
    assert (
        json.loads(output_of(settings, "ask", QUESTION, "--json"))
        == client.post("/v1/ask", json={"text": QUESTION, "answer": True}).get_json()
    )


def test_what_was_read_comes_first_then_the_answer(settings: Settings) -> None:
    lines = output_of(settings, "ask", *QUESTION.split()).splitlines()
    read = "I read: an estimate of 7 billion parameters, 1 trillion tokens, on 256 H100, at $2 per hour, from 2026-11-21, by 2027-06-01."
    assert lines[0] == read
    assert "to meet 1 Jun 2027" in lines[2]


def test_an_answer_without_warnings_is_shown(settings: Settings) -> None:
    lines = output_of(settings, "ask", "price h100 on demand").splitlines()
    assert lines[0] == "I read: the price of H100 on demand."
    assert "an accelerator-hour" in lines[2]


def test_verbose_shows_the_request_and_what_was_assumed(settings: Settings) -> None:
    text = output_of(settings, "ask", "-v", "--no-answer", QUESTION)
    assert "POST /v1/estimate '{" in text
    assert "schedule.start = 2026-11-21: no start is said: today" in text


def test_what_is_in_doubt_is_asked_back(settings: Settings) -> None:
    result = run(settings, "ask", "llama 70b on 1T tokens, 64 h100")
    assert "? 'llama 70b': which model: one of these? (llama-2-70b; " in result.stdout
    assert result.exit_code == 2


def test_a_refusal_is_shown_below_what_was_read(settings: Settings) -> None:
    result = run(settings, "ask", "llama 3.1 405b full fine-tune on 1B tokens on 1 h100")
    assert result.stdout.startswith("I read: an estimate of llama-3.1-405b")
    assert len(result.stdout.splitlines()) > 2
    assert result.exit_code == 1


def test_a_refusal_by_the_schema_names_the_field_and_what_is_wrong_there(settings: Settings) -> None:
    result = run(settings, "ask", "7b 1T 64 h100 lora rank 90000000")
    assert "The request cannot be answered: training.lora_rank: must lie between 1 and 10,000." in result.stdout
    assert result.exit_code == 1


def test_nothing_understood_is_an_error_with_examples(settings: Settings) -> None:
    result = run(settings, "ask", "xyzzy")
    assert result.exit_code == 1
    assert "price h100 spot" in result.output
