"""The size of an image: of a vision transformer it is a number of patches, of other networks that of the preset."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from service.formats.ask.grammar.bare import NOTES
from service.formats.ask.grammar.quantities import figures, span_of
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.pieces import UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

RESOLUTION = "resolution"
LEAST_PIXELS, MOST_PIXELS = 32, 8192
OF_WHAT = "what is this number of?"
READ_AS_TOKENS = NOTES["tokens"]
FIXED = "samples of this network have the resolution of its preset: that of another is not counted with"
UNSAID = "no size of an image is counted with: name the network, such as stable-diffusion-xl"
PIXELS = {
    "resnet": 224,
    "resnext": 224,
    "wide-resnet": 224,
    "vgg": 224,
    "densenet": 224,
    "mobilenet": 224,
    "convnext": 224,
    "swin": 224,
    "inception-v3": 299,
    "efficientnet-b0": 224,
    "efficientnet-b4": 380,
    "efficientnet-b7": 600,
    "stable-diffusion-1": 512,
    "stable-diffusion-2-base": 512,
    "stable-diffusion-2": 768,
    "stable-diffusion-xl": 1024,
    "dit-xl-2-512": 512,
    "dit": 256,
}
"""Side of an image that a preset is counted with, by how its name begins, the longest first; as its source in models.toml says [pixels]."""
_PATCH = re.compile(r"-(\d+)$")


def square(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """512x512: an image, and no number of accelerators."""
    first, second = figures(pieces)
    if first.value == second.value and LEAST_PIXELS <= first.value <= MOST_PIXELS and first.value.denominator == 1:
        yield Slot(RESOLUTION, int(first.value), *span_of(pieces))


def settle(sentence: Sentence, slots: Sequence[Slot]) -> tuple[list[Slot], list[Doubt]]:
    """The slots with a resolution as the patches of a vision transformer; of another network it is asked back."""
    sizes = [slot for slot in slots if slot.name == RESOLUTION]
    if not sizes:
        return list(slots), []
    others = [slot for slot in slots if slot.name != RESOLUTION]
    model = next((slot.value for slot in others if slot.name == "model" and isinstance(slot.value, Name)), None)
    patch = _PATCH.search(model.value) if model is not None and model.seq_len and model.sample_unit else None
    text = sentence.part(sizes[0].first, sizes[0].last)
    if model is not None and sizes[0].value == _pixels(model.value):
        note = f"images of {sizes[0].value} by {sizes[0].value} pixels, as its preset is counted with"
        return [replace(slot, note=note) if slot.name == "model" else slot for slot in others], []
    if model is None or patch is None or not isinstance(sizes[0].value, int):
        return others, [Doubt(text, (), UNSAID if model is None else FIXED)]
    patches = (sizes[0].value // int(patch[1])) ** 2 + 1
    note = f"{text}: patches of {patch[1]} by {patch[1]}, and the token of the class"
    return [*others, replace(sizes[0], name="seq_len", value=patches, note=note)], []


def without_unnamed(sentence: Sentence, slots: Sequence[Slot], left: Sequence[Piece]) -> tuple[list[Slot], list[Doubt]]:
    """The slots without a bare number as tokens, where a network is counted in images: vit-h 2B, vit-h on 2B frobs."""
    model = next((slot.value for slot in slots if slot.name == "model" and isinstance(slot.value, Name)), None)
    unit = model.sample_unit if model is not None else ""
    words = {piece.first: piece for piece in left if piece.kind == UNKNOWN}
    unnamed = [slot for slot in slots if unit and slot.name == "tokens" and slot.note == READ_AS_TOKENS]
    ends = {slot.first: words[slot.last].last if slot.last in words else slot.last for slot in unnamed}
    doubts = [
        Doubt(sentence.part(slot.first, ends[slot.first]), (f"{sentence.part(slot.first, slot.last)} {unit}s",), OF_WHAT)
        for slot in unnamed
    ]
    return [slot for slot in slots if slot not in unnamed], doubts


def _pixels(model: str) -> int:
    """Side of the images that a preset is counted with; 0 where it is not known [pixels]."""
    begins = [name for name in PIXELS if model.startswith(name)]
    return PIXELS[max(begins, key=len)] if begins else 0
