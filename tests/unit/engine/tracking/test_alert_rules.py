"""What rules find in the status of a program that is told event by event, and what of it is news."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.programs.outcome import Guardrail
from service.domain.tracking.alerts import RULE_FIELDS, AlertFinding, AlertKind, AlertRule, PreviousAlert, RuleInputs, SpendCaps, WatchedRun
from service.domain.tracking.events import Event
from service.domain.tracking.status import Drift, LossAlarm, LossFinding, ProgramStatus, Spend
from service.engine.tracking.alert_rules import LOSS_TITLES, REARM_AFTER, REARM_AFTER_OF, diff_alerts, evaluate_rule
from service.engine.tracking.status import status
from service.presets.tracking.status import status_rules
from tests.unit.engine.tracking_builders import PROGRAM, RUN, at, event, run_of, steadily

NOW = datetime(2027, 2, 1, tzinfo=UTC)


def standing(events: Iterable[Event], now: float, **more: Any) -> RuleInputs:
    """How a program of one run stands after so many hours: 1,000 USD and tokens are planned."""
    told = list(events)
    found = status(PROGRAM, [(RUN, run_of(*told, until=now))], at(now), status_rules())
    return of(found, **more)


def of(found: ProgramStatus, **more: Any) -> RuleInputs:
    """A status with what rules are judged by beside it."""
    runs = tuple(WatchedRun(f"r{place}", is_open=True) for place in range(len(found.runs)))
    return RuleInputs(
        **{"status": found, "budget_usd": PROGRAM.budget_usd, "deadline": PROGRAM.deadline, "caps": SpendCaps(), "runs": runs} | more
    )


def rule(kind: AlertKind, **limits: Any) -> AlertRule:
    """A rule that tells nobody."""
    return AlertRule(kind, (), **limits)


def titles(found: Sequence[AlertFinding]) -> list[str]:
    """What was found, in short."""
    return [finding.title for finding in found]


class TestBudget:
    BUDGET = rule("budget", shares=(0.5, 0.8, 1.0))

    def test_nothing_is_found_below_the_first_share(self) -> None:
        """490 of 1,000 USD."""
        assert evaluate_rule(self.BUDGET, standing(steadily(49), 49)) == ()

    @pytest.mark.parametrize(("hours", "title"), [(50, "50%"), (79, "50%"), (80, "80%"), (99, "80%"), (100, "100%"), (150, "100%")])
    def test_the_highest_share_that_is_reached_is_found(self, hours: int, title: str) -> None:
        """At the share itself, and until the next one."""
        assert titles(evaluate_rule(self.BUDGET, standing(steadily(hours), hours))) == [f"{title} of the budget is spent"]

    def test_it_is_told_in_figures_how_long_the_rest_lasts(self) -> None:
        """10 USD an hour are 240 a day."""
        (found,) = evaluate_rule(self.BUDGET, standing(steadily(76), 76))
        assert found.text == "helper: 760 USD of 1,000 USD are spent (76%); at 240 USD a day the rest lasts 1.0 days"
        assert found.figures == {"share": 0.5, "spent_usd": 760.0, "budget_usd": 1000.0}

    def test_a_larger_budget_is_another_subject(self) -> None:
        """80 % of it is news again."""
        stood = standing(steadily(90), 90)
        one, other = (evaluate_rule(self.BUDGET, replace(stood, budget_usd=budget))[0].subject for budget in (1000.0, 1100.0))
        assert one != other

    def test_what_is_not_known_is_no_finding(self) -> None:
        """No budget, or no run with a cost."""
        stood = standing(steadily(90), 90)
        unknown = replace(stood.status, spend=replace(stood.status.spend, usd=None))
        assert evaluate_rule(self.BUDGET, replace(stood, budget_usd=None)) == ()
        assert evaluate_rule(self.BUDGET, of(unknown)) == ()

    def test_a_part_that_is_not_known_is_said(self) -> None:
        """The rest is at least so much."""
        stood = standing(steadily(90), 90)
        partly = replace(stood.status, spend=replace(stood.status.spend, complete=False))
        assert "at least 900 USD" in evaluate_rule(self.BUDGET, of(partly))[0].text


class TestForecasts:
    def test_a_run_on_its_plan_is_over_nothing(self) -> None:
        """10 USD and tokens an hour come to 1,000 of both."""
        stood = standing(steadily(50), 50)
        assert evaluate_rule(rule("forecast_over_budget", percentile="p50"), stood) == ()
        assert evaluate_rule(rule("forecast_over_deadline", percentile="p90"), stood) == ()

    def test_a_run_at_twice_the_price_is_over_its_budget(self) -> None:
        """The text says by how much."""
        (found,) = evaluate_rule(rule("forecast_over_budget", percentile="p50"), standing(steadily(50, usd=20.0), 50))
        foretold = found.figures["cost_p50_usd"]
        assert isinstance(foretold, float)
        assert foretold == pytest.approx(2000.0, rel=0.1)
        assert f"{foretold / 1000 - 1:.0%} above the budget of 1,000 USD" in found.text

    def test_the_worse_tenth_is_found_before_the_middle(self) -> None:
        """A budget between the two."""
        stood = standing(steadily(50), 50)
        cost = stood.status.forecast.cost_usd
        assert cost is not None
        between = replace(stood, budget_usd=(cost.p50 + cost.p90) / 2)
        assert titles(evaluate_rule(rule("forecast_over_budget", percentile="p90"), between)) == ["the forecast is over the budget"]
        assert evaluate_rule(rule("forecast_over_budget", percentile="p50"), between) == ()

    def test_a_run_at_a_third_of_the_speed_is_over_its_deadline(self) -> None:
        """By whole days."""
        (found,) = evaluate_rule(rule("forecast_over_deadline", percentile="p50"), standing(steadily(90, tokens=3), 90))
        late = (date.fromisoformat(str(found.figures["finish_p50"])) - date(2027, 1, 14)).days
        assert found.figures["days_late"] == late > 0
        assert f"{late} days after the deadline, 2027-01-14" in found.text

    def test_without_a_budget_a_deadline_or_a_forecast_nothing_is_found(self) -> None:
        """None is not over anything."""
        stood = standing(steadily(90, tokens=3, usd=30.0), 90, budget_usd=None, deadline=None)
        nothing = standing([], 0)
        for kind in ("forecast_over_budget", "forecast_over_deadline"):
            assert evaluate_rule(rule(kind, percentile="p50"), stood) == ()
            assert evaluate_rule(rule(kind, percentile="p50"), nothing) == ()


class TestRuns:
    STALLED = rule("stalled", hours=6.0)

    def test_a_run_is_stalled_when_nothing_is_heard_of_it_for_so_long(self) -> None:
        """Not a minute before."""
        events = list(steadily(50))
        assert evaluate_rule(self.STALLED, standing(events, 55.9)) == ()
        (found,) = evaluate_rule(self.STALLED, standing(events, 56))
        assert found.text == "helper: no event of run main for 6.0 hours; it was running then"

    def test_a_run_that_is_interrupted_and_does_not_come_back_is_stalled(self) -> None:
        """The text tells the two apart."""
        (found,) = evaluate_rule(self.STALLED, standing([*steadily(50), event(50.5, "interruption", cause="hardware")], 60))
        assert "it was interrupted then" in found.text

    def test_one_that_goes_on_and_stalls_again_is_another_subject(self) -> None:
        """Although the first one is not long over."""
        events = list(steadily(50))
        first, second = (
            evaluate_rule(self.STALLED, standing(told, now))[0].subject for told, now in ((events, 60), (list(steadily(61)), 70))
        )
        assert first != second

    def test_a_run_that_is_done_closed_or_not_begun_is_not_stalled(self) -> None:
        """Nothing is expected of it."""
        silent = standing(steadily(50), 90)
        assert evaluate_rule(self.STALLED, standing(steadily(100), 200)) == ()
        assert evaluate_rule(self.STALLED, replace(silent, runs=(WatchedRun("r0", is_open=False),))) == ()
        assert evaluate_rule(self.STALLED, standing([], 200)) == ()

    @pytest.mark.parametrize("finding", get_args(LossFinding))
    def test_every_alarm_of_the_loss_is_found(self, finding: LossFinding) -> None:
        """Of open runs."""
        stood = standing(steadily(50), 50)
        (run,) = stood.status.runs
        alarm = LossAlarm(finding, at(49), "the figures")
        alarmed = of(replace(stood.status, runs=(replace(run, loss=replace(run.loss, alarms=(alarm,), last=float("nan"))),)))
        (found,) = evaluate_rule(rule("loss"), alarmed)
        assert (found.title, found.figures["last_loss"]) == (LOSS_TITLES[finding], "nan")
        assert found.text == "helper: run main at 2027-01-06 01:00 UTC: the figures"
        assert evaluate_rule(rule("loss"), replace(alarmed, runs=(WatchedRun("r0", is_open=False),))) == ()

    def test_a_loss_that_is_no_number_is_found(self) -> None:
        """As the run told it."""
        events = [*(event(hour, tokens=hour * 10, loss=3.0 - hour / 100) for hour in range(30)), event(30, tokens=300, loss=float("nan"))]
        assert titles(evaluate_rule(rule("loss"), standing(events, 30.5))) == ["the loss is not a number"]

    def test_drift_is_about_a_quantity_and_its_way(self) -> None:
        """The day it began may be told otherwise tomorrow: it is the same drift."""
        stood = standing(steadily(50), 50)
        (run,) = stood.status.runs
        drifted = [
            of(replace(stood.status, runs=(replace(run, drift=(Drift("main", "throughput", since, change, 0.99),)),)))
            for since, change in ((at(24), -0.15), (at(48), -0.17), (at(24), 0.15))
        ]
        first, later, up = (evaluate_rule(rule("drift"), one)[0] for one in drifted)
        assert first.text == "helper: throughput of run main -15% since 2027-01-05 (confidence 99.0%)"
        assert first.subject == later.subject != up.subject


class TestGateAndCaps:
    def test_a_gate_is_missed_when_it_has_been_due_for_so_long(self) -> None:
        """The reasons are the gate's own."""
        missed = rule("gate_missed", days=7.0)
        stood = standing(steadily(60), 60, gate_overdue=True)
        (found,) = evaluate_rule(missed, stood)
        assert "due for 7 days and undecided; by its criteria: continue (CPI 1 is" in found.text
        assert evaluate_rule(missed, replace(stood, gate_overdue=False)) == ()

    def test_a_gate_that_is_decided_or_not_due_is_not_missed(self) -> None:
        """Even if it was due as long ago."""
        decided = [*steadily(60), event(55, "decision", gate="midpoint", verdict="continue")]
        for events in (decided, steadily(40)):
            assert evaluate_rule(rule("gate_missed", days=1.0), standing(events, 60, gate_overdue=True)) == ()

    def test_a_cap_is_reached_at_the_last_dollar(self) -> None:
        """Of the program, of a run, of the team; each is told of apart."""
        stood = standing(steadily(50), 50, caps=SpendCaps(500.0, 500.0, 900.0), team_usd=900.0)
        found = evaluate_rule(rule("cap", team_usd=900.0), stood)
        assert [finding.figures["of"] for finding in found] == ["program", "run r0", "team"]
        assert found[1].text == "helper: run main: 500 USD spent, the cap is 500 USD: stop, or raise the cap"
        below = replace(stood, caps=SpendCaps(500.01, 500.01, 900.01))
        assert evaluate_rule(rule("cap", team_usd=900.01), below) == ()

    def test_no_cap_is_no_limit(self) -> None:
        """Nor is an unknown spend at one."""
        stood = standing(steadily(50), 50)
        unknown = replace(stood.status, spend=Spend(None, None, 0.0), runs=())
        assert evaluate_rule(rule("cap"), stood) == ()
        assert evaluate_rule(rule("cap"), of(unknown, caps=SpendCaps(1.0, 1.0, 1.0))) == ()


def test_every_kind_of_rule_is_judged_and_has_its_fields() -> None:
    """And none says anything of a program that nothing has happened to."""
    assert set(RULE_FIELDS) == set(get_args(AlertKind))
    for kind in RULE_FIELDS:
        assert evaluate_rule(rule(kind, shares=(0.5,), percentile="p50", hours=1.0, days=0.0), standing([], 0, gate_overdue=False)) == ()


def found(*subjects: str) -> list[AlertFinding]:
    """Findings about these."""
    return [AlertFinding(subject, "title", "text", {}) for subject in subjects]


class Log:
    """What a rule has told, as the store remembers it: the newest of each subject."""

    def __init__(self, kind: AlertKind) -> None:
        self.kind = kind
        self.ended: dict[str, datetime | None] = {}
        self.told: list[str] = []

    def judged(self, now: datetime, *subjects: str) -> None:
        """Take over what a judgement changes."""
        news = diff_alerts(self.kind, found(*subjects), [PreviousAlert(*entry) for entry in self.ended.items()], now)
        self.ended |= {finding.subject: None for finding in news.new} | dict.fromkeys(news.resumed) | dict.fromkeys(news.ended, now)
        self.told += [finding.subject for finding in news.new]


class TestNews:
    def test_what_lasts_is_told_once(self) -> None:
        """However often it is judged, and however long nobody has."""
        log = Log("drift")
        for hours in (0, 1, 2, 1000):
            log.judged(NOW + timedelta(hours=hours), "a")
        assert log.told == ["a"]

    @pytest.mark.parametrize("kind", get_args(AlertKind))
    def test_what_comes_back_is_told_again_when_it_was_over_for_a_while(self, kind: AlertKind) -> None:
        """A forecast that crosses its limit back and forth is one episode."""
        quiet = REARM_AFTER_OF.get(kind, REARM_AFTER)
        log = Log(kind)
        log.judged(NOW, "a")
        log.judged(NOW + quiet)
        log.judged(NOW + 2 * quiet - timedelta(seconds=1), "a")
        assert log.told == ["a"]
        log.judged(NOW + 3 * quiet)
        log.judged(NOW + 4 * quiet, "a")
        assert log.told == ["a", "a"]

    def test_nothing_new_is_no_change(self) -> None:
        """So that nothing is written for it."""
        assert not diff_alerts("drift", found("a"), [PreviousAlert("a", None), PreviousAlert("b", NOW - timedelta(hours=1))], NOW)
        assert not diff_alerts("drift", [], [], NOW)

    @given(st.lists(st.tuples(st.integers(0, 20), st.sets(st.sampled_from("abc"))), max_size=30), st.sampled_from(get_args(AlertKind)))
    def test_the_same_status_twice_tells_nothing_more(self, judgements: list[tuple[int, set[str]]], kind: AlertKind) -> None:
        """Whatever was judged before: a second judgement at the same moment changes nothing, and all that holds has been told."""
        log, now = Log(kind), NOW
        for hours, subjects in judgements:
            now += timedelta(hours=hours)
            log.judged(now, *subjects)
            told, ended = list(log.told), dict(log.ended)
            log.judged(now, *subjects)
            assert (log.told, log.ended) == (told, ended)
            assert {subject for subject, over in log.ended.items() if over is None} == subjects


class TestQuality:
    EVENTS = (
        *steadily(40),
        event(10, "evaluation", metric="helpdesk", value=0.71, step=10),
        event(30, "evaluation", metric="helpdesk", value=0.45, step=30),
    )

    def test_a_regression_names_the_way_back(self) -> None:
        """The last good step, and what is redone; the same alert as long as the drop lasts."""
        stood = standing(self.EVENTS, 40)
        (found,) = evaluate_rule(rule("regression"), stood)
        assert found.title == "a metric has regressed"
        assert "helpdesk has dropped from 0.71 to 0.45" in found.text
        assert "of step 10" in found.text
        assert (found.figures["last_good_step"], found.figures["redone_usd"]) == (10, 300.0)
        later = [*self.EVENTS, event(39, "evaluation", metric="helpdesk", value=0.44)]
        assert evaluate_rule(rule("regression"), standing(later, 40))[0].subject == found.subject

    def test_a_closed_run_is_not_watched(self) -> None:
        """It does not go back."""
        stood = standing(self.EVENTS, 40)
        assert evaluate_rule(rule("regression"), replace(stood, runs=(WatchedRun("r0", is_open=False),))) == ()

    def test_a_breached_guardrail_is_found(self) -> None:
        """With the floor; one that is kept is not."""
        for floor, many in ((0.5, 1), (0.4, 0)):
            program = replace(PROGRAM, guardrails=(Guardrail("helpdesk", floor),))
            stood = of(status(program, [(RUN, run_of(*self.EVENTS, until=40))], at(40), status_rules()))
            found = evaluate_rule(rule("guardrail"), stood)
            assert len(found) == many
            assert all(one.figures["floor"] == 0.5 and "below its guardrail, 0.5" in one.text for one in found)
