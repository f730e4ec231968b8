"""The model of a request: preset, Hugging Face config, shape, parameter count or FLOPs a sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.training.model import GenericNetwork, Model
from service.engine.training.parameters import total_parameters
from service.engine.training.shape import UNDIVIDED, StatedRanks, infer_shape
from service.formats.huggingface.config import read_hf_config
from service.presets.training.models import find_model
from service.usecases.resolution.assumption_log import AssumptionLog

DESCRIPTIONS = ("preset", "hf_config", "flops_per_sample")
MAX_PARAMETERS = 1e15
GENERIC_NETWORK_FIELDS = {"flops_per_sample", "sample_unit", "params"}


def resolve_model(
    given: Mapping[str, Any], notes: AssumptionLog, path: str = "model", ranks: StatedRanks = UNDIVIDED
) -> tuple[Model, int | None]:
    """The model and its published sequence length, None where unknown.

    `path` is where the model stands in the request; heads and experts that it does not count divide over `ranks`.
    Raises InvalidRequest, UnknownName with pointers below `path`.
    """
    model, seq_len = _resolve_description(given, notes, path, ranks)
    if (params := total_parameters(model)) > MAX_PARAMETERS:
        raise InvalidRequest(f"the shape has {params:.2g} parameters; at most {MAX_PARAMETERS:g} are counted with", "/model")
    return model, seq_len


def _resolve_description(given: Mapping[str, Any], notes: AssumptionLog, path: str, ranks: StatedRanks) -> tuple[Model, int | None]:
    _check_single_description(given)
    if "preset" in given:
        preset = find_model(given["preset"])
        notes.assume(f"{path}.preset", preset.name, preset.source)
        return preset.model, preset.seq_len
    if "hf_config" in given:
        read = read_hf_config(given["hf_config"])
        notes.warn(*read.warnings)
        return read.model, None
    if "flops_per_sample" in given:
        return _generic_network(given), None
    inferred = infer_shape(given, ranks)
    for field, value in inferred.assumed.items():
        notes.assume(f"{path}.{field}", value, "inferred from the fields given and usual proportions (arXiv 2005.14165, arXiv 2302.13971)")
    notes.warn(*inferred.warnings)
    return inferred.model, None


def _check_single_description(given: Mapping[str, Any]) -> None:
    """Raise InvalidRequest unless the model is described in exactly one way."""
    ways = [way for way in DESCRIPTIONS if way in given]
    allowed = {"preset": {"preset"}, "hf_config": {"hf_config"}, "flops_per_sample": GENERIC_NETWORK_FIELDS}
    if not given:
        raise InvalidRequest("a model needs a preset, params, a shape, an hf_config or flops_per_sample", "/model")
    if not ways:
        if "sample_unit" in given:
            raise InvalidRequest("sample_unit belongs to flops_per_sample", "/model/sample_unit")
        return
    beside = sorted(set(given) - allowed[ways[0]])
    if beside:
        raise InvalidRequest(f"{ways[0]} describes the model by itself: leave out {', '.join(beside)}", f"/model/{beside[0]}")


def _generic_network(given: Mapping[str, Any]) -> GenericNetwork:
    params = given.get("params")
    return GenericNetwork(
        flops_per_sample=float(given["flops_per_sample"]),
        sample_unit=given.get("sample_unit", "sample"),
        params=None if params is None else float(params),
    )
