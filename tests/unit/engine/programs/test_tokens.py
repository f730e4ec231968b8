"""What data come to, and how many tokens to aim for: by the laws they are taken from."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.programs.tokens import MixturePart, PublishedModel
from service.domain.scaling.laws import DataLimit, ParametricLaw, RepetitionDecay
from service.engine.programs.tokens import (
    data_to_size_loss_ratio,
    epochs_until_worth,
    marginal_worth,
    raw_tokens_needed,
    suggest_token_target,
    token_flow,
)
from service.engine.scaling.laws import effective_tokens

# Muennighoff et al. 2023, and Besiroglu et al. 2024.
REPETITION = RepetitionDecay(15.387756, 5.309743)
LAW = ParametricLaw(1.8172, 482.01, 2085.43, 0.3478, 0.3658)
LLAMA_3_8B = PublishedModel("Llama 3 8B", 8.03e9, 15e12)
LLAMA_2_7B = PublishedModel("Llama 2 7B", 6.74e9, 2e12)

yields = st.floats(0.01, 1)
epochs = st.floats(0.1, 100)


def test_from_raw_to_effective_by_hand() -> None:
    """10T raw, a tenth kept, half of it duplicates: 500B; four epochs of it are worth 500B (1 + 15.4 (1 - e^(-3/15.4)))."""
    found = token_flow(10e12, 0.1, 0.5, 4.0, (), REPETITION)
    assert (found.filtered, found.deduplicated, found.trained) == pytest.approx((1e12, 0.5e12, 2e12))
    assert found.effective == pytest.approx(0.5e12 * (1 + 15.387756 * (1 - math.exp(-3 / 15.387756))))
    assert [part.name for part in found.parts] == ["other"]


@given(st.floats(1e6, 1e15), yields, yields, epochs)
def test_each_step_leaves_no_more_than_the_one_before(raw: float, kept: float, unique: float, passes: float) -> None:
    """Filters, deduplication and repeats only ever take away."""
    found = token_flow(raw, kept, unique, passes, (), REPETITION)
    assert raw >= found.filtered >= found.deduplicated
    assert found.effective <= found.trained * (1 + 1e-9)
    assert raw_tokens_needed(found.trained, kept, unique, passes) == pytest.approx(raw)


@given(epochs, st.floats(1.01, 4))
def test_more_epochs_are_worth_more_but_ever_less(passes: float, times: float) -> None:
    """Repeats add, each less than the one before, and never more than R* + 1 times what there is."""
    few, many = (token_flow(1e12, 1.0, 1.0, some, (), REPETITION).effective for some in (passes, passes * times))
    assert few < many * (1 + 1e-12)
    assert many <= few * times * (1 + 1e-9)
    assert many < 1e12 * (1 + REPETITION.tokens)


def test_one_epoch_loses_nothing() -> None:
    """What is seen once is worth what it is."""
    assert token_flow(1e12, 0.5, 1.0, 1.0, (), REPETITION).effective == pytest.approx(0.5e12)


def test_a_quality_part_that_is_scarce_is_repeated() -> None:
    """30 % of 1T tokens from 50B unique ones are six epochs of them; robustness data take their share, the rest is seen once."""
    parts = (MixturePart("quality", 0.3, 50e9), MixturePart("robustness", 0.1))
    found = {part.name: part for part in token_flow(1e12, 1.0, 1.0, 1.0, parts, REPETITION).parts}
    assert found["quality"].epochs == pytest.approx(6)
    assert found["quality"].effective == pytest.approx(float(effective_tokens(300e9, DataLimit(50e9, REPETITION))))
    assert found["quality"].marginal_worth == pytest.approx(math.exp(-5 / 15.387756))
    assert found["robustness"].epochs == pytest.approx(1)
    assert found["other"].trained == pytest.approx(600e9)
    assert found["other"].unique == pytest.approx(850e9)


@given(st.lists(st.floats(0, 0.3), max_size=3), epochs)
def test_parts_are_the_whole(shares: list[float], passes: float) -> None:
    """Their tokens add up to those trained on, and their worth to the whole's."""
    parts = tuple(MixturePart(f"part {at}", share) for at, share in enumerate(shares))
    found = token_flow(1e12, 0.5, 0.5, passes, parts, REPETITION)
    assert sum(part.trained for part in found.parts) == pytest.approx(found.trained)
    assert sum(part.effective for part in found.parts) == pytest.approx(found.effective)


def test_when_repeats_are_worth_too_little() -> None:
    """The first token of the second epoch is worth a new one; four fifths are left after 4.4 epochs, half after 11.7."""
    assert marginal_worth(1.0, REPETITION) == 1
    assert epochs_until_worth(0.8, REPETITION) == pytest.approx(4.43, abs=0.01)
    assert epochs_until_worth(0.5, REPETITION) == pytest.approx(11.67, abs=0.01)


@given(st.floats(0.01, 1))
def test_epochs_and_worth_are_each_others_inverse(worth: float) -> None:
    """Training until a worth is reached reaches it."""
    assert marginal_worth(epochs_until_worth(worth, REPETITION), REPETITION) == pytest.approx(worth)


def test_a_model_of_an_anchors_size_gets_its_tokens() -> None:
    """What is aimed for goes by published models, so these get their own."""
    found = suggest_token_target(8.03e9, (LLAMA_3_8B,), 1.0, LAW)
    assert found.tokens.p50 == pytest.approx(15e12)
    assert found.tokens_per_param == pytest.approx(15e12 / 8.03e9)


@given(st.floats(1e7, 1e12))
def test_as_optimal_an_anchor_as_the_law_has_keeps_to_the_law(params: float) -> None:
    """Where data and size hold the loss back as at the law's optimum, alpha / beta, the target is the law's for any size."""
    anchor_tokens = (LAW.B * LAW.beta / (LAW.alpha * LAW.A / 1e9**LAW.alpha)) ** (1 / LAW.beta)
    anchor = PublishedModel("optimal", 1e9, float(anchor_tokens))
    assert data_to_size_loss_ratio(1e9, anchor.tokens, LAW) == pytest.approx(LAW.alpha / LAW.beta)
    target = suggest_token_target(params, (anchor,), 1.0, LAW).tokens.p50
    assert data_to_size_loss_ratio(params, target, LAW) == pytest.approx(LAW.alpha / LAW.beta)


@given(st.floats(1e7, 1e12), st.floats(1.01, 100), st.floats(0.01, 0.99))
def test_larger_models_and_wider_domains_take_more(params: float, times: float, share: float) -> None:
    """And the range holds the target."""
    one, larger = (suggest_token_target(size, (LLAMA_3_8B, LLAMA_2_7B), 1.0, LAW).tokens for size in (params, params * times))
    narrow = suggest_token_target(params, (LLAMA_3_8B, LLAMA_2_7B), share, LAW).tokens
    assert larger.p50 > one.p50 > narrow.p50
    assert one.p10 < one.p50 < one.p90


@pytest.mark.parametrize(
    ("kept", "passes", "parts", "pointer"),
    [
        (0.0, 1.0, (), "/data/filter_yield"),
        (1.1, 1.0, (), "/data/filter_yield"),
        (1.0, 0.0, (), "/data"),
        (1.0, 1.0, (MixturePart("quality", 1.2),), "/data/mixture/0/share"),
        (1.0, 1.0, (MixturePart("quality", 0.7), MixturePart("robustness", 0.4)), "/data/mixture"),
        (1.0, 1.0, (MixturePart("quality", 0.3), MixturePart("quality", 0.4)), "/data/mixture/1/name"),
        (1.0, 1.0, (MixturePart("other", 0.3),), "/data/mixture/0/name"),
        (1.0, 1.0, (MixturePart("quality", 0.3, 2e12),), "/data/mixture"),
        (1.0, 1.0, (MixturePart("quality", 0.3, 1e12),), "/data/mixture"),
    ],
)
def test_data_that_contradict_themselves_are_refused(kept: float, passes: float, parts: tuple[MixturePart, ...], pointer: str) -> None:
    """Shares of more than everything, a name twice, yields of nothing, more unique tokens than there are."""
    with pytest.raises(InvalidRequest) as refused:
        token_flow(1e12, kept, 1.0, passes, parts, REPETITION)
    assert refused.value.pointer == pointer
