"""Days on which accelerators arrive: from then on a run can start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.days.times import TRAINED
from service.formats.ask.grammar.slots import Slot
from service.formats.ask.lexing.tokens import Sentence

ARRIVING = frozenset(
    (
        *("arrive", "arrives", "arriving", "arrived", "delivered", "land", "lands", "landing", "online", "available", "come", "comes"),
        *("free", "live", "installed", "released", "handed", "racked", "ready", "show", "shows"),
    )
)
"""What accelerators do before a run starts on them: the nodes come online in March."""
RECEIVING = frozenset({"get", "gets", "getting", "receive", "receives", "receiving"})
"""Words before accelerators that come to us: we get 1024 H100 on 10 January."""
MACHINES = frozenset(
    (
        *("cluster", "clusters", "gpus", "gpu", "nodes", "node", "machines", "capacity", "hardware", "racks", "rack", "servers", "chips"),
        *("cards", "fleet", "pod", "pods", "allocation", "reservation", "boxes", "accelerators"),
    )
)
DATA = frozenset({"data", "dataset", "datasets", "corpus", "corpora", "tokenizer", "tokeniser"})
"""What else a run waits for."""
BETWEEN = frozenset({"in", "on", "by", "from", "only", "up", "over", "online", "at", "the", "about", "around", "to", "us", "not"})
"""Words between that and the day."""
ENDS = frozenset({".", "?", "!", ";", ",", "and", "then"})
ENDING = frozenset({"until", "till", "til", "through", "before", "thru"})
"""Words before the last day on which accelerators are had."""
DAYS = frozenset({"date", "deadline"})
SOURCE = "when the accelerators or the data are there: read as the start"


def with_arrivals(sentence: Sentence, slots: Sequence[Slot]) -> list[Slot]:
    """The slots with the one day on which accelerators arrive as the start, where no other start is said."""
    found = [slot for slot in slots if slot.name in DAYS and _is_arrival(sentence, slots, slot)]
    if len(found) != 1 or any(slot.name == "start" for slot in slots):
        return list(slots)
    day = found[0]
    return [replace(day, name="start", value=day.begins or day.value, note=SOURCE) if slot is day else slot for slot in slots]


def _is_arrival(sentence: Sentence, slots: Sequence[Slot], day: Slot) -> bool:
    texts = list(sentence.texts)
    if texts[day.first] in ENDING:
        return False
    at = day.first
    while at > 0 and texts[at - 1] in BETWEEN - ARRIVING:
        at -= 1
    ready = texts[day.first] in ARRIVING  # the cluster is ready by
    at += ready
    hours = {at for slot in slots if slot.name == "accelerator_hours" for at in (slot.first, slot.last)}
    machines = [slot for slot in slots if slot.name in ("count", "accelerator") and not {slot.first, slot.last} & hours]
    begins = [slot.first for slot in machines if slot.last == at]
    if begins and texts[min(begins) - 1 : min(begins)] and texts[min(begins) - 1] in RECEIVING:
        return True
    begin = max((here + 1 for here in range(at) if texts[here] in ENDS), default=0)
    counted = not ready and any(begin <= slot.first and slot.last <= at for slot in machines)
    named = bool((MACHINES | DATA).intersection(texts[begin:at])) or counted
    trained = any(slot.name in TRAINED and begin <= slot.first < at for slot in slots)
    return named and not trained and at > begin and texts[at - 1] in ARRIVING
