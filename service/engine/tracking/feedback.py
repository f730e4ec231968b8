"""What finished runs say together: each figure drawn from what was modelled towards what was seen, the further the more runs there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from service.domain.tracking.feedback import FeedbackFactors, FeedbackRules, RunOutcome
from service.domain.training.utilisation import Utilisation

RATES = ("matmul_share", "attention_share", "link_share", "network_share")
TIMES = (
    *("tile_s", "hop_s", "activation_passes", "layer_overhead_s"),
    *("routing_overhead_s", "expert_overhead_s", "call_overhead_s"),
)


def feedback_factors(lessons: Sequence[RunOutcome], accelerator: str, usual_mttf_hours: float, rules: FeedbackRules) -> FeedbackFactors:
    """What the lessons of an accelerator come to; overheads are the team's whatever it runs on.

    Throughput: the mean of log ratios, shrunk as if `prior_runs` runs had met the model (normal prior and likelihood of equal variance:
    Gelman et al. 2013, Bayesian Data Analysis, section 2.5). Failures: a gamma prior of one failure in the usual MTTF, and the runs'
    counts as Poisson (section 2.6).
    """
    here = [lesson for lesson in lessons if lesson.accelerator == accelerator]
    ratios = [math.log(lesson.throughput_ratio) for lesson in here if lesson.throughput_ratio]
    hours, failures = math.fsum(lesson.accelerator_hours for lesson in here), sum(lesson.interruptions for lesson in here)
    told = [lesson.overhead for lesson in lessons if lesson.overhead]
    names = sorted({name for overhead in told for name in overhead})
    return FeedbackFactors(
        throughput_ratio=math.exp(math.fsum(ratios) / (len(ratios) + rules.prior_runs)) if ratios else None,
        throughput_runs=len(ratios),
        mttf_hours_per_accelerator=(usual_mttf_hours + hours) / (1 + failures) if here else None,
        failure_runs=len(here),
        overhead={name: fmean(overhead.get(name, 0.0) for overhead in told) for name in names},
        overhead_runs=len(told),
    )


def scale_throughput(utilisation: Utilisation, ratio: float) -> Utilisation:
    """The utilisation under which every part of a step takes 1 / `ratio` of its time; no share goes above 1."""
    most = min(ratio, *(1 / getattr(utilisation, name) for name in RATES))
    rates = {name: getattr(utilisation, name) * most for name in RATES}
    return replace(utilisation, **rates, **{name: getattr(utilisation, name) / most for name in TIMES})
