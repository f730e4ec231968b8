"""What a program's data come to: raw -> filtered -> deduplicated -> effective, and how many tokens to aim for at first.

Effective tokens are what the trained ones are worth in unique ones, repeats being worth less (Muennighoff et al. 2023, arXiv 2305.16264).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.domain.errors import InvalidRequest
from service.domain.quantities import Range
from service.domain.scaling.laws import DataLimit, ParametricLaw, RepetitionDecay
from service.engine.scaling.laws import effective_tokens

# What no part names.
REMAINDER = "other"


@dataclass(frozen=True, slots=True)
class MixturePart:
    """A part of what is trained on: its share of the trained tokens, and the unique ones there are of it (None: in proportion)."""

    name: str
    share: float
    unique_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class PartTokens:
    """A part in tokens. `marginal_worth`: what one more of its tokens is worth, 1 being a new one."""

    name: str
    trained: float
    unique: float
    epochs: float
    effective: float
    marginal_worth: float


@dataclass(frozen=True, slots=True)
class TokenFlow:
    """Tokens from the source to the model; each is what is left of the one before, but `trained`, which counts repeats."""

    raw: float
    filtered: float
    deduplicated: float
    trained: float
    effective: float
    epochs: float
    parts: tuple[PartTokens, ...]


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A published model: so many parameters, trained on so many tokens."""

    name: str
    params: float
    tokens: float


@dataclass(frozen=True, slots=True)
class TokenTarget:
    """A first target, with the published models it goes by."""

    tokens: Range
    tokens_per_param: float
    anchors: tuple[str, ...]


def token_flow(
    raw: float, filter_yield: float, dedupe_yield: float, epochs: float, parts: Sequence[MixturePart], repetition: RepetitionDecay
) -> TokenFlow:
    """The data of a program. What no part names is a part of its own, `other`.

    Raises InvalidRequest for yields that are no shares, parts whose shares are none or add up to more than everything, and a name twice.
    """
    _check_flow(raw, filter_yield, dedupe_yield, epochs, parts)
    filtered = raw * filter_yield
    unique = filtered * dedupe_yield
    trained = unique * epochs
    found = [_part_tokens(part, trained, unique, repetition) for part in (*parts, *_unnamed_part(parts, unique))]
    return TokenFlow(raw, filtered, unique, trained, sum(part.effective for part in found), epochs, tuple(found))


def marginal_worth(epochs: float, repetition: RepetitionDecay) -> float:
    """What one more token is worth after so many epochs: e^(-R / R*), R = epochs - 1; the derivative of Muennighoff's equation 5."""
    return math.exp(-max(0.0, epochs - 1) / repetition.tokens)


def epochs_until_worth(worth: float, repetition: RepetitionDecay) -> float:
    """Epochs after which one more token is worth this share of a new one (above 0, at most 1)."""
    return 1 - repetition.tokens * math.log(worth)


def raw_tokens_needed(trained: float, filter_yield: float, dedupe_yield: float, epochs: float) -> float:
    """Raw tokens to gather for so many trained ones."""
    return trained / (filter_yield * dedupe_yield * epochs)


def suggest_token_target(params: float, anchors: Sequence[PublishedModel], complexity_share: float, law: ParametricLaw) -> TokenTarget:
    """Tokens to aim for with so many parameters, so that data hold the loss back as much as they do with the anchors.

    Each anchor's r = (B / D^beta) / (A / N^alpha), the loss that more data could save over that of more parameters, gives
    D = (B / (r A / N^alpha))^(1 / beta); the median of them is the target and the ends its range. `complexity_share`: how much of it the
    domain takes.
    """
    found = sorted(_tokens_at_ratio(params, anchor, law) * complexity_share for anchor in anchors)
    middle = _median(found)
    return TokenTarget(Range(found[0], middle, found[-1]), middle / params, tuple(anchor.name for anchor in anchors))


def data_to_size_loss_ratio(params: float, tokens: float, law: ParametricLaw) -> float:
    """r: the loss that more data could save over the loss that more parameters could save. alpha / beta at the law's own optimum."""
    return float((law.B / tokens**law.beta) / (law.A / params**law.alpha))


def _tokens_at_ratio(params: float, anchor: PublishedModel, law: ParametricLaw) -> float:
    allowed = data_to_size_loss_ratio(anchor.params, anchor.tokens, law) * law.A / params**law.alpha
    return float((law.B / allowed) ** (1 / law.beta))


def _median(values: Sequence[float]) -> float:
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else math.sqrt(values[middle - 1] * values[middle])


def _part_tokens(part: MixturePart, trained: float, unique: float, repetition: RepetitionDecay) -> PartTokens:
    """A part's tokens: those trained on over those there are make its epochs."""
    own = part.share * unique if part.unique_tokens is None else part.unique_tokens
    used = part.share * trained
    epochs = used / own if own else 0.0
    worth = float(effective_tokens(used, DataLimit(own, repetition))) if own else 0.0
    return PartTokens(part.name, used, own, epochs, worth, marginal_worth(epochs, repetition))


def _unnamed_part(parts: Sequence[MixturePart], unique: float) -> list[MixturePart]:
    """What no part names: the other unique tokens, in the rest of the mixture. InvalidRequest where the parts leave none for it."""
    share = 1 - sum(part.share for part in parts)
    left = unique - sum(part.share * unique if part.unique_tokens is None else part.unique_tokens for part in parts)
    if left < -1e-9 * unique:
        raise InvalidRequest(f"the parts name more unique tokens than the {unique:.4g} that are left of the raw ones", "/data/mixture")
    if share < 1e-9:
        return []
    if left < 1e-9 * unique:
        raise InvalidRequest(f"the parts name all unique tokens, but only {1 - share:.0%} of the mixture", "/data/mixture")
    return [MixturePart(REMAINDER, share, left)]


def _check_flow(raw: float, filter_yield: float, dedupe_yield: float, epochs: float, parts: Sequence[MixturePart]) -> None:
    for name, share in (("filter_yield", filter_yield), ("dedupe_yield", dedupe_yield)):
        if not 0 < share <= 1:
            raise InvalidRequest(f"{name} is what is left: above 0 and at most 1, not {share:g}", f"/data/{name}")
    if raw <= 0 or epochs <= 0:
        raise InvalidRequest("state more than 0 raw tokens and epochs", "/data")
    taken = {REMAINDER}
    for at, part in enumerate(parts):
        if not 0 <= part.share <= 1:
            raise InvalidRequest(f"{part.share:g} of the mixture is no share: state 0 to 1", f"/data/mixture/{at}/share")
        if part.name in taken:
            raise InvalidRequest(f"{part.name!r} is another part's name, or the rest's: call it otherwise", f"/data/mixture/{at}/name")
        taken.add(part.name)
    whole = sum(part.share for part in parts)
    if whole > 1 + 1e-9:
        raise InvalidRequest(f"the parts' shares add up to {whole:.0%}: 100 % is all there is", "/data/mixture")
