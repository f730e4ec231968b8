"""A program's data, raw -> filtered -> deduplicated -> effective, and a first target for the tokens to train on.

Effective tokens are the unique tokens that the trained ones are worth, since repeats are worth less (Muennighoff et al. 2023, arXiv
2305.16264).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from service.domain.errors import InvalidRequest
from service.domain.programs.tokens import MixturePart, PartTokens, PublishedModel, TokenFlow, TokenTarget
from service.domain.quantities import Range
from service.domain.scaling.laws import DataLimit, ParametricLaw, RepetitionDecay
from service.engine.scaling.laws import effective_tokens

REMAINDER = "other"
"""Name of the part of the mixture that no stated part names."""
SHARE_TOLERANCE = 1e-9


def token_flow(
    raw: float, filter_yield: float, dedupe_yield: float, epochs: float, parts: Sequence[MixturePart], repetition: RepetitionDecay
) -> TokenFlow:
    """The program's data in tokens.

    Parameters
    ----------
    raw : float
        Raw tokens [tokens].
    filter_yield, dedupe_yield : float
        Shares left after filtering and after deduplication, above 0 to 1 [1].
    epochs : float
        Passes over the unique tokens [1].
    parts : sequence of MixturePart
        Named parts of the mixture; the rest is a part of its own, `other`.
    repetition : RepetitionDecay
        How repeats lose their worth.

    Returns
    -------
    TokenFlow
        All in tokens.

    Raises
    ------
    InvalidRequest
        For yields or shares out of range, shares that add up to more than 1, equal names, and parts with more unique tokens than there are.

    References
    ----------
    Effective tokens: Muennighoff et al. 2023 (arXiv 2305.16264), equation 5.
    """
    _check_flow(raw, filter_yield, dedupe_yield, epochs, parts)
    filtered = raw * filter_yield
    unique = filtered * dedupe_yield
    trained = unique * epochs
    flows = tuple(_part_tokens(part, trained, unique, repetition) for part in (*parts, *_unnamed_part(parts, unique)))
    return TokenFlow(raw, filtered, unique, trained, sum(part.effective for part in flows), epochs, flows)


def marginal_worth(epochs: float, repetition: RepetitionDecay) -> float:
    """Worth of one more token after `epochs` passes, relative to a new one: e^(-R / R*), R = epochs - 1 [1].

    References
    ----------
    Derivative of Muennighoff et al. 2023 (arXiv 2305.16264), equation 5.
    """
    return math.exp(-max(0.0, epochs - 1) / repetition.tokens)


def epochs_until_worth(worth: float, repetition: RepetitionDecay) -> float:
    """Epochs after which one more token has this worth relative to a new one (above 0, at most 1): 1 - R* ln(worth) [1]."""
    return 1 - repetition.tokens * math.log(worth)


def raw_tokens_needed(trained: float, filter_yield: float, dedupe_yield: float, epochs: float) -> float:
    """Raw tokens that give `trained` tokens after both yields and the epochs [tokens]."""
    return trained / (filter_yield * dedupe_yield * epochs)


def suggest_token_target(params: float, anchors: Sequence[PublishedModel], complexity_share: float, law: ParametricLaw) -> TokenTarget:
    """Tokens at which data limit the loss as much, relative to size, as they do in published models.

    Parameters
    ----------
    params : float
        Model size [parameters].
    anchors : sequence of PublishedModel
        Sizes [parameters] and training tokens of published models.
    complexity_share : float
        Share of the target that the domain needs [1].
    law : ParametricLaw
        L = E + A / N^alpha + B / D^beta.

    Returns
    -------
    TokenTarget
        For each anchor's ratio r, D = (B / (r A / N^alpha))^(1 / beta); p50 is their median, p10 and p90 are the least and the largest
        [tokens].
    """
    targets = sorted(_tokens_at_ratio(params, anchor, law) * complexity_share for anchor in anchors)
    middle = _median(targets)
    return TokenTarget(Range(targets[0], middle, targets[-1]), middle / params, tuple(anchor.name for anchor in anchors))


def data_to_size_loss_ratio(params: float, tokens: float, law: ParametricLaw) -> float:
    """Loss that more data could save over the loss that more parameters could save: r = (B / D^beta) / (A / N^alpha) [1].

    It is alpha / beta at the law's own optimum.
    """
    return float((law.B / tokens**law.beta) / (law.A / params**law.alpha))


def _tokens_at_ratio(params: float, anchor: PublishedModel, law: ParametricLaw) -> float:
    data_term = data_to_size_loss_ratio(anchor.params, anchor.tokens, law) * law.A / params**law.alpha
    return float((law.B / data_term) ** (1 / law.beta))


def _median(values: Sequence[float]) -> float:
    """Median of sorted values; of an even number the geometric mean of the middle two."""
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else math.sqrt(values[middle - 1] * values[middle])


def _unique_tokens(part: MixturePart, unique: float) -> float:
    return part.share * unique if part.unique_tokens is None else part.unique_tokens


def _part_tokens(part: MixturePart, trained: float, unique: float, repetition: RepetitionDecay) -> PartTokens:
    """A part's tokens. Its epochs are its trained tokens over its unique ones."""
    own = _unique_tokens(part, unique)
    used = part.share * trained
    epochs = used / own if own else 0.0
    effective = float(effective_tokens(used, DataLimit(own, repetition))) if own else 0.0
    return PartTokens(part.name, used, own, epochs, effective, marginal_worth(epochs, repetition))


def _unnamed_part(parts: Sequence[MixturePart], unique: float) -> list[MixturePart]:
    """The rest of the mixture with the rest of the unique tokens. Raises InvalidRequest where the parts leave none for it."""
    share = 1 - sum(part.share for part in parts)
    left = unique - sum(_unique_tokens(part, unique) for part in parts)
    if left < -SHARE_TOLERANCE * unique:
        raise InvalidRequest(f"the parts state more unique tokens than the {unique:.4g} that are left of the raw tokens", "/data/mixture")
    if share < SHARE_TOLERANCE:
        return []
    if left < SHARE_TOLERANCE * unique:
        raise InvalidRequest(f"the parts state all unique tokens, but only {1 - share:.0%} of the mixture", "/data/mixture")
    return [MixturePart(REMAINDER, share, left)]


def _check_flow(raw: float, filter_yield: float, dedupe_yield: float, epochs: float, parts: Sequence[MixturePart]) -> None:
    for name, share in (("filter_yield", filter_yield), ("dedupe_yield", dedupe_yield)):
        if not 0 < share <= 1:
            raise InvalidRequest(f"{name} is the share that is left, above 0 and at most 1, not {share:g}", f"/data/{name}")
    if raw <= 0 or epochs <= 0:
        raise InvalidRequest("state more than 0 raw tokens and epochs", "/data")
    names = {REMAINDER}
    for index, part in enumerate(parts):
        if not 0 <= part.share <= 1:
            raise InvalidRequest(
                f"{part.share:g} of the mixture is not a valid share: state a number from 0 to 1", f"/data/mixture/{index}/share"
            )
        if part.name in names:
            raise InvalidRequest(
                f"{part.name!r} is already the name of another part or of the rest: choose a different name", f"/data/mixture/{index}/name"
            )
        names.add(part.name)
    shares = sum(part.share for part in parts)
    if shares > 1 + SHARE_TOLERANCE:
        raise InvalidRequest(f"the parts' shares add up to {shares:.0%}: state at most 100 %", "/data/mixture")
