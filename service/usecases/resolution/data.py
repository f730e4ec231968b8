"""The training data of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import Data
from service.usecases.resolution.assumption_log import AssumptionLog

Section = Mapping[str, Any]


def resolve_data(given: Section, model: Model, seq_len: int, notes: AssumptionLog) -> Data:
    """The training data in the model's unit (tokens or samples). Raises InvalidRequest unless exactly one amount is stated."""
    stated = [name for name in ("tokens", "raw_tokens", "samples") if name in given]
    if len(stated) != 1:
        raise InvalidRequest("state exactly one of tokens, raw_tokens and samples", "/data")
    amount = float(given[stated[0]])
    if stated[0] == "samples":
        amount *= seq_len
    elif isinstance(model, GenericNetwork):
        raise InvalidRequest(f"this network is counted by samples, each a {model.sample_unit}: state samples", f"/data/{stated[0]}")
    if stated[0] == "raw_tokens":
        effective = amount * notes.choose(given, "data.filter_yield") * notes.choose(given, "data.dedupe_yield")
    else:
        _refuse_yields(given)
        effective = amount
    epochs = float(notes.choose(given, "data.epochs"))
    if effective * epochs < 1:
        raise InvalidRequest(f"nothing is left to train on: {effective:g} x {epochs:g} epochs", f"/data/{stated[0]}")
    return Data(amount, effective, epochs, given.get("quality_share"), given.get("robustness_share"))


def _refuse_yields(given: Section) -> None:
    for name in ("filter_yield", "dedupe_yield"):
        if name in given:
            raise InvalidRequest(f"{name} belongs to raw_tokens: tokens are what is trained on", f"/data/{name}")
