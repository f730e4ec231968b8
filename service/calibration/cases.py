"""Published measurements as questions to the engine: a model, its training, a machine and the layouts that may have been used."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.hardware import Accelerator, Precision
from service.domain.model import Experts, Model, Transformer
from service.domain.run import Axes, Cluster, Recompute, Training
from service.engine.layouts import Layouts, candidate_layouts
from service.engine.memory import memory
from service.engine.parameters import count_parameters
from service.presets.accelerators import find_accelerator
from service.presets.models import find_model

Row = dict[str, str]
Floats = NDArray[np.float64]

DATA = Path(__file__).parent / "data"
# An unstated layout is searched; this many of the fastest are kept, so that a fit can change its mind.
CANDIDATES_KEPT = 48
# A published run did fit: layouts that the engine counts a little too large stay in question.
MEMORY_TOLERANCE = 0.25
VTRAIN_GPT = Transformer(24, 1024, 16, 16, 64, 4096, 51200, gated_ffn=False, tied_embeddings=True, max_positions=1024)


@dataclass(frozen=True)
class Case:
    """One question. `rates` are tokens a second and accelerator: one a layout where `each`, else one, of the fastest layout."""

    ids: tuple[str, ...]
    table: str
    source: str
    model: Model
    training: Training
    cluster: Cluster
    layouts: Layouts
    rates: Floats
    each: bool = False

    @property
    def accelerator(self) -> Accelerator:
        return self.cluster.accelerator


def read(name: str) -> list[Row]:
    """The rows of one carried table."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def throughput_cases() -> list[Case]:
    """Every row of throughput.csv that is not excluded, and vTrain's rows grouped by what they share."""
    return [_case(row) for row in read("throughput.csv") if not row["excluded"]] + list(_vtrain_cases())


def number(text: str) -> int | None:
    return int(float(text)) if text else None


def cluster_of(name: str, count: int) -> Cluster:
    """The machine in nodes of the data sheet's size, or of all accelerators where there are fewer."""
    part = find_accelerator(name).accelerator
    return Cluster(part, count, min(part.accelerators_per_node, count), part.internode_gbit_per_s or 0.0)


def model_of(row: Row) -> Model:
    """The preset of that name where its shape is the row's, else the row's own shape."""
    try:
        preset = find_model(row.get("model") or row["id"]).model
    except UnknownName:
        return _shape(row)
    if not isinstance(preset, Transformer) or not row["layers"]:
        return preset
    same = preset.layers == int(row["layers"]) and preset.hidden_size == int(row["hidden"])
    return preset if same else _shape(row)


def _shape(row: Row) -> Transformer:
    """The row's shape, with the gate and the shared embeddings that come nearest to its published count of parameters."""
    params = float(row["params"])
    shapes = [_transformer(row, gated=gated, tied=tied) for gated, tied in itertools.product((False, True), (True, False))]
    return min(shapes, key=lambda shape: abs(count_parameters(shape).total - params))


def _transformer(row: Row, *, gated: bool, tied: bool) -> Transformer:
    heads, hidden = int(row["heads"]), int(row["hidden"])
    ffn = int(row["ffn"] or 4 * hidden)
    experts = None
    if row.get("experts"):
        experts = Experts(int(row["experts"]), int(row["experts_per_token"]), int(row["expert_ffn"] or ffn))
    return Transformer(
        layers=int(row["layers"]),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=int(row["kv_heads"] or heads),
        head_dim=hidden // heads,
        ffn_hidden_size=ffn,
        vocab_size=int(row["vocab"] or 50257),
        gated_ffn=gated,
        tied_embeddings=tied,
        experts=experts,
    )


def _case(row: Row) -> Case:
    axes = Axes(
        **{name: number(row[name]) for name in ("tensor", "pipeline", "data", "context", "expert", "micro_batch")},
        virtual_pipeline=number(row["virtual"]) or (1 if row["pipeline"] == "1" else None),
        zero_stage=number(row["zero"]),
        recompute=cast("Recompute", row["recompute"]) if row["recompute"] else None,
    )
    training = Training(
        method="pretrain",
        precision=cast("Precision", row["precision"]),
        optimizer="adamw",
        seq_len=int(row["seq"]),
        global_batch=int(row["batch"]),
        axes=axes,
        flash_attention=row["flash"] == "1",
    )
    model, cluster = model_of(row), cluster_of(row["accelerator"], int(row["count"]))
    layouts = possible_layouts(model, training, cluster)
    return Case((row["id"],), row["table"], row["source"], model, training, cluster, layouts, np.array([float(row["per_s"])]))


def possible_layouts(model: Model, training: Training, cluster: Cluster) -> Layouts:
    """The layouts the row leaves open that fit, by the engine's own count, or the published one as it stands."""
    try:
        layouts = candidate_layouts(model, training, cluster)
    except InvalidRequest:
        return _as_published(training.axes)
    used = memory(model, training, layouts).total
    fits = used <= (1 + MEMORY_TOLERANCE) * cluster.accelerator.usable_memory_bytes
    return layouts.take(fits) if fits.any() else layouts.take(used <= used.min() * 1.2)


def _as_published(axes: Axes) -> Layouts:
    names = ("tensor", "pipeline", "data", "context", "expert", "virtual_pipeline", "micro_batch", "zero_stage")
    known = {name: value for name in names if (value := getattr(axes, name)) is not None}
    return Layouts.single(**known, recompute=("none", "selective", "full").index(axes.recompute or "none"))


def _vtrain_cases() -> Iterator[Case]:
    """vTrain's single node: GPT shapes of 16 heads on A100 40 GB, sequences of 1,024 tokens, full recomputation, no ZeRO."""
    rows = list(enumerate(read("vtrain.csv"), 1))

    def shared(item: tuple[int, Row]) -> tuple[int, ...]:
        row = item[1]
        count = int(row["tensor"]) * int(row["pipeline"]) * int(row["data"])
        return int(row["layers"]), int(row["hidden"]), int(row["batch"]), count

    for (layers, hidden, batch, count), group in itertools.groupby(sorted(rows, key=shared), shared):
        members = list(group)
        model = replace(VTRAIN_GPT, layers=layers, hidden_size=hidden, head_dim=hidden // 16, ffn_hidden_size=4 * hidden)
        training = Training("pretrain", "fp16", "adamw", 1024, batch, flash_attention=False)
        names = ("tensor", "pipeline", "data", "micro_batch")
        columns = {name: np.array([int(row[name]) for _, row in members], dtype=np.int64) for name in names}
        one, zero = np.ones(len(members), dtype=np.int64), np.zeros(len(members), dtype=np.int64)
        layouts = Layouts(**columns, context=one, expert=one, virtual_pipeline=one, zero_stage=zero, recompute=2 * one)
        seconds = np.array([float(row["seconds"]) for _, row in members])
        ids = tuple(f"v{index:04d}" for index, _ in members)
        cluster = cluster_of("NVIDIA-A100-40GB-SXM", count)
        yield Case(ids, "vtrain", "vtrain", model, training, cluster, layouts, batch * 1024 / seconds / count, each=True)
