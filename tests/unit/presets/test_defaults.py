"""What is assumed where the caller does not say: every default has a value and a reason, and the request has a field for it."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import pytest

from service.presets.defaults import batch_tokens, default
from service.schemas.training.request import EstimateRequestSchema
from tests.support.rows import for_each

DOCUMENT = tomllib.loads(resources.files("service.presets").joinpath("data", "defaults.toml").read_text(encoding="utf-8"))
PATHS = [f"{section}.{name}" for section, entries in DOCUMENT.items() for name, entry in entries.items() if isinstance(entry, dict)]
# Ingredients of a default that no field of the request has by that name.
INGREDIENTS = {
    "overhead.worth_a_warning_from_usd",
    "efficiency.loss_worth_a_warning",
    "training.adapter_flash_attention",
    "training.adapter_seq_len",
    "training.qlora_optimizer",
    "training.samples_per_batch",
    "training.finetune_sequences",
    "training.decoder_share",
    "training.vit_tokens",
    "training.without_flash_attention",
    "training.fp16_without_flash_attention",
    "training.sequence_parallel_before",
    "hardware.inter_node_gbit_per_s_per_accelerator",
}


@for_each("path", PATHS)
def test_every_default_has_a_value_and_says_why(path: str) -> None:
    """The reason is shown to the caller, so it is a sentence and not a mark."""
    found = default(path)
    assert found.value is not None
    assert len(found.source) > 10


@for_each("path", sorted(set(PATHS) - INGREDIENTS))
def test_every_default_is_one_of_a_field_that_the_schema_takes(path: str) -> None:
    """A default's path leads to a field of the request, and its value is one that the field takes."""
    section, name = path.split(".")
    fields: dict[str, Any] = EstimateRequestSchema().fields[section].schema.fields  # type: ignore[attr-defined]
    assert fields[name].deserialize(default(path).value) is not None


def test_an_unknown_path_names_the_file() -> None:
    """A default that is not there is a mistake of ours, told with the file to mend."""
    with pytest.raises(KeyError, match=r"defaults\.toml"):
        default("training.nothing")


def test_the_usual_batch_grows_with_the_model() -> None:
    """Batches follow the published runs and never shrink; the largest allowed model has one too."""
    sizes = [batch_tokens(params).value for params in (1e8, 2e9, 7e9, 7e10, 4e11, 1e15)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
