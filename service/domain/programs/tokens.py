"""A program's training data in tokens, and the first target for their number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc
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

    name: Annotated[str, Doc("Name of the part of the mixture")]
    trained: Annotated[float, Doc("Tokens trained on, with every epoch", "tokens", maximum=1e40)]
    unique: Annotated[float, Doc("Tokens that exist of it", "tokens", maximum=1e40)]
    epochs: Annotated[float, Doc("Times each token is trained on", "1", maximum=1e40)]
    effective: Annotated[float, Doc("Worth of the trained tokens in unique ones", "tokens", maximum=1e40)]
    marginal_worth: Annotated[float, Doc("Worth of one more of its tokens, 1 being a new one", "1", maximum=1e40)]


@dataclass(frozen=True, slots=True)
class TokenFlow:
    """Tokens from the source to the model: each is what is left of the one before, except `trained`, which counts repeats.

    `effective`: the unique tokens that the trained ones are worth.
    """

    raw: Annotated[float, Doc("Tokens collected", "tokens", maximum=1e40)]
    filtered: Annotated[float, Doc("Tokens left after filtering", "tokens", maximum=1e40)]
    deduplicated: Annotated[float, Doc("Tokens left after deduplication", "tokens", maximum=1e40)]
    trained: Annotated[float, Doc("Tokens trained on, with every epoch", "tokens", maximum=1e40)]
    effective: Annotated[float, Doc("Worth of the trained tokens in unique ones", "tokens", maximum=1e40)]
    epochs: Annotated[float, Doc("Times each token is trained on, mean", "1", maximum=1e40)]
    parts: Annotated[tuple[PartTokens, ...], Doc("Parts of the mixture", max_items=100)]


@dataclass(frozen=True, slots=True)
class SuggestedTokens:
    """A first target of training tokens, the raw tokens it needs, and its basis."""

    p10: Annotated[float, Doc("10th percentile", "tokens", maximum=1e40)]
    p50: Annotated[float, Doc("Median", "tokens", maximum=1e40)]
    p90: Annotated[float, Doc("90th percentile", "tokens", maximum=1e40)]
    tokens_per_param: Annotated[float, Doc("Median over the model's parameters", "tokens per parameter", maximum=1e40)]
    raw_needed: Annotated[float, Doc("Raw tokens that the median takes", "tokens", maximum=1e40)]
    basis: Annotated[str, Doc("How it is computed", max_length=5000)]


@dataclass(frozen=True, slots=True)
class ProgramTokens:
    """The program's data. `flow`: None where no raw tokens are stated; `suggested`: None where no model size is known.

    `worthwhile_epochs`: epochs after which one more token is worth less than the share `retention_worth` of a new one.
    """

    flow: Annotated[TokenFlow | None, Doc("Tokens from the source to the model; null: no raw tokens are stated")]
    suggested: Annotated[SuggestedTokens | None, Doc("Suggested tokens to train on; null: no model size is stated")]
    worthwhile_epochs: Annotated[float, Doc("Epochs after which a further token is worth too little", "1", maximum=1e40)]
