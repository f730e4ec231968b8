"""Summaries of answers other than an estimate: each says the result in a sentence with its figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from typing import Any

import pytest

from service.config import load_settings
from service.context import AppContext
from service.formats.headline import money, short_name
from service.schemas.comparison.request import CompareRequestSchema
from service.schemas.programs.request import ProgramRequestSchema
from service.schemas.scaling.optimum_request import OptimalRequestSchema
from service.schemas.serving import ServingRequestSchema
from service.usecases.comparison.compare import compare
from service.usecases.programs.plan import plan_program
from service.usecases.scaling.optimum import optimal
from service.usecases.scenarios.summary import summarise_optimisation, summarise_sensitivity, summarise_sweep, summarise_trials
from service.usecases.serving.serve import serve
from tests.unit.usecases.market import A100, offer, open_context, sell

RUN: dict[str, Any] = {"model": {"params": "7B"}, "data": {"tokens": "1T"}}
MACHINE: dict[str, Any] = {"accelerator": "H100", "count": 64}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppContext]:
    made = open_context(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("data")), "OUTLAY_OFFLINE": "1"}))
    with closing(made.store):
        sell(made, "market", offer(2.0), offer(3.0, accelerator=A100))
        yield made


def test_a_comparison_names_its_best_option(context: AppContext) -> None:
    request = {"workload": RUN, "candidates": {"accelerators": ["H100"], "counts": [64]}}
    answer = compare(context, CompareRequestSchema().load(request))
    best, summary = answer.options[0], answer.summary
    assert best.cost_usd is not None
    assert summary.text.startswith(f"Cheapest of {sum(option.feasible for option in answer.options):,} feasible options: about $")
    assert "ruled out" not in summary.text
    assert best.offer.provider in summary.text
    assert summary.p50_usd == best.cost_usd.p50
    assert summary.comparable is not None


def test_a_comparison_without_a_feasible_option_says_what_rules_most_out(context: AppContext) -> None:
    request = {"workload": RUN, "candidates": {"accelerators": ["H100"], "counts": [64]}, "constraints": {"max_cost_usd": 1}}
    summary = compare(context, CompareRequestSchema().load(request)).summary
    assert summary.text.startswith("None of ")
    assert "most common reason: over budget" in summary.text
    assert (summary.p50_usd, summary.p50_finish_days) == (None, None)


def test_a_comparison_counts_what_it_rules_out_apart(context: AppContext) -> None:
    request = {"workload": RUN, "candidates": {"accelerators": ["H100"], "counts": [1, 64]}}
    answer = compare(context, CompareRequestSchema().load(request))
    feasible = sum(option.feasible for option in answer.options)
    excluded = answer.considered - feasible
    assert 0 < excluded < answer.considered
    assert answer.summary.text.startswith(f"Cheapest of {feasible:,} feasible options: ")
    assert f"{excluded:,} of {answer.considered:,} considered" in answer.summary.text
    assert "ruled out, most often: cannot run." in answer.summary.text


@pytest.mark.parametrize(
    "candidates",
    [
        {"accelerators": ["A100-80GB", "H100"], "counts": [64], "limit": 1},
        {"machines": [{"accelerator": "A100-80GB", "count": 128}, {"accelerator": "H100", "count": 64}]},
    ],
)
def test_a_comparison_says_what_each_other_machine_is_at_its_best(context: AppContext, candidates: dict[str, Any]) -> None:
    """Its first option of those that are feasible, which the answer has, also below the limit."""
    limit = candidates.pop("limit", 50)
    answer = compare(context, CompareRequestSchema().load({"workload": RUN, "candidates": candidates, "limit": limit}))
    best = answer.options[0]
    other = next(option for option in answer.options if option.offer.accelerator != best.offer.accelerator)
    assert best.cost_usd is not None
    assert other.cost_usd is not None
    change = other.cost_usd.p50 / best.cost_usd.p50 - 1
    said = f"Others at their best: {other.count} {short_name(other.offer.accelerator)} {money(other.cost_usd.p50)} ({change:+.0%}) and "
    assert said in answer.summary.text


def test_a_comparison_says_which_machine_is_not_feasible(context: AppContext) -> None:
    machines = [{"accelerator": "A100-80GB", "count": 1}, {"accelerator": "H100", "count": 64}]
    answer = compare(context, CompareRequestSchema().load({"workload": RUN, "candidates": {"machines": machines}}))
    assert "Others at their best: 1 A100-80GB not feasible." in answer.summary.text


def test_a_program_has_its_budget_its_last_day_and_its_dearest_run(context: AppContext) -> None:
    run = {"name": "main", "estimate": {**RUN, "hardware": MACHINE}}
    request = {
        "name": "assistant",
        "start": "2027-01-04",
        "deadline": "2027-06-30",
        "tiers": [{"tier": "production", "runs": [run]}],
    }
    answer = plan_program(context, ProgramRequestSchema().load(request))
    summary = answer.summary
    assert summary.text.startswith("assistant: about $")
    assert summary.text.endswith("to meet 30 Jun 2027: on track.")
    assert summary.p50_usd == answer.plan.total_usd.p50
    assert summary.p50_finish_days == (answer.schedule.finish.p50 - answer.schedule.start).days
    assert summary.drivers[0].field.startswith("tiers.production.main.")


def test_an_optimum_has_its_size_and_with_a_machine_its_estimate(context: AppContext) -> None:
    alone = optimal(context, OptimalRequestSchema().load({"budget": {"flops": 1e22}})).summary
    bought = optimal(context, OptimalRequestSchema().load({"budget": {"usd": 1e5}, "hardware": MACHINE}))
    assert alone.text.startswith("The budget is best spent on ")
    assert alone.p50_usd is None
    assert bought.estimate is not None
    assert bought.summary.text.endswith(bought.estimate.summary.text)
    assert bought.summary.p50_usd == bought.estimate.estimate.cost.total_usd.p50


@pytest.mark.parametrize("rate", [{}, {"requests_per_s": 20}])
def test_serving_has_a_price_of_tokens_and_of_a_month_where_a_rate_is_stated(context: AppContext, rate: dict[str, float]) -> None:
    traffic = {"prompt_tokens": 1500, "output_tokens": 400, **rate}
    summary = serve(context, ServingRequestSchema().load({"model": {"preset": "llama-3.1-70b"}, "traffic": traffic})).summary
    assert "a million tokens" in summary.text
    assert ("a month" in summary.text) is bool(rate)
    assert (summary.p80_usd_per_month is None) is not bool(rate)
    assert summary.p50_usd_per_million_tokens < summary.p80_usd_per_million_tokens


def test_trials_have_their_percentiles_and_probabilities() -> None:
    cost = {"p10": 1e6, "p50": 2e6, "p80": 3e6, "p90": 4e6}
    hours = {"p10": 240.0, "p50": 480.0, "p80": 600.0, "p90": 720.0}
    result = {
        "trials_done": 10_000,
        "cost_usd": cost,
        "wall_clock_hours": hours,
        "deadline_probability": 0.69,
        "budget_probability": None,
        "drivers": {"price": 0.2, "throughput": 0.7, "failures": 0.06, "queue": 0.04},
    }
    summary = summarise_trials(result)
    assert summary.text == "About $2.00M (likely $1.00M–$4.00M) and 20 days (10–30) over 10,000 trials; 69% to meet the deadline."
    assert (summary.p80_usd, summary.p80_finish_days) == (3e6, 25.0)
    assert [driver.field for driver in summary.drivers] == ["throughput", "price", "failures"]


def test_a_sensitivity_names_the_input_that_moves_the_cost_most() -> None:
    bar = {"input": "data.tokens", "low": 1, "high": 2, "at_low": {"cost_usd": 1e6}, "at_high": {"cost_usd": 2e6}, "swing_usd": 1e6}
    still = {**bar, "input": "x", "at_high": bar["at_low"], "swing_usd": 0.0}
    summary = summarise_sensitivity({"cost_usd": 1.5e6, "hours_to_finish": 48.0}, [bar, still])
    assert summary.text == "About $1.50M; data.tokens moves it most, $1.00M at 1 to $2.00M at 2."
    assert [driver.field for driver in summary.drivers] == ["data.tokens"]


def test_large_inputs_are_shown_with_a_suffix() -> None:
    """Tokens are read as 1.8T; counts of accelerators stay as they are."""
    ends = {"at_low": {"cost_usd": 1e6}, "at_high": {"cost_usd": 2e6}, "swing_usd": 1e6}
    summary = summarise_sensitivity(
        {"cost_usd": 1.5e6, "hours_to_finish": 48.0},
        [{"input": "data.tokens", "low": 1_800_000_000_000, "high": 2_200_000_000_000, **ends}],
    )
    assert summary.text.endswith("$1.00M at 1.8T to $2.00M at 2.2T.")
    row = {"feasible": True, "cost_usd": {"p10": 1e6, "p50": 2e6, "p90": 3e6}, "hours_to_finish": 48.0}
    text = summarise_sweep([{**row, "inputs": {"data.tokens": 1_800_000_000_000, "hardware.count": 2048}}]).text
    assert text.endswith("with data.tokens 1.8T, hardware.count 2048.")


def test_a_sweep_names_its_cheapest_feasible_cell() -> None:
    row = {"feasible": True, "inputs": {"hardware.count": 64}, "cost_usd": {"p10": 1e6, "p50": 2e6, "p90": 3e6}, "hours_to_finish": 48.0}
    dearer = {**row, "inputs": {"hardware.count": 8}, "cost_usd": {"p10": 2e6, "p50": 3e6, "p90": 4e6}}
    summary = summarise_sweep([dearer, row, {"feasible": False, "problem": "x"}])
    assert summary.text == "Cheapest of 2 feasible cells of 3: about $2.00M (likely $1.00M–$3.00M) with hardware.count 64."
    assert summarise_sweep([{"feasible": False, "problem": "x"}]).text == "None of 1 cells is feasible."


def test_an_optimisation_without_a_feasible_option_says_so() -> None:
    assert summarise_optimisation(None, 12).text == "None of 12 options meets the constraints."


@pytest.mark.parametrize(("days", "word"), [(60, "on track"), (9, "at risk"), (3, "off track")])
def test_a_programs_deadline_is_judged_in_words(context: AppContext, days: int, word: str) -> None:
    """By the chance that is aimed at (80 %), and by even odds."""
    run = {
        "name": "main",
        "estimate": {"model": {"params": "7B"}, "data": {"tokens": "1T"}, "hardware": {"accelerator": "H100", "count": 128}},
    }
    request = {"name": "assistant", "start": "2027-01-04", "tiers": [{"tier": "production", "runs": [run]}]}
    deadline = (date(2027, 1, 4) + timedelta(days=days)).isoformat()
    found = plan_program(context, ProgramRequestSchema().load(request | {"deadline": deadline}))
    assert found.schedule.deadline_probability is not None
    assert found.summary.text.endswith(f": {word}.")
