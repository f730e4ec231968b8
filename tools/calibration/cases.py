"""Published measurements as inputs of the engine: a model, its training, a machine and the layouts that may have been used."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.training.hardware import Accelerator, Precision
from service.domain.training.model import Experts, LatentAttention, Model, Transformer
from service.domain.training.run import Axes, Cluster, Optimizer, Recompute, StatesDtype, Training
from service.engine.training.layouts import Layouts, candidate_layouts
from service.engine.training.memory.memory_use import memory_use
from service.engine.training.parameters import count_parameters
from service.presets.defaults import flash_attention
from service.presets.hardware.accelerators import find_accelerator
from service.presets.training.footprint import find_footprint
from service.presets.training.models import find_model
from service.presets.training.throughput_parameters import FittedParameters, Kernels, Key
from service.presets.training.utilisation import has_fused_experts
from tools.calibration.priors import with_fixed_parameters

Row = dict[str, str]
Floats = NDArray[np.float64]

DATA = Path(__file__).parent / "data"
LISTS = ("throughput.csv", "pretraining.csv")
# A published run did fit: layouts that the engine counts a little too large stay in question.
MEMORY_TOLERANCE = 0.25
VTRAIN_LAYERS = (12, 16, 20, 24)
VTRAIN_YEAR = 2023
VTRAIN_GPT = Transformer(24, 1024, 16, 16, 64, 4096, 51200, gated_ffn=False, tied_embeddings=True, max_positions=1024)


@dataclass(frozen=True)
class MeasuredCase:
    """One measurement, or several of one workload.

    `rates` are tokens a second and accelerator: one for each layout where `each`, else one, of the fastest layout. `source` is the
    publication, `document` its README, table or release with the rows. `stated`: the layout was published completely; what was not is
    searched. `kernels`: whether attention's were written for the accelerator's family or an earlier one, or are of the first generation.
    """

    ids: tuple[str, ...]
    table: str
    source: str
    document: str
    model: Model
    training: Training
    cluster: Cluster
    layouts: Layouts
    rates: Floats
    each: bool = False
    stated: bool = True
    kernels: Kernels = "own"

    @property
    def accelerator(self) -> Accelerator:
        return self.cluster.accelerator


def parameter_key(case: MeasuredCase, parameters: FittedParameters) -> Key:
    """Family and precision class of a case."""
    return case.accelerator.family, parameters.classes[case.training.precision]


def read_table(name: str) -> list[Row]:
    """Rows of one table of this package."""
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def throughput_cases() -> tuple[MeasuredCase, ...]:
    """Every row of throughput.csv and pretraining.csv that is not excluded, and vTrain's rows grouped by workload."""
    rows = itertools.chain(*map(read_table, LISTS))
    return (*(_case(row) for row in rows if not row["excluded"]), *_vtrain_cases())


def parse_count(text: str) -> int | None:
    return int(float(text)) if text else None


def build_cluster(name: str, count: int, internode_gbit_per_s: str = "") -> Cluster:
    """The machine in nodes of the data sheet's size, or one node of all accelerators where there are fewer."""
    part = find_accelerator(name).accelerator
    across = float(internode_gbit_per_s or part.internode_gbit_per_s or 0.0)
    return Cluster(part, count, min(part.accelerators_per_node, count), across)


def find_or_build_model(row: Row) -> Model:
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
    """The row's shape, with the gate and the tied embeddings that come nearest to its published parameter count."""
    params = float(row["params"])
    gates = [row["gated"] == "true"] if row.get("gated") else [False, True]
    ties = [row["tied"] == "true"] if row.get("tied") else [True, False]
    shapes = [_transformer(row, gated=gated, tied=tied) for gated, tied in itertools.product(gates, ties)]
    return min(shapes, key=lambda shape: abs(count_parameters(shape).total - params))


def _transformer(row: Row, *, gated: bool, tied: bool) -> Transformer:
    heads, hidden = int(row["heads"]), int(row["hidden"])
    ffn = int(row["ffn"] or 4 * hidden)
    return Transformer(
        layers=int(row["layers"]),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=int(row["kv_heads"] or heads),
        head_dim=int(row.get("head_dim") or hidden // heads),
        ffn_hidden_size=ffn,
        vocab_size=int(row["vocab"] or 50257),
        gated_ffn=gated,
        tied_embeddings=tied,
        experts=_experts(row, ffn),
        latent=_latent(row),
    )


def _experts(row: Row, ffn: int) -> Experts | None:
    if not row.get("experts"):
        return None
    size, shared = int(row["expert_ffn"] or ffn), int(row.get("shared_experts") or 0)
    return Experts(
        int(row["experts"]),
        int(row["experts_per_token"]),
        size,
        shared_experts=shared,
        shared_ffn_hidden_size=size if shared else 0,
        dense_layers=int(row.get("dense_layers") or 0),
    )


def _latent(row: Row) -> LatentAttention | None:
    if not row.get("kv_lora_rank"):
        return None
    names = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    kept, nope, rope, value = (int(row[name]) for name in names)
    return LatentAttention(kept, nope, rope, value, int(row["q_lora_rank"] or 0))


def _case(row: Row) -> MeasuredCase:
    axes = Axes(
        **{name: parse_count(row[name]) for name in ("tensor", "pipeline", "data", "context", "expert", "micro_batch")},
        expert_tensor=parse_count(row.get("expert_tensor", "")),
        virtual_pipeline=parse_count(row["virtual"]) or (1 if row["pipeline"] == "1" else None),
        zero_stage=parse_count(row["zero"]),
        recompute=cast("Recompute", row["recompute"]) if row["recompute"] else None,
    )
    model, cluster = find_or_build_model(row), _slowed(build_cluster(row["accelerator"], int(row["count"]), row["internode"]), row)
    precision, software = cast("Precision", row["precision"]), float(row.get("software") or row["year"])
    training = Training(
        method="pretrain",
        precision=precision,
        optimizer=cast("Optimizer", row.get("optimizer") or "adamw"),
        seq_len=int(row["seq"]),
        global_batch=int(row["batch"]),
        footprint=find_footprint(cluster.accelerator, int(row["year"])),
        axes=axes,
        flash_attention=row["flash"] == "1",
        sequence_parallel=row["sequence_parallel"] == "1",
        states_dtype=cast("StatesDtype", row.get("states") or "fp32"),
        fused_experts=has_fused_experts(with_fixed_parameters({}, {}, {}, {}), cluster.accelerator.family, precision, software),
        software_year=int(row["year"]),
    )
    layouts = possible_layouts(model, training, cluster)
    rates = np.array([float(row["per_s"])])
    return MeasuredCase(
        ids=(row["id"],),
        table=row["table"],
        source=row["source"],
        document=row["document"],
        model=model,
        training=training,
        cluster=cluster,
        layouts=layouts,
        rates=rates,
        stated=is_layout_stated(axes),
        kernels=cast("Kernels", row["kernels"]),
    )


def _slowed(cluster: Cluster, row: Row) -> Cluster:
    """The machine, at the share of the usual arithmetic and power that its own published products reach."""
    if not row.get("products"):
        return cluster
    part, share = cluster.accelerator, float(row["products"])
    peaks = MappingProxyType({name: share * peak for name, peak in part.peak_tflops.items()})
    return replace(cluster, accelerator=replace(part, peak_tflops=peaks, tdp_w=part.tdp_w and share * part.tdp_w))


def is_layout_stated(axes: Axes) -> bool:
    """Whether the search decides nothing that affects a step's time."""
    return None not in (axes.tensor, axes.pipeline, axes.data, axes.micro_batch, axes.recompute)


def is_held_back(case: MeasuredCase) -> bool:
    """Every second of vTrain's model shapes, as on a chessboard of layers and hidden sizes."""
    shape = case.model
    return case.each and isinstance(shape, Transformer) and (VTRAIN_LAYERS.index(shape.layers) + shape.hidden_size // 1024) % 2 == 0


def without_layout(case: MeasuredCase) -> MeasuredCase:
    """The case with only what a planner knows: model, accelerator, count, sequence length and batch."""
    flash = bool(flash_attention(case.training.precision, case.accelerator.family).value)
    training = replace(case.training, axes=Axes(), flash_attention=flash, sequence_parallel=flash)
    return replace(case, training=training, stated=False)


def possible_layouts(model: Model, training: Training, cluster: Cluster) -> Layouts:
    """Layouts of the row that fit, by the engine's own memory, or the published one."""
    try:
        layouts = candidate_layouts(model, training, cluster)
    except InvalidRequest:
        return _as_published(training.axes)
    used = memory_use(model, training, layouts).total
    fits = used <= (1 + MEMORY_TOLERANCE) * cluster.accelerator.usable_memory_bytes
    return layouts.take(fits) if fits.any() else layouts.take(used <= used.min() * 1.2)


def _as_published(axes: Axes) -> Layouts:
    names = ("tensor", "pipeline", "data", "context", "expert", "expert_tensor", "virtual_pipeline", "micro_batch", "zero_stage")
    known = {name: value for name in names if (value := getattr(axes, name)) is not None}
    return Layouts.single(**known, recompute=("none", "selective", "full").index(axes.recompute or "none"))


def _vtrain_cases() -> Iterator[MeasuredCase]:
    """vTrain's single node: GPT shapes of 16 heads on A100 40 GB, sequences of 1,024 tokens, full recomputation, no ZeRO."""
    rows = list(enumerate(read_table("vtrain.csv"), 1))

    def shared(item: tuple[int, Row]) -> tuple[int, ...]:
        row = item[1]
        count = int(row["tensor"]) * int(row["pipeline"]) * int(row["data"])
        return int(row["layers"]), int(row["hidden"]), int(row["batch"]), count

    for (layers, hidden, batch, count), group in itertools.groupby(sorted(rows, key=shared), shared):
        members = list(group)
        model = replace(VTRAIN_GPT, layers=layers, hidden_size=hidden, head_dim=hidden // 16, ffn_hidden_size=4 * hidden)
        cluster = build_cluster("NVIDIA-A100-40GB-SXM", count)
        training = Training(
            "pretrain",
            "fp16",
            "adamw",
            1024,
            batch,
            find_footprint(cluster.accelerator, VTRAIN_YEAR),
            flash_attention=False,
            sequence_parallel=False,
            software_year=VTRAIN_YEAR,
        )
        names = ("tensor", "pipeline", "data", "micro_batch")
        columns = {name: np.array([int(row[name]) for _, row in members], dtype=np.int64) for name in names}
        one, zero = np.ones(len(members), dtype=np.int64), np.zeros(len(members), dtype=np.int64)
        layouts = Layouts(**columns, context=one, expert=one, expert_tensor=one, virtual_pipeline=one, zero_stage=zero, recompute=2 * one)
        seconds = np.array([float(row["seconds"]) for _, row in members])
        ids = tuple(f"v{index:04d}" for index, _ in members)
        yield MeasuredCase(ids, "vtrain", "vtrain", "vtrain", model, training, cluster, layouts, batch * 1024 / seconds / count, each=True)
