"""A program's training data in tokens, and the first target for their number."""

from __future__ import annotations

from dataclasses import dataclass

from service.domain.quantities import Range


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A published model: its parameters and the tokens it was trained on."""

    name: str
    params: float
    tokens: float


@dataclass(frozen=True, slots=True)
class TokenTarget:
    """A first target of training tokens, with the published models it is derived from."""

    tokens: Range
    tokens_per_param: float
    anchors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MixturePart:
    """A part of the training mixture: its share of the trained tokens, and its unique tokens (None: in proportion)."""

    name: str
    share: float
    unique_tokens: float | None = None


@dataclass(frozen=True, slots=True)
class PartTokens:
    """A part of the mixture in tokens. `marginal_worth`: worth of one more of its tokens, relative to a new one."""

    name: str
    trained: float
    unique: float
    epochs: float
    effective: float
    marginal_worth: float


@dataclass(frozen=True, slots=True)
class TokenFlow:
    """Tokens from the source to the model: each is what is left of the one before, except `trained`, which counts repeats.

    `effective`: the unique tokens that the trained ones are worth.
    """

    raw: float
    filtered: float
    deduplicated: float
    trained: float
    effective: float
    epochs: float
    parts: tuple[PartTokens, ...]


@dataclass(frozen=True, slots=True)
class SuggestedTokens:
    """A first target of training tokens, the raw tokens it needs, and its basis."""

    p10: float
    p50: float
    p90: float
    tokens_per_param: float
    raw_needed: float
    basis: str


@dataclass(frozen=True, slots=True)
class ProgramTokens:
    """The program's data. `flow`: None where no raw tokens are stated; `suggested`: None where no model size is known.

    `worthwhile_epochs`: epochs after which one more token is worth less than the share `retention_worth` of a new one.
    """

    flow: TokenFlow | None
    suggested: SuggestedTokens | None
    worthwhile_epochs: float
