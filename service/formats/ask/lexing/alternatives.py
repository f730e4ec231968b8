"""Phrases with alternatives, as data files have them: `{tok|tokens} {/ s|per second}` stands for four."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

GROUP = re.compile(r"\{([^}]*)\}")
"""Alternatives; `re.split` puts them at the odd places."""


def spelt_out(phrases: Iterable[str]) -> Iterator[str]:
    """Each phrase with every choice of its alternatives, of which one may be empty."""
    for phrase in phrases:
        parts = GROUP.split(phrase)
        choices = (part.split("|") if place % 2 else [part] for place, part in enumerate(parts))
        yield from (" ".join("".join(chosen).split()) for chosen in itertools.product(*choices))
