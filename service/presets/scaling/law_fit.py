"""Priors and defaults of fits of scaling laws and loss curves, from `data/scaling_fit.toml`."""

from __future__ import annotations

import functools

import numpy as np

from service.domain.scaling.fits import LawPrior
from service.domain.scaling.loss_curves import CurvePrior
from service.presets.defaults import Default
from service.presets.documents import dated_source, load_document

LAW_TERMS, LAW_EXPONENTS = ("size_term", "data_term", "irreducible"), ("alpha", "beta")


@functools.cache
def law_prior() -> LawPrior:
    """Prior of a law's parameters, from published laws."""
    rows = load_document("scaling_fit")["law"]
    centre = [*(np.log(rows[name]["typical"]) for name in LAW_TERMS), *(rows[name]["typical"] for name in LAW_EXPONENTS)]
    deviation = [rows[name]["deviation"] for name in (*LAW_TERMS, *LAW_EXPONENTS)]
    return LawPrior(np.array(centre), np.array(deviation), dated_source(rows))


@functools.cache
def curve_prior() -> CurvePrior:
    """Prior of a loss curve's parameters, from measured curves."""
    rows = load_document("scaling_fit")["curve"]
    power, alpha, level, annealing = (rows[name] for name in ("power_term", "alpha", "level", "annealing"))
    return CurvePrior(
        centre=np.array([np.log(power["typical"]), alpha["typical"], np.log(level["typical"]), np.log(annealing["typical"])]),
        deviation=np.array([row["deviation"] for row in (power, alpha, level, annealing)]),
        relaxation_share=rows["relaxation_share"]["value"],
        level_error=rows["error"]["level"],
        fall_error=rows["error"]["fall"],
        source=dated_source(rows),
        relaxation_source=dated_source(rows["relaxation_share"]),
    )


def fit_default(name: str) -> Default:
    """Default of a request field. Raises KeyError for a field without one."""
    return Default(**load_document("scaling_fit")["default"][name])
