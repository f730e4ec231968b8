"""What to do with a run, from what is foretold of its ends."""

from __future__ import annotations

import pytest

from service.domain.quantities import Range
from service.domain.scaling.loss_curves import EndForecast, Extrapolation, State
from service.engine.scaling.stop_advice import action_for_end, advise

NOW, PLANNED = 50.0, 100.0


def end(tokens: float, loss: float, either_side: float = 0.05) -> EndForecast:
    spread = Range(loss - either_side, loss, loss + either_side)
    above = loss - 2.0
    return EndForecast(tokens, spread, Range(above - 0.01, above, above + 0.01) if above else Range.exactly(0.0), None)


def foretold(*others: EndForecast, state: State = "falling") -> Extrapolation:
    """A run half done, whose plan ends at a loss of 2.0 (1.95 to 2.05)."""
    return Extrapolation(NOW, 0.5, 2.3, state, end(PLANNED, 2.0), others, Range.exactly(0.5), Range.exactly(0.1), 0.001, ())


ENDS = (end(NOW, 2.3), end(75.0, 2.1), end(150.0, 1.9), end(200.0, 1.8))


@pytest.mark.parametrize(
    ("target", "action", "tokens"),
    [
        (2.4, "stop", NOW),
        (2.2, "shrink", 75.0),
        (2.05, "continue", PLANNED),
        (2.0, "continue", PLANNED),
        (1.97, "extend", 150.0),
        (1.85, "extend", 200.0),
        (1.5, "stop", NOW),
    ],
    ids=["met already", "met early", "met surely", "met likely", "missed by a little", "missed by more", "out of reach"],
)
def test_the_shortest_end_that_meets_the_target_is_advised(target: float, action: str, tokens: float) -> None:
    """Shortened only where it is surely met, extended where the plan likely misses it, stopped where no end likely meets it."""
    advice = advise(foretold(*ENDS), target, 0.001)
    assert (advice.action, advice.tokens) == (action, tokens)
    assert f"{target:g}" in advice.why


def test_a_run_in_doubt_goes_on() -> None:
    """Where the plan may still meet the target and nothing longer is looked at, it is continued."""
    assert advise(foretold(end(NOW, 2.3)), 1.97, 0.001).action == "continue"


def test_without_a_target_a_run_is_shortened_only_within_the_tolerance() -> None:
    """75 tokens cost a loss of up to 0.11 more: within 6 % of 2.0, not within 5 %; extended it is never."""
    assert advise(foretold(*ENDS), None, 0.06).tokens == 75.0
    assert advise(foretold(*ENDS), None, 0.05).action == "continue"
    assert advise(foretold(*ENDS), None, 0.2).action == "stop"


def test_a_diverging_run_is_stopped_whatever_is_foretold() -> None:
    """The law does not hold for it, so neither does its promise to meet the target."""
    advice = advise(foretold(*ENDS, state="diverging"), 2.2, 0.001)
    assert (advice.action, advice.tokens) == ("stop", NOW)
    assert "checkpoint" in advice.why


def test_actions_are_named_by_where_they_end() -> None:
    """Now, before, at and after the plan's end."""
    assert [action_for_end(foretold(), tokens) for tokens in (NOW, 75.0, PLANNED, 101.0)] == ["stop", "shrink", "continue", "extend"]
