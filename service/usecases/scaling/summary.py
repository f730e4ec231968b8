"""The summary of an optimum: size and tokens, and what training them takes."""

from __future__ import annotations

from dataclasses import replace

from service.domain.quantities import Range
from service.domain.scaling.laws import Optimum
from service.domain.summary import Summary
from service.formats.headline import count
from service.usecases.training.estimate import EstimateAnswer


def summarise_optimum(chosen: Optimum, law: str, estimate: EstimateAnswer | None) -> Summary:
    """Size, tokens and loss; with a machine, the summary of the suggested layout's estimate."""
    loss = "" if chosen.loss is None else f", loss {float(chosen.loss):.3f}"
    size = f"{count(float(chosen.params))} parameters and {count(float(chosen.tokens))} tokens"
    text = f"The budget is best spent on {size} (by {law}{loss})."
    if estimate is None:
        return Summary(text=text)
    return replace(estimate.summary, text=f"{text} {estimate.summary.text}")


def summarise_given_model(model: str, chosen: Optimum, tokens: Range, law: str, distance: str, estimate: EstimateAnswer | None) -> Summary:
    """Tokens that the budget affords a model, how far they are from the optimum, and the summary of the estimate."""
    spread = "" if tokens.p10 == tokens.p90 else f" (likely {count(tokens.p10)}–{count(tokens.p90)})"
    loss = "" if chosen.loss is None else f", with a loss of {float(chosen.loss):.3f} by {law}"
    text = f"The budget trains {model} on {count(tokens.p50)} tokens{spread}{loss}: {distance}."
    if estimate is None:
        return Summary(text=text)
    return replace(estimate.summary, text=f"{text} {estimate.summary.text}")
