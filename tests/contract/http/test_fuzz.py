"""Anything may be sent; what comes back is an answer that its schema describes or a problem, never an error of ours."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.config import AnalysisConfig, ConstantsConfig, GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.core.errors import SerializationNotPossible
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from service import create_app
from service.config import load_settings
from service.schemas.base import ProblemSchema
from service.schemas.compound_fields import OrNumber, OrWord, Part
from service.schemas.fields import Choice, Count, Flag, Number, Text
from service.schemas.training.answer import EstimateAnswerSchema
from service.schemas.training.request import EstimateRequestSchema
from service.usecases.resolution.training import METHODS_BY_FIELD

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PATH_OR_METHOD = re.compile(r"^  (/\S*):$|^    (get|post|put|patch|delete):$", re.MULTILINE)
DESCRIPTION = Path(__file__).parents[3] / "openapi.yaml"


def described_operations() -> Iterator[str]:
    """Method and path of every operation in the written description, without parsing all of it."""
    path = ""
    for match in PATH_OR_METHOD.finditer(DESCRIPTION.read_text(encoding="utf-8")):
        path = match[1] or path
        if match[2]:
            yield f"{match[2].upper()} {path}"


COVERED_AT_ONCE = 10
FEWER = {
    "POST /v1/results": 5,
    "POST /v1/portfolio": 5,
    "POST /v1/estimate/program": 5,
    "POST /v1/estimate/program/difference": 5,
    "POST /v1/estimate/batch": 5,
    "POST /v1/scenarios": 5,
    "POST /v1/buy-or-rent": 5,
    "POST /v1/estimate": 2,
    "POST /v1/compare": 2,
    "POST /v1/optimal": 2,
}
"""Divisors of the examples of operations whose body holds whole requests of others, which are tried alone, or has tests of their own with
examples: to make one takes a second."""
LARGE = {
    "POST /v1/results": 13,
    "POST /v1/estimate/program/difference": 10,
    "POST /v1/scenarios": 6,
    "POST /v1/buy-or-rent": 5,
    "POST /v1/portfolio": 5,
    "POST /v1/estimate/program": 5,
}
"""Operations with tens of thousands of coverage cases, most of which are other operations' or the same in each part of a body, and of how
many one is tried: others in each run."""
OPERATIONS = tuple(described_operations())
VALID: dict[str, Any] = {
    "model": {"params": "7B"},
    "data": {"tokens": "2T"},
    "training": {"method": "pretrain", "seq_len": 4096},
    "hardware": {"accelerator": "NVIDIA-H100-80GB-SXM", "count": 64},
    "price": {"usd_per_accelerator_hour": 2.0},
}
BASES: tuple[dict[str, Any], ...] = (
    VALID,
    {"model": {"preset": "mixtral-8x7b"}, "data": {"raw_tokens": "5T"}, "hardware": {"accelerator": "A100-80GB", "count": 256}},
    {"model": {"params": "671B", "active_params": "37B"}, "data": {"tokens": "14.8T"}, "hardware": {"accelerator": "H100", "count": 2048}},
    {"model": {"preset": "resnet-50"}, "data": {"samples": "1.28M", "epochs": 90}, "hardware": {"accelerator": "V100", "count": 8}},
    {"model": {"preset": "t5-11b"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "tpu-v5p", "count": 256}},
    {
        "model": {"preset": "llama-2-70b"},
        "training": {"method": "qlora"},
        "data": {"tokens": "1B"},
        "hardware": {"accelerator": "H100", "count": 8},
    },
    {"model": {"params": "8B"}, "training": {"method": "rl"}, "data": {"samples": "1M"}, "hardware": {"accelerator": "H200", "count": 64}},
    {
        "model": {"layers": 24, "hidden_size": 2048, "kv_heads": 4},
        "training": {"method": "distill", "teacher": {"preset": "llama-2-7b"}},
        "data": {"tokens": "100B"},
        "hardware": {"accelerator": "MI300X", "count": 16},
    },
)
NAMES = ("llama-2-7b", "mixtral-8x7b", "resnet-50", "t5-11b", "H100", "A100-80GB", "tpu-v5p", "RTX 4090", "aws", "vast", "world", "on_prem")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
    """The whole service on a migrated store of its own."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("fuzz")), "OUTLAY_OFFLINE": "1"}))
    app.extensions["context"].store.migrate()
    return app


@pytest.fixture(scope="module")
def client(app: Flask) -> FlaskClient:
    """A client of it."""
    return app.test_client()


@pytest.fixture(scope="module")
def specification(app: Flask) -> Any:
    """The service's own description, which the requests are made from, without constants of the modules that are loaded."""
    generation = GenerationConfig(deterministic=True, database="none")
    project = ProjectConfig(generation=generation, analysis=AnalysisConfig(constants=ConstantsConfig(enabled=False)))
    return schemathesis.openapi.from_wsgi("/openapi.json", app, config=SchemathesisConfig(projects=ProjectsConfig(default=project)))


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_answers_as_it_is_described(specification: Any, operation: str, mode: GenerationMode) -> None:
    """Whatever is sent to it, valid half of the time: no 5xx, a documented status and content type, a body of the documented shape."""
    method, path = operation.split()

    @settings(max_examples=settings().max_examples // 2 // len(GenerationMode) // FEWER.get(operation, 1))
    @given(case=specification[path][method].as_strategy(generation_mode=mode))
    def answers_as_described(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    answers_as_described()


def coverage_cases(specification: Any, operation: str) -> Iterator[schemathesis.Case]:
    """Requests of schemathesis' coverage phase: every field at, within and beyond its bounds, left out, doubled or of another type."""
    method, path = operation.split()
    return specification.iter_coverage_cases(
        specification[path][method], generation_modes=list(GenerationMode), generation_config=specification.config.generation
    )


def answer_as_described(case: schemathesis.Case) -> None:
    """Send it, unless schemathesis cannot make a body of its kind: a Parquet file, a workbook."""
    with suppress(SerializationNotPossible):
        case.call_and_validate(checks=CHECKS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_first_coverage_cases_are_answered_as_described(specification: Any, operation: str) -> None:
    """A few of each operation, which include its parameters, its content types and methods that it does not have."""
    for case in islice(coverage_cases(specification, operation), COVERED_AT_ONCE // FEWER.get(operation, 1)):
        answer_as_described(case)


@pytest.mark.soak
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_coverage_case_is_answered_as_described(specification: Any, operation: str) -> None:
    """All of them, but one of several where there are tens of thousands: some seventy thousand requests."""
    several = LARGE.get(operation, 1)
    for case in islice(coverage_cases(specification, operation), random.randrange(several), None, several):
        answer_as_described(case)


def test_every_operation_is_tried(specification: Any) -> None:
    """The written description, which the operations above are read from, has all that are served."""
    assert {found.ok().label for found in specification.get_all_operations()} <= set(OPERATIONS)


def values(field: Any) -> st.SearchStrategy[Any]:
    """Values that a field takes, its bounds above all."""
    if isinstance(field, OrWord):
        return st.just(field.word) | values(field.inner)
    if isinstance(field, Part | OrNumber):
        return members(field.schema) if isinstance(field, Part) else values(field.number) | values(field.inner)
    if isinstance(field, Count):
        return st.sampled_from([field.minimum, field.maximum]) | st.integers(field.minimum, min(field.maximum, 10**6))
    if isinstance(field, Number):
        low = field.above if field.minimum is None else field.minimum
        high = field.maximum
        assert low is not None
        assert high is not None
        ends = st.sampled_from([low if field.above is None else math.nextafter(low, 1), high])
        return ends | st.floats(low, high, exclude_min=field.above is not None)
    if isinstance(field, Text | Choice | Flag):
        return st.sampled_from({Text: NAMES, Flag: (True, False)}.get(type(field)) or field.names)
    return st.dictionaries(st.sampled_from(["tensor", "é", ""]), st.integers(-9, 9), max_size=2) | st.just("2027-01-04")


def members(schema: Any) -> st.SearchStrategy[dict[str, Any]]:
    """An object with a few of a schema's fields."""
    few = st.lists(st.sampled_from(sorted(schema.fields)), min_size=1, max_size=3, unique=True)
    return few.flatmap(lambda names: st.fixed_dictionaries({name: values(schema.fields[name]) for name in names}))


REQUEST_FIELDS = {
    f"{section}.{name}": field
    for section, part in EstimateRequestSchema().fields.items()
    if isinstance(part, Part)
    for name, field in part.schema.fields.items()
}
ONE_OF_SEVERAL = ("model", "data", "price", "efficiency")  # sections whose fields exclude each other, and training's of one method
PLAIN_FIELDS = sorted(
    path
    for path in REQUEST_FIELDS
    if not path.startswith(ONE_OF_SEVERAL) and path.partition(".")[2] not in (*METHODS_BY_FIELD, "method", "precision", "parallelism")
)
RUBBISH = st.sampled_from([None, True, -1, 0, 1.5, 1e308, 5e-324, "", "12Q", "70B", "\u202e", [], {}, [[]], {"p50": 1}, 10**29, "x" * 300])


@st.composite
def requests(draw: st.DrawFn, bases: Sequence[dict[str, Any]] = BASES, *, wild: bool | None = None) -> dict[str, Any]:
    """A valid request with a few of its fields set to something else: to what they take; where `wild`, also to what they may not."""
    request = deepcopy(draw(st.sampled_from(bases)))
    wild = draw(st.booleans()) if wild is None else wild
    paths = st.sampled_from(sorted(REQUEST_FIELDS) if wild else PLAIN_FIELDS)
    for path in draw(st.lists(paths, min_size=1, max_size=4, unique=True)):
        section, _, name = path.partition(".")
        field = values(REQUEST_FIELDS[path])
        request.setdefault(section, {})[name] = draw(field | field | RUBBISH if wild else field)
    for section in draw(st.lists(st.sampled_from(["training", "price", "efficiency"]), max_size=1)):
        request.pop(section, None)
    return request


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number in an answer with its path; what it repeats of the request aside."""
    if isinstance(value, dict):
        for name, below in value.items():
            if name not in ("assumptions", "warnings"):
                yield from numbers(below, f"{path}/{name}")
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from numbers(below, f"{path}/{index}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def check_estimate(body: dict[str, Any]) -> None:
    """Its schema's shape; no figure that is none, infinite or negative; ranges in order; lines that add up."""
    assert EstimateAnswerSchema().validate(body) == {}
    # A layout that is faster than the one taken and does not fit is slower by less than nothing.
    negative = {path for path, number in numbers(body) if number < 0 and not path.endswith("/slower_by")}
    assert (negative, [path for path, number in numbers(body) if not math.isfinite(number)]) == (set(), [])
    total = body["cost"]["total_usd"]
    assert sum(line["usd"] for line in body["cost"]["lines"]) == pytest.approx(total["p50"], abs=0.005, rel=1e-12)
    assert body["flops"]["total"] == pytest.approx(body["flops"]["forward"] + body["flops"]["backward"])
    assert 0 < body["throughput"]["mfu"]["p90"] <= 1.000001


def check_answer(answer: Any) -> None:
    """An estimate or a problem."""
    body = json.loads(answer.get_data(), parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
    if answer.status_code == 200:
        check_estimate(body)
        return
    assert answer.status_code == 422
    assert answer.content_type == "application/problem+json"
    assert ProblemSchema().validate(body) == {}
    assert all(entry["pointer"] == "" or entry["pointer"].startswith("/") for entry in body.get("errors", []))


@pytest.mark.parametrize("wild", [False, True], ids=["fields as described", "fields of any kind"])
@pytest.mark.parametrize("base", range(len(BASES)))
@given(data=st.data())
def test_no_request_gets_an_error_of_ours_or_a_figure_that_is_none(
    client: FlaskClient, base: int, data: st.DataObject, *, wild: bool
) -> None:
    """A valid request with a few fields changed: an estimate of finite, positive figures or a problem with pointers."""
    check_answer(client.post("/v1/estimate", json=data.draw(requests(BASES[base : base + 1], wild=wild))))


@pytest.mark.parametrize("wild", [False, True], ids=["fields as described", "fields of any kind"])
@given(data=st.data())
def test_levers_of_any_request_are_the_specifications(client: FlaskClient, data: st.DataObject, *, wild: bool) -> None:
    """Or none: looking for them turns no answer into an error, and changes nothing else of it."""
    request = data.draw(requests(wild=wild))
    plain, asked = (client.post("/v1/estimate", json=request | {"levers": levers}) for levers in (False, True))
    body = asked.get_json()
    levers = body.pop("levers", [])
    problem = {"request_id": None}
    assert (asked.status_code, body | problem) == (plain.status_code, plain.get_json() | problem)
    assert EstimateAnswerSchema(only=["levers"]).validate({"levers": levers}) == {}


@given(batch=st.lists(requests(), min_size=1, max_size=6))
def test_a_batch_answers_each_as_if_it_stood_alone(client: FlaskClient, batch: list[dict[str, Any]]) -> None:
    """In order; a problem's pointers lead to its own entry."""
    answers = client.post("/v1/estimate/batch", json={"requests": batch}).json["answers"]
    assert len(answers) == len(batch)
    for index, (request, answer) in enumerate(zip(batch, answers, strict=True)):
        alone = client.post("/v1/estimate", json=request)
        if alone.status_code == 200:
            assert answer == alone.json
        else:
            assert ProblemSchema().validate(answer) == {}
            pointers = [entry["pointer"] for entry in answer["errors"]]
            assert pointers == [f"/requests/{index}{entry['pointer']}" for entry in alone.json["errors"]]


@pytest.mark.parametrize(
    "change",
    [
        {"hardware": {"accelerator": "H100", "count": 1024, "inter_node_gbps": 1e-6}},
        {"efficiency": {"mfu": 1e-6}},
        {"efficiency": {"tokens_per_s_per_accelerator": 1e-6}, "data": {"tokens": 10**18, "epochs": 10_000}},
        {
            "model": {"flops_per_sample": 1e18},
            "data": {"samples": 10**18, "epochs": 10_000},
            "price": {"usd_per_accelerator_hour": 100_000},
        },
        {"model": {"layers": 10_000, "hidden_size": 10**7}},
        {"data": {"raw_tokens": 1, "filter_yield": 1e-300}},
        {"data": {"tokens": 10**18, "epochs": 10_000}, "storage": {"dataset_tb": 1e9, "retention_months": 1200, "usd_per_tb_month": 1e6}},
        {"failures": {"mttf_hours_per_accelerator": 1e-300}},
        {"training": {"input_tokens_per_s_per_node": 1e-6}},
        {"schedule": {"start": "9999-12-31", "deadline": "9999-12-31", "queue_hours": 1e5}},
    ],
)
def test_figures_at_the_ends_of_what_is_taken_are_answered(client: FlaskClient, change: dict[str, Any]) -> None:
    """With a problem where no sum holds them."""
    check_answer(client.post("/v1/estimate", json=VALID | change))
