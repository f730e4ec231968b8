"""Whatever JSON object is sent as a Hugging Face config, it is read or refused: nothing else comes out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.engine.training.parameters import count_parameters
from service.formats.huggingface.config import read_hf_config

PUBLISHED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("hf_configs.json").read_text(encoding="utf-8"))
CONFIGS: dict[str, dict[str, Any]] = {row["name"]: row["config"] for row in PUBLISHED}
SMALL: dict[str, Any] = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "vocab_size": 1000,
}

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4), max_leaves=8
)
KEYS = sorted(
    {key for config in CONFIGS.values() for key in config} | {"layer_types", "mlp_only_layers", "head_dim", "text_config", "id2label"}
)
TYPES = sorted({str(config["model_type"]) for config in CONFIGS.values()})


def reads_or_refuses(config: Mapping[str, object]) -> bool:
    """The one thing every JSON object has in common: it is a shape that adds up, or an error with a pointer."""
    try:
        answer = read_hf_config(config)
    except InvalidRequest as refused:
        return refused.pointer.startswith("/model/hf_config/") and bool(refused.message)
    return 0 < count_parameters(answer.model).active < float("inf")


class TestAnyJson:
    @given(st.dictionaries(st.text(max_size=8) | st.sampled_from(KEYS), JSON, max_size=10))
    def test_random_object_never_crashes(self, config: dict[str, object]) -> None:
        """Whatever is sent is read or refused."""
        assert reads_or_refuses(config)

    @given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(KEYS), st.integers(-1, 300) | JSON, max_size=12))
    def test_random_values_of_known_keys_never_crash(self, model_type: str, changes: dict[str, object]) -> None:
        """Known types with random values at known keys are read or refused."""
        assert reads_or_refuses({**SMALL, "model_type": model_type, **changes})

    @given(st.sampled_from(sorted(CONFIGS)), st.sampled_from(KEYS), JSON)
    def test_published_config_with_one_value_changed_never_crashes(self, name: str, key: str, value: object) -> None:
        """One wrong value in a real config is read or refused."""
        assert reads_or_refuses({**CONFIGS[name], key: value})
