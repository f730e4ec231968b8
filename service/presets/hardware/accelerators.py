"""The known accelerators, by canonical name and by the names that people and clouds give them.

The data are in `data/accelerators.toml`; to add an accelerator, add a table there.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from service.domain.errors import UnknownName
from service.domain.training.hardware import Accelerator
from service.presets.documents import build, load_document

_GIB = 2**30
_LONGEST_NAME = 80
_MEMORY_TOLERANCE = 0.08  # GB against GiB is 7.4 %
_VENDOR = re.compile(r"^(?:nvidia|amd|intel|google|aws|amazon|habana|huawei|cerebras|graphcore|sambanova|geforce|tesla|instinct)(?=.)")
_TPU_SLICE = re.compile(r"^((?:google)?[-_ ]?(?:cloud)?[-_ ]?(?:tpu)?[-_ ]?v(?:[234]|5p|5e|5litepod|6e|7))-\d{1,5}$", re.IGNORECASE)
_TOTAL_MEMORY = re.compile(r"(-\d+GB)-\d+GB$", re.IGNORECASE)  # A100-80GB-640GB: one's memory, then all of the machine's


@dataclass(frozen=True, slots=True)
class ResolvedAccelerator:
    """The accelerator of a name. `ambiguous_with` are the canonical names that it could also mean, `why` the reason against them."""

    accelerator: Accelerator
    requested: str
    ambiguous_with: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Entry:
    canonical: str
    shown: str
    others: tuple[str, ...] = ()
    why: str = ""
    exact_in_catalogues: bool = False


@functools.cache
def load_accelerators() -> Mapping[str, Accelerator]:
    """Every accelerator by canonical name, in the order of the data file."""
    return MappingProxyType({row["name"]: _accelerator(row) for row in load_document("accelerators")["accelerator"]})


def find_accelerator(name: str) -> ResolvedAccelerator:
    """The accelerator of a name; case, separators and a leading vendor name do not matter.

    A slice name such as `v5litepod-16` means its chip. Raises UnknownName with near names.
    """
    entry = _entry(name)
    if entry is None:
        near = _near(name)
        raise UnknownName(f"unknown accelerator {name[:_LONGEST_NAME]!r}; near names: {', '.join(near)}", "/hardware/accelerator", near)
    return ResolvedAccelerator(load_accelerators()[entry.canonical], name, entry.others, entry.why)


def canonical_accelerator(label: str, memory_gb: float | None) -> str | None:
    """The canonical name for a vendor's label, with the memory of one device [GB or GiB] as the vendor states it.

    None where the label is unknown, where no part of that label has that memory, or where parts of different memory go by the
    label and the memory is not stated: a price for the wrong part is worse than no price.
    """
    entry = _entry(_TOTAL_MEMORY.sub(r"\1", label))
    if entry is None:
        return None
    others = () if entry.exact_in_catalogues else entry.others
    candidates = [load_accelerators()[name] for name in (entry.canonical, *others)]
    if memory_gb is None:
        same = all(_memory_error(part, candidates[0].memory_gb) <= _MEMORY_TOLERANCE for part in candidates)
        return entry.canonical if same else None
    error, best = min(((_memory_error(part, memory_gb), part) for part in candidates), key=lambda pair: pair[0])
    return best.name if error <= _MEMORY_TOLERANCE else None


def accelerator_candidates(label: str, memory_gb: float | None = None) -> tuple[str, ...]:
    """Canonical names that a label may mean, the usual one first; with the memory of one device [GB or GiB] only those that have it.

    Empty where the label is unknown.
    """
    entry = _entry(label)
    if entry is None:
        return ()
    names = (entry.canonical, *entry.others)
    if memory_gb is None:
        return names
    return tuple(name for name in names if _memory_error(load_accelerators()[name], memory_gb) <= _MEMORY_TOLERANCE)


def _memory_error(part: Accelerator, memory_gb: float) -> float:
    """Relative difference of a stated memory from the part's own, in the nearer of its two figures."""
    own = (part.memory_gb, part.usable_memory_bytes / _GIB)
    return min(abs(memory_gb - figure) / figure for figure in own)


def _accelerator(row: dict[str, Any]) -> Accelerator:
    unpublished = {"link_gb_per_s": None, "internode_gbit_per_s": None, "tdp_w": None}
    return build(
        Accelerator,
        unpublished | row,
        usable_memory_bytes=row["usable_memory_gib"] * _GIB,
        peak_tflops=MappingProxyType({precision: float(peak) for precision, peak in row["peak_tflops"].items()}),
        aliases=(*_usual_for(row["name"]), *row["aliases"]),
    )


def _usual_for(canonical: str) -> tuple[str, ...]:
    """The ambiguous names that mean this part by default."""
    return tuple(alias for row in load_document("accelerators")["ambiguous"] if row["usual"] == canonical for alias in row["aliases"])


def _entry(name: str) -> _Entry | None:
    if len(name) > _LONGEST_NAME:
        return None
    exact = _canonical_names().get(name.strip().casefold())
    if exact is not None:
        return _Entry(exact, exact)
    chip = _TPU_SLICE.match(name.strip())
    return _index().get(_key(chip.group(1) if chip else name))


def _key(name: str) -> str:
    """Normal form of a name: `Tesla V100-SXM2-16GB` and `v100sxm216gb` are the same."""
    key = re.sub(r"[-_ ./()]", "", name.casefold())
    while shorter := _VENDOR.sub("", key):
        if shorter == key:
            break
        key = shorter
    return key


@functools.cache
def _canonical_names() -> Mapping[str, str]:
    return MappingProxyType({name.casefold(): name for name in load_accelerators()})


@functools.cache
def _index() -> Mapping[str, _Entry]:
    index = {_key(entry.shown): entry for entry in _plain_entries()}
    index |= {_key(entry.shown): entry for entry in _ambiguous_entries()}
    return MappingProxyType(index)


def _plain_entries() -> Iterable[_Entry]:
    for row in load_document("accelerators")["accelerator"]:
        for shown in (row["name"], *row["aliases"]):
            yield _Entry(row["name"], shown)


def _ambiguous_entries() -> Iterable[_Entry]:
    for row in load_document("accelerators")["ambiguous"]:
        for shown in row["aliases"]:
            yield _Entry(row["usual"], shown, tuple(row["others"]), row["why"], row.get("exact_in_catalogues", False))


def _near(name: str, count: int = 3) -> tuple[str, ...]:
    """Known names closest to an unknown one, one for each accelerator."""
    by_canonical: dict[str, str] = {}
    for key in difflib.get_close_matches(_key(name[:_LONGEST_NAME]), list(_index()), n=len(_index()), cutoff=0.0):
        entry = _index()[key]
        by_canonical.setdefault(entry.canonical, entry.shown)
        if len(by_canonical) == count:
            break
    return tuple(by_canonical.values())
