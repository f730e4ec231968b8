"""The section that says what is trained on: tokens, samples, or what steps and ratios come to."""

from __future__ import annotations

from service.formats.ask.grammar.asking.figures_asked import asks_step
from service.formats.ask.grammar.attributes import UNIQUE_TOKENS
from service.formats.ask.grammar.runs.batches import SEQ_LEN
from service.formats.ask.grammar.runs.rollouts import PER_STEP
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.choices import USUAL_SAMPLES, token_choices, usual_tokens
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.fields import stated_fields

HOW_MANY_TOKENS = "on how many tokens, such as {}?"
EXAMPLE_STEPS = "1000 steps"
HOW_MANY_STEPS = f"of how many steps, such as {EXAMPLE_STEPS}?"
HOW_MANY_ANSWERS = "how many answers to each prompt, such as 8 answers each?"
HOW_MANY_OF_STEP = "how many answers a step, such as 1024 responses per step?"
STEPS_TAKEN = "so many steps are taken once the answers to each prompt are said"
EXAMPLE_TOKENS = "1T tokens"
WHOLE_SEQUENCES = "no length is said: each is taken as a sequence of training.seq_len tokens; where one is shorter, say 1,000 tokens each"
UNCHANGED = "not said, and what is asked for does not depend on it"


def data_section(draft: Draft) -> Request:
    """What it is trained on."""
    if not draft.slots.has("tokens", "tokens_per_parameter"):
        draft.rename(UNIQUE_TOKENS, "tokens", "those of one epoch")
    tokens = draft.one("tokens", "data.tokens") or _tokens_per_parameter(draft) or _tokens_of_steps(draft)
    samples = draft.one("samples", "data.samples")
    if samples is None and tokens is not None:
        tokens, samples = _in_samples(draft, tokens)
    if tokens is None and not draft.slots.has("tokens", "samples", "tokens_per_parameter", "steps"):
        tokens, samples = _unstated_data(draft)
    if samples is not None and tokens is None:
        _note_length(draft, samples)
    if tokens is not None and samples is not None:
        draft.doubts.append(Doubt(f"{tokens:,} tokens, {samples:,} samples", ("tokens", "samples"), "tokens or samples?"))
    yields = stated_fields(draft, "data") if tokens is not None else {}
    collected = tokens if yields else None
    return (
        stated(tokens=None if yields else tokens, raw_tokens=collected, samples=samples, epochs=draft.one("epochs", "data.epochs")) | yields
    )


def _note_length(draft: Draft, samples: int) -> None:
    """What a sample's length is taken for where it is not said, of a model that reads tokens: fine-tuning data are usually shorter."""
    preset = draft.slots.peek("model")
    counted = isinstance(preset, Name) and preset.sample_unit
    if not counted and not draft.slots.has(SEQ_LEN) and draft.slots.peek("method") != "rl":
        draft.note("data.samples", samples, WHOLE_SEQUENCES)


def _unstated_data(draft: Draft) -> tuple[int | None, int | None]:
    """Tokens, or samples, where none are said: the usual ones for a figure that they do not change, else they are asked for."""
    preset = draft.slots.peek("model")
    unit = preset.sample_unit if isinstance(preset, Name) else ""
    usual, why = usual_tokens(draft)
    if not asks_step(draft.slots) or draft.slots.has(PER_STEP) or not (unit or usual):
        _ask_for_data(draft, unit)
        return None, None
    number = USUAL_SAMPLES if unit else usual
    draft.note("data.samples" if unit else "data.tokens", number, ": ".join(filter(None, (UNCHANGED, why))))
    return (None, number) if unit else (number, None)


def _ask_for_data(draft: Draft, unit: str) -> None:
    """What is lacking of the data: tokens, of a network that is counted by samples those, of RL its steps."""
    choices, why = token_choices(draft)
    if draft.slots.has(PER_STEP):
        draft.missing(HOW_MANY_STEPS, (EXAMPLE_STEPS,))
    elif unit:
        draft.missing(f"on how many {unit}s?", (f"1M {unit}s",))
    else:
        draft.missing(HOW_MANY_TOKENS.format(", ".join(filter(None, ((*choices, EXAMPLE_TOKENS)[0], why)))), choices)


def _tokens_per_parameter(draft: Draft) -> int | None:
    """20 tokens per parameter of the model that is named, or of the size."""
    if not draft.slots.has("tokens_per_parameter") or draft.slots.has("tokens"):
        return None
    ratio, preset = draft.one("tokens_per_parameter", "data.tokens"), draft.slots.peek("model")
    params = preset.params if isinstance(preset, Name) else draft.slots.peek("params")
    if ratio is None or not isinstance(params, int | float):
        return None
    tokens: int = round(ratio * params)
    draft.note("data.tokens", tokens, f"{ratio:,} tokens for each of {params:,} parameters")
    return tokens


def _tokens_of_steps(draft: Draft) -> int | None:
    """50k steps of 2M tokens; steps beside stated data are of no use and left to be asked back."""
    if not draft.slots.has("steps") or draft.slots.has("tokens", "samples", "tokens_per_parameter"):
        return None
    steps, batch = draft.one("steps", "data.tokens"), draft.slots.peek("batch_tokens")
    if draft.slots.has(PER_STEP):
        draft.note("data.samples", steps, STEPS_TAKEN)
        draft.missing(HOW_MANY_ANSWERS, ("8 answers each",))
        return None
    if draft.slots.peek("method") == "rl" and not isinstance(batch, int):
        draft.note("data.samples", steps, STEPS_TAKEN)
        draft.missing(HOW_MANY_OF_STEP, ("1024 responses per step",))
        return None
    if not isinstance(steps, int) or not isinstance(batch, int):
        draft.missing("how many tokens a step, such as a batch of 4M tokens?")
        return None
    draft.note("data.tokens", steps * batch, f"{steps:,} steps of {batch:,} tokens")
    return steps * batch


def _in_samples(draft: Draft, tokens: int) -> tuple[int | None, int | None]:
    """Tokens of so many steps as samples, where a model is counted by these."""
    preset = draft.slots.peek("model")
    if draft.slots.has("tokens", "tokens_per_parameter") or not isinstance(preset, Name) or not preset.sample_unit:
        return tokens, None
    samples = tokens // (preset.seq_len or 1)
    draft.note("data.samples", samples, f"{preset.sample_unit}s of all the steps")
    return None, samples
