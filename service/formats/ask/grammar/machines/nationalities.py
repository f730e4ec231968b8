"""Adjectives of countries: of regions, sellers and accelerators they are a place, of anything else none: Swiss regions, a French corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.pieces import COUNTRIES, FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence

PLACED = frozenset(
    (
        *("region", "regions", "zone", "zones", "provider", "providers", "cloud", "clouds", "vendor", "vendors", "seller", "sellers"),
        *("datacenter", "datacenters", "datacentre", "datacentres", "dc", "dcs", "site", "sites", "soil", "grid", "power", "electricity"),
        *(
            "host",
            "hosts",
            "hosting",
            "hosters",
            "colo",
            "capacity",
            "location",
            "locations",
            "availability",
            "machines",
            "servers",
            "gpus",
        ),
        *("gpu", "cards", "prices", "price", "pricing", "offers", "spot", "jurisdiction"),
    )
)
"""Nouns of what stands in a country."""
CENTERS = frozenset({"center", "centers", "centre", "centres"})
PLACES = frozenset({"J", "R"})
ACCELERATOR = "A"


def with_adjectives(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces without the adjective of a country, where nothing that stands in a country follows it; it is named."""
    found = list(pieces)
    doubts: list[Doubt] = []
    for at in range(len(pieces) - 1, -1, -1):
        piece = pieces[at]
        if piece.kind == COUNTRIES and " " not in str(piece.value) and not _is_of_place(sentence, found, at):
            found[at] = replace(piece, kind=FILLER, value="")
            doubts.insert(0, Doubt(sentence.part(piece.first, piece.last), (), "not understood", blocking=False))
    return found, doubts


def _is_of_place(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether a noun of a place or an accelerator follows, or another such adjective, or a country stands before it in a list."""
    texts = list(sentence.texts[pieces[at].last : pieces[at].last + 2])
    if texts[:1] and (texts[0] in PLACED or (texts[0] == "data" and texts[-1] in CENTERS)):
        return True
    after = [piece for piece in pieces[at + 1 :] if piece.kind != FILLER or sentence.words(piece) in (".", "?", ":")][:2]
    before = [piece.kind for piece in pieces[:at] if piece.kind != FILLER][-2:]
    listed = len(after) == 2 and after[0].kind == "," and after[1].kind in (COUNTRIES, *PLACES)
    return (bool(after) and after[0].kind == ACCELERATOR) or listed or (before[-1:] == [","] and before[0] in PLACES)
