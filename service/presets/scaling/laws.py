"""Published scaling laws with their uncertainty and sources, from `data/laws.toml`."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import UnknownName
from service.domain.quantities import Range
from service.domain.scaling.laws import AllocationLaw, MixtureLaw, ParametricLaw, RepetitionDecay, ScalingLaw
from service.presets.documents import build, dated_source, load_document

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
    largest_params: float | None = None
    largest_tokens: float | None = None


@functools.cache
def load_laws() -> Mapping[str, PublishedLaw]:
    """Every law by its name, in the order of the file."""
    return MappingProxyType({name: _published(name, row) for name, row in load_document("laws")["law"].items()})


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
    return load_laws()[load_document("laws")["default"]]


def repetition_decay() -> tuple[RepetitionDecay, str]:
    """Decay of the worth of repeated tokens and excess parameters, and its source."""
    row = load_document("laws")["repetition"]
    return build(RepetitionDecay, row), dated_source(row)


@functools.cache
def load_mixture_law() -> MixtureLaw:
    """The law of mixtures of experts, for any granularity."""
    return build(MixtureLaw, load_document("laws")["law"][MIXTURE])


def _published(name: str, row: Mapping[str, Any]) -> PublishedLaw:
    uncertainty = {
        "standard_errors": MappingProxyType(row.get("standard_errors", {})),
        "covariance": np.array(row["covariance"]) if "covariance" in row else None,
        "exponents": Range(row["p10"], row["exponent"], row["p90"]) if "p10" in row else None,
    }
    return build(PublishedLaw, row, name=name, law=_law(row), source=dated_source(row), **uncertainty)


def _law(row: Mapping[str, Any]) -> ScalingLaw:
    match row["form"]:
        case "parametric":
            return build(ParametricLaw, row)
        case "kaplan":
            return ParametricLaw.from_kaplan(row["n_c"], row["d_c"], row["alpha_n"], row["alpha_d"])
        case "mixture":
            return build(MixtureLaw, row).at_granularity(row["granularity"])
        case _:
            return build(AllocationLaw, row)
