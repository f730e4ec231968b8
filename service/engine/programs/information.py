"""Value of the information that a tier brings to its gate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.domain.errors import InvalidRequest
from service.domain.programs.information import GateInformation
from service.domain.programs.program import Program, TierGate
from service.engine.programs.gates import TierSpending
from service.engine.programs.value import outcome_value_usd

Floats = NDArray[np.float64]


def sample_information_value(prior: Floats, payoffs: Floats, likelihoods: Floats) -> float:
    """Expected value of sample information.

    Parameters
    ----------
    prior : (states,) array
        Probabilities of the states; they add up to 1 [1].
    payoffs : (states, actions) array
        Value of each action in each state [USD].
    likelihoods : (states, findings) array
        Probability of each finding in each state; rows add up to 1 [1].

    Returns
    -------
    float
        Value of the best action after each finding, on average, less that of the best action without one [USD]; 0 or more.

    References
    ----------
    Raiffa & Schlaifer 1961, Applied Statistical Decision Theory, 4.5.
    """
    without = float(np.max(prior @ payoffs))
    with_findings = float(np.max((likelihoods * prior[:, None]).T @ payoffs, axis=1).sum())
    return max(0.0, with_findings - without)


def gate_information(program: Program, spending: Sequence[TierSpending]) -> list[GateInformation | None]:
    """What each tier's gate is worth.

    Parameters
    ----------
    program : Program
        Gates with their evidence, and the outcome with its worth.
    spending : sequence of TierSpending
        Spending of each tier [USD].

    Returns
    -------
    list of GateInformation or None
        By tier; None for a tier without a gate. Where going on is right, later gates are passed with their stated probabilities; where
        it is wrong, what is spent until the next gate is lost.

    Raises
    ------
    InvalidRequest
        For a pass probability that the gate's sensitivity and specificity exclude.
    """
    return [None if tier.gate is None else _information(program, tier.gate, spending, index) for index, tier in enumerate(program.tiers)]


def _information(program: Program, gate: TierGate, spending: Sequence[TierSpending], index: int) -> GateInformation:
    success = _success_probability(gate, f"/tiers/{index}/gate/pass_probability")
    delay_usd = 0.0 if program.outcome is None else gate.sign_off_days * (program.outcome.delay_usd_per_day or 0.0)
    decide, wrong_go = round(float(spending[index].own_usd) + delay_usd, 2), _usd_to_next_gate(program, spending, index)
    value = None if program.outcome is None else outcome_value_usd(program.outcome)
    lacking = _lacking(value, is_last=index + 1 == len(spending))
    if value is None or lacking:
        return GateInformation(success, decide, wrong_go, None, None, None, None, lacking)
    going_on = _usd_of_going_on(spending[index + 1 :], value)
    sensitivity, specificity = gate.sensitivity, gate.specificity
    worth = round(
        sample_information_value(
            np.array([success, 1 - success]),
            np.array([[going_on, 0.0], [-wrong_go, 0.0]]),
            np.array([[sensitivity, 1 - sensitivity], [1 - specificity, specificity]]),
        ),
        2,
    )
    return GateInformation(
        success_probability=success,
        decide_usd=decide,
        wrong_go_usd=wrong_go,
        wrong_stop_usd=max(0.0, going_on),
        value_usd=worth,
        net_usd=round(worth - decide, 2),
        worth_running=worth > decide,
        statement=_statement(worth, decide, going_on),
    )


def _success_probability(gate: TierGate, pointer: str) -> float:
    """Probability that going on is right, of the probability that the gate is passed and how well it tells the two apart."""
    least, most = 1 - gate.specificity, gate.sensitivity
    if most <= least:
        raise InvalidRequest("this gate passes good and bad results equally often: state a higher sensitivity and specificity", pointer)
    if not least <= gate.pass_probability <= most:
        raise InvalidRequest(f"with this sensitivity and specificity, pass_probability must be {least:.0%} to {most:.0%}", pointer)
    return (gate.pass_probability - least) / (most - least)


def _usd_to_next_gate(program: Program, spending: Sequence[TierSpending], index: int) -> float:
    """Spending after a gate up to the next one, or to the end [USD]."""
    usd = 0.0
    for tier, spent in zip(program.tiers[index + 1 :], spending[index + 1 :], strict=True):
        usd += float(spent.usd)
        if tier.gate is not None:
            break
    return round(usd, 2)


def _usd_of_going_on(later: Sequence[TierSpending], value_usd: float) -> float:
    """Value of going on where that is right, less what is spent then, on average over the later gates [USD]."""
    usd = value_usd
    for tier in reversed(later):
        usd = tier.pass_probability * max(0.0, usd) - float(tier.usd)
    return round(usd, 2)


def _lacking(value: float | None, *, is_last: bool) -> str:
    if value is None:
        return "not known: state what the outcome is worth, outcome.value_usd_per_point or value_curve"
    return "not known: no spending depends on it, and the cost of a wrong result is not stated" if is_last else ""


def _statement(worth: float, decide: float, going_on: float) -> str:
    if going_on <= 0:
        return "continuing never pays: the remaining spending is more than the outcome is worth"
    verdict = "worth running" if worth > decide else "not worth running for the decision alone"
    return f"{verdict}: the decision is worth {worth:,.0f} USD and costs {decide:,.0f} USD"
