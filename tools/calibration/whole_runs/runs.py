"""Published training runs, planned from their goal alone: model, tokens, accelerators. The engine chooses the layout."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from service.domain.quantities import Range
from service.domain.training.hardware import Precision
from service.domain.training.model import GenericNetwork, Model
from service.domain.training.run import (
    AS_STATED,
    Billing,
    Cluster,
    Data,
    Efficiency,
    Energy,
    Failures,
    Network,
    Overhead,
    Personnel,
    Run,
    Schedule,
    Storage,
    Training,
)
from service.domain.training.utilisation import PlanCalibration
from service.engine.training.parameters import total_parameters
from service.engine.training.reliability import reliability
from service.engine.training.run_time import predict_run_time
from service.presets.defaults import batch_tokens, default, flash_attention
from service.presets.training.footprint import find_footprint
from service.presets.training.models import find_model
from service.presets.training.reliability import find_failure_rate, recovery_defaults
from service.presets.training.throughput_parameters import FittedParameters
from service.presets.training.utilisation import utilisation
from tools.calibration.cases import Row, build_cluster, find_or_build_model, parse_count, read_table
from tools.calibration.folds import search_rate

# Those that were there from the start, and those that were found later.
FILES = ("runs.csv", "more_runs.csv")


@dataclass(frozen=True)
class PublishedRun:
    """A run that was done: what was trained on which machine, and the accelerator-hours it took.

    `publication`: whose benchmarks would give its speed away; `kin`: that, or else its family of models: runs left out together.
    """

    name: str
    publication: str
    kin: str
    model: Model
    training: Training
    cluster: Cluster
    tokens: float
    hours: float


def published_runs(*files: str) -> list[PublishedRun]:
    """Every run of these files, else of all, that is not excluded."""
    return [_run(row) for file in files or FILES for row in read_table(file) if not row["excluded"]]


def hours_of_steps_and_failures(run: PublishedRun, parameters: FittedParameters) -> float:
    """Accelerator-hours of the run's steps as the engine models them, with the interruptions and the recovery of its year."""
    per_s = search_rate(run.model, run.training, run.cluster, parameters)
    return run.tokens / per_s / 3600 / goodput_of(run)


def hours_range(run: PublishedRun, parameters: FittedParameters, planning: PlanCalibration, spread: Range) -> Range:
    """Accelerator-hours that a request with nothing but the goal is answered with, under these parameters and this spread of the speed."""
    training = run.training
    reached = utilisation(parameters, run.cluster.accelerator, training.precision, software_year=training.software_year)
    used = replace(reached, spread=spread, layout_loss=parameters.layout_loss)
    return predict_run_time(_planned(run), used, planning).wall_clock_hours.scaled(run.cluster.count)


def _planned(run: PublishedRun) -> Run:
    """The run with nothing around it: no price, storage or people."""
    return Run(
        model=run.model,
        data=Data(run.tokens, run.tokens, 1.0),
        training=run.training,
        cluster=run.cluster,
        efficiency=Efficiency(),
        failures=failures_of(run, find_failure_rate(run.cluster.accelerator).mttf_hours),
        storage=Storage(0.0, 0, 0.0, 0.0, 0.0),
        network=Network(0.0, 0.0),
        personnel=Personnel(0.0, 0.0, 0.0, 0.0),
        overhead=Overhead(0.0, 0.0, 0.0),
        energy=Energy("world", 0.0, 1.0, 0.0, 0.0, None),
        schedule=Schedule(None, None, 0.0, 0.0),
        billing=Billing(0.0),
    )


def goodput_of(run: PublishedRun) -> float:
    """Useful share of the run's time at its accelerators' usual time to failure [1]."""
    mttf = find_failure_rate(run.cluster.accelerator).mttf_hours
    return reliability(failures_of(run, mttf), run.cluster, 0.0, mttf.p50).goodput


def failures_of(run: PublishedRun, mttf: Range) -> Failures:
    """How such a machine fails, and recovers with the software of the run's year."""
    recovery = {name: entry.value for name, entry in recovery_defaults(run.training.software_year).items()}
    return Failures(
        mttf_hours_per_accelerator=mttf,
        checkpoint_interval_minutes=None,
        preemptions_per_node_hour=0.0,
        preemption_spread=AS_STATED,
        **recovery,
    )


def _run(row: Row) -> PublishedRun:
    model = find_model(row["preset"]).model if row["preset"] else find_or_build_model(row)
    cluster = build_cluster(row["accelerator"], int(row["count"]))
    other = isinstance(model, GenericNetwork)
    seq_len = 1 if other else int(row["seq"])
    flash = bool(flash_attention(row["precision"], cluster.accelerator.family).value)
    training = Training(
        method="pretrain",
        precision=cast("Precision", row["precision"]),
        optimizer="sgd" if row["architecture"] == "cnn" else "adamw",
        seq_len=seq_len,
        global_batch=max(_batch(row, model, seq_len), -(-cluster.count // 8)),
        footprint=find_footprint(cluster.accelerator, int(row["year"])),
        flash_attention=flash,
        sequence_parallel=flash,
        software_year=int(row["year"]),
    )
    tokens = float(row["tokens"]) * (float(row["epochs"] or 1) if other else 1.0)
    kin = row["publication"] or row["id"].partition("-")[0]
    return PublishedRun(row["id"], row["publication"], kin, model, training, cluster, tokens, float(row["hours"]))


def _batch(row: Row, model: Model, seq_len: int) -> int:
    if isinstance(model, GenericNetwork):
        return int(default("training.samples_per_batch").value)
    return round((parse_count(row["batch_tokens"]) or int(batch_tokens(total_parameters(model)).value)) / seq_len)
