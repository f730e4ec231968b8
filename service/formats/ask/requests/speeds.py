"""The speed that was measured: a share of the peak, tokens or arithmetic of an accelerator, or of all of them."""

from __future__ import annotations

from service.formats.ask.grammar.attributes import SPEED_OF_ALL
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.fields import stated_fields
from service.formats.ask.requests.sections import accelerator_counts


def efficiency_section(draft: Draft) -> Request:
    """The speed that was measured, of which one figure is stated."""
    section = stated(mfu=draft.one("mfu", "efficiency.mfu")) | _speed_of_each(draft) | stated_fields(draft, "efficiency")
    if len(section) > 1:
        draft.doubts.append(Doubt(", ".join(f"{name} {value:,}" for name, value in section.items()), (), "which of these was measured?"))
    return section


def _speed_of_each(draft: Draft) -> Request:
    """The speed of all accelerators as that of one."""
    path = "efficiency.tokens_per_s_per_accelerator"
    counts = accelerator_counts(draft, "hardware.count") if draft.slots.has(SPEED_OF_ALL) else []
    if len(counts) != 1:
        return {}
    speed = draft.one(SPEED_OF_ALL, path)
    draft.note(path, round(speed / counts[0], 2), f"{speed:,} tokens per second of {counts[0]:,} accelerators")
    return {"tokens_per_s_per_accelerator": round(speed / counts[0], 2)}
