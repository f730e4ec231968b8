"""Scaling laws against the optima and examples that their papers print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from service.domain.scaling.laws import DataLimit, ScalingLaw
from service.engine.scaling.laws import loss, optimal_params, size_exponent, tokens_for_loss
from service.engine.scaling.neighbourhood import smaller_model
from service.engine.scaling.optimum import cheapest_for_loss, lifetime_flops, optimum_for_flops
from service.presets.scaling.laws import find_law, load_laws, load_mixture_law, repetition_decay

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "scaling-laws.md"
OPTIMA = 0.05
EXAMPLES = 0.10
# Hoffmann et al. 2022 (arXiv 2203.15556), tables 3 and A3, from memory of the paper: parameters, training FLOPs, tokens. Table A3's 175B
# row of approach 3 is left out: its FLOPs look like a misprint.
HOFFMANN = {
    1: (
        (4e8, 1.92e19, 8.0e9),
        (1e9, 1.21e20, 20.2e9),
        (1e10, 1.23e22, 205.1e9),
        (6.7e10, 5.76e23, 1.5e12),
        (1.75e11, 3.85e24, 3.7e12),
        (2.8e11, 9.90e24, 5.9e12),
        (5.2e11, 3.43e25, 11.0e12),
        (1e12, 1.27e26, 21.2e12),
        (1e13, 1.30e28, 216.2e12),
    ),
    2: (
        (4e8, 1.84e19, 7.7e9),
        (1e9, 1.20e20, 20.0e9),
        (1e10, 1.32e22, 219.5e9),
        (6.7e10, 6.88e23, 1.7e12),
        (1.75e11, 4.54e24, 4.3e12),
        (2.8e11, 1.18e25, 7.1e12),
        (5.2e11, 4.19e25, 13.4e12),
        (1e12, 1.59e26, 26.5e12),
        (1e13, 1.75e28, 292.0e12),
    ),
    3: (
        (4e8, 2.21e19, 9.2e9),
        (1e9, 1.62e20, 27.1e9),
        (1e10, 2.46e22, 410.1e9),
        (6.7e10, 1.71e24, 4.1e12),
        (2.8e11, 3.52e25, 20.1e12),
        (5.2e11, 1.36e26, 43.5e12),
        (1e12, 5.65e26, 94.1e12),
        (1e13, 8.55e28, 1425.5e12),
    ),
}
# The one row of approach 3 whose printed 6 N D is 4 % below its printed FLOPs.
CONTRADICTS_ITSELF = 2.8e11
LLAMA_FLOPS, LLAMA_PARAMS, LLAMA_TOKENS = 3.8e25, 402e9, 16.55e12


def budget_of(law: ScalingLaw, params: float) -> float:
    """FLOPs for which a size is optimal."""
    return float(6 * (params / optimal_params(law, 6.0)) ** (1 / size_exponent(law)))


@pytest.mark.parametrize(
    ("name", "approach", "params", "flops", "tokens"),
    [
        pytest.param(name, approach, *row, id=f"{name} {row[0]:g}")
        for name, approach in (("hoffmann-1", 1), ("hoffmann-2", 2), ("hoffmann-3-table", 3))
        for row in HOFFMANN[approach]
    ],
)
def test_hoffmanns_optima(name: str, approach: int, params: float, flops: float, tokens: float) -> None:
    """Every printed row of every approach within 5 %, with constants derived from the tables and C = 6 N D."""
    found = optimum_for_flops(find_law(name).law, flops)
    assert found.params == pytest.approx(params, rel=OPTIMA)
    assert found.tokens == pytest.approx(tokens, rel=OPTIMA)


@pytest.mark.parametrize(("params", "flops", "tokens"), HOFFMANN[3])
def test_approach_3s_optima_follow_from_its_exponents_to_three_digits(params: float, flops: float, tokens: float) -> None:
    """With 0.336 and 0.283 every size within 5 %, and the tokens but those of the row that contradicts itself, which are 7 % off."""
    found = optimum_for_flops(find_law("hoffmann-3").law, flops)
    assert found.params == pytest.approx(params, rel=OPTIMA)
    assert found.tokens == pytest.approx(tokens, rel=OPTIMA if params != CONTRADICTS_ITSELF else 0.07)


@pytest.mark.parametrize(("name", "worst"), [("hoffmann-3-tex", 0.108), ("hoffmann-3-printed", 0.434)])
def test_approach_3s_optima_do_not_follow_from_its_other_parameters(name: str, worst: float) -> None:
    """The worst tokens of the table with those of the TeX source are 11 % off, with those printed 43 %."""
    off = [float(optimum_for_flops(find_law(name).law, flops).tokens) / tokens - 1 for _, flops, tokens in HOFFMANN[3]]
    assert max(off) == pytest.approx(worst, abs=0.001)


def test_besiroglus_exponents_and_chinchilla() -> None:
    """Besiroglu et al. 2024: the size grows with C^0.513; about 20 tokens a parameter, so Chinchilla's 70e9 and 1.4e12 are optimal."""
    law = find_law("besiroglu").law
    found = optimum_for_flops(law, 5.76e23)
    assert size_exponent(law) == pytest.approx(0.5126, abs=0.0005)
    assert found.params == pytest.approx(70e9, rel=OPTIMA)
    assert found.tokens == pytest.approx(1.4e12, rel=EXAMPLES)


@pytest.mark.parametrize(
    ("quality", "served", "params", "saved", "longer"),
    [pytest.param(13e9, 2e12, 7e9, 0.17, None, id="figure 1"), pytest.param(30e9, 1e13, 13.6e9, 0.28, 2.84, id="section 3")],
)
def test_sardanas_lifetime_optima(quality: float, served: float, params: float, saved: float, longer: float | None) -> None:
    """Sardana et al. 2023 (arXiv 2401.00448): a 13B-quality model for 2e12 tokens is 7B and saves 17 %; a 30B one for 1e13 is 13.6B,
    saves 28 % and is trained on 2.84 times the tokens (the latter from memory)."""
    law = find_law("hoffmann-3").law
    plain = optimum_for_flops(law, budget_of(law, quality))
    cost = lifetime_flops(served)
    found = cheapest_for_loss(law, plain.loss, cost)
    before, after = (float(cost(np.asarray(one.params), np.asarray(one.tokens))) for one in (plain, found))
    assert found.params == pytest.approx(params, rel=EXAMPLES)
    assert 1 - after / before == pytest.approx(saved, rel=EXAMPLES)
    if longer is None:
        assert before - after == pytest.approx(1.7e22, rel=EXAMPLES)
    else:
        assert found.tokens / plain.tokens == pytest.approx(longer, rel=EXAMPLES)


@pytest.mark.parametrize("overhead", [0.1, 0.5, 1.0, 2.0])
def test_de_vries_overhead_of_smaller_models(overhead: float) -> None:
    """De Vries 2023 (tool at huggingface.co/spaces/lvwerra/harms-law): the closed form of the overhead for a share of the size.

    k_D = (1 - (k_N^-alpha - 1) beta / alpha)^(-1 / beta), overhead k_N k_D - 1; at 30 % of the size it is about 100 %.
    """
    alpha, beta = 0.336, 0.283
    law = find_law("hoffmann-3").law
    found = smaller_model(law, optimum_for_flops(law, 1e22), overhead)
    longer = (1 - (found.params_share**-alpha - 1) * beta / alpha) ** (-1 / beta)
    assert found.params_share * longer - 1 == pytest.approx(overhead, rel=1e-6)
    if overhead == 1.0:
        assert found.params_share == pytest.approx(0.3, rel=EXAMPLES)


def test_muennighoffs_losses_and_optimum() -> None:
    """Muennighoff et al. 2023, README of github huggingface/datablations: both models of figure 1, and 6.8e9 on 227e9 tokens, 9.1 epochs.

    That is the best use of the FLOPs of 8.67e9 parameters on 178e9 tokens when 25e9 of them are unique.
    """
    law, limit = find_law("muennighoff").law, DataLimit(25e9, repetition_decay()[0])
    assert loss(law, 6.34e9, 242e9, limit) == pytest.approx(2.2256440889984477, rel=1e-8)
    assert loss(law, 8.67e9, 178e9, limit) == pytest.approx(2.2269634075087867, rel=1e-8)
    found = optimum_for_flops(law, 6 * 8.67e9 * 178e9, limit)
    assert found.params == pytest.approx(6.8e9, rel=0.01)
    assert found.tokens == pytest.approx(227e9, rel=0.01)
    assert found.tokens / limit.unique_tokens == pytest.approx(9.1, rel=0.01)


def test_four_epochs_are_nearly_as_good_as_new_data() -> None:
    """Muennighoff et al. 2023, abstract: up to 4 epochs change the loss negligibly (0.7 % by the law), endless ones gain nothing."""
    law, decay = find_law("muennighoff").law, repetition_decay()[0]
    new = loss(law, 8.67e9, 178e9)
    assert loss(law, 8.67e9, 178e9, DataLimit(178e9 / 4, decay)) / new - 1 == pytest.approx(0.007, abs=0.001)
    endless = DataLimit(25e9, decay)
    assert loss(law, 8.67e9, 25e12, endless) == pytest.approx(loss(law, 8.67e9, 25e13, endless), rel=1e-6)
    assert np.isinf(tokens_for_loss(law, 8.67e9, loss(law, 8.67e9, 25e13), endless))


@pytest.mark.parametrize(
    ("active", "tokens", "granularity", "flops", "printed"),
    [
        (1e8, 4.37e9, 8, 2.95e18, 3.133),
        (1e9, 28.94e9, 16, 1.93e20, 2.491),
        (3e9, 72.90e9, 16, 1.41e21, 2.245),
        (7e9, 137.60e9, 32, 6.46e21, 2.076),
        (70e9, 941.07e9, 32, 4.16e23, 1.694),
        (300e9, 2.96e12, 64, 5.69e24, 1.503),
        (1e12, 7.94e12, 64, 4.97e25, 1.367),
    ],
)
def test_the_mixtures_of_experts_of_the_granularity_study(
    active: float, tokens: float, granularity: float, flops: float, printed: float
) -> None:
    """Krajewski, Ludziejewski et al. 2024 (arXiv 2402.07871), table 2, from memory: losses within 1 %, optimal sizes within 10 %.

    Its FLOPs count routing, which 6 N D does not: the tokens we get for them are up to 19 % more.
    """
    law = load_mixture_law().at_granularity(granularity)
    found = optimum_for_flops(law, flops)
    assert loss(law, active, tokens) == pytest.approx(printed, rel=0.01)
    assert found.params == pytest.approx(active, rel=EXAMPLES)
    assert 1 < found.tokens / tokens < 1.19


def test_llama_3s_own_law() -> None:
    """The Llama 3 Herd of Models: 402e9 parameters and 16.55e12 tokens predicted for 3.8e25 FLOPs, from D = 0.299 C^0.537."""
    found = optimum_for_flops(find_law("llama-3").law, LLAMA_FLOPS)
    assert found.tokens == pytest.approx(0.299 * LLAMA_FLOPS**0.537, rel=1e-4)
    assert found.params == pytest.approx(LLAMA_PARAMS, rel=OPTIMA)
    assert found.tokens == pytest.approx(LLAMA_TOKENS, rel=OPTIMA)


def llama_row(name: str) -> str:
    """A line of the documentation's table: what a law says for Llama 3's budget, and how far that is from Llama 3's prediction."""
    found = optimum_for_flops(load_laws()[name].law, LLAMA_FLOPS)
    size, tokens = float(found.params), float(found.tokens)
    off = f"{size / LLAMA_PARAMS - 1:+.0%} | {tokens / LLAMA_TOKENS - 1:+.0%}"
    return f"| `{name}` | {size / 1e9:,.0f} | {tokens / 1e12:.2f} | {off} |"


@pytest.mark.parametrize("name", load_laws())
def test_the_documentation_sets_llama_3_beside_every_law(name: str) -> None:
    """The table of docs/explanation/scaling-laws.md has these figures."""
    assert llama_row(name) in DOCUMENT.read_text(encoding="utf-8")
