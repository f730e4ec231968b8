"""What is wrong with a loss: by hours, robustly, on the line that counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from service.domain.tracking.events import Event
from service.domain.tracking.status import LossProjection
from service.engine.scaling.loss_curve import make_schedule
from service.engine.tracking.monitoring.loss_monitor import LossRules, losses, project_loss
from service.presets.scaling.law_fit import curve_prior
from tests.unit.engine.tracking_builders import event, run_of

RULES = LossRules(window_hours=48, deviations=6.0, spike_share=0.05, min_hours=8, source="x")


def falling(hour: int) -> float:
    return 2.0 + 3.0 * (hour + 1) ** -0.3


def told(hours: int, level: Callable[[int], float] = falling) -> Iterator[Event]:
    """Ten losses an hour, a hundredth about their level."""
    noise = np.random.default_rng(1).normal(1, 0.01, (hours, 10))
    for hour in range(hours):
        for place in range(10):
            yield event(hour + place / 10, tokens=1000 * hour + 100 * place, loss=level(hour) * noise[hour, place])


def findings(*events: Event) -> list[str]:
    return [alarm.finding for alarm in losses(run_of(*events), RULES).alarms]


def test_a_falling_loss_is_no_alarm() -> None:
    """The newest loss and the lowest hour are told."""
    found = losses(run_of(*told(200)), RULES)
    assert (found.state, found.alarms) == ("falling", ())
    assert found.last is not None
    assert found.lowest is not None
    assert abs(found.lowest / falling(199) - 1) < 0.02


def test_a_spike_is_an_alarm() -> None:
    """An hour whose median is far above those before it, or a last loss that is."""
    above = [event(200.5, tokens=200_100, loss=4.0)]
    assert findings(*told(200), *above) == ["spike"]
    assert findings(*told(200), event(199.95, tokens=199_950, loss=4.0)) == ["spike"]
    text = losses(run_of(*told(200), *above), RULES).alarms[0].text
    assert "48 hours before" in text


def test_a_spike_that_is_over_is_none() -> None:
    """The last hour is as those before it: a spike ago does not move their median."""
    assert findings(*told(100), event(50.55, tokens=50_550, loss=9.0)) == []


def test_what_is_no_number_is_an_alarm() -> None:
    """Not a number, or infinite, in the last hour; a later hour of numbers ends it."""
    assert findings(*told(100), event(99.95, tokens=99_950, loss=math.nan)) == ["not_a_number"]
    assert findings(*told(100), event(99.95, tokens=99_950, loss=math.inf)) == ["not_a_number"]
    assert findings(*told(99), event(97.5, tokens=97_600, loss=math.nan)) == []


def test_hours_that_a_rollback_left_behind_are_no_alarm() -> None:
    """A spike, or a loss that is no number, is answered by going back before it."""
    for bad in (4.0, math.nan):
        after = [event(101.5, tokens=101_600, loss=bad), event(102.2, "rollback", tokens=90_000)]
        assert findings(*told(101), after[0]) != []
        assert findings(*told(101), *after) == []


def test_a_plateau_is_an_alarm() -> None:
    """No fall over the last third."""
    assert findings(*told(300, lambda hour: falling(min(hour, 20)))) == ["plateau"]


def test_a_loss_that_climbs_diverges() -> None:
    """Slowly, without a spike."""
    assert findings(*told(300, lambda hour: falling(hour) * (1 + max(0, hour - 200) / 400))) == ["diverging"]


def test_a_rollback_ends_a_divergence() -> None:
    """What it left behind no longer counts."""
    bad = [event(100 + hour, tokens=100_000 + hour * 1000, loss=3.0 + hour) for hour in range(10)]
    back = [
        event(111, "rollback", tokens=99_000),
        *(event(111.5 + hour, tokens=99_000 + hour * 500, loss=falling(100)) for hour in range(12)),
    ]
    assert findings(*told(100), *bad) == ["spike"]
    assert findings(*told(100), *bad, *back) == []


def test_the_last_loss_is_of_the_line_that_counts() -> None:
    """Not of hours that a rollback left behind; one that was told before any tokens, or without, is all there is."""
    bad = [event(100 + hour, tokens=100_000 + hour * 1000, loss=9.0) for hour in range(10)]
    kept = losses(run_of(*told(100)), RULES).last
    assert losses(run_of(*told(100), *bad), RULES).last == 9.0
    assert losses(run_of(*told(100), *bad, event(111, "rollback", tokens=99_950)), RULES).last == kept
    assert losses(run_of(event(0, loss=3.0), event(2, loss=2.5)), RULES).last == 2.5
    assert losses(run_of(event(0, loss=3.0), event(2, tokens=10)), RULES).last == 3.0


def test_a_short_or_silent_run_says_nothing() -> None:
    """Too few hours to judge, and no loss at all."""
    short = losses(run_of(*told(3)), RULES)
    assert (short.state, short.alarms) == (None, ())
    silent = losses(run_of(event(0, tokens=0)), RULES)
    assert (silent.last, silent.lowest, silent.alarms) == (None, None, ())


def test_the_end_of_the_loss_is_that_of_its_curve() -> None:
    """The extrapolation of loss curves, of the hours' medians; too short a run says why there is none."""
    plan, typical = make_schedule("cosine", 400_000.0), curve_prior()
    found = project_loss(run_of(*told(200)), plan, typical, 2.3, np.random.default_rng(0))
    assert isinstance(found, LossProjection)
    assert found.loss.p10 < found.loss.p90 < falling(199) * 1.1
    assert found.probability_of_planned is not None
    assert losses(run_of(*told(200)), RULES, found).projection == found
    short = project_loss(run_of(*told(3)), plan, typical, None, np.random.default_rng(0))
    assert "at least 8 are needed" in str(short)
