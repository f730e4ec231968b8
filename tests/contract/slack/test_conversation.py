"""Conversations in Slack: questions, their cards, and what the buttons of a card answer."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import urlsplit

import pytest

from service.api.resources.programs import EXAMPLE as PROGRAM_EXAMPLE
from service.api.resources.serving import EXAMPLE as SERVING_EXAMPLE
from service.config import Settings
from service.context import AppContext
from service.domain.teams import EVERYBODY
from service.job_kinds import JOB_KINDS
from service.runtime.webhooks import Undelivered
from service.usecases.delivery.deliver import deliver_due
from service.usecases.jobs import Worker, run_job
from service.usecases.scenarios.end_messages import RESPONSE_URL_VALID
from service.usecases.scenarios.worker import KIND, maintain_scenarios
from service.usecases.slack.channels import map_channel
from service.usecases.tracking.alerts import evaluate_program
from service.usecases.tracking.programs import find_program
from tests.contract.tracking.tracked_program import PROGRAM, told
from tests.support.slack import Body, Slack, buttons, checked, press_payload, texts

QUESTION = "llama 3 8b, 1T tokens on 512 h100"


def labels(message: dict[str, object]) -> list[str]:
    return [button["text"]["text"] for button in buttons(message)]


def kept_results(slack: Slack) -> int:
    """How many results the team has."""
    return len(slack.client.get("/v1/results?limit=1000").get_json()["items"])


def test_the_conversation_from_an_estimate_to_what_the_channel_sees(slack: Slack) -> None:
    before = kept_results(slack)
    answered = slack.command(QUESTION)
    direct = slack.client.post("/v1/ask", json={"text": QUESTION, "answer": True}).get_json()
    assert answered["response_type"] == "ephemeral"
    assert answered["blocks"][0]["text"]["text"] == f"*{direct['summary']['text']}*"
    assert [field["text"].partition("\n")[0] for field in answered["blocks"][0]["fields"]] == ["*Cost*", "*Finish*", "*Machine*"]
    assert answered["blocks"][0]["fields"][2]["text"] == f"*Machine*\n512 H100-80GB at {direct['answer']['price']['provider']}"
    assert direct["understood"]["echo"] in texts(answered)
    assert f":warning: {direct['answer']['warnings'][0]}" in texts(answered)
    assert labels(answered) == ["Cheaper ways", "Compare", "Open", "Why", "Share"]

    cheaper = slack.press(answered, "Cheaper ways")
    levers = slack.client.post("/v1/estimate", json=direct["understood"]["request"] | {"levers": True}).get_json()["levers"]
    assert levers[0]["title"] in texts(cheaper)
    assert "{" not in texts(cheaper)

    compared = slack.press(answered, "Compare")
    assert compared["blocks"][0]["text"]["text"].startswith("*Cheapest of ")
    assert labels(compared) == ["Open", "Why", "Share"]

    why = texts(slack.press(answered, "Why"))
    assert direct["summary"]["drivers"][0]["effect"] in why
    assert direct["answer"]["price"]["source"] in why

    shared = slack.press(answered, "Share")
    assert shared["response_type"] == "in_channel"
    assert shared["blocks"][0] == answered["blocks"][0]
    assert kept_results(slack) == before + 2
    assert "Shared by <@U2147483697>" in texts(shared)
    assert "Share" not in labels(shared)


def test_a_figure_that_is_asked_for_leads_the_card_and_what_is_shared(slack: Slack) -> None:
    answered = slack.command("what mfu for llama 3 8b on 1T tokens with 512 h100")
    assert answered["blocks"][0]["text"]["text"].startswith("*MFU ")
    assert labels(answered) == ["Cheaper ways", "Compare", "Open", "Why", "Share"]
    assert slack.press(answered, "Share")["blocks"][0] == answered["blocks"][0]


def test_a_figure_alone_has_no_cost_beside_it(slack: Slack) -> None:
    """The number of tokens is not said, and the figure does not depend on it: a cost and its warnings would be of another run."""
    kept = slack.client.get("/v1/results").get_json()["items"]
    answered = slack.command("what mfu for llama 3 8b on 512 h100")
    assert answered["blocks"][0]["text"]["text"].startswith("*MFU ")
    assert "fields" not in answered["blocks"][0]
    assert ":warning:" not in texts(answered)
    assert labels(answered) == ["Why", "Share"]
    assert slack.press(answered, "Share")["blocks"][0] == answered["blocks"][0]
    assert slack.client.get("/v1/results").get_json()["items"] == kept


def test_open_leads_to_the_page_of_the_answer_without_a_key(slack: Slack) -> None:
    answered = slack.command(QUESTION)
    opened = urlsplit(next(button["url"] for button in buttons(answered) if button["text"]["text"] == "Open"))
    page = slack.client.get(f"{opened.path}?{opened.query}")
    assert page.status_code == 200
    assert answered["blocks"][0]["text"]["text"].strip("*").partition(" (")[0] in page.text
    result = opened.path.removeprefix("/r/")
    assert "What moves it most" in texts(slack.command(f"why {result}"))


def test_a_pressed_link_is_acknowledged_and_not_answered(slack: Slack) -> None:
    payload = press_payload("open", None, slack.response_url())
    assert slack.send("/slack/interactions", {"payload": json.dumps(payload)}).data == b""
    assert slack.received == []


def test_the_range_of_a_card_is_a_picture_whose_address_holds_for_a_day(slack: Slack) -> None:
    answered = slack.command(QUESTION)
    image = next(block for block in answered["blocks"] if block["type"] == "image")
    assert image["alt_text"].removeprefix("Cost: ") == answered["blocks"][0]["fields"][0]["text"].removeprefix("*Cost*\n")
    address = urlsplit(image["image_url"])
    drawn = slack.client.get(f"{address.path}?{address.query}")
    assert drawn.content_type == "image/png"
    assert drawn.data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(drawn.data[16:20]) == 600
    assert int.from_bytes(drawn.data[20:24]) == 120
    changed = address.query.replace("usd=1", "usd=9")
    assert slack.client.get(f"{address.path}?{changed}").status_code == 404


def test_a_doubt_is_asked_back_with_a_button_for_each_candidate(slack: Slack) -> None:
    asked = slack.command("lora qwen3, 50M tokens on one a100")
    assert "qwen3: which model" in texts(asked)
    assert "qwen3-8b" in labels(asked)
    answered = slack.press(asked, "qwen3-8b")
    assert answered["blocks"][0]["text"]["text"].startswith("*About $")


def test_words_that_are_not_understood_are_named_beside_the_answer(slack: Slack) -> None:
    assert "someflub: not understood." in texts(slack.command("llama 3 8b, 1T tokens on 512 h100, someflub"))


def test_what_is_missing_is_asked_for(slack: Slack) -> None:
    asked = slack.command("llama 3 8b on 64 h100")
    assert "on how many tokens, such as 15 trillion tokens, published for llama-3-8b?" in texts(asked)
    assert labels(asked) == ["15 trillion tokens", "160 billion tokens"]


def test_every_kind_of_question_has_a_card(slack: Slack) -> None:
    for question, fields in {
        "what can $1M train on 256 h100": ["Cost", "Finish", "Size"],
        "buy 256 h100 at 32k for 3 years use 70% vs $1.89": ["Cost", "Saves", "Choice"],
        "chance llama-3-8b 15T on 512 h100 by 2027-06-30 under $20M": ["Cost", "Finish", "Chance"],
    }.items():
        answered = slack.command(question)
        assert [field["text"].partition("\n")[0].strip("*") for field in answered["blocks"][0]["fields"]] == fields
    priced = slack.command("price h100 in germany")
    assert "an accelerator-hour" in texts(priced)
    shown = [field["text"] for field in priced["blocks"][0]["fields"]]
    assert len(set(shown)) == len(shown) == 3


def test_nothing_understood_is_answered_with_examples(slack: Slack) -> None:
    assert "ask such as: llama 3 70b" in texts(slack.command("qwertz asdf"))


def test_help_is_answered_at_once(slack: Slack) -> None:
    for text in ("", "help", " HELP "):
        response = slack.send("/slack/commands", {"text": text, "team_id": "T0001", "nonce": text})
        assert "watch PROGRAM at 50,80,100%" in texts(response.get_json())
    assert slack.received == []


def test_a_refused_request_says_why(slack: Slack) -> None:
    refused = slack.command("llama 3 405b 1T tokens on 8 h100")
    assert "does not fit" in texts(refused) or "fit" in texts(refused)


def test_commands_about_a_program(slack: Slack) -> None:
    told(slack.client)
    name = PROGRAM["name"]
    status = slack.command(f"status {name}")
    assert "Spent" in texts(status)
    assert labels(status) == ["Report", "Gate", "Why", "Share"]
    reported = texts(slack.command(f"report {name}"))
    assert name in reported
    assert "main: " in reported
    assert "half-spend gate" in texts(slack.command(f"gate {name}"))
    watched = slack.command(f"watch {name} at 50, 80,100%")
    assert "hears when 50 %, 80 %, 100 % of its budget are spent" in texts(watched)
    program = slack.client.get("/v1/track/programs").get_json()["items"][0]
    rules = slack.client.get(f"/v1/track/programs/{program['id']}/alert-rules").get_json()["items"]
    assert [(rule["kind"], rule["shares"]) for rule in rules] == [("budget", [0.5, 0.8, 1.0])]


def test_an_alert_of_a_rule_made_in_slack_is_a_card_whose_buttons_ask_about_the_program(slack: Slack) -> None:
    program = told(slack.client, {"program": "alerted 13B"})
    slack.command("watch alerted 13B at 50%")
    context = slack.app.extensions["context"]
    evaluate_program(context, find_program(context, EVERYBODY, program["id"]))
    posted: list[Body] = []
    deliver_due(context, lambda url, body, headers, *, private: posted.append(json.loads(body)))
    (alert,) = (checked({"response_type": "in_channel"} | message) for message in posted if "alerted 13B" in message["text"])
    assert "50% of the budget is spent" in texts(alert)
    assert "Spent\n$92,700" in texts(alert)
    image = urlsplit(next(block for block in alert["blocks"] if block["type"] == "image")["image_url"])
    assert slack.client.get(f"{image.path}?{image.query}").content_type == "image/png"
    assert "main: " in texts(slack.press(alert, "Report"))
    assert "alerted 13B: the half-spend gate is due" in texts(slack.press(alert, "Gate"))


CHANCE = "chance llama-3-8b 15T on 512 h100 by 2027-06-30 under $20M"


def work(context: AppContext) -> None:
    """What a worker would do, until there is nothing left."""
    maintain_scenarios(context)
    while jobs := context.store.open_jobs(KIND):
        for job in jobs:
            run_job(context, job.id, JOB_KINDS, Worker("tests/1"))


def test_more_trials_are_a_scenario_whose_end_changes_the_message(slack: Slack) -> None:
    context: AppContext = slack.app.extensions["context"]
    asked = slack.command(CHANCE)
    assert labels(asked) == ["More trials", "Why", "Share"]
    running = slack.press(asked, "More trials")
    assert running["replace_original"]
    assert "1,000,000 trials are queued; this message changes" in texts(running)
    looked = slack.press(running, "Progress")
    assert "1,000,000 trials are queued" in texts(looked)
    work(context)
    assert deliver_due(context) == 1
    ended = slack.received[-1]
    assert ended["replace_original"]
    assert [field["text"].partition("\n")[0] for field in ended["blocks"][0]["fields"]] == ["*Cost*", "*Finish*", "*Chance*"]
    assert "1,000,000 trials." in texts(ended)
    assert "I read: the chance" in texts(ended)
    shared = slack.press(ended, "Share")
    assert (shared["response_type"], shared["blocks"][0]) == ("in_channel", ended["blocks"][0])
    assert texts(slack.press(running, "Progress")) == texts(ended)


def test_a_cancelled_scenario_is_told_as_such_and_an_ended_response_url_is_given_up(slack: Slack) -> None:
    context: AppContext = slack.app.extensions["context"]
    for late, attempts in ((RESPONSE_URL_VALID - timedelta(seconds=3), 1), (timedelta(minutes=10), 2)):
        slack.press(slack.command(CHANCE), "More trials")
        scenario = slack.client.get("/v1/scenarios").get_json()["items"][0]
        slack.client.delete(f"/v1/scenarios/{scenario['id']}")
        posted: list[Body] = []

        def post(url: str, body: bytes, headers: object, *, private: bool, posted: list[Body] = posted) -> None:
            posted.append(checked(json.loads(body)))
            raise Undelivered("hooks.slack.com: answered 500")

        at = datetime.fromisoformat(scenario["created_at"]) + late
        for minutes in (0, 10):
            deliver_due(replace(context, clock=lambda at=at, minutes=minutes: at + timedelta(minutes=minutes)), post)
        assert "The trials have ended without a result: cancelled" in texts(posted[0])
        assert len(posted) == attempts


def test_a_channel_that_may_read_alone_starts_no_scenario(slack: Slack) -> None:
    map_channel(slack.app.extensions["context"], "T0001", "C78", "readers", ["read"], None)
    assert labels(slack.command(CHANCE, channel_id="C78")) == ["Why", "Share"]


def test_an_unknown_program_and_a_malformed_watch_say_what_to_write(slack: Slack) -> None:
    assert "Which program?" in texts(slack.command("report"))
    assert "watch PROGRAM at 50,80,100%" in texts(slack.command("watch 7B"))
    assert "There is no result nonsense" in texts(slack.command("why nonsense"))


def test_a_channel_of_no_team_is_told_what_to_do(slack: Slack) -> None:
    told_so = texts(slack.command(QUESTION, team_id="T9", channel_id="C9"))
    assert "outlay slack map --workspace T9 --channel C9 --team TEAM" in told_so


def test_a_channel_that_may_read_alone_keeps_nothing_and_can_still_be_asked_on(slack: Slack) -> None:
    context = slack.app.extensions["context"]
    map_channel(context, "T0001", "C77", "readers", ["read"], None)
    before = len(slack.client.get("/v1/results").get_json()["items"])
    answered = slack.command(QUESTION, channel_id="C77")
    assert labels(answered) == ["Cheaper ways", "Compare", "Why", "Share"]
    assert "may only read" in texts(slack.command("watch 7B at 50%", channel_id="C77"))
    assert len(slack.client.get("/v1/results").get_json()["items"]) == before


def test_entities_are_read_as_they_were_typed(slack: Slack) -> None:
    slack.client.post("/v1/track/programs", json={"name": "R&D <2027>", "budget_usd": 1000})
    assert "R&amp;D &lt;2027&gt;: the half-spend gate" in texts(slack.command("gate R&amp;D &lt;2027&gt;"))


@pytest.mark.parametrize(("kind", "request_body"), [("program", PROGRAM_EXAMPLE), ("serving", SERVING_EXAMPLE)])
def test_why_explains_results_of_every_kind(slack: Slack, kind: str, request_body: Body) -> None:
    kept = slack.client.post("/v1/results", json={"kind": kind, "request": request_body}).get_json()
    assert kept["title"][:60] in texts(slack.command(f"why {kept['id']}")).replace("&lt;", "<").replace("&gt;", ">")


def test_a_name_notifies_nobody(slack: Slack) -> None:
    slack.client.post("/v1/track/programs", json={"name": "<!channel> *& co*", "budget_usd": 1000})
    answered = slack.command("gate <!channel> *& co*")
    assert "<!channel>" not in json.dumps(answered)


def test_the_secret_of_the_app_is_not_shown(slack: Slack) -> None:
    settings: Settings = slack.app.extensions["context"].settings
    assert str(settings.slack_signing_secret) not in repr(settings)
