"""Published steps of reinforcement learning as inputs of the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from service.domain.errors import InvalidRequest
from service.domain.training.hardware import Precision
from service.domain.training.model import Transformer
from service.domain.training.reinforcement import PHASES, GenerationPool, Reinforcement, RolloutRates, Rollouts
from service.domain.training.run import AuxiliaryModels, Axes, Cluster, Recompute, Training
from service.domain.training.utilisation import Utilisation
from service.engine.training.layouts import Layouts
from service.engine.training.rl.lengths import lengths_from_mean, mean_sequence_tokens
from service.engine.training.rl.phases import step_by_phase, update_training
from service.engine.training.search.layout_search import choose_layout
from service.presets.serving import find_format
from service.presets.training.footprint import find_footprint
from service.presets.training.models import find_model
from service.presets.training.reinforcement import rl_default, rollout_rates, sampling_machine
from service.presets.training.utilisation import find_utilisation
from tools.calibration.cases import Row, build_cluster, parse_count, read_table

FILE = "rl.csv"
# Published phases, and the phases of ours that they hold.
PUBLISHED = {
    "generation_s": ("prefill", "generation"),
    "old_log_prob_s": ("old_log_prob",),
    "reference_s": ("reference",),
    "values_s": ("values",),
    "update_critic_s": ("update_critic",),
    "update_actor_s": ("update_actor",),
}


@dataclass(frozen=True)
class RlCase:
    """One published set-up: its request, what it took, and the layout it is timed in.

    `measured`: seconds of the step, as `step_s`, and of published phases. `fitted`: whether the rates are fitted to it.
    """

    id: str
    name: str
    source: str
    document: str
    model: Transformer
    training: Training
    cluster: Cluster
    utilisation: Utilisation
    layouts: Layouts
    measured: dict[str, float]
    fitted: bool


def rl_cases() -> list[RlCase]:
    """Every row of rl.csv that is not excluded."""
    return [_case(row) for row in read_table(FILE) if not row["excluded"]]


def predict_seconds(case: RlCase, rates: RolloutRates) -> dict[str, float]:
    """Seconds of the step and of its published phases."""
    assert case.training.rl is not None
    training = update_training(replace(case.training, rl=replace(case.training.rl, rates=rates)))
    found = step_by_phase(case.model, training, case.cluster, case.utilisation, case.layouts)
    seconds = {name: float(np.squeeze(found.seconds[name])) for name in PHASES if name in found.seconds}
    made = {name: sum(seconds.get(part, 0.0) for part in parts) for name, parts in PUBLISHED.items()}
    return {"step_s": float(found.steps.total[0]), **made}


def _case(row: Row) -> RlCase:
    model = find_model(row["model"]).model
    assert isinstance(model, Transformer)
    cluster = build_cluster(row["accelerator"], int(row["count"]))
    training = _training(row, cluster)
    precision = cast("Precision", row["precision"])
    training, layouts = _layout(model, training, cluster, find_utilisation(cluster.accelerator, precision))
    known = "layout" if row["tensor"] else "goal"
    utilisation = find_utilisation(cluster.accelerator, precision, known, cluster.count)
    measured = {name: float(row[name]) for name in ("step_s", *PUBLISHED) if row[name]}
    return RlCase(
        id=row["id"],
        name=row["model"],
        source=row["source"],
        document=row["document"],
        model=model,
        training=training,
        cluster=cluster,
        utilisation=utilisation,
        layouts=layouts,
        measured=measured,
        fitted=row["fitted"] == "1",
    )


def _training(row: Row, cluster: Cluster) -> Training:
    rl = _reinforcement(row, cluster)
    tensor, pipeline, context, expert = (parse_count(row[name]) for name in ("tensor", "pipeline", "context", "expert"))
    axes = Axes(
        tensor, pipeline, context=context, expert=expert, micro_batch=1, recompute=cast("Recompute | None", row["recompute"] or None)
    )
    return Training(
        method="rl",
        precision=cast("Precision", row["precision"]),
        optimizer="adamw",
        seq_len=mean_sequence_tokens(rl.rollouts, axes.context or 1),
        global_batch=rl.rollouts.responses,
        footprint=find_footprint(cluster.accelerator),
        axes=axes,
        auxiliary_models=AuxiliaryModels(reference=row["reference"] == "yes"),
        rl=rl,
    )


def _reinforcement(row: Row, cluster: Cluster) -> Reinforcement:
    prompt, response = float(row["prompt_tokens"]), float(row["response_tokens"])
    limit = float(row["max_response_tokens"] or float(row["max_sequence_tokens"]) - prompt)
    responses, to_each = int(row["responses"]), int(row["responses_per_prompt"] or rl_default("responses_per_prompt").value)
    sampling = parse_count(row["generation_count"])
    return Reinforcement(
        rollouts=Rollouts(
            prompts=responses // to_each,
            responses_per_prompt=to_each,
            prompt_tokens=prompt,
            lengths=lengths_from_mean(response, rl_default("log_deviation").value, limit),
        ),
        generation=GenerationPool(
            count=sampling,
            share=0.5,
            tensor=parse_count(row["generation_tensor"]),
            pipeline=None,
            expert=None,
            weight_format=find_format(row["generation_precision"]),
            machine=sampling_machine(cluster.accelerator, colocated=sampling is None),
            eager=row["eager"] == "1",
        ),
        mini_batch_responses=int(row["mini_batch"]),
        critic_params=float(row["critic_params"] or 0),
        asynchronous_steps=int(row["asynchronous_steps"]),
        offload=sampling is None,
        rates=rollout_rates(),
    )


def _layout(model: Transformer, training: Training, cluster: Cluster, utilisation: Utilisation) -> tuple[Training, Layouts]:
    """The row's layout, or with fewer of its axes where those printed do not make up the accelerators that train."""
    axes = training.axes
    for fewer in (axes, replace(axes, expert=None), Axes(micro_batch=1, recompute=axes.recompute)):
        tried = replace(training, axes=fewer)
        try:
            return tried, choose_layout(model, tried, cluster, utilisation).layouts
        except InvalidRequest:
            continue
    raise AssertionError("with no axis stated some layout makes up any number of accelerators")
