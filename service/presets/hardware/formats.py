"""Number formats by family of accelerators, from `data/formats.toml`: what their units multiply in, and what they may store."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from service.presets.documents import build, dated_source, load_document


@dataclass(frozen=True, slots=True)
class FormatSupport:
    """Formats of one family.

    Attributes
    ----------
    arithmetic : tuple of str
        Precisions that its units multiply in.
    stored : tuple of str
        Formats of weights that are widened to 16 bit before they are multiplied.
    """

    family: str
    arithmetic: tuple[str, ...]
    stored: tuple[str, ...]
    source: str


@functools.cache
def load_format_support() -> Mapping[str, FormatSupport]:
    """Formats by family."""
    rows = load_document("formats")["family"]
    return MappingProxyType({row["family"]: build(FormatSupport, row, source=dated_source(row)) for row in rows})
