"""Published scaling laws with their uncertainty and sources, from `data/laws.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import UnknownName
from service.domain.quantities import Range
from service.domain.scaling.laws import PARAMETERS, AllocationLaw, MixtureLaw, ParametricLaw, RepetitionDecay, ScalingLaw

_FILE = Path(__file__).parents[1] / "data" / "laws.toml"
_LONGEST_NAME = 100
MIXTURE = "krajewski-moe"


@dataclass(frozen=True, slots=True)
class PublishedLaw:
    """A law with its source and uncertainty.

    Attributes
    ----------
    counts : str
        Which parameters N counts.
    covariance : (5, 5) float array or None
        Of log E, log A, log B, alpha and beta; None where nothing is published, and the law counts as certain.
    exponents : Range or None
        Interval of 80 % of an allocation law's exponent [1].
    largest_params, largest_tokens : float or None
        Largest run it was fitted to; beyond it the law is extrapolated.
    """

    name: str
    title: str
    law: ScalingLaw
    counts: str
    source: str
    date: str
    standard_errors: Mapping[str, float]
    covariance: NDArray[np.float64] | None
    exponents: Range | None
    largest_params: float | None
    largest_tokens: float | None


@functools.cache
def load_laws() -> Mapping[str, PublishedLaw]:
    """Every law by its name, in the order of the file."""
    return MappingProxyType({name: _published(name, row) for name, row in _document()["law"].items()})


def find_law(name: str) -> PublishedLaw:
    """The law of that name. Raises UnknownName with similar names."""
    known = load_laws()
    if name in known:
        return known[name]
    shown = name[:_LONGEST_NAME]
    near = tuple(get_close_matches(shown.lower(), known, cutoff=0.4))
    raise UnknownName(f"no scaling law is called {shown!r}; there are {', '.join(known)}", "/law", near)


def default_law() -> PublishedLaw:
    """The law used where the request states none."""
    return load_laws()[_document()["default"]]


def repetition_decay() -> tuple[RepetitionDecay, str]:
    """Decay of the worth of repeated tokens and excess parameters, and its source."""
    row = _document()["repetition"]
    return RepetitionDecay(row["tokens"], row["params"]), f"{row['source']}, {row['date']}"


@functools.cache
def load_mixture_law() -> MixtureLaw:
    """The law of mixtures of experts, for any granularity."""
    return _mixture(_document()["law"][MIXTURE])


def _published(name: str, row: Mapping[str, Any]) -> PublishedLaw:
    return PublishedLaw(
        name=name,
        title=row["title"],
        law=_law(row),
        counts=row["counts"],
        source=f"{row['source']}, {row['date']}",
        date=row["date"],
        standard_errors=MappingProxyType(row.get("standard_errors", {})),
        covariance=np.array(row["covariance"]) if "covariance" in row else None,
        exponents=Range(row["p10"], row["exponent"], row["p90"]) if "p10" in row else None,
        largest_params=row.get("largest_params"),
        largest_tokens=row.get("largest_tokens"),
    )


def _law(row: Mapping[str, Any]) -> ScalingLaw:
    match row["form"]:
        case "parametric":
            return ParametricLaw(*(row[name] for name in PARAMETERS))
        case "kaplan":
            return ParametricLaw.from_kaplan(row["n_c"], row["d_c"], row["alpha_n"], row["alpha_d"])
        case "mixture":
            return _mixture(row).at_granularity(row["granularity"])
        case _:
            return AllocationLaw(
                row["anchor_flops"], row["anchor_params"], row["exponent"], row.get("loss_flops"), row.get("loss_exponent")
            )


def _mixture(row: Mapping[str, Any]) -> MixtureLaw:
    return MixtureLaw(row["E"], row["a"], row["B"], row["alpha"], row["beta"], row["g"], row["gamma"], row["total_per_active"])


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
