"""All measured rows as one table: whose every position is, what is kept of it, which layout predicts a row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from service.engine.training.step.step_time import step_time
from service.presets.training.throughput_parameters import MatmulShare
from service.presets.training.utilisation import nearest, watts_per_tflop
from tests.unit.tools.calibration.published import AMPERE, HOPPER, SHARES, chosen_parameters, few_cases, some_layouts, used_of
from tools.calibration.cases import MeasuredCase, throughput_cases
from tools.calibration.folds import predict_left_out_rates, predict_rates
from tools.calibration.table import (
    RATES,
    CaseTable,
    keep_fastest,
    position_parameters,
    position_rates,
    power_ratio,
    predicted_rates,
    select_rows,
    tabulate,
)

TRUTH = chosen_parameters()


@pytest.fixture(scope="module")
def cases() -> list[MeasuredCase]:
    """A few cases of each kind: whole layouts, searched ones, several rows in one."""
    return [*few_cases(), *list(some_layouts(list(throughput_cases()), 20))[:6]]


@pytest.fixture(scope="module")
def table(cases: list[MeasuredCase]) -> CaseTable:
    return tabulate(cases)


def test_rows_stand_in_the_order_of_their_cases(cases: list[MeasuredCase], table: CaseTable) -> None:
    """A case of `each` has a row a layout, any other one row; owners and rates follow."""
    owners = [case for case in cases for _ in case.rates]
    assert list(table.cases) == owners
    assert table.rates.tolist() == [rate for case in cases for rate in case.rates]
    assert len(table.rates) == sum(len(case.layouts) if case.each else 1 for case in cases)


def test_every_position_is_a_layout_of_its_rows_case(cases: list[MeasuredCase], table: CaseTable) -> None:
    """Rows go up one by one, each has a position, and together there are as many as layouts."""
    assert len(table.row) == sum(len(case.layouts) for case in cases)
    assert set(np.diff(table.row)) <= {0, 1}
    assert table.row[table.starts].tolist() == list(range(len(table.rates)))
    for row, case in enumerate(table.cases):
        assert int((table.row == row).sum()) == (1 if case.each else len(case.layouts))


def test_a_row_is_predicted_by_its_fastest_layout(cases: list[MeasuredCase], table: CaseTable) -> None:
    """Case by case, by the step model itself, the best of the layouts in question; each of its own where rows are layouts."""
    found = iter(predicted_rates(table, position_parameters(table, TRUTH)))
    for case in cases:
        used = used_of(case, TRUTH)
        steps = step_time(case.model, case.training, case.cluster, used, case.layouts)
        alone = steps.batch * case.training.seq_len / steps.total / case.cluster.count
        expected = alone.tolist() if case.each else [alone.max()]
        assert [next(found) for _ in expected] == pytest.approx(expected)


def test_predictions_do_not_depend_on_the_other_rows(cases: list[MeasuredCase], table: CaseTable) -> None:
    """Each case alone gets what it gets among the others."""
    together = predicted_rates(table, position_parameters(table, TRUTH))
    assert np.concatenate([predict_rates([case], TRUTH) for case in cases]) == pytest.approx(together)


def test_pruning_keeps_the_fastest_of_every_row(table: CaseTable) -> None:
    """As many as asked for or all there are, none faster left out, no prediction changed."""
    achieved = position_parameters(table, TRUTH)
    whole = position_rates(table, achieved)
    small = keep_fastest(table, achieved, kept=5)
    kept = position_rates(small, position_parameters(small, TRUTH))
    assert small.cases == table.cases
    for row in range(len(table.rates)):
        fastest = np.sort(whole[table.row == row])[::-1][:5]
        assert np.sort(kept[small.row == row])[::-1] == pytest.approx(fastest)
    assert predicted_rates(small, position_parameters(small, TRUTH)) == pytest.approx(predicted_rates(table, achieved))
    assert small.rates.tolist() == table.rates.tolist()


def test_pruning_to_more_than_there_are_keeps_all(table: CaseTable) -> None:
    """Nothing is lost, and nothing changes its place."""
    same = keep_fastest(table, position_parameters(table, TRUTH), kept=len(table.row))
    assert same.row.tolist() == table.row.tolist()
    assert same.tokens.tolist() == table.tokens.tolist()
    assert same.work.expert.inter_s.tolist() == table.work.expert.inter_s.tolist()


def test_chosen_rows_alone_are_a_table_of_their_own(table: CaseTable) -> None:
    """Every third row: its case, its rate, its positions and its prediction, numbered from nought again."""
    chosen = np.arange(len(table.rates)) % 3 == 0
    some = select_rows(table, chosen)
    assert some.cases == tuple(case for case, mine in zip(table.cases, chosen, strict=True) if mine)
    assert some.rates.tolist() == table.rates[chosen].tolist()
    assert some.row[some.starts].tolist() == list(range(int(chosen.sum())))
    assert len(some.row) == int(chosen[table.row].sum())
    whole = predicted_rates(table, position_parameters(table, TRUTH))
    assert predicted_rates(some, position_parameters(some, TRUTH)) == pytest.approx(whole[chosen])


def test_rows_without_the_first_are_still_numbered_from_nought(table: CaseTable) -> None:
    """What is left out may stand at either end."""
    for chosen in (np.arange(len(table.rates)) > 0, np.arange(len(table.rates)) < len(table.rates) - 1):
        some = select_rows(table, chosen)
        assert some.row[0] == 0
        assert some.row[-1] == len(some.rates) - 1


def test_columns_hold_what_the_service_uses(table: CaseTable) -> None:
    """Every figure of `Utilisation` that the step model takes, at each position of its accelerator and precision."""
    found = position_parameters(table, TRUTH)
    for row in (0, len(table.rates) // 2, len(table.rates) - 1):
        case = table.cases[row]
        used = used_of(case, TRUTH)
        for name in RATES:
            assert set(np.asarray(getattr(found, name))[table.row == row]) == {getattr(used, name)}, name


def test_power_goes_by_the_log_of_watts_a_tflop(table: CaseTable) -> None:
    """Of an accelerator over its reference; nothing where one of them is not published."""
    own = np.array([watts_per_tflop(case.accelerator) for case in table.cases])
    published = np.flatnonzero(own > 0)
    assert power_ratio(table, 2.0 * own)[published] == pytest.approx(-math.log(2))
    assert (power_ratio(table, np.zeros(len(own))) == 0).all()


def test_a_family_without_a_figure_of_its_own_borrows_its_neighbours() -> None:
    """A fold that left out all of Hopper's rows predicts them with Ampere's share, slower than with Hopper's own better one."""
    fold = chosen_parameters({AMPERE: SHARES[AMPERE]})
    assert nearest(fold, fold.matmul, HOPPER) == AMPERE
    hopper = [case for case in few_cases() if case.accelerator.family == "hopper"]
    # What is lent is a part of what the best products of either family reach.
    lent_share = replace(SHARES[AMPERE], share=SHARES[AMPERE].share * fold.matmul_peaks[HOPPER] / fold.matmul_peaks[AMPERE])
    own, lent = (chosen_parameters({AMPERE: SHARES[AMPERE], HOPPER: share}) for share in (MatmulShare(0.8, 0, ""), lent_share))
    assert predict_rates(hopper, fold) == pytest.approx(predict_rates(hopper, lent))
    assert (predict_rates(hopper, fold) < predict_rates(hopper, own)).all()


def test_every_group_is_predicted_by_its_own_fold() -> None:
    """Rates come back in the order of the cases, each from the parameters that were found without its group, mixed as they stand."""
    cases = few_cases()[::2] + few_cases()[1::2]
    groups = {name: index for index, name in enumerate(sorted({case.document for case in cases}))}
    assert len(groups) > 2
    slower = {
        name: chosen_parameters({key: replace(share, share=share.share / (1 + index)) for key, share in SHARES.items()})
        for name, index in groups.items()
    }
    found = iter(predict_left_out_rates(cases, slower, lambda case: case.document))
    for case in cases:
        expected = predict_rates([case], slower[case.document])
        assert [next(found) for _ in expected] == pytest.approx(expected.tolist())
    assert next(found, None) is None
