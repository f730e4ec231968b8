"""Costs of a task by approach: prompting, adapters, fine-tuning, continued pre-training, distillation, pre-training."""

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
from service.domain.tracking.feedback import LessonsReference
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
from service.usecases.resolution.feedback import note_lessons
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.price import Price, require_priced
from service.usecases.scaling.size_costs import LifetimeServing, resolve_lifetime_serving, resolve_setup
from service.usecases.training.estimate import EstimateAnswer, estimate

Request = Mapping[str, Any]

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
    lessons: Annotated[LessonsReference | None, Doc("Lessons of the team's finished runs; null: it has none")]
    engine_version: Annotated[str, Doc("Version of the engine and its data")]
    assumptions: Annotated[tuple[Assumption, ...], Doc("Values the caller did not state, with the reason for each", max_items=1000)]
    warnings: Annotated[tuple[str, ...], Doc("What to check before relying on the answer", max_items=100, max_length=5000)]


@dataclass(frozen=True, slots=True)
class ApproachTask:
    """A resolved request: the model, what each approach trains on and serves with, and who serves."""

    context: AppContext
    request: Request
    snapshot: str
    model: Transformer
    student: tuple[Transformer, dict[str, Any]]
    prompted: Transformer
    serving: LifetimeServing
    tokens: Mapping[str, dict[str, Any]]
    demonstration_tokens: float
    usd_per_hour: float
    max_days: float


def approaches(context: AppContext, request: Request) -> ApproachesAnswer:
    """The answer to a validated request. Raises DomainErrors with pointers into the request."""
    notes = AssumptionLog()
    book = context.book(request.get("price", {}).get("snapshot"))
    setup = resolve_setup(context, request, book, notes, of_mixtures=False)
    if setup is None:
        raise InvalidRequest("approaches are trained and served on a machine: state hardware", "/hardware")
    price = require_priced(setup.price)
    serving = resolve_lifetime_serving(setup, request.get("serving", {}), float(request["lifetime_inference_tokens"]), book, notes)
    task = _task(context, request, serving, book.name, notes)
    names = request.get("approaches", APPROACHES)
    costed = [_cost_approach(task, approach) for name, approach in load_approaches().items() if name in names]
    note_lessons(context, notes)
    notes.warn("the order is by cost alone: what each approach gives differs, and only a trial on the task shows whether it is enough")
    return ApproachesAnswer(
        approaches=_ranked(costed, serving),
        requests=serving.requests_total,
        price=price,
        serving_price=require_priced(serving.price),
        price_snapshot=book.name,
        lessons=context.lessons_reference(),
        engine_version=engine_version(),
        assumptions=notes.assumptions,
        warnings=tuple(notes.warnings),
    )


def _task(context: AppContext, request: Request, serving: LifetimeServing, snapshot: str, notes: AssumptionLog) -> ApproachTask:
    prompting = request.get("prompting", {})
    model = _transformer(request, "model", "", notes)
    demonstration = approach_default("demonstration_tokens")
    hourly_rate = default("personnel.usd_per_hour")
    return ApproachTask(
        context=context,
        request=request,
        snapshot=snapshot,
        model=model,
        student=_student(request, model, notes),
        prompted=_transformer(prompting, "model", "/prompting", notes) if "model" in prompting else model,
        serving=serving,
        tokens=_tokens(request, model, notes),
        demonstration_tokens=float(notes.take(prompting, "prompting.demonstration_tokens", demonstration.value, demonstration.source)),
        usd_per_hour=float(notes.take(request, "people_usd_per_hour", hourly_rate.value, hourly_rate.source)),
        max_days=float(_take_default(request, "max_days", notes)),
    )


def _transformer(section: Request, name: str, pointer: str, notes: AssumptionLog) -> Transformer:
    """A decoder-only transformer. Raises DomainErrors with pointers into the request."""
    try:
        model, _ = resolve_model(section[name], notes, f"{pointer.removeprefix('/')}.{name}".removeprefix("."))
    except DomainError as problem:
        problem.pointer = problem.pointer.replace("/model", f"/{name}", 1)
        raise problem.below(pointer) from problem
    if isinstance(model, GenericNetwork) or model.kind != "transformer":
        raise InvalidRequest(
            "approaches are compared for decoder-only transformers: state one by its size, shape or preset", f"{pointer}/{name}"
        )
    return model


def _student(request: Request, model: Transformer, notes: AssumptionLog) -> tuple[Transformer, dict[str, Any]]:
    """The model that is distilled into, and its description in an estimate."""
    if "student" in request:
        return _transformer(request, "student", "", notes), request["student"]
    share = approach_default("student_share")
    counts = count_parameters(model)
    described: dict[str, Any] = {"params": max(1, round(counts.total * share.value)), **default_shape()}
    if model.experts is not None:
        described["active_params"] = max(1, round(counts.active * share.value))
    notes.assume("student", described, f"{share.value:g} of the model's parameters: {share.source}")
    return _transformer({"student": described}, "student", "", AssumptionLog()), described


def _tokens(request: Request, model: Transformer, notes: AssumptionLog) -> dict[str, dict[str, Any]]:
    """Data section of each approach's estimate."""
    epochs = float(_take_default(request, "epochs", notes))
    task = {"tokens": request["task_tokens"], "epochs": epochs}
    domain = int(_take_default(request, "domain_tokens", notes))
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
        "distillation": {"tokens": int(_take_default(request, "distillation_tokens", notes))},
        "pretraining": {"tokens": pretraining},
    }


def _optimal_tokens(model: Transformer) -> int:
    """Tokens for which the default law gives this size: N = N_1 (C / 6)^a solved for C."""
    law, params = default_law().law, total_parameters(model)
    at_one = float(optimal_params(law, FLOPS_PER_PARAM_AND_TOKEN))
    return max(1, round(float((params / at_one) ** (1 / size_exponent(law)) / params)))


def _take_default(request: Request, name: str, notes: AssumptionLog) -> Any:
    default = approach_default(name)
    return notes.take(request, name, default.value, default.source)


def _cost_approach(task: ApproachTask, approach: Approach) -> CostedApproach:
    """Cost of one approach; obstacles become reasons."""
    run, reasons = _find_run(task, approach) if approach.method else (None, ())
    serving = _serving_cost(task, approach)
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
        needs=_needs(approach, run),
        gives=approach.gives,
        risk=approach.risk,
        source=approach.source,
    )


def _find_run(task: ApproachTask, approach: Approach) -> tuple[tuple[EstimateAnswer, dict[str, Any]] | None, tuple[str, ...]]:
    """Run on the fewest accelerators that hold it and finish in time, else the fastest; or the reason why there is none."""
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


def _counts(largest: int) -> list[int]:
    powers = [COUNT_FACTOR**power for power in range(int(np.log(largest) / np.log(COUNT_FACTOR)) + 1)]
    return sorted({*(count for count in powers if count < largest), largest})


def _estimate_request(task: ApproachTask, approach: Approach, count: int) -> dict[str, Any]:
    """A request as POST /v1/estimate takes it."""
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
    time = answer.estimate.time
    return ApproachTraining(require_priced(answer.estimate.cost.total_usd), time.accelerator_hours, time.wall_clock_hours, request)


def _serving_cost(task: ApproachTask, approach: Approach) -> ApproachServing | None:
    """Cost of the lifetime's requests, with demonstrations where the model is prompted; None where it cannot be served."""
    mean_request, prompting = task.serving.request, task.request.get("prompting", {})
    if approach.name != "prompting":
        model = task.student[0] if approach.name == "distillation" else task.model
        return _lifetime_serving(task, model, task.serving.usd_per_request(model), mean_request.prompt_tokens)
    prompt = mean_request.prompt_tokens + task.demonstration_tokens
    if "usd_per_million_input_tokens" in prompting:
        usd = prompt * prompting["usd_per_million_input_tokens"] + mean_request.output_tokens * prompting["usd_per_million_output_tokens"]
        return _lifetime_serving(task, None, Range.exactly(usd / 1e6), prompt)
    # Demonstrations are the same in every request, so engines keep their keys and values.
    demonstrated = replace(mean_request, prompt_tokens=prompt, cached_share=task.demonstration_tokens / max(prompt, 1.0))
    return _lifetime_serving(task, task.prompted, task.serving.usd_per_request(task.prompted, demonstrated), prompt)


def _lifetime_serving(task: ApproachTask, model: Transformer | None, usd: Range, prompt_tokens: float) -> ApproachServing | None:
    if not np.isfinite(usd.p90):
        return None
    params = None if model is None else total_parameters(model)
    return ApproachServing(usd.scaled(task.serving.requests_total), usd, prompt_tokens, params, hosted=model is None)


def _sum(first: Range, second: Range) -> Range:
    """Sum of quantities whose errors have the same sign."""
    return Range(first.p10 + second.p10, first.p50 + second.p50, first.p90 + second.p90)


def _needs(approach: Approach, run: tuple[EstimateAnswer, dict[str, Any]] | None) -> ApproachNeeds:
    answer, count = (None, 0) if run is None else (run[0], run[1]["hardware"]["count"])
    return ApproachNeeds(
        data=approach.data,
        accelerators=approach.accelerators,
        people=approach.people,
        trained_tokens=0.0 if answer is None else answer.estimate.tokens.trained,
        accelerator_count=count,
        memory_gb=None if answer is None else answer.estimate.memory.per_accelerator_gb,
        people_hours=approach.people_hours,
    )


def _ranked(costed: list[CostedApproach], serving: LifetimeServing) -> tuple[CostedApproach, ...]:
    """The approaches by cost, compared with prompting."""
    ordered = sorted(costed, key=lambda approach: (not approach.feasible, approach.total_usd.p50 if approach.total_usd else 0.0))
    prompting = next((approach for approach in costed if approach.approach == "prompting"), None)
    return tuple(
        replace(approach, rank=rank, pays_back_at_tokens=_pays_back(approach, prompting, serving))
        for rank, approach in enumerate(ordered, start=1)
    )


def _pays_back(approach: CostedApproach, prompting: CostedApproach | None, serving: LifetimeServing) -> float | None:
    """Tokens served after which cheaper requests have paid for the run and its personnel."""
    if prompting is None or prompting.serving is None or approach.serving is None or approach.training is None or not approach.feasible:
        return None
    tokens_per_request = serving.request.prompt_tokens + serving.request.output_tokens
    before, after = (cost.usd_per_request.p50 / tokens_per_request for cost in (prompting.serving, approach.serving))
    tokens = float(payback_tokens(approach.training.usd.p50 - prompting.people_usd, before, after))
    return max(0.0, tokens) if np.isfinite(tokens) else None
