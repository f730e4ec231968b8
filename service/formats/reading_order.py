"""Text whose characters are read in the order in which they are written.

References: Unicode Standard Annex 9, 2.1 to 2.3 (embeddings, overrides, isolates); Boucher and Anderson 2021, Trojan Source
(CVE-2021-42574).
"""

from __future__ import annotations

import re

_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def in_order(text: str) -> str:
    """The text with each character that reorders what follows it shown as U+FFFD: in a name it would turn the figures after it around.

    Letters of languages that are written from right to left, and their marks, stay as they are.
    """
    return _REORDERING.sub("\N{REPLACEMENT CHARACTER}", text)
