"""What to do with a running training run, from what is foretold of its ends: continue, stop, shrink or extend.

An end counts as surely good enough where all of its interval of 80 % is; what is only likely never shortens a run.
"""

from __future__ import annotations

from service.domain.scaling.loss_curves import Action, Advice, EndForecast, Extrapolation


def advise(found: Extrapolation, target: float | None, tolerance: float) -> Advice:
    """The shortest end that is good enough: at or under the target loss, or, without one, within `tolerance` (a share) of the plan's.

    A target that the plan is likely to miss extends the run to where it likely is met, or stops it where that is nowhere.
    """
    if found.state == "diverging":
        return _advice(found, found.tokens, "the loss has risen above its lowest level: go back to a checkpoint from before it rose")
    ends = sorted((*found.others, found.planned), key=lambda end: end.tokens)
    return _without_target(found, ends, tolerance) if target is None else _with_target(found, ends, target)


def action_for_end(found: Extrapolation, tokens: float) -> Action:
    """What ending a run at so many tokens means for its plan."""
    if tokens <= found.tokens:
        return "stop"
    if tokens == found.planned.tokens:
        return "continue"
    return "shrink" if tokens < found.planned.tokens else "extend"


def _with_target(found: Extrapolation, ends: list[EndForecast], target: float) -> Advice:
    planned = found.planned
    sure = [end for end in ends if end.tokens <= planned.tokens and end.loss.p90 <= target]
    if sure:
        return _advice(found, sure[0].tokens, f"the shortest end looked at whose loss is at most {target:g} with 90 % or more")
    if planned.loss.p50 <= target:
        return _advice(found, planned.tokens, f"the plan's end is more likely than not at or under {target:g}; no shorter one is surely")
    likely = [end for end in ends if end.tokens > planned.tokens and end.loss.p50 <= target]
    if likely:
        return _advice(found, likely[0].tokens, f"the plan is likely to miss {target:g}; this is the shortest end that likely does not")
    if planned.loss.p10 > target:
        return _advice(found, found.tokens, f"the plan misses {target:g} with 90 % or more, and every longer end is likely to")
    return _advice(found, planned.tokens, f"the plan is more likely than not to miss {target:g}, but that is not sure yet")


def _without_target(found: Extrapolation, ends: list[EndForecast], tolerance: float) -> Advice:
    most = tolerance * found.planned.loss.p50
    near = [end for end in ends if end.tokens < found.planned.tokens and end.above_plan.p90 <= most]
    if near:
        return _advice(found, near[0].tokens, f"the rest of the plan would surely take less than {tolerance:.2%} off the loss")
    return _advice(found, found.planned.tokens, "every shorter end may cost more loss than is tolerated; no target asks for a longer one")


def _advice(found: Extrapolation, tokens: float, why: str) -> Advice:
    return Advice(action_for_end(found, tokens), tokens, why)
