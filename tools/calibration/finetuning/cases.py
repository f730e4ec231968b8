"""Published fine-tuning measurements as questions to the engine: speed, peak memory, and whether the job ran at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from service.domain.training.hardware import Precision
from service.domain.training.model import Experts, Transformer
from service.domain.training.run import FROZEN_BASE, Axes, KernelFusion, Method, Optimizer, Recompute, StatesDtype, Training
from service.engine.training.layouts import candidate_layouts
from service.presets.defaults import default
from service.presets.training.finetuning import finetuning_rates
from service.presets.training.footprint import find_footprint
from tools.calibration.cases import MeasuredCase, Row, build_cluster, is_layout_stated, parse_count, read_table

NAME = "finetuning.csv"
# The service's own where a row does not state them.
RANK, TARGETS, STATES = (default(f"training.{name}").value for name in ("lora_rank", "adapter_targets", "states_dtype"))


@dataclass(frozen=True)
class FineTuningCase:
    """One measured fine-tuning job.

    `speed`: the question with its tokens a second and accelerator, NaN where they are not published or not good for scoring.
    `gigabytes`: peak memory, None likewise; `allocated`: of the program's tensors alone, without what the device and the allocator hold.
    """

    speed: MeasuredCase
    gigabytes: float | None
    allocated: bool
    ran: bool

    @property
    def method(self) -> Method:
        return self.speed.training.method

    @property
    def document(self) -> str:
        return self.speed.document


def finetuning_cases() -> list[FineTuningCase]:
    """Every row of finetuning.csv."""
    return [_case(row) for row in read_table(NAME)]


def _case(row: Row) -> FineTuningCase:
    measured = row["per_s"] and not row["excluded_speed"]
    return FineTuningCase(
        speed=_question(row, float(row["per_s"]) if measured else np.nan),
        gigabytes=float(row["gigabytes"]) if row["gigabytes"] and not row["excluded_memory"] else None,
        allocated=row["basis"] == "allocated",
        ran=row["outcome"] == "ok",
    )


def _question(row: Row, rate: float) -> MeasuredCase:
    cluster, model = build_cluster(row["accelerator"], int(row["count"])), _model(row)
    axes = _axes(row)
    training = Training(
        method=cast("Method", row["method"]),
        precision=cast("Precision", row["precision"]),
        optimizer=cast("Optimizer", row["optimizer"]),
        seq_len=int(row["seq"]),
        global_batch=_batch(row, axes),
        footprint=find_footprint(cluster.accelerator),
        axes=axes,
        states_dtype=cast("StatesDtype", row["states"] or STATES),
        kernel_fusion=cast("KernelFusion", row["fusion"]) if row["fusion"] else None,
        finetuning=finetuning_rates(cluster.accelerator.family),
    )
    if training.method in FROZEN_BASE:
        training = replace(training, lora_rank=int(row["rank"] or RANK), adapter_targets=tuple((row["targets"] or TARGETS).split()))
    return MeasuredCase(
        ids=(row["id"],),
        table="finetuning",
        source=row["document"].partition(" ")[0],
        document=row["document"],
        model=model,
        training=training,
        cluster=cluster,
        layouts=candidate_layouts(model, training, cluster),
        rates=np.array([rate]),
        stated=is_layout_stated(axes),
    )


def _model(row: Row) -> Transformer:
    experts = None
    if row["experts"]:
        experts = Experts(int(row["experts"]), int(row["experts_per_token"]), int(row["expert_ffn"]))
    heads, hidden = int(row["heads"]), int(row["hidden"])
    return Transformer(
        layers=int(row["layers"]),
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=int(row["kv_heads"]),
        head_dim=int(row["head_dim"] or hidden // heads),
        ffn_hidden_size=int(row["ffn"] or row["expert_ffn"]),
        vocab_size=int(row["vocab"]),
        gated_ffn=row["gated"] == "yes",
        tied_embeddings=row["tied"] == "yes",
        experts=experts,
        params=float(row["params"]),
        active_params=float(row["active"]) if row["active"] else None,
    )


def _axes(row: Row) -> Axes:
    sizes = {name: parse_count(row[name]) for name in ("tensor", "pipeline", "context", "micro_batch")}
    count, alone = int(row["count"]), row["count"] == "1"
    if alone:
        sizes |= {"tensor": 1, "pipeline": 1, "context": 1}
    ranks = [sizes[name] for name in ("tensor", "pipeline", "context")]
    known = [size for size in ranks if size is not None]
    return Axes(
        **sizes,
        data=count // int(np.prod(known)) if len(known) == len(ranks) else None,
        virtual_pipeline=parse_count(row["virtual"]) or (1 if sizes["pipeline"] == 1 else None),
        zero_stage=0 if alone else parse_count(row["zero"]),
        recompute=cast("Recompute", row["recompute"]) if row["recompute"] else None,
    )


def _batch(row: Row, axes: Axes) -> int:
    """Sequences of a step: stated, or one micro-batch of each rank."""
    return int(row["batch"]) if row["batch"] else int(row["micro_batch"]) * int(row["accumulation"] or 1) * (axes.data or int(row["count"]))
