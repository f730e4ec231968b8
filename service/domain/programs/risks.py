"""The risk register: what is done against a risk, what that is worth, and what all risks may cost together."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from service.domain.answer_fields import Doc, share
from service.domain.quantities import Range

RiskState = Literal["open", "occurred", "closed"]


@dataclass(frozen=True, slots=True)
class Mitigation:
    """Work against a risk, before the runs of its tier. The budget and the calendar count it where it is `taken`."""

    usd: Annotated[Decimal, Doc("What it costs", "USD")] = Decimal(0)
    days: Annotated[Range | None, Doc("Time that it takes; null: none", "days")] = None
    probability_after: Annotated[float | None, Doc("Probability of the risk after it; null: as before", "1", minimum=0.0, maximum=1.0)] = (
        None
    )
    cost_share_after: Annotated[
        float | None,
        Doc("Cost where it still happens, as part of what the tier's runs cost; null: as before", "1", minimum=0.0, maximum=1.0),
    ] = None
    taken: Annotated[bool, Doc("Whether budget and calendar count it")] = False


@dataclass(frozen=True, slots=True)
class RiskPair:
    """Correlation of two risks by name."""

    risks: tuple[str, str]
    correlation: float


@dataclass(frozen=True, slots=True)
class MitigationEffect:
    """What a mitigation avoids, against what it costs. Days count in dollars where `outcome.delay_usd_per_day` is stated."""

    loss_avoided_usd: Annotated[float, Doc("Expected loss without it less that with it", "USD", minimum=-1e40, maximum=1e40)]
    days_avoided: Annotated[
        float, Doc("Expected delay without it, less that with it and less its own days", "days", minimum=-1e40, maximum=1e40)
    ]
    delay_avoided_usd: Annotated[
        float | None, Doc("Those days at the stated cost of a day; null: none is stated", "USD", minimum=-1e40, maximum=1e40)
    ]
    net_usd: Annotated[float, Doc("What it avoids less what it costs", "USD", minimum=-1e40, maximum=1e40)]
    pays: Annotated[bool, Doc("Whether it avoids more than it costs")]
    statement: Annotated[str, Doc("Why, in a sentence, with what the comparison lacks", max_length=1000)]


@dataclass(frozen=True, slots=True)
class RiskRegister:
    """What all risks cost together, by simulation; `budget_*`: the whole budget with the mitigations named, null where nothing is priced.

    `independent_usd` is the mean and deviation in closed form, of risks that do not depend on each other.
    """

    loss_p50_usd: Annotated[float, Doc("Loss that is not exceeded with a probability of 50 %", "USD")]
    loss_p80_usd: Annotated[float, Doc("Loss that is not exceeded with a probability of 80 %", "USD")]
    loss_p90_usd: Annotated[float, Doc("Loss that is not exceeded with a probability of 90 %", "USD")]
    expected_loss_usd: Annotated[float, Doc("Mean loss", "USD")]
    deviation_usd: Annotated[float, Doc("Standard deviation of the loss, as simulated", "USD")]
    independent_deviation_usd: Annotated[float, Doc("Standard deviation if no risk depended on another, in closed form", "USD")]
    none_probability: Annotated[float, share("Probability that no risk happens")]
    trials: Annotated[int, Doc("Trials of the simulation")]
    seed: Annotated[int, Doc("Seed of the simulation")]
    budget_usd: Annotated[Decimal, Doc("Budget with the mitigations that are taken", "USD")]
    budget_without_mitigations_usd: Annotated[Decimal, Doc("Budget if no mitigation were taken", "USD")]
    budget_with_paying_mitigations_usd: Annotated[Decimal, Doc("Budget if every mitigation that pays were taken", "USD")]
