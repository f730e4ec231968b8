"""Parameters of the throughput model, fitted to published measurements by `python -m tools.calibration`, as the data file has them."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType
from typing import Any, Literal

from service.presets.documents import build, load_document
from service.presets.hardware.accelerators import find_accelerator

Key = tuple[str, str]
LayoutKnowledge = Literal["layout", "goal"]
Kernels = Literal["own", "earlier", "first"]
UNPUBLISHED: Key = ("*", "own")
"""Key of the middle of kernels whose speed is not published."""


@dataclass(frozen=True, slots=True)
class MatmulShare:
    """Share of the dense peak that a family's matrix products reach at a precision class.

    Attributes
    ----------
    share : float
        [1].
    watts_per_tflop : float
        Data-sheet power over 16-bit peak of the measured parts [W per TFLOP/s]; 0 where none is published.
    source : str
        Publications and their rows.
    accelerators : tuple of str
        The measured parts.
    """

    share: float
    watts_per_tflop: float
    source: str
    accelerators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ThroughputSpread:
    """Measured over predicted throughput of a family and class ("*": of all), by how much of the layout is known.

    Attributes
    ----------
    p10, p90 : float
        Percentiles [1].
    rows : int
        Measurements behind it.
    """

    known: LayoutKnowledge
    family: str
    precision: str
    p10: float
    p90: float
    rows: int


@dataclass(frozen=True, slots=True)
class SpreadScale:
    """Exponent of a family's spread on machines of `from_count` accelerators and more, up to the next row's."""

    known: LayoutKnowledge
    from_count: int
    power: float
    rows: int


@dataclass(frozen=True, slots=True)
class FusedExperts:
    """Software that fuses what stands between the experts' products into them: from a year on, on families, at precision classes."""

    from_year: float
    families: tuple[str, ...]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FixedParameters:
    """Parameters of the throughput model that are chosen, not fitted.

    Attributes
    ----------
    classes : mapping of str to str
        Precision class of each precision.
    neighbours, relatives : mapping of str to tuple of str
        Classes and families that one without data borrows from, nearest first.
    compiled : frozenset of str
        Families whose whole step is one program, launched at once.
    overlapping : frozenset of str
        Families whose software runs tensor exchanges beside the products.
    fused_experts : FusedExperts
        Which software has fused kernels for mixtures.
    earlier_attention : mapping of Key to tuple of (int, Kernels)
        Attention kernels that the software of families and classes used by default up to a year, the earliest year first.
    matmul_peaks : mapping of Key to float
        Share of the listed peak that the best matrix products reach, by family and class, where it was searched for [1].
    largest_share : float
        Upper limit of any share [1].
    borrowed_power, kin_power : float
        Exponents of the spread where a family is not measured, and where only another part of it is.
    """

    classes: Mapping[str, str]
    neighbours: Mapping[str, tuple[str, ...]]
    relatives: Mapping[str, tuple[str, ...]]
    compiled: frozenset[str]
    overlapping: frozenset[str]
    fused_experts: FusedExperts
    earlier_attention: Mapping[Key, tuple[tuple[int, Kernels], ...]]
    matmul_peaks: Mapping[Key, float]
    largest_share: float
    borrowed_power: float
    kin_power: float


@dataclass(frozen=True, slots=True)
class FittedParameters(FixedParameters):
    """All parameters of the throughput model.

    Attributes
    ----------
    shared : mapping of str to float
        By name, the same for every accelerator.
    matmul : mapping of Key to MatmulShare
        By family and precision class.
    attention : mapping of Key to float
        Share of the 16-bit peak that flash attention reaches, by family and kernels: the family's `own`, `earlier` ones, or the `first` of
        FlashAttention; `UNPUBLISHED` is the middle of those without a published speed [1].
    other : mapping of Key to float
        Share of the dense peak of networks counted by samples, by family and precision class [1].
    spreads : tuple of ThroughputSpread
        By family, class and knowledge of the layout.
    scales : tuple of SpreadScale
        By size of the machine.
    layout_loss : float
        Logarithm of the speed in the fastest layout that is found over that in the layouts that teams run on many nodes [1].
    """

    shared: Mapping[str, float]
    matmul: Mapping[Key, MatmulShare]
    attention: Mapping[Key, float]
    other: Mapping[Key, float]
    spreads: tuple[ThroughputSpread, ...] = ()
    scales: tuple[SpreadScale, ...] = ()
    layout_loss: float = 0.0


@functools.cache
def load_parameters() -> FittedParameters:
    """The fitted parameters of the data file."""
    document = load_document("utilisation")
    return FittedParameters(
        shared=MappingProxyType({name: row["value"] for name, row in document["shared"].items()}),
        matmul=MappingProxyType({_key(row): build(MatmulShare, row) for row in document["matmul"]}),
        attention=MappingProxyType({(row["family"], row["kernels"]): row["share"] for row in document["attention"]}),
        other=MappingProxyType({_key(row): row["share"] for row in document["other"]}),
        spreads=tuple(ThroughputSpread(**row) for row in document["spread"]),
        scales=tuple(SpreadScale(**row) for row in document["scale"]),
        layout_loss=document["searched_layouts"]["loss"],
        **fixed_parameters(document),
    )


def fixed_parameters(document: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that are chosen, not fitted."""
    software = document["software"]
    classes = {name: kind for kind, names in document["classes"].items() for name in names}
    return {
        "classes": MappingProxyType(classes),
        "neighbours": _orders(document["neighbours"]),
        "relatives": _orders(document["relatives"]),
        "compiled": frozenset(software["compiled"]),
        "overlapping": frozenset(software["overlapping"]),
        "fused_experts": build(FusedExperts, software["fused_experts"]),
        "earlier_attention": _earlier_attention(software["earlier_attention"]),
        "matmul_peaks": _matmul_peaks(classes),
        "largest_share": document["limits"]["largest_share"],
        "borrowed_power": document["borrowed"]["spread_power"],
        "kin_power": document["borrowed"]["kin_spread_power"],
    }


def _earlier_attention(rows: Sequence[tuple[str, str, int, Kernels]]) -> Mapping[Key, tuple[tuple[int, Kernels], ...]]:
    """Kernels by family and class, each with the last year of its software."""
    found: dict[Key, tuple[tuple[int, Kernels], ...]] = {}
    for family, kind, year, kernels in sorted(rows, key=lambda row: row[2]):
        found[family, kind] = (*found.get((family, kind), ()), (year, kernels))
    return MappingProxyType(found)


def _matmul_peaks(classes: Mapping[str, str]) -> Mapping[Key, float]:
    """Best products' share of the peak: the mean of a family's parts at a class."""
    found: dict[Key, list[float]] = defaultdict(list)
    for row in load_document("matmul_peaks")["peak"]:
        found[find_accelerator(row["accelerator"]).accelerator.family, classes[row["precision"]]].append(row["share"])
    return MappingProxyType({key: fmean(shares) for key, shares in found.items()})


def _key(row: Mapping[str, Any]) -> Key:
    return row["family"], row["precision"]


def _orders(table: Mapping[str, list[str]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({name: tuple(order) for name, order in table.items()})
