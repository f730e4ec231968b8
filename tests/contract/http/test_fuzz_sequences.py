"""Sequences of requests, each made of the answers before it: created, read, changed, deleted, and asked for again."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.checks import not_a_server_error
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ensure_resource_availability,
    response_schema_conformance,
    status_code_conformance,
    use_after_free,
)

from service import create_app
from service.config import load_settings

CHECKS = [
    *(not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance),
    *(use_after_free, ensure_resource_availability),
]
SEQUENCES, STEPS = 300, 12


def or_the_example(context: Any, bodies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The bodies of an operation, and as often its example, which alone creates something that others can refer to."""
    (content, *_) = context.operation.definition.raw["requestBody"]["content"].values()
    return st.just(content["example"]) | bodies if "example" in content else bodies


@pytest.mark.soak
def test_sequences_of_requests_are_answered_as_described(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever ids and versions they carry over: no 5xx, documented answers, what was created is found and what was deleted is not."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("fuzz")), "OUTLAY_OFFLINE": "1"}))
    app.extensions["context"].store.migrate()
    config = SchemathesisConfig(projects=ProjectsConfig(default=ProjectConfig(generation=GenerationConfig(database="none"))))
    specification = schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)
    specification.hook("before_generate_body")(or_the_example)

    class Sequences(specification.as_state_machine()):  # type: ignore[misc]
        def validate_response(self, response: Any, case: schemathesis.Case, *_: Any, **_options: Any) -> None:
            case.validate_response(response, checks=CHECKS)

    run_state_machine_as_test(Sequences, settings=settings(max_examples=SEQUENCES, stateful_step_count=STEPS))
