"""What to ask about settings of the training that have no place in a request."""

from __future__ import annotations

from service.formats.ask.grammar.attributes import BATCH_SEQUENCES, BATCH_SIZE, HYPERPARAMETER
from service.formats.ask.grammar.machines.preemptions import UNSAID as PREEMPTED
from service.formats.ask.grammar.slots import Doubt, Slot

NO_COST = "no cost depends on this"
ALWAYS = "a run uses its accelerators all the time"
OF_TOKENS = "of how many tokens is this the share?"
NAMED = {HYPERPARAMETER: NO_COST, "share_done": OF_TOKENS, "share_left": OF_TOKENS}
"""What is said of settings without which the question is answered."""


def unused_setting(text: str, slot: Slot, *, of_model: bool) -> Doubt | None:
    """What to ask about a setting of the training; None of other slots."""
    always = slot.name == "utilisation" and slot.value == 1
    if slot.name in NAMED or always:
        return Doubt(text, (), ALWAYS if always else NAMED[slot.name], blocking=False)
    if slot.name == PREEMPTED:
        return Doubt(text, (f"{text} per node",), "is it each node that is taken away so often, or one of all of them?")
    if slot.name in (BATCH_SIZE, BATCH_SEQUENCES):
        if of_model:
            return Doubt(text, (), "of sequences or of images: that follows from the model", blocking=False)
        readings = (f"batch of {slot.value} sequences of 4096 tokens", f"{slot.value} tokens per batch")
        return Doubt(text, readings[: 1 + (slot.name == BATCH_SIZE)], "a batch is stated in tokens: sequences of how many?")
    return None
