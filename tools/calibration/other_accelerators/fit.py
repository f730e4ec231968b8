"""Shares of the peak of families without rows in the large fit: `python -m tools.calibration.other_accelerators.fit`, a second.

They are fitted one at a time, with everything else as fitted, after fine-tuning's rates, which most of their rows stand on.

Their rows are few, of one publication a family and of software that is seldom the accelerator's best: they say how far the share is from
the relative's that would be borrowed, and nothing of links, launches or kernels. Each share has a prior about that of the relative. A rate
that is a lower bound counts in full where it is missed, and half where it is passed: it is of a short run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from service.domain.training.model import GenericNetwork
from service.presets.documents import load_document
from service.presets.training.finetuning import finetuning_rates
from service.presets.training.throughput_parameters import FittedParameters, Key, MatmulShare, load_parameters
from service.presets.training.utilisation import nearest
from tools.calibration.cases import parameter_key
from tools.calibration.folds import read_folds
from tools.calibration.other_accelerators.cases import OtherCase, other_cases
from tools.calibration.priors import other_family_prior
from tools.calibration.table import Floats, position_parameters, predicted_rates, tabulate
from tools.calibration.write import write_other_families

# What is read once of the data files that a fit writes.
CACHES = (load_document, load_parameters, finetuning_rates)
SHARES = np.geomspace(0.15, 0.92, 60)
PASSED = 0.5


def main() -> None:
    """Fit the shares under the parameters and rates in the data files, and write them."""
    for cached in CACHES:
        cached.cache_clear()
    write_other_families(with_other_families(without_other_families(load_parameters())))
    load_parameters.cache_clear()
    load_document.cache_clear()


def with_other_families(parameters: FittedParameters, cases: Sequence[OtherCase] | None = None) -> FittedParameters:
    """The parameters with shares of the families that only the small table has; of the named cases alone where some are named."""
    found: dict[Key, list[OtherCase]] = defaultdict(list)
    samples: dict[Key, list[float]] = defaultdict(list)
    for case in other_cases() if cases is None else cases:
        key = parameter_key(case.question, parameters)
        if case.in_samples:
            samples[key].append(share_in_samples(case))
        elif key not in parameters.matmul:
            found[key].append(case)
    shares = {key: _share(parameters, key, some) for key, some in sorted(found.items())}
    others = {key: round(float(np.median(some)), 4) for key, some in sorted(samples.items())}
    return replace(parameters, matmul={**parameters.matmul, **shares}, other={**parameters.other, **others})


def without_other_families(parameters: FittedParameters) -> FittedParameters:
    """The parameters without the families that only the small table has: those of every fit are of the large one."""
    large = read_folds().half_of_vtrain
    return replace(
        parameters,
        matmul={key: share for key, share in parameters.matmul.items() if key in large.matmul},
        other={key: share for key, share in parameters.other.items() if key in large.other},
    )


def share_in_samples(case: OtherCase) -> float:
    """Share of the dense peak of a network counted by samples."""
    question = case.question
    assert isinstance(question.model, GenericNetwork)
    peak = question.accelerator.peak_tflops[question.training.precision] * 1e12
    return float(question.rates[0]) * 3 * question.model.flops_per_sample / peak


def _share(parameters: FittedParameters, key: Key, cases: Sequence[OtherCase]) -> MatmulShare:
    """The most likely share of a family, of those on a grid."""
    lender = nearest(parameters, parameters.matmul, key)
    peaks = parameters.matmul_peaks
    known = key in peaks and lender in peaks
    borrowed = parameters.matmul[lender].share * (peaks[key] / peaks[lender] if known else 1.0)
    factor, scatter = other_family_prior()
    prior = (np.log(SHARES / borrowed) / np.log(factor)) ** 2 / 2
    losses = prior + _misses(parameters, key, cases, scatter)
    share = float(SHARES[int(np.argmin(losses))])
    questions = [case.question for case in cases]
    sources = sorted({case.source for case in questions})
    source = ", ".join(f"{name} ({sum(case.source == name for case in questions)} rows)" for name in sources)
    # No power: few rows of one board say nothing of how power moves the share of its successors.
    return MatmulShare(round(share, 4), 0.0, source, tuple(sorted({case.accelerator.name for case in questions})))


def _misses(parameters: FittedParameters, key: Key, cases: Sequence[OtherCase], scatter: float) -> Floats:
    """Soft-L1 loss of the rows at each of the shares."""
    questions = [case.question for case in cases]
    table = tabulate(questions)
    at_least = np.array([case.at_least for case in cases])
    losses = []
    for share in SHARES:
        tried = replace(parameters, matmul={**parameters.matmul, key: MatmulShare(float(share), 0.0, "")})
        rows = np.log(table.rates / predicted_rates(table, position_parameters(table, tried))) / scatter
        rows = np.where(at_least & (rows < 0), PASSED * rows, rows)
        losses.append(float((np.sqrt(1 + rows**2) - 1).sum()))
    return np.array(losses)


if __name__ == "__main__":
    main()
