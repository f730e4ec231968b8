"""Warnings about a run's model's size and data: far from compute-optimal, and data repeated too often.

By the default scaling law of POST /v1/optimal, which takes up to four epochs for new tokens. Cost is taken to be in proportion to training
FLOPs, on the same machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from service.domain.quantities import Range
from service.domain.scaling.laws import DataLimit, ParametricLaw
from service.domain.training.model import Model, Transformer
from service.domain.training.run import Run
from service.engine.scaling.laws import effective_tokens
from service.engine.scaling.neighbourhood import PlanAgainstOptimum, compare_plan
from service.engine.training.parameters import total_parameters
from service.formats.headline import money, short_count
from service.presets.scaling.laws import default_law, repetition_decay
from service.presets.scaling.optimum import warning_threshold

PRETRAINING = ("pretrain", "continued_pretrain")
FAR_FROM_OPTIMAL, REPEATED_DATA = KINDS = ("far from compute-optimal", "the data are repeated")
"""How each kind of warning begins. An answer about several runs has at most one of each."""


def data_warnings(run: Run, total_usd: Range | None) -> Iterator[str]:
    """Warnings about a run of that cost; without one, or of a cost of 0, only shares are named."""
    if not _is_text_model(run.model) or run.training.method not in PRETRAINING:
        return
    epochs, free_epochs = run.data.epochs, warning_threshold("free_epochs")
    if epochs > free_epochs:
        limit = DataLimit(run.data.effective_tokens, repetition_decay()[0])
        trained, worth = run.data.trained_tokens, float(effective_tokens(run.data.trained_tokens, limit))
        yield (
            f"{REPEATED_DATA} for {epochs:g} epochs: up to {free_epochs:g}, repeated tokens are worth nearly as much as new ones,"
            f" beyond that less and less (Muennighoff et al. 2023, arXiv 2305.16264). These {short_count(trained)} tokens are worth about"
            f" {short_count(worth)} new ones: get more data, train for fewer epochs or use a smaller model"
        )
        return
    law = default_law()
    if run.training.method == "pretrain" and _is_dense(run.model) and isinstance(law.law, ParametricLaw):
        comparison = compare_plan(law.law, total_parameters(run.model), run.data.trained_tokens)
        yield from _optimality_warnings(comparison, f"scaling law {law.name}, as POST /v1/optimal", total_usd)


def _optimality_warnings(comparison: PlanAgainstOptimum, source: str, total_usd: Range | None) -> Iterator[str]:
    """The warning of a plan that is too large for its data, or so long trained that its loss costs a multiple of what it needs."""
    plan, cheaper = comparison.plan, comparison.same_loss
    cost_share = float(cheaper.flops / plan.flops)
    too_few = comparison.overtraining < warning_threshold("tokens_per_param_share")
    if not too_few and cost_share >= warning_threshold("same_loss_cost_share"):
        return
    stated = float(plan.tokens / plan.params)
    best = stated / comparison.overtraining
    distance = f"{short_count(stated)} tokens per parameter; {short_count(best)} give the lowest loss for the same compute"
    planned, same_loss = (
        f"{short_count(float(model.params))} parameters on {short_count(float(model.tokens))} tokens" for model in (plan, cheaper)
    )
    usd = 0.0 if total_usd is None else total_usd.p50
    priced = f", {money(cost_share * usd)} instead of {money(usd)}" if usd else ""
    advice = (
        "use the smaller model, or train this one on more tokens"
        if too_few
        else "longer training pays off only if the smaller model serves many tokens: POST /v1/optimal weighs that"
        " by lifetime_inference_tokens, without a model"
    )
    yield (
        f"{FAR_FROM_OPTIMAL}: {planned} is {distance}."
        f" The predicted loss of {float(plan.loss or 0.0):.3f} is {comparison.loss_excess:.3f} above the lowest for the same compute;"
        f" {same_loss} reach it for about {cost_share:.0%} of the cost{priced}: {advice} ({source})"
    )


def _is_text_model(model: Model) -> bool:
    return isinstance(model, Transformer) and model.kind != "vit"


def _is_dense(model: Model) -> bool:
    return isinstance(model, Transformer) and model.kind == "transformer" and model.experts is None
