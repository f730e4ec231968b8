"""A measurement of the user's own in their estimates over HTTP: used, named, and warned of where it cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from service import create_app
from service.config import Settings
from service.presets.training.measured import store_measurement
from service.runtime import serve
from service.runtime.serve import ServeError
from tests.unit.usecases.measurement.machine import document

REQUEST: dict[str, Any] = {
    "model": {"preset": "llama-2-7b"},
    "data": {"tokens": "2T"},
    "training": {"seq_len": 4096, "global_batch_tokens": 4194304, "precision": "bf16"},
    "hardware": {"accelerator": "H100", "count": 1024},
    "price": {"usd_per_accelerator_hour": 2.0},
}
FIELD = "throughput.calibration"


@pytest.fixture
def client(settings: Settings) -> FlaskClient:
    """The whole service on an empty data directory."""
    app = create_app(settings)
    app.extensions["context"].store.migrate()
    return app.test_client()


def answered(client: FlaskClient, **changes: Any) -> dict[str, Any]:
    found = client.post("/v1/estimate", json=REQUEST | changes)
    assert found.status_code == 200, found.get_data(as_text=True)
    answer: dict[str, Any] = found.json
    return answer


def calibration(answer: dict[str, Any]) -> dict[str, Any] | None:
    return next((item for item in answer["assumptions"] if item["field"] == FIELD), None)


def rate(answer: dict[str, Any]) -> float:
    return float(answer["throughput"]["tokens_per_s_per_accelerator"]["p50"])


def test_a_running_service_takes_up_a_measurement_and_names_it(client: FlaskClient, settings: Settings) -> None:
    """The slower the measured machine, the slower the estimate; the assumption has the figures, the date and the shapes."""
    before = answered(client)
    assert calibration(before) is None
    found = {}
    for share in (0.3, 0.5):
        store_measurement(document(share), settings.data_dir)
        found[share] = answered(client)
        named = calibration(found[share])
        assert named is not None
        assert named["value"]["matmul_share"] == pytest.approx(share, rel=0.01)
        assert named["source"] == "measured on this machine 2026-11-21, 4 shapes, torch 2.9.1"
    assert rate(found[0.3]) < rate(found[0.5])
    assert 0.3 / 0.5 < rate(found[0.3]) / rate(found[0.5]) < 0.85


def test_other_accelerators_and_precisions_are_left_alone(client: FlaskClient, settings: Settings) -> None:
    """A measurement speaks for what was measured."""
    others = [{"hardware": {"accelerator": "H200", "count": 1024}}, {"training": REQUEST["training"] | {"precision": "fp8"}}]
    before = [answered(client, **other) for other in others]
    store_measurement(document(0.3), settings.data_dir)
    assert [rate(answered(client, **other)) for other in others] == [rate(answer) for answer in before]


def test_a_stated_efficiency_stands_above_it(client: FlaskClient, settings: Settings) -> None:
    """The caller's own word for this run."""
    store_measurement(document(0.3), settings.data_dir)
    found = answered(client, efficiency={"mfu": 0.4})
    assert calibration(found) is None
    assert found["throughput"]["mfu"]["p50"] == pytest.approx(0.4)


def test_a_file_that_went_bad_is_a_warning_without_its_path(client: FlaskClient, settings: Settings) -> None:
    """Published figures answer in its place."""
    before = answered(client)
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    (settings.data_dir / "measured.json").write_text(json.dumps({"measurements": [3]}), encoding="utf-8")
    after = answered(client)
    assert rate(after) == rate(before)
    (warning,) = set(after["warnings"]) - set(before["warnings"])
    assert warning == "your measurements are not used: measured.json: measurements[0] must be an object"
    assert str(Path(settings.data_dir)) not in json.dumps(after)


def test_the_service_does_not_start_on_a_file_it_cannot_use(settings: Settings, free_port: int) -> None:
    """Said at once and with the file's name, rather than in every answer."""
    settings.data_dir.mkdir(parents=True)
    (settings.data_dir / "measured.json").write_text("{", encoding="utf-8")
    with pytest.raises(ServeError, match=r"measured\.json is no JSON"):
        serve._prepare(replace(settings, port=free_port))
