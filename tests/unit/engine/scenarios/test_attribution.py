"""Causes: known shares of variance are found again, never more than all of it, and the one that did most is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.scenarios import Aggregate, Attribution, Floats, GroupSums, Moments
from service.engine.scenarios.aggregates import count_bins, counting_unit
from service.engine.scenarios.attribution import ScoreBins, attribute_block, first_order_shares, fit_score_bins
from service.engine.scenarios.summary import largest_cause_shares


def looked_at(scores: dict[str, Floats], values: Floats, limit: float | None = None) -> Attribution:
    half = values.size // 2
    known = fit_score_bins({name: score[:half] for name, score in scores.items()}, values[:half])
    return attribute_block(known, {name: score[half:] for name, score in scores.items()}, values[half:], counting_unit(1000.0), limit)


@given(st.lists(st.floats(0.0, 10.0), min_size=2, max_size=5).filter(lambda found: max(found) > 0.5), st.integers(0, 100))
def test_shares_of_an_additive_model_are_those_of_its_variances(weights: list[float], seed: int) -> None:
    """w^2 over the sum of all w^2, to two points."""
    chances = np.random.default_rng(seed)
    scores = {f"cause {at}": chances.normal(size=40_000) for at in range(len(weights))}
    values = 1000 + sum(weight * score for weight, score in zip(weights, scores.values(), strict=True))
    found = first_order_shares(looked_at(scores, values))
    whole = sum(weight**2 for weight in weights)
    assert sum(found.values()) <= 1 + 1e-12
    for at, weight in enumerate(weights):
        assert found[f"cause {at}"] == pytest.approx(weight**2 / whole, abs=0.02)


def test_a_cause_that_does_nothing_has_no_share() -> None:
    """Chance between groups' means is taken off."""
    chances = np.random.default_rng(3)
    scores = {"all": chances.normal(size=50_000), "nothing": chances.normal(size=50_000)}
    found = first_order_shares(looked_at(scores, 1000 + scores["all"]))
    assert found["all"] == pytest.approx(1.0, abs=0.01)
    assert found["nothing"] < 0.005


def test_what_is_only_there_together_is_nobodys_share() -> None:
    """A product of two causes around zero: first-order shares are none."""
    chances = np.random.default_rng(4)
    scores = {"one": chances.normal(size=80_000), "other": chances.normal(size=80_000)}
    assert sum(first_order_shares(looked_at(scores, 1000 + scores["one"] * scores["other"])).values()) < 0.02


def test_of_a_handful_of_cases_no_cause_is_named() -> None:
    """Thirty trials above the limit are needed to say what was mostly the cause."""
    looked = Attribution(Moments(100, 0, 0), {}, {"queue": 20, "failures": 9})
    few = Aggregate(100, {}, {}, count_bins(np.zeros(100, dtype=np.int64)), {"cost_usd": looked})
    enough = replace(few, attributions={"cost_usd": replace(looked, largest_cause_counts={"queue": 24, "failures": 6})})
    assert largest_cause_shares(few, "cost_usd") == {}
    assert largest_cause_shares(enough, "cost_usd") == {"queue": 0.8, "failures": 0.2}


def test_the_cause_that_did_most_is_blamed() -> None:
    """Four times the deviation: nearly all of what is above the limit, and no more cases than there are."""
    chances = np.random.default_rng(5)
    scores = {"queue": chances.normal(size=40_000), "failures": chances.normal(size=40_000)}
    values = 1000 + 4 * scores["queue"] + scores["failures"]
    blamed = looked_at(scores, values, limit=1005.0).largest_cause_counts
    assert sum(blamed.values()) == np.count_nonzero(values[20_000:] > 1005.0)
    assert blamed["queue"] > 0.98 * sum(blamed.values())


def test_no_limit_blames_nobody() -> None:
    """Without a deadline nothing is late."""
    score = np.random.default_rng(6).normal(size=2000)
    assert looked_at({"queue": score}, 1000 + score).largest_cause_counts == {}


def test_a_share_by_hand() -> None:
    """1 and 3 in one group, 7 and 9 in the other: 36 of 40 between them, less a mean square of 2 within (omega squared); no empty group."""
    moments = Moments(4, 20, 140)
    causes = {"two": GroupSums((2, 2), (4, 16)), "empty": GroupSums((2, 0, 2), (4, 0, 16)), "one": GroupSums((4,), (20,))}
    shares = {name: first_order_shares(Attribution(moments, {name: sums}, {}))[name] for name, sums in causes.items()}
    assert shares == pytest.approx({"two": 34 / 40, "empty": 34 / 40, "one": 0.0})
    halves = GroupSums((2, 2), (10, 10))
    assert first_order_shares(Attribution(moments, {"nothing": halves}, {})) == {"nothing": 0.0}
    assert first_order_shares(Attribution(Moments(4, 20, 100), causes, {})) == dict.fromkeys(causes, 0.0)


def test_shares_that_add_up_to_more_than_all_are_scaled_down() -> None:
    """Two causes that always come together have half each."""
    groups = GroupSums((2, 2), (4, 16))
    found = first_order_shares(Attribution(Moments(4, 20, 140), {"one": groups, "twin": groups}, {}))
    assert found == pytest.approx({"one": 0.5, "twin": 0.5})


def test_a_causes_slope_and_median_are_those_of_its_scores() -> None:
    """Three of the quantity for each unit of the score, wherever that lies; a score that never changes has no groups."""
    score = np.random.default_rng(8).normal(50.0, 2.0, 1001)
    known = fit_score_bins({"cause": score, "constant": np.full(1001, 4.0)}, 7.0 + 3.0 * score)
    assert set(known) == {"cause"}
    assert known["cause"].slope == pytest.approx(3.0)
    assert known["cause"].median == pytest.approx(float(np.median(score)))
    assert known["cause"].edges == pytest.approx(
        np.quantile(score, np.arange(1, known["cause"].edges.size + 1) / (known["cause"].edges.size + 1))
    )


def test_groups_are_in_the_order_of_their_scores() -> None:
    """What rises with the score has its least mean in the first group and its largest in the last."""
    score = np.random.default_rng(9).normal(size=20_000)
    sums = looked_at({"cause": score}, 1000 + score).causes["cause"]
    means = [total / trials for trials, total in zip(sums.trials, sums.totals, strict=True) if trials]
    assert means == sorted(means)
    assert sum(sums.trials) == 10_000


def test_the_largest_cause_is_by_what_it_adds_beyond_its_median() -> None:
    """A score of 103 about a median of 100 adds less than one of 5 about 0, and twice the slope more than that."""
    known = {"far": ScoreBins(np.array([100.0]), 100.0, 1.0), "near": ScoreBins(np.array([0.0]), 0.0, 1.0)}
    scores = {"far": np.array([103.0, 103.0, 110.0]), "near": np.array([5.0, 1.0, 5.0])}
    values = np.array([10.0, 10.0, 10.0])
    assert attribute_block(known, scores, values, counting_unit(10.0), 5.0).largest_cause_counts == {"far": 2, "near": 1}
    steep = known | {"far": ScoreBins(np.array([100.0]), 100.0, 2.0)}
    assert attribute_block(steep, scores, values, counting_unit(10.0), 5.0).largest_cause_counts == {"far": 3}
    assert attribute_block({}, scores, values, counting_unit(10.0), 5.0).largest_cause_counts == {}
    assert attribute_block(known, scores, values, counting_unit(10.0), 10.0).largest_cause_counts == {}
