"""What a question in words is read as, and what of it is not understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from service.domain.answer_fields import Doc

Kind = Literal["estimate", "compare", "optimal", "buy_or_rent", "chance", "price", "status", "help"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class UnclearText:
    """Words that are not understood, or that may mean several things."""

    text: Annotated[str, Doc("The words as they were written; empty where something is missing", max_length=2000, min_length=0)]
    candidates: Annotated[tuple[str, ...], Doc("What may be meant: say one of them instead", max_items=20)]
    question: Annotated[str, Doc("What to say, so that it is understood", max_length=1000)]
    blocking: Annotated[bool, Doc("Whether the answer waits for it; else the question is answered without these words")]


@dataclass(frozen=True, slots=True)
class ReadingNote:
    """A word or name that could be read otherwise, and how it was read."""

    field: Annotated[
        str, Doc("Path of the field in the request; empty for a corrected word, and for one that asks for a figure", min_length=0)
    ]
    value: Annotated[object, Doc("What it was read as")]
    source: Annotated[str, Doc("What was written, and why it is read so", max_length=2000)]


@dataclass(frozen=True, slots=True)
class Understanding:
    """The request that a question is read as."""

    kind: Annotated[Kind, Doc("What is asked for")]
    endpoint: Annotated[str, Doc("The endpoint that takes the request: method and path")]
    request: Annotated[dict[str, Any], Doc("The request as the endpoint takes it; incomplete while something is missing")]
    echo: Annotated[str, Doc("What was read, in words, every number and name in full", max_length=4000)]


@dataclass(frozen=True, slots=True)
class Reading:
    """A question as it is read: what is understood, what is not, and what could be read otherwise."""

    understood: Annotated[Understanding, Doc("What is asked for, as a request")]
    unclear: Annotated[tuple[UnclearText, ...], Doc("What is not understood, doubtful, contradictory or missing", max_items=1000)]
    assumptions: Annotated[tuple[ReadingNote, ...], Doc("What could be read otherwise, and how it was read", max_items=1000)]

    @property
    def answerable(self) -> bool:
        """Whether nothing is asked back."""
        return not any(entry.blocking for entry in self.unclear)


EXAMPLES: tuple[str, ...] = (
    "llama 3 70b, 15 trillion tokens on 2k h100s by next june",
    "lora on qwen3 8b, 50M tokens, one a100",
    "compare 7B 1T on h100,h200 x 64,128 in EU under $300k",
    "buy 256 h100 at 32k for 3 years use 70% vs $1.89",
    "what can $1M train on 256 h100",
    "chance llama-3-8b 15T on 512 h100 by 2027-06-30 under $20M",
    "price h100 spot",
    "status support-assistant 7B",
)
"""Questions of each kind, for those who ask how to ask."""
