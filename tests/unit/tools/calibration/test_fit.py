"""The fit: what it finds in rows whose parameters are known, what pulls it, and what it must not have seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.domain.training.utilisation import AchievedRates
from service.presets.training.throughput_parameters import FittedParameters, MatmulShare
from tests.unit.tools.calibration.published import AMPERE, HOPPER, behaving, chosen_parameters, few_cases, off_by, table_of_few
from tools.calibration import fit
from tools.calibration.cases import throughput_cases
from tools.calibration.fit import MOST, build_problem, fit_parameters, fit_without_groups, parameter_key, row_weights
from tools.calibration.priors import priors
from tools.calibration.spreads import ROWS_THAT_COUNT
from tools.calibration.table import CaseTable, position_parameters, predicted_rates, select_rows, tabulate

TRUTH = chosen_parameters(link_share=0.68, operand_share=0.65, activation_passes=1.5, overlap_share=0.7, layer_overhead_s=2.2e-3)


@pytest.fixture(scope="module")
def known() -> CaseTable:
    """Rows that behave exactly as the model says under `TRUTH`."""
    return behaving(table_of_few(), TRUTH)


@pytest.fixture(scope="module")
def found(known: CaseTable) -> FittedParameters:
    """What the fit makes of them; shares of other networks are not fitted to these rows."""
    return replace(fit_parameters(known), other=TRUTH.other)


def test_known_shares_are_found_again(found: FittedParameters) -> None:
    """Within a tenth, though few rows tell a family's share from the youth of its software, and both are held near what is expected."""
    assert set(found.matmul) == {AMPERE, HOPPER}
    for key, share in TRUTH.matmul.items():
        assert found.matmul[key].share == pytest.approx(share.share, rel=0.08)


def test_attention_is_found_by_whom_its_kernels_were_written_for(found: FittedParameters) -> None:
    """Kernels of the first generation have a share of their own on every family: what is slow there says nothing of the family's own."""
    assert {case.kernels for case in few_cases() if case.accelerator.family == "hopper"} == {"first"}
    for family in ("ampere", "hopper"):
        assert found.attention[family, "first"] == pytest.approx(TRUTH.attention[family, "first"], rel=0.12)


def test_kernels_without_rows_are_as_fast_as_published(found: FittedParameters) -> None:
    """No row here runs Hopper's own kernels: nine tenths of what FlashAttention-3 reaches."""
    assert found.attention["hopper", "own"] == pytest.approx(0.9 * 0.6)


def test_known_rates_are_found_again(known: CaseTable, found: FittedParameters) -> None:
    """The rows themselves within three per cent each."""
    assert off_by(predicted_rates(known, position_parameters(known, found)), known.rates) < 0.03


def test_a_fit_is_the_same_twice(known: CaseTable, found: FittedParameters) -> None:
    """No randomness: the same rows, the same parameters to the last digit kept."""
    again = fit_parameters(known)
    assert again.matmul == found.matmul
    assert again.attention == found.attention
    assert again.shared == found.shared


def test_rows_say_more_than_the_expectation(known: CaseTable) -> None:
    """A machine half as fast as expected is found to be, far outside the expectation's width, and the other family stays."""
    slow = replace(TRUTH, matmul={AMPERE: replace(TRUTH.matmul[AMPERE], share=0.40), HOPPER: TRUTH.matmul[HOPPER]})
    fit_to_it = fit_parameters(behaving(known, slow))
    assert fit_to_it.matmul[AMPERE].share == pytest.approx(0.40, rel=0.08)
    assert fit_to_it.matmul[HOPPER].share == pytest.approx(TRUTH.matmul[HOPPER].share, rel=0.16)


def test_one_wild_row_does_not_pull_the_fit(known: CaseTable, found: FittedParameters) -> None:
    """A row at a third of its rate moves its family's share by a few per cent at most: the loss grows as its distance, not its square."""
    rates = known.rates.copy()
    rates[0] /= 3
    pulled = fit_parameters(replace(known, rates=rates))
    for key in TRUTH.matmul:
        assert pulled.matmul[key].share == pytest.approx(found.matmul[key].share, rel=0.05)


def test_without_a_say_of_the_rows_the_expectation_stands(found: FittedParameters) -> None:
    """No row has experts: what is fitted of them stays where it was expected."""
    for name in ("routed_share", "routing_overhead_s"):
        assert found.shared[name] == pytest.approx(priors()[name].value, rel=1e-3)


def test_no_share_passes_its_limit(known: CaseTable) -> None:
    """Rows three times as fast as any machine is: the shares stay at their limits."""
    impossible = fit_parameters(replace(known, rates=3 * known.rates))
    assert all(0 < share.share <= impossible.largest_share + 1e-4 for share in impossible.matmul.values())
    for name, most in MOST.items():
        assert 0 < impossible.shared[name] <= most * 1.001
    assert all(0 <= impossible.shared[name] <= 1 for name in ("overlap_share", "tensor_overlap", "routed_share"))


def test_tables_weigh_as_the_root_of_their_rows() -> None:
    """All rows of a table weigh the same, together the square root of their number, of at most 64."""
    table = tabulate([*throughput_cases()[::7]])
    weights, names = row_weights(table), np.array([case.table for case in table.cases])
    for name in set(names):
        mine = weights[names == name]
        assert mine == pytest.approx(mine[0])
        assert mine.sum() == pytest.approx(min(len(mine), ROWS_THAT_COUNT) ** 0.5)


def test_the_fit_tries_what_the_service_will_use() -> None:
    """The fit's own columns are those of `utilisation` under the parameters that it writes, on every kind of part."""
    one_each = {(case.accelerator.name, case.training.precision, case.kernels): case for case in throughput_cases()}
    first = np.array([0])
    table = tabulate([replace(case, layouts=case.layouts.take(first), rates=case.rates[first]) for case in one_each.values()])
    problem = build_problem(table)
    vector, _ = fit._expected(problem)
    tried = fit._columns(problem, vector)
    written = replace(fit._parameters(problem, vector), other=TRUTH.other)
    used = position_parameters(table, written)
    assert isinstance(used, AchievedRates)
    for name in used.__dataclass_fields__:
        assert getattr(tried, name) == pytest.approx(getattr(used, name), rel=2e-3), name


def test_a_row_counts_for_its_family_and_class() -> None:
    """fp8 and mxfp8 share a figure, bf16 and fp16 another."""
    keys = {(case.accelerator.family, case.training.precision): parameter_key(case, TRUTH) for case in throughput_cases()}
    assert keys["ampere", "fp16"] == keys["ampere", "bf16"] == AMPERE
    assert keys["hopper", "fp8"] == ("hopper", "fp8")


def test_what_is_left_out_leaves_no_trace(known: CaseTable) -> None:
    """A group's rates can be anything: what was found without it stays as it is, and has no figure that only it could give."""
    families = [case.accelerator.family for case in known.cases]
    wrong = np.array([1.0 if family == "ampere" else 5.0 for family in families])
    right = fit_without_groups(known, TRUTH, families)
    spoilt = fit_without_groups(replace(known, rates=known.rates * wrong), TRUTH, families)
    assert set(right) == {"ampere", "hopper"}
    assert set(right["hopper"].matmul) == {AMPERE}
    assert set(right["ampere"].matmul) == {HOPPER}
    assert spoilt["hopper"] == right["hopper"]
    assert spoilt["ampere"].matmul != right["ampere"].matmul


def test_leaving_out_is_fitting_the_rest(known: CaseTable) -> None:
    """The fold is the fit of the other rows, with the shares of other networks as in the whole."""
    families = np.array([case.accelerator.family for case in known.cases])
    fold = fit_without_groups(known, TRUTH, list(families))["hopper"]
    rest = fit_parameters(select_rows(known, families != "hopper"))
    assert fold.matmul == rest.matmul
    assert fold.attention == rest.attention
    assert fold.shared == rest.shared
    assert fold.other == TRUTH.other


def test_power_is_weighed_against_the_median_part() -> None:
    """Of the parts a key was measured on the middle one has the key's share itself; one with more power for its peak has more."""
    cases = [case for case in throughput_cases() if case.accelerator.family == "hopper" and case.training.precision == "bf16"]
    problem = build_problem(tabulate(cases))
    assert problem.keys == (HOPPER,)
    assert np.median(problem.power) == pytest.approx(0.0)
    share = fit._parameters(problem, fit._expected(problem)[0]).matmul[HOPPER]
    assert share == MatmulShare(share.share, round(float(problem.reference[0]), 4), "")
