"""Accelerators and their number in vendors' labels, such as "8x H100 SXM5 80GB", "HGX H200 node" or "NVIDIA B200 180GB"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

COUNTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w.])(\d{1,4}) ?[x\u00d7*](?![A-Za-z]*\d*gb)",
        r"(?<![\w])[x\u00d7] ?(\d{1,4})(?![\w.])",
        r"(?<![\w.])(\d{1,4})[- ]?(?:gpus?|accelerators?|cards|chips|way)\b",
    )
)
MEMORY = re.compile(r"(?<![\w.])(\d{2,5}) ?(?:gb|gib|g)\b", re.IGNORECASE)
WHOLE_NODE = re.compile(r"\b(hgx|dgx|nodes?|servers?|chassis|baseboard|full box)\b", re.IGNORECASE)
FORMS: Mapping[str, re.Pattern[str]] = {
    "SXM": re.compile(r"\b(sxm\d?|hgx|dgx|nvswitch)\b", re.IGNORECASE),
    "PCIE": re.compile(r"\bpci-?e\b", re.IGNORECASE),
    "NVL": re.compile(r"\bnvl\b", re.IGNORECASE),
}
"""Forms of a part, as its canonical name has them, by words that tell them."""
TOKEN = re.compile(r"[A-Za-z0-9.+]+")
MAX_TOKENS = 14
LONGEST_NAME = 6
MAX_PER_INSTANCE = 100_000


@dataclass(frozen=True, slots=True)
class QuoteReference:
    """What reading a quote needs to know of the world.

    `candidates` gives the canonical names that a label may mean, with the memory of one device [GB] if known; `accelerators_per_node` and
    `typical_usd` [USD per accelerator-hour] are by canonical name, `providers` names by other names for them in lower case,
    `instances` accelerator and number by instance type in lower case.
    """

    candidates: Callable[[str, float | None], tuple[str, ...]]
    accelerators_per_node: Mapping[str, int]
    typical_usd: Mapping[str, float]
    providers: Mapping[str, str]
    instances: Mapping[str, tuple[str, int]]
    today: date


@dataclass(frozen=True, slots=True)
class AcceleratorLabel:
    """What a label says: the canonical names that it may mean, how many, and why so many."""

    names: tuple[str, ...]
    count: int | None
    count_reason: str = ""


def read_label(label: str, reference: QuoteReference, memory_gb: float | None = None) -> AcceleratorLabel:
    """The accelerators of a vendor's label; no names where none is recognised, several where the label fits several."""
    known = reference.instances.get(label.strip().casefold())
    if known is not None:
        return AcceleratorLabel((known[0],), known[1], f"the instance type {label[:40]} has {known[1]}")
    label = label.replace("_", " ")
    count, rest = _count(label)
    stated = [float(found) for found in MEMORY.findall(rest)]
    exact = rest.strip()
    is_canonical = exact in reference.accelerators_per_node  # means itself, though others may share parts of it
    names = (exact,) if is_canonical else _names(rest, _device_memory([memory_gb] if memory_gb else stated, count), reference)
    if not names and stated and memory_gb is None:
        names = _names(rest, None, reference)
    if count is not None:
        return AcceleratorLabel(names, count, f"{label[:40]!r} says {count}")
    if WHOLE_NODE.search(label) and len(names) == 1:
        whole = reference.accelerators_per_node[names[0]]
        return AcceleratorLabel(names, whole, f"a whole node of {names[0]} has {whole}")
    return AcceleratorLabel(names, None)


def _count(label: str) -> tuple[int | None, str]:
    """The stated number of accelerators, and the label without it."""
    for pattern in COUNTS:
        found = pattern.search(label)
        if found is not None and 1 <= int(found.group(1)) <= MAX_PER_INSTANCE:
            return int(found.group(1)), f"{label[: found.start()]} {label[found.end() :]}"
    return None, label


def _device_memory(stated: Sequence[float], count: int | None) -> float | None:
    """Memory of one device [GB]: of several figures the smallest; a single large one with a count is that of all."""
    if not stated:
        return None
    least = min(stated)
    return least / count if count and count > 1 and least >= 300 else least


def _names(label: str, memory_gb: float | None, reference: QuoteReference) -> tuple[str, ...]:
    """Canonical names of the longest part of the label that is a known name, of the form that the label tells."""
    for name in _parts(label):
        found = reference.candidates(name, memory_gb)
        if found:
            return _of_form(label, found)
    return ()


def _parts(label: str) -> Iterator[str]:
    """The label, then runs of its words that hold a digit, longer ones first, also with the generation of the socket left out."""
    words = TOKEN.findall(label)[:MAX_TOKENS]
    seen: set[str] = set()
    for variant in (words, [re.sub(r"(?i)^sxm\d$", "SXM", word) for word in words]):
        for length in range(min(len(variant), LONGEST_NAME), 0, -1):
            for start in range(len(variant) - length + 1):
                name = " ".join(variant[start : start + length])
                if name not in seen and any(letter.isdigit() for letter in name) and any(letter.isalpha() for letter in name):
                    seen.add(name)
                    yield name


def _of_form(label: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) == 1:
        return names
    forms = [form for form, words in FORMS.items() if words.search(label)]
    fitting = tuple(name for name in names if any(form in name.upper() for form in forms))
    return fitting or names
