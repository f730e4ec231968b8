"""Advice on a running training run from the forecast of its ends: continue, stop, shrink or extend.

An end counts as surely good enough where its whole interval of 80 % is; a merely likely one never shortens a run.
"""

from __future__ import annotations

from service.domain.scaling.loss_curves import Action, Advice, EndForecast, Extrapolation


def advise(extrapolation: Extrapolation, target: float | None, tolerance: float) -> Advice:
    """Shortest end that is good enough.

    Parameters
    ----------
    extrapolation : Extrapolation
    target : float or None
        Loss to reach [nats/token]; a plan that is likely to miss it is extended to where it likely meets it, or stopped if it never does.
    tolerance : float
        Without a target: excess over the loss at the plan's end that is accepted [1].

    Returns
    -------
    Advice
    """
    if extrapolation.state == "diverging":
        return _advice(
            extrapolation, extrapolation.tokens, "the loss has risen above its lowest level: go back to a checkpoint from before it rose"
        )
    ends = sorted((*extrapolation.other_ends, extrapolation.planned), key=lambda end: end.tokens)
    return _without_target(extrapolation, ends, tolerance) if target is None else _with_target(extrapolation, ends, target)


def action_for_end(extrapolation: Extrapolation, tokens: float) -> Action:
    """What ending a run at a number of tokens means for its plan.

    Parameters
    ----------
    extrapolation : Extrapolation
    tokens : float

    Returns
    -------
    {"stop", "shrink", "continue", "extend"}
    """
    if tokens <= extrapolation.tokens:
        return "stop"
    if tokens == extrapolation.planned.tokens:
        return "continue"
    return "shrink" if tokens < extrapolation.planned.tokens else "extend"


def _with_target(extrapolation: Extrapolation, ends: list[EndForecast], target: float) -> Advice:
    planned = extrapolation.planned
    sure_ends = [end for end in ends if end.tokens <= planned.tokens and end.loss.p90 <= target]
    if sure_ends:
        return _advice(
            extrapolation,
            sure_ends[0].tokens,
            f"the earliest of the compared ends whose loss is at most {target:g} with a probability of 90 % or more",
        )
    if planned.loss.p50 <= target:
        return _advice(extrapolation, planned.tokens, f"the planned end probably reaches {target:g}; no earlier end does so with 90 %")
    likely_ends = [end for end in ends if end.tokens > planned.tokens and end.loss.p50 <= target]
    if likely_ends:
        return _advice(
            extrapolation,
            likely_ends[0].tokens,
            f"the planned end probably misses {target:g}; this is the earliest end that probably reaches it",
        )
    if planned.loss.p10 > target:
        return _advice(
            extrapolation,
            extrapolation.tokens,
            f"the planned end misses {target:g} with a probability of 90 % or more, and every later end probably does too",
        )
    return _advice(extrapolation, planned.tokens, f"the planned end probably misses {target:g}, but this is not certain yet")


def _without_target(extrapolation: Extrapolation, ends: list[EndForecast], tolerance: float) -> Advice:
    tolerated_loss = tolerance * extrapolation.planned.loss.p50
    near_ends = [end for end in ends if end.tokens < extrapolation.planned.tokens and end.above_plan.p90 <= tolerated_loss]
    if near_ends:
        return _advice(extrapolation, near_ends[0].tokens, f"the rest of the plan lowers the loss by less than {tolerance:.2%}")
    return _advice(
        extrapolation,
        extrapolation.planned.tokens,
        "every earlier end may raise the loss by more than is tolerated, and no target needs a later one",
    )


def _advice(extrapolation: Extrapolation, tokens: float, reason: str) -> Advice:
    return Advice(action_for_end(extrapolation, tokens), tokens, reason)
