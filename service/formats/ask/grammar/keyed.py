"""Numbers after what they count, as in options and configurations: tokens=1T, --nnodes 16, H100 @ 64; and what each of several has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from service.formats.ask.grammar.attributes import MOST_BATCH_TOKENS
from service.formats.ask.grammar.quantities import (
    ANSWERS,
    LEAST_TOKENS,
    Pieces,
    accelerator_slots,
    count_slots,
    figures,
    samples_of,
    span_of,
)
from service.formats.ask.grammar.slots import Slot, plain

PER_NODE = "hardware.accelerators_per_node"
LEAST_SAMPLES = 1000
"""Fewer, of so many tokens each, are answers to a prompt."""
LEAST_HOURS = 1000
"""Fewer may be how long a run takes."""
LEAST_COUNT_AT = 16
"""No accelerator-hour costs so much: at 64 is a number of them."""


def keyed(name: str) -> Callable[[Pieces], Iterator[Slot]]:
    """A number after what it counts, of a size that the count may have."""

    def make(pieces: Pieces) -> Iterator[Slot]:
        if figures(pieces)[0].value >= 10**6:
            yield Slot(name, plain(figures(pieces)[0].value), *span_of(pieces))

    return make


def counted_after(name: str) -> Callable[[Pieces], Iterator[Slot]]:
    """A number after what it counts: epochs=3."""

    def make(pieces: Pieces) -> Iterator[Slot]:
        yield Slot(name, plain(figures(pieces)[0].value), *span_of(pieces))

    return make


def samples_after(pieces: Pieces) -> Iterator[Slot]:
    """Samples=80k."""
    if pieces[0].value == "samples":
        yield Slot("samples", plain(figures(pieces)[0].value), *span_of(pieces))


def steps_after(pieces: Pieces) -> Iterator[Slot]:
    """Steps: 50k, --train-iters 500000."""
    if pieces[0].value == "steps":
        yield Slot("steps", plain(figures(pieces)[0].value), *span_of(pieces))


def steps_of(pieces: Pieces) -> Iterator[Slot]:
    """100k steps of 4M tokens: how many, and the batch; 100k steps 400B tokens are all the tokens."""
    steps, batch = figures(pieces)
    if pieces[1].value == "steps" and LEAST_TOKENS <= batch.value < MOST_BATCH_TOKENS and batch.value.denominator == 1:
        yield Slot("steps", plain(steps.value), *span_of(pieces))
        yield Slot("batch_tokens", plain(batch.value), *span_of(pieces))


def of_each_node(pieces: Pieces) -> Iterator[Slot]:
    """8x A100 per node: what a node has, and which accelerator."""
    figure = figures(pieces)[0]
    if pieces[-1].value == "per machine" and figure.scale == 1 and figure.value.denominator == 1:
        yield Slot(PER_NODE, int(figure.value), *span_of(pieces))
        yield from accelerator_slots(pieces)


def counts_at(pieces: Pieces) -> Iterator[Slot]:
    """H100, H200 @128: a whole number so large is no price of an hour."""
    if all(figure.value >= LEAST_COUNT_AT and figure.value.denominator == figure.scale == 1 for figure in figures(pieces)):
        for slot in count_slots(pieces) or ():
            yield replace(slot, note=slot.note or "read as the number of accelerators")
            yield from accelerator_slots(pieces)


def samples_of_each(pieces: Pieces) -> Iterator[Slot]:
    """60k pairs, each pair 1,500 tokens; 16 answers, each of 2k tokens are no data."""
    said = [piece for piece in pieces if piece.kind in "sIδE"]
    of_few = [piece.kind for piece in said[1:]] == ["E"] and figures(pieces)[0].value < LEAST_SAMPLES
    if len(said) > 1 and not of_few and not any(piece.value == ANSWERS for piece in said):
        yield from samples_of(pieces)


def accelerator_hours(pieces: Pieces) -> Iterator[Slot]:
    """H100 hours: 300k."""
    hours = figures(pieces)[0]
    if hours.value >= LEAST_HOURS and not hours.unit:
        yield Slot("accelerator_hours", plain(hours.value), *span_of(pieces))
        yield from accelerator_slots(pieces)
