"""Rows of accelerators that the large fit has few or none of, as questions to the engine: what a request can state of them and no more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from service.domain.training.hardware import Precision
from service.domain.training.model import GenericNetwork
from service.domain.training.run import FROZEN_BASE, TUNED, Axes, Method, Recompute, Training
from service.presets.defaults import default, flash_attention
from service.presets.training.finetuning import finetuning_rates
from service.presets.training.footprint import find_footprint
from tools.calibration.cases import (
    MeasuredCase,
    Row,
    build_cluster,
    find_or_build_model,
    is_layout_stated,
    parse_count,
    possible_layouts,
    read_table,
)

NAME = "other_accelerators.csv"
RANK, TARGETS = (default(f"training.{name}").value for name in ("lora_rank", "adapter_targets"))
# Figures that a continuous-integration test has to reach: the machine is at least that fast.
LOWER = "lower"


@dataclass(frozen=True)
class OtherCase:
    """One measured job; `at_least`: its rate is a lower bound."""

    question: MeasuredCase
    at_least: bool

    @property
    def in_samples(self) -> bool:
        """Whether it is a network counted by samples, which has a share of its own."""
        return isinstance(self.question.model, GenericNetwork)


def other_cases() -> list[OtherCase]:
    """Every row that is not excluded."""
    return [OtherCase(_question(row), row["bound"] == LOWER) for row in read_table(NAME) if not row["excluded"]]


def _question(row: Row) -> MeasuredCase:
    cluster, model, axes = build_cluster(row["accelerator"], int(row["count"])), find_or_build_model(row), _axes(row)
    flash = bool(flash_attention(row["precision"], cluster.accelerator.family).value)
    method = cast("Method", row["method"])
    training = Training(
        method=method,
        precision=cast("Precision", row["precision"]),
        optimizer="adamw",
        seq_len=int(row["seq"] or 1),
        global_batch=int(row["batch"]),
        footprint=find_footprint(cluster.accelerator, int(row["year"])),
        axes=axes,
        flash_attention=flash,
        sequence_parallel=flash and row["sequence_parallel"] != "0",
        finetuning=finetuning_rates(cluster.accelerator.family) if method in TUNED else None,
        software_year=int(row["year"]),
    )
    if method in FROZEN_BASE:
        training = replace(training, lora_rank=int(row["rank"] or RANK), adapter_targets=tuple(str(TARGETS).split()))
    return MeasuredCase(
        ids=(row["id"],),
        table="other-accelerators",
        source=row["source"],
        document=row["document"],
        model=model,
        training=training,
        cluster=cluster,
        layouts=possible_layouts(model, training, cluster),
        rates=np.array([float(row["per_s"])]),
        stated=is_layout_stated(axes),
    )


def _axes(row: Row) -> Axes:
    sizes = {name: parse_count(row[name]) for name in ("tensor", "pipeline", "data", "context", "expert", "micro_batch")}
    return Axes(
        **sizes,
        virtual_pipeline=parse_count(row["virtual"]) or (1 if sizes["pipeline"] == 1 else None),
        zero_stage=parse_count(row["zero"]),
        recompute=cast("Recompute", row["recompute"]) if row["recompute"] else None,
    )
