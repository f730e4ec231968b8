"""How far a measured step says another step's speed: published rows predicted from another row of the same model and machine.

Two rows are a pair where document, model, precision and accelerator are the same and the second has at least as many accelerators. The
second is predicted as modelled, times what the first measured over what is modelled for it. The fit writes the percentiles of the
misses; `python -m tools.calibration.carried` writes them again from the last fit.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.presets.training.carried import CarriedSpread
from service.presets.training.throughput_parameters import FittedParameters, LayoutKnowledge, load_parameters
from tools.calibration.cases import MeasuredCase, throughput_cases, without_layout
from tools.calibration.folds import predict_left_out_rates, read_folds, search_case_rate
from tools.calibration.spreads import group_weights, quantiles, weighted_quantiles
from tools.calibration.table import Floats

FILE = Path(__file__).parents[2] / "service" / "presets" / "data" / "carried.toml"
HEAD = """\
# How far the speed of a measured step says that of another: written by `python -m tools.calibration`, not by hand.
#
# known_there, known  whether the layout of the measured step, and of the planned one, was given ("layout") or searched ("goal")
# from_ratio          more than so many times as many (or as few) accelerators as were measured, up to the next row's
# p10, p90            measured over predicted rates of published rows, each predicted from another of the same document, model,
#                     precision and accelerator, by parameters fitted without the document: the narrowest range that holds four in
#                     five of the rows and of the documents that it was not made of
"""
# Multiples of the measured count: another layout, batch or sequence on as many; more of them; many more.
RATIOS = (0, 1, 8)
# Of pairs, and of documents, that a range holds without having seen them; shares of the weight below p90 that are tried.
INSIDE = 0.8
SHARES = tuple(np.arange(0.9, 1.0, 0.005).round(3).tolist())
KNOWN: tuple[LayoutKnowledge, ...] = ("layout", "goal")


@dataclass(frozen=True)
class CarriedCase:
    """A case, and its log of measured over predicted rate by whether its layout is given, without its document."""

    case: MeasuredCase
    log_ratio: Mapping[LayoutKnowledge, float]


@dataclass(frozen=True)
class Pair:
    """A measured case, and another of the same model and machine that is predicted from it."""

    there: CarriedCase
    here: CarriedCase

    @property
    def ratio(self) -> float:
        """Accelerators here over those there [1]."""
        return self.here.case.cluster.count / self.there.case.cluster.count

    def miss(self, known_there: LayoutKnowledge, known: LayoutKnowledge) -> float:
        """Log of measured over carried rate [1]."""
        return self.here.log_ratio[known] - self.there.log_ratio[known_there]


def carried_cases(cases: Sequence[MeasuredCase], folds: Mapping[str, FittedParameters]) -> list[CarriedCase]:
    """Every case of one row with another of its model and machine."""
    sizes: dict[Hashable, int] = defaultdict(int)
    single = [case for case in cases if not case.each]
    for case in single:
        sizes[machine_key(case)] += 1
    kept = [case for case in single if sizes[machine_key(case)] > 1]
    # The last fit has no fold for a document that it did not see.
    without = {case.document: folds.get(case.document, load_parameters()) for case in kept}
    given = predict_left_out_rates(kept, without, lambda case: case.document)
    # A measured step says itself how near its team is to the fastest layout.
    alone = [search_case_rate(without_layout(case), replace(without[case.document], layout_loss=0.0)) for case in kept]
    return [
        CarriedCase(case, {"layout": float(np.log(case.rates[0] / with_layout)), "goal": float(np.log(case.rates[0] / searched))})
        for case, with_layout, searched in zip(kept, given, alone, strict=True)
    ]


def machine_key(case: MeasuredCase) -> Hashable:
    """What is the same in both rows of a pair."""
    return case.document, case.model, case.training.precision, case.accelerator.name


def find_pairs(cases: Sequence[CarriedCase]) -> list[Pair]:
    """Every row with every other of its model and machine that has no more accelerators."""
    groups: dict[Hashable, list[CarriedCase]] = defaultdict(list)
    for one in cases:
        groups[machine_key(one.case)].append(one)
    ordered = (Pair(*two) for group in groups.values() for two in itertools.permutations(group, 2))
    return [pair for pair in ordered if pair.ratio >= 1]


def fit_carried(pairs: Sequence[Pair]) -> list[CarriedSpread]:
    """Spreads by what is known of both layouts and by the ratio of the counts."""
    found = []
    for known_there, known in itertools.product(KNOWN, KNOWN):
        for least, most in itertools.pairwise((*RATIOS, np.inf)):
            some = [pair for pair in pairs if least < pair.ratio <= most]
            documents = [pair.here.case.document for pair in some]
            misses = np.array([pair.miss(known_there, known) for pair in some])
            edges = quantiles(misses, group_weights(documents), least_shares(misses, documents))
            p10, p90 = (round(edge, 3) for edge in edges)
            found.append(CarriedSpread(known_there, known, least, p10, p90, pairs=len(some), documents=len(set(documents))))
    return found


def least_shares(misses: Floats, documents: Sequence[str]) -> tuple[float, float]:
    """Shares of the weight below and above which the narrowest range begins that holds four in five of what it was not made of.

    Each document's pairs are looked for in the range of the others: four in five of the pairs, and of the documents' weight, lie there.
    """
    names, weight = np.array(documents), group_weights(documents)
    for high, within in zip(SHARES, _within_others(misses, names), strict=True):
        if min(np.mean(within), np.average(within, weights=weight)) >= INSIDE:
            return 1 - high, high
    return 0.0, 1.0


def _within_others(misses: Floats, names: NDArray[np.str_]) -> NDArray[np.bool_]:
    """Whether each miss lies in the range of the other documents: a row for each of SHARES."""
    high_shares = np.array(SHARES)
    within = np.zeros((len(high_shares), len(misses)), dtype=bool)
    for name in set(names) if len(set(names)) > 1 else ():
        mine = names == name
        others, weights = misses[~mine], group_weights(list(names[~mine]))
        low = np.minimum(weighted_quantiles(others, weights, 1 - high_shares), 0.0)
        high = np.maximum(weighted_quantiles(others, weights, high_shares), 0.0)
        within[:, mine] = (low[:, np.newaxis] <= misses[mine]) & (misses[mine] <= high[:, np.newaxis])
    return within


def write_carried(cases: Sequence[MeasuredCase], folds: Mapping[str, FittedParameters]) -> None:
    """Write carried.toml."""
    found = fit_carried(find_pairs(carried_cases(cases, folds)))
    rows = ["\n".join(("[[spread]]", *(f"{name} = {json.dumps(value)}" for name, value in asdict(row).items()))) for row in found]
    FILE.write_text("\n\n".join([HEAD.rstrip("\n"), *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_carried(throughput_cases(), read_folds().documents)
