"""What each accelerator family achieves of its data sheet, fitted to published measurements by `python -m tools.calibration`.

The data, with the rows behind every figure, are in `data/utilisation.toml`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from service.domain.quantities import Range
from service.domain.training.hardware import Accelerator
from service.domain.training.run import TODAYS_SOFTWARE
from service.domain.training.utilisation import LossRange, LossTerms, PlanCalibration, Utilisation
from service.presets.documents import build, load_document
from service.presets.hardware.accelerators import load_accelerators
from service.presets.training.throughput_parameters import (
    UNPUBLISHED,
    FittedParameters,
    FixedParameters,
    Kernels,
    Key,
    LayoutKnowledge,
    MatmulShare,
    SpreadScale,
    ThroughputSpread,
    load_parameters,
)

SIXTEEN_BIT_CLASS = "16-bit"
NEWER_KERNELS: Mapping[Kernels, tuple[Kernels, ...]] = {
    "own": ("own",),
    "earlier": ("earlier", "own"),
    "first": ("first", "earlier", "own"),
}
"""Kernels of attention, and those that stand for them where they are not known."""
LAUNCH_OVERHEADS = ("layer_overhead_s", "routing_overhead_s", "expert_overhead_s", "call_overhead_s")
"""Times that a step which is one program does not have."""


@functools.lru_cache(maxsize=1024)
def find_utilisation(
    accelerator: Accelerator,
    precision: str,
    known: LayoutKnowledge = "layout",
    count: int = 1,
    software_year: int = TODAYS_SOFTWARE,
) -> Utilisation:
    """What the accelerator achieves at a precision; borrowed from the nearest relative where nothing is measured.

    Parameters
    ----------
    accelerator : Accelerator
        Data sheet.
    precision : str
        One of its precisions.
    known : "layout" or "goal"
        Whether the caller states the layout, or only the goal.
    count : int
        Accelerators of the machine, which widen the range.
    software_year : int
        Year of the software that trains.

    Returns
    -------
    Utilisation
        Its range is that of such predictions' errors.
    """
    return utilisation(load_parameters(), accelerator, precision, known, count, software_year)


def plan_calibration() -> PlanCalibration:
    """Accelerator-hours of published runs against plans made of their steps and failures alone (tools/calibration/whole_runs/losses.py)."""
    row = load_document("utilisation")["whole_runs"]
    return PlanCalibration(LossTerms(**row["coefficients"]), LossRange(**row["measured"]))


def utilisation(
    parameters: FittedParameters,
    accelerator: Accelerator,
    precision: str,
    known: LayoutKnowledge = "layout",
    count: int = 1,
    software_year: int = TODAYS_SOFTWARE,
) -> Utilisation:
    """Parameters of the step model for one accelerator and precision. The arguments are those of `find_utilisation`."""
    wanted = (accelerator.family, parameters.classes[precision])
    key = nearest(parameters, parameters.matmul, wanted)
    measured = parameters.matmul[key]
    borrowed = key != wanted
    kin = accelerator.name not in measured.accelerators
    power = parameters.borrowed_power if borrowed else parameters.kin_power if kin else 1.0
    compiled, overlapping = accelerator.family in parameters.compiled, accelerator.family in parameters.overlapping
    absent = dict.fromkeys((*(LAUNCH_OVERHEADS if compiled else ()), *(() if overlapping else ("tensor_overlap",))), 0.0)
    kernels = attention_kernels(parameters, wanted, software_year)
    share = measured.share * _share_ratio(parameters, measured, accelerator, wanted, key)
    return build(
        Utilisation,
        {**parameters.shared, **absent},
        matmul_share=min(share, parameters.largest_share),
        attention_share=attention_share(parameters, accelerator, precision, kernels),
        spread=raise_range(_known_spread(parameters, key, known, borrowed=borrowed), power * scale_power(parameters.scales, known, count)),
        source=f"borrowed from {key[0]} at {key[1]}: {measured.source}" if borrowed or kin else measured.source,
        borrowed=borrowed or kin,
        other_share=_share_in_samples(parameters, accelerator, wanted),
    )


def has_fused_experts(parameters: FixedParameters, family: str, precision: str, software_year: float) -> bool:
    """Whether that year's software fuses what stands between experts' products into them, and captures a mixture's step as one graph."""
    known = parameters.fused_experts
    return software_year >= known.from_year and family in known.families and parameters.classes[precision] in known.classes


def attention_kernels(parameters: FixedParameters, key: Key, software_year: float) -> Kernels:
    """Kernels that a year's software runs attention in, where nothing else is known."""
    return next((kernels for year, kernels in parameters.earlier_attention.get(key, ()) if software_year <= year), "own")


def attention_share(parameters: FittedParameters, accelerator: Accelerator, precision: str, kernels: Kernels) -> float:
    """Share of the dense 16-bit peak that flash attention reaches in such kernels [1].

    It follows a board's power as products do. Where nothing is measured, it is the nearest family's of the same vendor, as far as the best
    products of the two reach, else what such kernels have in the middle.
    """
    key = accelerator.family, parameters.classes[precision]
    power = _power_factor(parameters, parameters.matmul[key], accelerator, borrowed=False) if key in parameters.matmul else 1.0
    return min(power * _family_attention(parameters, accelerator, kernels), parameters.largest_share)


def _family_attention(parameters: FittedParameters, accelerator: Accelerator, kernels: Kernels) -> float:
    found, peaks, family = parameters.attention, parameters.matmul_peaks, accelerator.family
    kin = {part.family for part in load_accelerators().values() if part.vendor == accelerator.vendor}
    families = [family, *(name for name in (*parameters.relatives.get(family, ()), *parameters.relatives["*"]) if name in kin)]
    known_kernels = [(name, kind) for name in families for kind in NEWER_KERNELS[kernels] if (name, kind) in found]
    lender, kind = known_kernels[0] if known_kernels else UNPUBLISHED
    known = (family, SIXTEEN_BIT_CLASS) in peaks and (lender, SIXTEEN_BIT_CLASS) in peaks
    ratio = peaks[family, SIXTEEN_BIT_CLASS] / peaks[lender, SIXTEEN_BIT_CLASS] if known else 1.0
    return found[lender, kind] * ratio


def watts_per_tflop(accelerator: Accelerator) -> float:
    """Data-sheet power over the dense 16-bit peak [W per TFLOP/s]: how well a board can hold its peak's clock. 0 where not published."""
    peak = next((accelerator.peak_tflops[name] for name in ("bf16", "fp16") if name in accelerator.peak_tflops), 0.0)
    return accelerator.tdp_w / peak if accelerator.tdp_w and peak else 0.0


def _power_factor(parameters: FittedParameters, found: MatmulShare, accelerator: Accelerator, *, borrowed: bool) -> float:
    """Share of a board over that of the measured ones, from its power; at most 1 for relatives."""
    own = watts_per_tflop(accelerator)
    if not own or not found.watts_per_tflop:
        return 1.0
    factor = float((own / found.watts_per_tflop) ** parameters.shared["power_exponent"])
    return min(factor, 1.0) if borrowed else factor


def _share_in_samples(parameters: FittedParameters, accelerator: Accelerator, wanted: Key) -> float:
    """Share of the dense peak of networks counted by samples.

    Convolutions and normalisations are bound by arithmetic and by memory in turn: what is borrowed goes with the root of memory bandwidth
    over peak. ResNet-50 on A100, V100, Gaudi and Gaudi 2 follows it within a sixth where bare shares differ threefold.
    """
    lender = nearest(parameters, parameters.other, wanted)
    share = parameters.other[lender]
    if lender == wanted:
        return share
    own = _bytes_per_flop(parameters, accelerator, wanted[1])
    known = [_bytes_per_flop(parameters, part, lender[1]) for part in load_accelerators().values() if part.family == lender[0]]
    ratio = own / median(filter(None, known)) if own and any(known) else 1.0
    return min(share * float(ratio**0.5), parameters.largest_share)


def _bytes_per_flop(parameters: FittedParameters, accelerator: Accelerator, kind: str) -> float:
    """Memory bandwidth over the dense peak of a precision class [B per 1000 FLOP]; 0 where the accelerator has none of it."""
    peaks = [peak for name, peak in accelerator.peak_tflops.items() if parameters.classes[name] == kind]
    return accelerator.memory_bandwidth_gb_per_s / max(peaks) if peaks else 0.0


def _share_ratio(parameters: FittedParameters, found: MatmulShare, accelerator: Accelerator, wanted: Key, lender: Key) -> float:
    """Share of a board over that of the measured ones.

    That of the best products of its family and class over those of the lender's, which were searched for within the boards' power; from
    their power where either was not searched for.
    """
    peaks = parameters.matmul_peaks
    if wanted != lender and wanted in peaks and lender in peaks:
        return peaks[wanted] / peaks[lender]
    return _power_factor(parameters, found, accelerator, borrowed=wanted != lender)


def spread_of(spreads: Sequence[ThroughputSpread], key: Key, known: LayoutKnowledge) -> Range:
    """Spread of the family and class, or of all where it has none."""
    found = [row for row in spreads if row.known == known and (row.family, row.precision) in (key, ("*", "*"))]
    if not found:
        return Range.exactly(1.0)
    row = max(found, key=lambda row: row.family != "*")
    return Range(row.p10, 1.0, row.p90)


def unmeasured_spread(spreads: Sequence[ThroughputSpread], known: LayoutKnowledge) -> Range:
    """Spread where nothing is measured: as far as that of any family and class reaches, to either side."""
    rows = [row for row in spreads if row.known == known]
    return Range(min((row.p10 for row in rows), default=1.0), 1.0, max((row.p90 for row in rows), default=1.0))


def _known_spread(parameters: FittedParameters, key: Key, known: LayoutKnowledge, *, borrowed: bool) -> Range:
    return unmeasured_spread(parameters.spreads, known) if borrowed else spread_of(parameters.spreads, key, known)


def scale_power(scales: Sequence[SpreadScale], known: LayoutKnowledge, count: int) -> float:
    """Exponent of the spread on machines of that size."""
    found = [row for row in scales if row.known == known and row.from_count <= count]
    return max(found, key=lambda row: row.from_count).power if found else 1.0


def raise_range(spread: Range, power: float) -> Range:
    """A range of ratios with its ends raised to a power."""
    return Range(spread.p10**power, spread.p50, spread.p90**power)


def nearest(parameters: FittedParameters, known: Mapping[Key, Any], key: Key) -> Key:
    """The key itself where it is known, else the nearest of the family's other classes and of its relatives."""
    family, kind = key
    kinds = (kind, *parameters.neighbours[kind])
    for candidate in (family, *parameters.relatives.get(family, ()), *parameters.relatives["*"]):
        for other in kinds:
            if (candidate, other) in known:
                return candidate, other
    raise KeyError(key)
