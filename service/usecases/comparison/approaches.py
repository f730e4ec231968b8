"""The same task done in several ways: prompting, adapters, fine-tuning, further pre-training, distillation, pre-training. Costs of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from service.context import AppContext
from service.domain.answer_fields import Doc
from service.domain.comparison.approaches import APPROACHES, Approach, ApproachNeeds, ApproachServing, ApproachTraining, CostedApproach
from service.domain.errors import DoesNotFit, DomainError, InvalidRequest
from service.domain.quantities import Assumption, Range
from service.domain.scaling.laws import FLOPS_PER_PARAM_AND_TOKEN
from service.domain.training.model import GenericNetwork, Transformer
from service.engine.scaling.laws import optimal_params, size_exponent
from service.engine.serving.configurations import payback_tokens
from service.engine.training.parameters import count_parameters, total_parameters
from service.presets.comparison.approaches import approach_default, load_approaches
from service.presets.defaults import default
from service.presets.scaling.laws import default_law
from service.presets.serving import default_shape
from service.presets.version import engine_version
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import Price
from service.usecases.scaling.size_costs import LifetimeServing, resolve_lifetime_serving, resolve_setup
from service.usecases.training.estimate import EstimateAnswer, estimate

Given = Mapping[str, Any]

# Numbers of accelerators that are tried, up to the caller's own.
COUNT_FACTOR = 8
HOURS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class ApproachesAnswer:
    """The approaches, the cheapest over the lifetime first, those that cannot be done last."""

    approaches: Annotated[tuple[CostedApproach, ...], Doc("Approaches by the median of their total, those that cannot be done last")]
    requests: Annotated[float, Doc("Requests over the lifetime", "count")]
    price: Annotated[Price, Doc("Price of training")]
    serving_price: Annotated[Price, Doc("Price of serving")]
    price_snapshot: Annotated[str, Doc("Name of the price snapshot the answer is made with")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


@dataclass(frozen=True, slots=True)
class ApproachTask:
    """A request, resolved: the model, what each approach trains on and serves with, and who serves."""

    context: AppContext
    request: Given
    snapshot: str
    model: Transformer
    student: tuple[Transformer, dict[str, Any]]
    prompted: Transformer
    serving: LifetimeServing
    tokens: Mapping[str, dict[str, Any]]
    demonstration_tokens: float
    usd_per_hour: float
    max_days: float


def approaches(context: AppContext, request: Given) -> ApproachesAnswer:
    """The answer to a request as the schema gives it. Raises DomainErrors, with pointers into the request."""
    notes = AssumptionLog()
    book = context.book(request.get("price", {}).get("snapshot"))
    rig = resolve_setup(context, request, of_mixtures=False)
    if rig is None:
        raise InvalidRequest("approaches are trained and served on a machine: state hardware", "/hardware")
    serving = resolve_lifetime_serving(rig, request.get("serving", {}), float(request["lifetime_inference_tokens"]), book, notes)
    task = _task(context, request, serving, book.name, notes)
    wanted = request.get("approaches", APPROACHES)
    found = [_costed(task, approach) for name, approach in load_approaches().items() if name in wanted]
    notes.warn("the order is by cost alone: what each approach gives differs, and only a trial on the task shows whether it is enough")
    return ApproachesAnswer(
        _ranked(found, serving),
        serving.number,
        rig.price,
        serving.price,
        book.name,
        engine_version(),
        notes.assumptions,
        tuple(notes.warnings),
    )


def _task(context: AppContext, request: Given, serving: LifetimeServing, snapshot: str, notes: AssumptionLog) -> ApproachTask:
    prompting = request.get("prompting", {})
    model = _transformer(request, "model", "", notes)
    extra = approach_default("demonstration_tokens")
    rate = default("personnel.usd_per_hour")
    return ApproachTask(
        context=context,
        request=request,
        snapshot=snapshot,
        model=model,
        student=_student(request, model, notes),
        prompted=_transformer(prompting, "model", "/prompting", notes) if "model" in prompting else model,
        serving=serving,
        tokens=_tokens(request, model, notes),
        demonstration_tokens=float(notes.take(prompting, "prompting.demonstration_tokens", extra.value, extra.source)),
        usd_per_hour=float(notes.take(request, "people_usd_per_hour", rate.value, rate.source)),
        max_days=float(_chosen(request, "max_days", notes)),
    )


def _transformer(given: Given, name: str, below: str, notes: AssumptionLog) -> Transformer:
    """A model that writes text. Raises DomainErrors with pointers into the request."""
    try:
        model, _ = resolve_model(given[name], notes, f"{below.removeprefix('/')}.{name}".removeprefix("."))
    except DomainError as problem:
        problem.pointer = problem.pointer.replace("/model", f"/{name}", 1)
        raise problem.below(below) from problem
    if isinstance(model, GenericNetwork) or model.kind != "transformer":
        raise InvalidRequest(
            "approaches are compared for decoder-only transformers: state one by its size, shape or preset", f"{below}/{name}"
        )
    return model


def _student(request: Given, model: Transformer, notes: AssumptionLog) -> tuple[Transformer, dict[str, Any]]:
    """What is distilled into, and how an estimate describes it."""
    if "student" in request:
        return _transformer(request, "student", "", notes), request["student"]
    share = approach_default("student_share")
    counts = count_parameters(model)
    described: dict[str, Any] = {"params": max(1, round(counts.total * share.value)), **default_shape()}
    if model.experts is not None:
        described["active_params"] = max(1, round(counts.active * share.value))
    notes.assume("student", described, f"{share.value:g} of the model's parameters: {share.source}")
    return _transformer({"student": described}, "student", "", AssumptionLog()), described


def _tokens(request: Given, model: Transformer, notes: AssumptionLog) -> dict[str, dict[str, Any]]:
    """The data of each approach's estimate."""
    epochs = float(_chosen(request, "epochs", notes))
    task = {"tokens": request["task_tokens"], "epochs": epochs}
    domain = int(_chosen(request, "domain_tokens", notes))
    stated = request.get("pretraining_tokens")
    pretraining = stated or notes.assume(
        "pretraining_tokens", _optimal_tokens(model), f"what the size is optimal for by {default_law().name}"
    )
    if stated is None:
        notes.warn("pre-training is counted with the compute-optimal tokens of its size: published models of it are trained on far more")
    return {
        "lora": task,
        "full_finetune": task,
        "continued_pretrain": {"tokens": domain + round(request["task_tokens"] * epochs)},
        "distillation": {"tokens": int(_chosen(request, "distillation_tokens", notes))},
        "pretraining": {"tokens": pretraining},
    }


def _optimal_tokens(model: Transformer) -> int:
    """Tokens with whose FLOPs the default law would choose this size: N = N_1 (C / 6)^a solved for C."""
    law, params = default_law().law, total_parameters(model)
    at_one = float(optimal_params(law, FLOPS_PER_PARAM_AND_TOKEN))
    return max(1, round(float((params / at_one) ** (1 / size_exponent(law)) / params)))


def _chosen(request: Given, name: str, notes: AssumptionLog) -> Any:
    usual = approach_default(name)
    return notes.take(request, name, usual.value, usual.source)


def _costed(task: ApproachTask, approach: Approach) -> CostedApproach:
    """One approach; what stands in its way is told, not raised."""
    run, reasons = _trained(task, approach) if approach.method else (None, ())
    serving = _served(task, approach)
    if serving is None:
        reasons = (*reasons, "the model cannot be served on that accelerator: it does not fit on as many as are searched")
    people_usd = approach.people_hours * task.usd_per_hour
    training = None if run is None else _training(run[0], run[1])
    return CostedApproach(
        rank=0,
        approach=approach.name,
        title=approach.title,
        feasible=not reasons,
        reasons=reasons,
        total_usd=None if reasons or serving is None else _sum(serving.usd, training.usd if training else Range.exactly(people_usd)),
        training=training,
        people_usd=people_usd,
        serving=serving,
        pays_back_at_tokens=None,
        needs=_needs(approach, run and run[0]),
        gives=approach.gives,
        risk=approach.risk,
        source=approach.source,
    )


def _trained(task: ApproachTask, approach: Approach) -> tuple[tuple[EstimateAnswer, dict[str, Any]] | None, tuple[str, ...]]:
    """The run on the fewest accelerators that hold it and are done in time, else on those that are done first; or why there is none."""
    fitting, obstacle = [], ""
    for count in _counts(task.request["hardware"]["count"]):
        request = _estimate_request(task, approach, count)
        try:
            answer = estimate(task.context, request)
        except (DoesNotFit, InvalidRequest) as problem:
            obstacle = problem.message
            continue
        fitting.append((answer, request))
        if answer.estimate.time.wall_clock_hours.p50 <= task.max_days * HOURS_PER_DAY:
            return (answer, request), ()
    if not fitting:
        return None, (obstacle,)
    soonest = min(fitting, key=lambda run: run[0].estimate.time.wall_clock_hours.p50)
    days = soonest[0].estimate.time.wall_clock_hours.p50 / HOURS_PER_DAY
    return soonest, (f"takes {days:,.3g} days, above max_days {task.max_days:g}, on {soonest[1]['hardware']['count']:,} accelerators",)


def _counts(most: int) -> list[int]:
    powers = [COUNT_FACTOR**power for power in range(int(np.log(most) / np.log(COUNT_FACTOR)) + 1)]
    return sorted({*(count for count in powers if count < most), most})


def _estimate_request(task: ApproachTask, approach: Approach, count: int) -> dict[str, Any]:
    """As POST /v1/estimate takes it."""
    training: dict[str, Any] = {"method": approach.method}
    if approach.name == "distillation":
        training["teacher"] = dict(task.request["model"])
    return {
        "model": dict(task.student[1] if approach.name == "distillation" else task.request["model"]),
        "data": task.tokens[approach.name],
        "training": training,
        "hardware": {**task.request["hardware"], "count": count},
        "price": {**task.request.get("price", {}), "snapshot": task.snapshot},
        "personnel": {
            "analysis_hours": approach.people_hours,
            "usd_per_hour": task.usd_per_hour,
            "evaluation_hours": 0.0,
            "oncall_hours": 0.0,
        },
    }


def _training(answer: EstimateAnswer, request: dict[str, Any]) -> ApproachTraining:
    found = answer.estimate
    return ApproachTraining(found.cost.total_usd, found.time.accelerator_hours, found.time.wall_clock_hours, request)


def _served(task: ApproachTask, approach: Approach) -> ApproachServing | None:
    """The lifetime's requests, with demonstrations where the model is prompted; None where it cannot be served."""
    asked, prompting = task.serving.requests, task.request.get("prompting", {})
    if approach.name != "prompting":
        model = task.student[0] if approach.name == "distillation" else task.model
        return _served_by(task, model, task.serving.usd_per_request(model), asked.prompt_tokens)
    prompt = asked.prompt_tokens + task.demonstration_tokens
    if "usd_per_million_input_tokens" in prompting:
        usd = prompt * prompting["usd_per_million_input_tokens"] + asked.output_tokens * prompting["usd_per_million_output_tokens"]
        return _served_by(task, None, Range.exactly(usd / 1e6), prompt)
    # Demonstrations are the same in every request, so engines keep their keys and values.
    requests = replace(asked, prompt_tokens=prompt, cached_share=task.demonstration_tokens / max(prompt, 1.0))
    return _served_by(task, task.prompted, task.serving.usd_per_request(task.prompted, requests), prompt)


def _served_by(task: ApproachTask, model: Transformer | None, usd: Range, prompt_tokens: float) -> ApproachServing | None:
    if not np.isfinite(usd.p90):
        return None
    params = None if model is None else total_parameters(model)
    return ApproachServing(usd.scaled(task.serving.number), usd, prompt_tokens, params, hosted=model is None)


def _sum(one: Range, other: Range) -> Range:
    """Both together, taken to err to the same side."""
    return Range(one.p10 + other.p10, one.p50 + other.p50, one.p90 + other.p90)


def _needs(approach: Approach, answer: EstimateAnswer | None) -> ApproachNeeds:
    count = 0 if answer is None else round(answer.estimate.time.accelerator_hours.p50 / answer.estimate.time.wall_clock_hours.p50)
    return ApproachNeeds(
        data=approach.data,
        accelerators=approach.accelerators,
        people=approach.people,
        trained_tokens=0.0 if answer is None else answer.estimate.tokens.trained,
        accelerator_count=count,
        memory_gb=None if answer is None else answer.estimate.memory.per_accelerator_gb,
        people_hours=approach.people_hours,
    )


def _ranked(found: list[CostedApproach], serving: LifetimeServing) -> tuple[CostedApproach, ...]:
    """In order of cost, and against prompting."""
    ordered = sorted(found, key=lambda each: (not each.feasible, each.total_usd.p50 if each.total_usd else 0.0))
    prompting = next((each for each in found if each.approach == "prompting"), None)
    return tuple(
        replace(each, rank=rank, pays_back_at_tokens=_pays_back(each, prompting, serving)) for rank, each in enumerate(ordered, start=1)
    )


def _pays_back(each: CostedApproach, prompting: CostedApproach | None, serving: LifetimeServing) -> float | None:
    """Tokens served after which the run and its people are paid for by cheaper requests than by prompting."""
    if prompting is None or prompting.serving is None or each.serving is None or each.training is None or not each.feasible:
        return None
    a_request = serving.requests.prompt_tokens + serving.requests.output_tokens
    before, after = (one.usd_per_request.p50 / a_request for one in (prompting.serving, each.serving))
    tokens = float(payback_tokens(each.training.usd.p50 - prompting.people_usd, before, after))
    return max(0.0, tokens) if np.isfinite(tokens) else None
