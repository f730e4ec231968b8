"""Who comes in, and who sees what: every route, by every kind of key. A new route that the tables here do not know fails these tests."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from flask import Flask

from service import create_app
from service.api.http import openapi
from service.api.http.auth import PREFIX
from service.api.resources.prices.price_files import EXAMPLE as PRICE_FILE_EXAMPLE
from service.api.resources.results.results import EXAMPLE as RESULT_EXAMPLE
from service.api.resources.scenarios import EXAMPLE as SCENARIO_EXAMPLE
from service.api.resources.tracking.alerts import RULE_EXAMPLE
from service.config import Settings, load_settings
from service.domain.errors import StoreUnavailable
from service.domain.teams import SCOPES
from service.usecases import keys
from service.usecases.audit import check_trail
from service.usecases.keys import hash_secret, make_key
from tests.contract.doors import House, house, is_problem, key_id, secret, shown

OPEN_PATHS = {
    "/.well-known/jwks.json",
    "/docs",
    "/docs/assets/<name>",
    "/docs/examples/<name>",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/r/<result_id>",
    "/readyz",
    "/slack/commands",
    "/slack/interactions",
    "/slack/range.png",
}
CALCULATIONS = {
    "/v1/approaches",
    "/v1/compare",
    "/v1/estimate",
    "/v1/estimate/batch",
    "/v1/estimate/inverse",
    "/v1/estimate/program",
    "/v1/estimate/program/difference",
    "/v1/loss-curves/extrapolate",
    "/v1/optimal",
    "/v1/portfolio",
    "/v1/reprice",
    "/v1/scaling-laws/fit",
    "/v1/ask",
    "/v1/buy-or-rent",
    "/v1/serving",
}
"""POSTs that change nothing, so that `read` is enough."""
SHARED = {"/v1/providers/<name>": "aws", "/v1/providers/<name>/refresh": "aws"}
"""Addresses with a name in them that are the same for all teams, and such a name."""
EVENT = {"id": "e1", "type": "note", "at": "2026-11-21T00:00:00Z", "text": "ours alone"}
QUOTE = PRICE_FILE_EXAMPLE | {"confirm": True, "sha256": hashlib.sha256(base64.b64decode(PRICE_FILE_EXAMPLE["content_base64"])).hexdigest()}
BODIES: Mapping[tuple[str, str], Any] = {
    ("POST", "/v1/track/programs"): {"name": "a program"},
    ("PATCH", "/v1/track/programs/<program_id>"): {"budget_usd": 1},
    ("POST", "/v1/track/programs/<program_id>/runs"): {"name": "another"},
    ("PATCH", "/v1/track/runs/<run_id>"): {"name": "renamed"},
    ("POST", "/v1/track/runs/<run_id>/events"): {"events": [EVENT]},
    ("POST", "/v1/track/imports"): b"JobID|JobName|State\n",
    ("DELETE", "/v1/track/imports/<import_id>"): None,
    ("POST", "/v1/track/programs/<program_id>/alert-rules"): RULE_EXAMPLE,
    ("DELETE", "/v1/track/alert-rules/<rule_id>"): None,
    ("POST", "/v1/track/alert-rules/<rule_id>/test"): None,
    ("POST", "/v1/scenarios"): SCENARIO_EXAMPLE,
    ("DELETE", "/v1/scenarios/<scenario_id>"): None,
    ("POST", "/v1/price-files"): QUOTE,
    ("DELETE", "/v1/price-files/<price_file>"): None,
    ("POST", "/v1/results"): RESULT_EXAMPLE,
    ("DELETE", "/v1/results/<result_id>"): None,
    ("POST", "/v1/results/<result_id>/links"): {},
    ("DELETE", "/v1/results/<result_id>/links/<link_id>"): None,
}
"""A good body for every address that changes what a team has: else a test of it would only try the schema."""
QUERIES: Mapping[str, str] = {
    "/v1/track/imports": "?kind=sacct&run=<run_id>",
    "/v1/track/programs/<program_id>/status": "?as_of=2026-11-21T00:00:00Z",
    "/v1/track/programs/<program_id>/report": "?as_of=2026-11-21T00:00:00Z",
}
"""Query parameters that an address cannot do without, that name what one team has, or that keep the clock out of its answer."""
EVERY_VERSION = {"If-Match": "*"}
"""For changes, which say what they change."""


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with all kinds of keys, and no hurry."""
    folder = tmp_path_factory.mktemp("teams")
    env = {"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1", "OUTLAY_RATE_LIMIT": "1000000/hour"}
    with house(load_settings(env)) as made:
        yield made


@pytest.fixture(scope="module")
def ids(doors: House) -> Mapping[str, str]:
    """What our team has for all tests."""
    return own_ids(doors)


def own_ids(doors: House) -> Mapping[str, str]:
    """What our team has, by the name that addresses give it; a new kind of thing must be made here."""
    program = made(doors, "/v1/track/programs", {"name": "ours"})
    run = made(doors, f"/v1/track/programs/{program}/runs", {"name": "ours"})
    told = doors.ask("ours", "POST", f"/v1/track/runs/{run}/events", json={"events": [EVENT]})
    assert told.get_json()["accepted"] == 1
    rule = made(doors, f"/v1/track/programs/{program}/alert-rules", RULE_EXAMPLE)
    asked = doors.ask("ours", "POST", "/v1/scenarios", json=SCENARIO_EXAMPLE)
    over = doors.ask("ours", "DELETE", asked.headers["Location"])  # so that its stream ends at once
    assert over.status_code == 202, over.text
    query = f"kind=sacct&run={run}&basis=billed"
    taken = doors.ask("ours", "POST", f"/v1/track/imports?{query}", data=uuid.uuid4().hex, headers={"Prefer": "respond-async"})
    assert doors.ask("ours", "DELETE", taken.headers["Location"]).status_code == 202
    result = made(doors, "/v1/results", RESULT_EXAMPLE)
    link = made(doors, f"/v1/results/{result}/links", {})
    there = {"program_id": program, "run_id": run, "rule_id": rule, "scenario_id": over.get_json()["id"]}
    there["import_id"] = taken.get_json()["id"]
    quote = doors.ask("ours", "POST", "/v1/price-files", json=QUOTE | {"name": str(uuid.uuid4())})
    assert quote.status_code == 201, quote.text
    return there | {"result_id": result, "link_id": link, "price_file": quote.get_json()["name"]}


def made(doors: House, path: str, body: Any) -> str:
    """The id of what our team makes."""
    answer = doors.ask("ours", "POST", path, json=body)
    assert answer.status_code == 201, answer.text
    found: str = answer.get_json()["id"]
    return found


def routes(app: Flask) -> list[tuple[str, str]]:
    """Method and rule of everything that needs a key; pages take sessions (tests/contract/web)."""
    return [
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.rule not in OPEN_PATHS and not rule.endpoint.startswith("web.")
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def arguments(rule: str) -> list[str]:
    """The names of the variable parts of a rule and of its query."""
    return re.findall(r"<(?:[a-z]+:)?([a-z_]+)>", rule + QUERIES.get(rule, ""))


def owned(app: Flask) -> list[tuple[str, str]]:
    """Method and rule of everything that addresses what one team has."""
    return [(method, rule) for method, rule in routes(app) if arguments(rule) and rule not in SHARED]


def address(rule: str, ids: Mapping[str, str]) -> str:
    """The rule with these ids in it."""
    found = rule + QUERIES.get(rule, "")
    for name in arguments(rule):
        assert rule in SHARED or name in ids, f"{rule}: teach the fixture `ids` to make a {name}, or add the rule to SHARED"
        found = re.sub(rf"<(?:[a-z]+:)?{name}>", SHARED.get(rule) or ids[name], found)
    return found


def knock(doors: House, key: str | None, method: str, rule: str, ids: Mapping[str, str]) -> Any:
    """The answer to a good request there."""
    body = BODIES.get((method, rule))
    sent = {"data": body} if isinstance(body, bytes) else {"json": body}
    return doors.ask(key, method, address(rule, ids), **sent, headers={} if method == "GET" else EVERY_VERSION)


def unknown(ids: Mapping[str, str]) -> Mapping[str, str]:
    """Ids of the same form that nobody has."""
    return {name: str(uuid.uuid4()) for name in ids}


def state(doors: House, ids: Mapping[str, str]) -> list[str]:
    """Everything our team can read of what it has."""
    answers = [knock(doors, "ours", "GET", rule, ids) for method, rule in owned(doors.app) if method == "GET"]
    assert {answer.status_code for answer in answers} == {200}
    return [answer.get_data(as_text=True) for answer in answers]


class TestEveryRoute:
    def test_what_is_open_is_listed(self, doors: House) -> None:
        """All else lies under the prefix that the door watches, or is a page."""
        rules = {rule.rule for rule in doors.app.url_map.iter_rules() if not rule.endpoint.startswith("web.")}
        assert {rule for rule in rules if not rule.startswith(PREFIX)} == OPEN_PATHS

    def test_what_changes_something_says_what_it_needs(self, doors: House) -> None:
        """A route that changes what a team has is not open to those who may read; calculations are listed."""
        unmarked = {
            (method, rule)
            for method, rule in routes(doors.app)
            if method != "GET" and rule not in CALCULATIONS and needed(doors.app, method, rule) == "read"
        }
        assert unmarked == set()
        assert {rule for _, rule in routes(doors.app)} >= CALCULATIONS

    def test_every_change_of_what_a_team_has_is_tried(self, doors: House) -> None:
        """The table of bodies knows them all, and each body is good."""
        changes = {(method, rule) for method, rule in routes(doors.app) if method != "GET" and rule not in CALCULATIONS | set(SHARED)}
        assert changes == set(BODIES)

    @pytest.mark.parametrize("key", [None, "revoked", "expired"])
    def test_nobody_comes_in_without_a_good_key(self, doors: House, ids: Mapping[str, str], key: str | None) -> None:
        """401 everywhere, whether what is asked for exists or not, and nothing is changed."""
        before = state(doors, ids)
        for method, rule in routes(doors.app):
            for asked in (ids, unknown(ids)):
                answer = knock(doors, key, method, rule, asked)
                assert is_problem(answer, 401)["type"] == "/problems/unauthorized", (method, rule)
                assert answer.headers["WWW-Authenticate"] == ("Bearer" if key is None else 'Bearer error="invalid_token"')
        assert state(doors, ids) == before

    @pytest.mark.parametrize("missing", SCOPES)
    def test_every_route_takes_the_scope_it_documents(self, doors: House, ids: Mapping[str, str], missing: str) -> None:
        """A key with all scopes but that one gets a 403 that names it; of what is not there, no more than a reader learns."""
        before = state(doors, ids)
        for method, rule in routes(doors.app):
            if needed(doors.app, method, rule) == missing:
                answer = knock(doors, f"we may all but {missing}", method, rule, ids)
                is_problem(answer, 403)
                assert answer.headers["WWW-Authenticate"] == f'Bearer error="insufficient_scope", scope="{missing}"', (method, rule)
                elsewhere = knock(doors, f"we may all but {missing}", method, rule, unknown(ids))
                assert elsewhere.status_code in ((403, 404) if (method, rule) in owned(doors.app) else (403,)), (method, rule)
        assert state(doors, ids) == before

    @pytest.mark.parametrize("key", ["theirs", "they may read"])
    def test_another_teams_things_are_as_unknown_as_none(self, doors: House, ids: Mapping[str, str], key: str) -> None:
        """The same answer to the last character as for an id that nobody has, and nothing is changed."""
        before = state(doors, ids)
        tried = owned(doors.app)
        assert tried
        for method, rule in tried:
            nobodys = unknown(ids)
            answer = knock(doors, key, method, rule, ids)
            known, nothing = shown(answer, *ids.values()), shown(knock(doors, key, method, rule, nobodys), *nobodys.values())
            assert known == nothing, (method, rule)
            may = key == "theirs" or needed(doors.app, method, rule) == "read"
            assert known[0] in ((404,) if may else (403, 404)), (method, rule)
        assert state(doors, ids) == before

    def test_lists_hold_what_the_team_has(self, doors: House, ids: Mapping[str, str]) -> None:
        """Nothing of ours in any list of theirs."""
        for method, rule in routes(doors.app):
            if method == "GET" and not arguments(rule):
                text = doors.ask("theirs", "GET", address(rule, ids)).get_data(as_text=True)
                assert not [found for found in ids.values() if found in text], rule

    def test_our_own_things_are_there_for_us(self, doors: House, ids: Mapping[str, str]) -> None:
        """The matrix would prove nothing if nobody got anything."""
        for method, rule in owned(doors.app):
            if method == "GET":
                assert knock(doors, "we may read", method, rule, ids).status_code == 200, rule


@cache
def specified_paths(app: Flask) -> dict[str, Any]:
    """The operations of each path; making the specification takes longer than asking a route."""
    paths: dict[str, Any] = openapi.document(app)["paths"]
    return paths


def needed(app: Flask, method: str, rule: str) -> str:
    """The scope that the specification states."""
    path = re.sub(r"<(?:[a-z]+:)?([a-z_]+)>", r"{\1}", rule)
    (requirement,) = specified_paths(app)[path][method.lower()]["security"]
    (scope,) = requirement["apiKey"]
    return str(scope)


LOGGED_ELSEWHERE = {"/v1/track/runs/<run_id>/events", "/v1/track/imports", "/v1/track/imports/<import_id>"}
"""Tracked events are a log of their own."""
FROM = "192.0.2.7"


class TestTheAuditTrail:
    def test_every_change_has_an_entry(self, doors: House) -> None:
        """By key, address and request id; calculations and events leave none. A new route that changes something needs its entry."""
        ids = dict(own_ids(doors))
        for number, (method, rule) in enumerate(sorted(BODIES, key=lambda entry: (entry[0] == "DELETE", -len(entry[1])))):
            body = BODIES[method, rule]
            sent = {"data": body} if isinstance(body, bytes) else {"json": body}
            asked = {**EVERY_VERSION, "X-Request-Id": f"audit-{number}"}
            before = newest(doors)
            answer = doors.ask("ours", method, address(rule, ids), **sent, headers=asked, environ_base={"REMOTE_ADDR": FROM})
            assert answer.status_code < 300 or rule in LOGGED_ELSEWHERE, (rule, answer.text)
            if rule == "/v1/scenarios":
                ids["scenario_id"] = answer.get_json()["id"]  # one that can still be cancelled
            after = newest(doors)
            assert after["number"] - before["number"] == (rule not in LOGGED_ELSEWHERE), (method, rule)
            if rule not in LOGGED_ELSEWHERE:
                found = {name: after[name] for name in ("via", "key", "address", "request")}
                key = key_id(doors.tokens["ours"])
                assert found == {"via": "http", "key": key, "address": FROM, "request": asked["X-Request-Id"]}

    def test_it_is_the_teams_own_and_for_admins(self, doors: House, ids: Mapping[str, str]) -> None:
        """Pages go back to the key that began it; another team's shows nothing of it."""
        pages, cursor = [], ""
        while True:
            page = doors.ask("ours", "GET", f"/v1/audit?limit=7{cursor}").get_json()
            pages += page["items"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert [entry["number"] for entry in pages] == list(range(len(pages), 0, -1))
        assert check_trail(pages) == len(pages)
        assert {entry["object"] for entry in pages} >= {ids["program_id"], ids["run_id"], key_id(doors.tokens["ours"])}
        assert ids["run_id"] not in doors.ask("theirs", "GET", "/v1/audit").text
        one = doors.ask("ours", "GET", f"/v1/audit?object={ids['run_id']}&operation=run.create").get_json()["items"]
        assert [entry["object"] for entry in one] == [ids["run_id"]]


def newest(doors: House) -> Mapping[str, Any]:
    """The newest entry of our trail."""
    (entry,) = doors.ask("ours", "GET", "/v1/audit?limit=1").get_json()["items"]
    found: Mapping[str, Any] = entry
    return found


class TestSecrets:
    def test_no_answer_shows_a_secret_again(self, doors: House, ids: Mapping[str, str]) -> None:
        """Not to their own team either: secrets of webhooks, paths of their addresses, tokens of links, keys, digests."""
        webhook = {"webhook": "https://example.com/path-of-ours", "secret": f"whsec_{base64.b64encode(b'o' * 32).decode()}"}
        rule = {"kind": "budget", "shares": [0.5], "targets": [webhook]}
        made = doors.ask("ours", "POST", address("/v1/track/programs/<program_id>/alert-rules", ids), json=rule)
        assert made.get_json()["targets"][0]["secret"] == webhook["secret"]
        opened = doors.ask("ours", "POST", address("/v1/results/<result_id>/links", ids), json={}).get_json()["url"]
        hidden = [webhook["secret"], "path-of-ours", opened.partition("?token=")[2], *map(secret, doors.tokens.values())]
        hidden += [hash_secret(secret(token)) for token in doors.tokens.values()]
        asked = {**ids, "rule_id": made.get_json()["id"]}
        for method, rule_of in routes(doors.app):
            if method == "GET":
                shown_now = doors.ask("ours", "GET", address(rule_of, asked)).text
                assert not [place for place, text in enumerate(hidden) if text in shown_now], rule_of


class TestPagesOfResults:
    def test_only_its_team_opens_one_by_a_key(self, doors: House, ids: Mapping[str, str]) -> None:
        """To others it is as unknown as none; without a key nothing is told of it, nor with one that may not read."""
        page, none = f"/r/{ids['result_id']}", uuid.uuid4()
        assert doors.ask("we may read", "GET", page).status_code == 200
        theirs = doors.ask("theirs", "GET", page)
        assert shown(theirs, ids["result_id"]) == shown(doors.ask("theirs", "GET", f"/r/{none}"), str(none))
        assert is_problem(theirs, 404)
        is_problem(doors.ask("we may all but read", "GET", page), 403)
        for key in (None, "revoked", "expired"):
            for address in (page, f"/r/{none}"):
                is_problem(doors.ask(key, "GET", address), 401)

    def test_a_link_opens_it_to_everybody_and_nothing_else(self, doors: House, ids: Mapping[str, str]) -> None:
        """No key is needed; the token is none, and what is shown names nothing else of the team."""
        address = doors.ask("ours", "POST", f"/v1/results/{ids['result_id']}/links", json={}).get_json()["url"]
        token = address.partition("?token=")[2]
        for key in (None, "theirs", "revoked"):
            assert doors.ask(key, "GET", address).status_code == 200
        is_problem(doors.ask(None, "GET", f"/v1/results/{ids['result_id']}?token={token}"), 401)
        is_problem(doors.app.test_client().get("/v1/results", headers={"Authorization": f"Bearer {token}"}), 401)
        seen = doors.ask(None, "GET", address).text + doors.ask(None, "GET", f"{address}&format=json").text
        assert not [name for name, found in ids.items() if name != "result_id" and found in seen]


class TestTheSpecification:
    def test_every_operation_behind_the_door_says_so(self, doors: House) -> None:
        """With the problems that come of it; what is open says nothing of keys."""
        document = openapi.document(doors.app)
        assert document["components"]["securitySchemes"]["apiKey"]["scheme"] == "bearer"
        for path, methods in document["paths"].items():
            for operation in (methods[method] for method in methods if method != "parameters"):
                keyed = path.startswith(PREFIX)
                assert bool(operation.get("security")) == keyed, path
                assert ({"401", "403", "429"} <= set(operation["responses"])) == keyed, path

    def test_own_parameters_stand_beside_the_others(self, doors: House) -> None:
        """A view that documents a header of its own keeps that of the request id."""
        operation = openapi.document(doors.app)["paths"]["/v1/track/programs"]["post"]
        named = {entry.get("name") or entry["$ref"].rpartition("/")[2] for entry in operation["parameters"]}
        assert named == {"Idempotency-Key", "X_REQUEST_ID"}


class TestWithoutKeys:
    def test_everybody_is_the_default_team(self, settings: Settings) -> None:
        """Any header is as good as none, no limit is told; the first key, of the same team, finds what was there before."""
        settings.data_dir.mkdir()
        app = create_app(settings)
        context = app.extensions["context"]
        context.store.migrate()
        answer = app.test_client().get("/v1/track/programs", headers={"Authorization": "Bearer anything"})
        assert (answer.status_code, "RateLimit" in answer.headers, "RateLimit-Policy" in answer.headers) == (200, False, False)
        program = app.test_client().post("/v1/track/programs", json={"name": "early"}).get_json()["id"]
        token = make_key(context, "default", "first", ["read"], "1h")[1]
        later = create_app(settings)
        assert later.test_client().get("/v1/track/programs").status_code == 401
        found = later.test_client().get(f"/v1/track/programs/{program}", headers={"Authorization": f"Bearer {token}"})
        assert found.get_json()["id"] == program

    def test_calculations_need_no_database(self, settings: Settings) -> None:
        """Where none was ever made there are no keys, and asking makes none."""
        assert create_app(settings).test_client().get("/v1/models?limit=1").status_code == 200
        assert not settings.data_dir.exists()

    def test_a_database_that_cannot_say_whether_there_are_keys_lets_nobody_in(self, settings: Settings) -> None:
        """503, not an open door; and the next request asks again."""
        app = create_app(settings)
        context = app.extensions["context"]
        context.store.any_key = away
        for _ in range(2):
            is_problem(app.test_client().get("/v1/models?limit=1"), 503)
        del context.store.any_key
        assert app.test_client().get("/v1/models?limit=1").status_code == 200


def away(*_: object) -> Any:
    """A database out of reach."""
    raise StoreUnavailable("out of reach")


class TestTokens:
    @pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
    def test_the_scheme_is_taken_in_any_case(self, doors: House, scheme: str) -> None:
        """As RFC 9110 has it."""
        token = doors.tokens["ours"]
        assert doors.app.test_client().get("/v1/models?limit=1", headers={"Authorization": f"{scheme} {token}"}).status_code == 200

    def test_no_other_secret_opens_a_keys_door(self, doors: House) -> None:
        """Nor a token cut short, in another case, or with another key's id."""
        token, other = doors.tokens["ours"], doors.tokens["theirs"]
        mixed = f"outlay_{key_id(token)}_{secret(other)}"
        for wrong in (mixed, token[:-1], token + "A", token.swapcase(), token.upper(), secret(token), "", "outlay__", "é"):
            answer = doors.app.test_client().get("/v1/models", environ_overrides={"HTTP_AUTHORIZATION": f"Bearer {wrong}"})
            is_problem(answer, 401)

    def test_other_schemes_are_no_key(self, doors: House) -> None:
        """The answer says which one is."""
        for header in ("Basic b3VyczpvdXJz", doors.tokens["ours"], "Bearer"):
            answer = doors.app.test_client().get("/v1/models", headers={"Authorization": header})
            assert "Bearer" in is_problem(answer, 401)["detail"] + answer.headers["WWW-Authenticate"]

    def test_whoever_has_a_bad_key_is_told_why(self, doors: House) -> None:
        """Its holder alone: with a wrong secret nobody learns that there is such a key."""
        assert "was revoked at" in is_problem(doors.ask("revoked", "GET", "/v1/models"), 401)["detail"]
        assert "expired at" in is_problem(doors.ask("expired", "GET", "/v1/models"), 401)["detail"]
        wrong = f"outlay_{key_id(doors.tokens['revoked'])}_{secret(doors.tokens['ours'])}"
        nobodys = f"outlay_{'0' * 16}_{secret(doors.tokens['ours'])}"
        client = doors.app.test_client()
        answers = [client.get("/v1/models", headers={"Authorization": f"Bearer {token}"}) for token in (wrong, nobodys)]
        assert len({shown(answer) for answer in answers}) == 1

    def test_no_secret_is_logged_or_answered(self, doors: House, ids: Mapping[str, str], caplog: pytest.LogCaptureFixture) -> None:
        """Not with a good key, not with a bad one, not when the database fails."""
        caplog.set_level(logging.DEBUG)
        answers = [doors.ask(key, "GET", "/v1/models?limit=1") for key in doors.tokens]
        answers += [doors.ask(key, "POST", "/v1/track/programs", json={"name": 7}) for key in doors.tokens]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(doors.context.store, "find_key", away)
            doors.app.extensions["authenticator"]._find_now.cache_clear()
            doors.app.extensions["authenticator"]._read.clear()
            answers.append(doors.ask("ours", "GET", "/v1/models"))
        assert answers[-1].status_code == 503
        told = caplog.text + json.dumps([record.__dict__ for record in caplog.records], default=repr)
        told += "".join(f"{answer.headers}{answer.get_data(as_text=True)}" for answer in answers)
        assert "models" in told
        assert not [name for name, token in doors.tokens.items() if secret(token) in told]

    def test_the_database_does_not_hold_the_secret(self, doors: House) -> None:
        """In none of its files."""
        secrets = [secret(token).encode() for token in doors.tokens.values()]
        held = b"".join(path.read_bytes() for path in doors.context.settings.data_dir.iterdir() if path.is_file())
        assert key_id(doors.tokens["ours"]).encode() in held
        assert not [found for found in secrets if found in held]


class TestOutages:
    def test_a_known_key_is_not_asked_for_at_every_request(self, settings: Settings) -> None:
        """Within a second what a process knows of it counts, and for half a minute where it cannot be read."""
        with house(replace(settings, rate_limit="600/minute")) as doors:
            ticks = [0.0]
            doors.app.extensions["authenticator"]._ticks = lambda: ticks[0]
            assert doors.ask("ours", "GET", "/v1/models?limit=1").status_code == 200
            doors.context.store.find_key = away  # type: ignore[method-assign]
            assert doors.ask("ours", "GET", "/v1/models?limit=1").status_code == 200
            ticks[0] = keys.OUTAGE_KEY_S
            assert doors.ask("ours", "GET", "/v1/models?limit=1").status_code == 200
            ticks[0] += 1.0
            is_problem(doors.ask("ours", "GET", "/v1/models?limit=1"), 503)
