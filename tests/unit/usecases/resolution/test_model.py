"""From what a request says of a model to the model the engine counts with."""

from __future__ import annotations

from typing import Any

import pytest

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.training.model import GenericNetwork, Transformer
from service.engine.training.parameters import total_parameters
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.model import resolve_model

MISTRAL = {
    "model_type": "mistral",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 32_000,
}


def refused(given: dict[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        resolve_model(given, AssumptionLog())
    return caught.value


def noted(notes: AssumptionLog) -> dict[str, Any]:
    return {note.field: note.value for note in notes.assumptions}


def test_a_preset_brings_its_shape_its_context_and_its_source() -> None:
    """An alias resolves to the canonical name, which is noted with where the shape was published."""
    notes = AssumptionLog()
    model, seq_len = resolve_model({"preset": "meta-llama/Llama-2-7b-hf"}, notes)
    assert isinstance(model, Transformer)
    assert (model.layers, model.hidden_size, seq_len) == (32, 4096, 4096)
    assert noted(notes) == {"model.preset": "llama-2-7b"}
    assert "2307.09288" in notes.assumptions[0].source


def test_a_network_counted_by_samples_may_be_a_preset() -> None:
    """ResNet-50: 4.1 G multiply-adds are 8.2 GFLOPs an image."""
    model, seq_len = resolve_model({"preset": "resnet-50"}, AssumptionLog())
    assert isinstance(model, GenericNetwork)
    assert model.flops_per_sample == pytest.approx(8.2e9, rel=0.02)
    assert (model.sample_unit, seq_len) == ("image", None)


def test_an_unknown_preset_is_refused_with_near_names() -> None:
    """The pointer leads to the name."""
    with pytest.raises(UnknownName) as caught:
        resolve_model({"preset": "llama-2-8b"}, AssumptionLog())
    assert caught.value.pointer == "/model/preset"
    assert caught.value.near


def test_everything_inferred_of_a_count_is_noted_with_a_source() -> None:
    """Layers, width, heads, feed-forward and vocabulary, below the model's place in the request."""
    notes = AssumptionLog()
    model, seq_len = resolve_model({"params": 7e9}, notes, "training.teacher")
    assert total_parameters(model) == 7e9
    assert seq_len is None
    assert set(noted(notes)) == {
        f"training.teacher.{field}" for field in ("layers", "hidden_size", "attention_heads", "kv_heads", "ffn_hidden_size", "vocab_size")
    }
    assert all("arXiv" in note.source for note in notes.assumptions)


def test_a_contradicting_partial_shape_is_a_warning_of_the_answer() -> None:
    """The warning of the shape's inference arrives."""
    notes = AssumptionLog()
    resolve_model({"params": 70e9, "layers": 32, "hidden_size": 4096}, notes)
    assert len(notes.warnings) == 1
    assert "70B" in notes.warnings[0]


def test_a_hugging_face_config_is_read() -> None:
    """Mistral 7B by its config.json: 7.24 billion parameters; what its reader warns of arrives."""
    model, seq_len = resolve_model({"hf_config": MISTRAL}, AssumptionLog())
    assert total_parameters(model) == pytest.approx(7.24e9, rel=0.01)
    assert seq_len is None


def test_a_bad_hugging_face_config_points_into_it() -> None:
    """What is missing is named with its place in the request."""
    assert refused({"hf_config": {"model_type": "mistral"}}).pointer.startswith("/model/hf_config")


def test_any_other_network_is_described_by_its_flops() -> None:
    """Its unit is a sample unless stated, its parameters may be unknown."""
    assert resolve_model({"flops_per_sample": 8e9}, AssumptionLog())[0] == GenericNetwork(8e9, "sample")
    given = {"flops_per_sample": 8e9, "sample_unit": "image", "params": 25_000_000}
    assert resolve_model(given, AssumptionLog())[0] == GenericNetwork(8e9, "image", 25e6)


@pytest.mark.parametrize(
    ("given", "pointer", "left_out"),
    [
        ({"preset": "llama-2-7b", "params": 7e9}, "/model/params", "params"),
        ({"preset": "llama-2-7b", "layers": 32}, "/model/layers", "layers"),
        ({"preset": "llama-2-7b", "hf_config": MISTRAL}, "/model/hf_config", "hf_config"),
        ({"hf_config": MISTRAL, "layers": 32, "vocab_size": 1}, "/model/layers", "layers, vocab_size"),
        ({"flops_per_sample": 8e9, "layers": 32}, "/model/layers", "layers"),
        ({"preset": "resnet-50", "flops_per_sample": 8e9}, "/model/flops_per_sample", "flops_per_sample"),
    ],
)
def test_a_model_described_in_two_ways_is_refused(given: dict[str, Any], pointer: str, left_out: str) -> None:
    """The message says what to leave out."""
    error = refused(given)
    assert error.pointer == pointer
    assert error.message.endswith(f"leave out {left_out}")


def test_a_model_described_in_no_way_is_refused() -> None:
    """An empty object, and a unit without its FLOPs."""
    assert refused({}).pointer == "/model"
    assert refused({"sample_unit": "image"}).pointer == "/model/sample_unit"
    assert refused({"params": 7e9, "sample_unit": "image"}).pointer == "/model/sample_unit"


def test_a_shape_beyond_any_model_is_refused() -> None:
    """Ten thousand layers of ten million are 1.2e19 parameters: a slip, not a model."""
    error = refused({"layers": 10_000, "hidden_size": 10_000_000})
    assert error.pointer == "/model"
    assert "1.2e+19 parameters" in error.message
    assert total_parameters(resolve_model({"params": 10**15}, AssumptionLog())[0]) == 1e15
