"""What stands around runs: every figure with a source and a date, and levels that make sense beside each other."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

import pytest

from service.engine.programs.spend_allocation import published_curve, rank_choices
from service.presets.programs import (
    development_shares,
    filter_yield,
    find_program_default,
    overhead_shares,
    published_spending,
)
from service.presets.scaling.laws import default_law, repetition_decay

LAW = default_law().law
SHARES = {
    *("evaluation_and_debugging", "confidence", "correlation", "rollback_share", "pass_probability", "at_spend_share"),
    *("retention_worth", "common_share", "target_probability", "scope_share", "off_track_below", "sensitivity", "specificity"),
    *("power", "significance", "seed_deviation", "busy_share"),
}
COUNTS = {
    *("sign_off_days", "accelerators_factor", "report_every_days", "prompt_tokens", "scored_tokens", "generated_tokens"),
    *("start_minutes", "checkpoint_months", "sign_off_hours_per_day"),
    "committed_usd",
}
CHOICES = {"blocking", "taken", "overheads_before_runs", "evaluation_blocking", "evaluation_at"}
"""Defaults that are no numbers."""


@pytest.mark.parametrize("name", overhead_shares())
def test_every_overhead_is_a_share_with_its_source(name: str) -> None:
    """A share of the runs, whose experience it is, and when."""
    found = overhead_shares()[name]
    assert 0 < found.share < 0.5
    assert len(found.source) > 20
    assert re.fullmatch(r"20\d\d-\d\d", found.date)


def test_the_contracts_overheads_are_all_there() -> None:
    """Its five, which together are less than any published program spent beside its final run."""
    assert list(overhead_shares()) == ["sweeps", "data_pipeline", "evaluation", "debugging", "reruns"]
    together = sum(found.share for found in overhead_shares().values())
    assert together < min(found.share for found in development_shares())


def test_every_default_is_known_here() -> None:
    """A default that is added to the file is one that these tests look at."""
    file = resources.files("service.presets").joinpath("data", "program.toml").read_text(encoding="utf-8")
    assert set(tomllib.loads(file)["default"]) == SHARES | COUNTS | CHOICES


@pytest.mark.parametrize("name", sorted(SHARES | COUNTS))
def test_every_default_says_why(name: str) -> None:
    """Each with a source to show in the assumptions, as a sentence and not a mark."""
    found = find_program_default(name)
    assert found.value >= 0
    assert len(found.source) > 15


@pytest.mark.parametrize("name", sorted(SHARES))
def test_shares_and_probabilities_are_at_most_1(name: str) -> None:
    """What is a part of a whole is no more than it."""
    assert find_program_default(name).value <= 1


def test_a_deadline_is_bought_back_with_more_machines_or_less_work() -> None:
    """The default changes are changes: more accelerators, fewer tokens, and reports more than once a month."""
    assert find_program_default("accelerators_factor").value > 1
    assert 0 < find_program_default("scope_share").value < 1
    assert 1 <= find_program_default("report_every_days").value <= 31


def test_a_default_that_is_not_there_is_an_error() -> None:
    """Never a silent zero."""
    with pytest.raises(KeyError):
        find_program_default("luck")


def test_four_epochs_are_within_the_worth_that_is_kept() -> None:
    """The default worth is that of about four epochs, as Muennighoff found them harmless."""
    from service.engine.programs.tokens import epochs_until_worth

    assert 4 <= epochs_until_worth(find_program_default("retention_worth").value, repetition_decay()[0]) < 5


def test_what_is_left_of_web_text() -> None:
    """About a tenth, with a source."""
    found, source = filter_yield()
    assert found.p10 < found.p50 < found.p90 <= 1
    assert "arXiv" in source


def test_published_spending_is_of_the_four_choices_and_makes_curves() -> None:
    """Scale's own compute, what the others are worth in it, and robustness for the risks alone."""
    figures = published_spending()
    assert list(figures) == ["scale", "data_quality", "robustness", "utilisation"]
    assert all("20" in one.basis and len(one.basis) > 20 for one in figures.values())
    curves = [published_curve(one, 1e6, 1e23, 1e5, LAW) for one in figures.values()]
    found = {one.choice: one for one in rank_choices(curves)}
    assert found["robustness"].gain_per_usd == 0
    assert max(found.values(), key=lambda one: one.loss_avoided_per_usd or 0).choice == "robustness"
    assert (found["data_quality"].gain_per_usd or 0) > (found["scale"].gain_per_usd or 0) > 0
