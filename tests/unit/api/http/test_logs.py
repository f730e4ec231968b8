"""Logs as JSON lines."""

from __future__ import annotations

import json
import logging

import pytest
from flask.testing import FlaskClient
from hypothesis import given
from hypothesis import strategies as st

from service.runtime import logs


def line(record: logging.LogRecord) -> dict[str, object]:
    text = logs.JsonFormatter().format(record)
    assert "\n" not in text
    parsed: dict[str, object] = json.loads(text)
    return parsed


def test_a_record_is_one_line_whatever_it_says() -> None:
    """Line breaks in a message and a traceback stay inside one JSON object."""
    with pytest.raises(RuntimeError) as caught:
        raise RuntimeError("a\nb")
    found = line(logging.LogRecord("x", logging.ERROR, "f", 1, "it\nbroke %s", ("now",), caught._excinfo))
    assert found["message"] == "it\nbroke now"
    assert found["level"] == "error"
    assert "RuntimeError" in str(found["exception"])


def test_a_request_leaves_one_line_with_its_id_and_template(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    """The id is the client's, the route is the template, and no body is logged."""
    caplog.set_level(logging.INFO)
    client.get("/v1/probe/errors/invalid?secret=1", headers={"X-Request-Id": "mine-1"})
    records = [record for record in caplog.records if record.name == "service.requests"]
    assert len(records) == 1
    with logs.bound(request_id="mine-1"):
        found = line(records[0])
    assert {name: found[name] for name in ("request_id", "method", "route", "status")} == {
        "request_id": "mine-1",
        "method": "GET",
        "route": "/v1/probe/errors/<kind>",
        "status": 422,
    }
    assert "secret" not in json.dumps(found)


def test_an_unexpected_error_is_logged_with_its_traceback(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    """What the client is not told stands in the log."""
    client.get("/v1/probe/errors/unexpected")
    assert any(record.exc_info and record.exc_info[0] is RuntimeError for record in caplog.records)


@pytest.mark.parametrize(("kind", "error"), [("store", "StoreUnavailable"), ("sql", "OperationalError")])
def test_a_database_that_is_away_is_one_line_for_each_request(
    client: FlaskClient, caplog: pytest.LogCaptureFixture, kind: str, error: str
) -> None:
    """Without traceback and without the statement: an outage has many."""
    client.get(f"/v1/probe/errors/{kind}")
    (record,) = (record for record in caplog.records if record.name == "service.api.http.errors")
    found = line(record)
    assert (found["message"], found["error"]) == ("the database cannot be used", error)
    assert "exception" not in found
    assert "[SQL" not in str(found)


def test_the_configuration_is_one_the_standard_library_takes() -> None:
    """Also what gunicorn is given."""
    configured = logs.config("WARNING")
    assert configured["root"]["level"] == "WARNING"
    assert isinstance(logging.config.DictConfigurator(configured).configure_formatter(configured["formatters"]["json"]), logs.JsonFormatter)


def test_a_line_has_the_fields_of_what_it_belongs_to() -> None:
    """Added, nested and given back; None adds nothing."""
    record = logging.LogRecord("x", logging.INFO, "f", 1, "m", (), None)
    with logs.bound(job="1", request_id=None):
        with logs.bound(team="t"):
            assert {"job": "1", "team": "t"}.items() <= line(record).items()
        assert "team" not in line(record)
        assert "request_id" not in line(record)
    assert "job" not in line(record)


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "ERROR"])
def test_addresses_of_webhooks_are_not_logged_at_any_level(level: str) -> None:
    """urllib3 writes whole addresses at debug."""
    assert logs.config(level)["loggers"]["urllib3.connectionpool"]["level"] != "DEBUG"


@given(secret=st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=8, max_size=60))
def test_hidden_texts_stand_in_no_line(secret: str) -> None:
    """In the message, in a field, in a traceback, escaped as JSON or not."""
    logs.hide([secret])
    error = RuntimeError(f"refused {secret}")
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "sent %s", (secret,), (RuntimeError, error, None))
    record.fields = {"url": f"https://user:{secret}@host/"}
    found = logs.JsonFormatter().format(record)
    logs._secrets.clear()
    assert secret not in found
    assert json.dumps(secret)[1:-1] not in found
