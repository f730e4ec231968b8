"""What to offer where a question lacks its tokens or its accelerators: words that complete the sentence when put at its end."""

from __future__ import annotations

from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.draft import Draft
from service.formats.ask.requests.texts import count_text

TOKENS_PER_PARAMETER = 20
"""About the compute-optimal ratio of Hoffmann et al. 2022 (arXiv 2203.15556), table 3."""
TUNING_MILLIONS = (10, 100)
"""Tokens to offer for fine-tuning [1e6]."""
USUAL_SAMPLES = 1_000_000
TUNING_MACHINES = ("1 H100", "8 H100")
TRAINING_MACHINES = ("256 H100", "1024 H100")
BOUGHT_MACHINES = ("64 H100", "256 H100")
NUMBERS = (64, 256, 1024)
"""How many accelerators to offer where their name is said."""
TERM_CHOICES = ("3 years", "5 years")
EVERY_MACHINE = "compare"
"""Makes a comparison of the sentence: of all accelerators that are on offer."""
PRETRAINING = ("pretrain", "continued_pretrain")


def token_choices(draft: Draft) -> tuple[tuple[str, ...], str]:
    """Numbers of tokens to offer, and what the first of them is."""
    if _is_tuning(draft):
        return tuple(f"{millions}M tokens" for millions in TUNING_MILLIONS), ""
    found = _pretraining_tokens(draft)
    return tuple(f"{count_text(tokens)} tokens" for tokens in found), next(iter(found.values()), "")


def usual_tokens(draft: Draft) -> tuple[int, str]:
    """The first number of tokens that is offered, and what it is; 0 where there is none."""
    if _is_tuning(draft):
        return TUNING_MILLIONS[0] * 10**6, "a small fine-tuning"
    return next(iter(_pretraining_tokens(draft).items()), (0, ""))


def _pretraining_tokens(draft: Draft) -> dict[int, str]:
    """Tokens that a model is pretrained on, with what they are: published ones, and those of a compute-optimal run."""
    preset = draft.slots.peek("model")
    params = preset.params if isinstance(preset, Name) else draft.slots.peek("params")
    published = preset.tokens if isinstance(preset, Name) else 0
    found = {int(published): f"published for {preset.value}" if isinstance(preset, Name) else ""} if published else {}
    if isinstance(params, int | float) and params > 0:
        found.setdefault(int(float(f"{TOKENS_PER_PARAMETER * params:.2g}")), f"about {TOKENS_PER_PARAMETER} for each parameter")
    return found


def machine_choices(draft: Draft) -> tuple[str, ...]:
    """Numbers of accelerators to offer for a run, and a comparison of all."""
    return (*(TUNING_MACHINES if _is_tuning(draft) else TRAINING_MACHINES), EVERY_MACHINE)


def number_choices(draft: Draft, name: str) -> tuple[str, ...]:
    """Numbers of a named accelerator to offer."""
    return tuple(f"{number} {name}" for number in ((1, 8, *NUMBERS[:1]) if _is_tuning(draft) else NUMBERS))


def _is_tuning(draft: Draft) -> bool:
    method = draft.slots.peek("method")
    return draft.slots.has("tuning", "lora_rank") or (method is not None and method not in PRETRAINING)
