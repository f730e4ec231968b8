"""What deciding at a gate is worth: what it costs, what a wrong decision costs, and whether the tier before it is worth running."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import Doc, share


@dataclass(frozen=True, slots=True)
class GateInformation:
    """The value of what a tier finds out, against deciding without it. None of it with reserves.

    Going on is right or wrong; where it is wrong the next gate finds it. `value_usd` is the expected value of sample information.
    """

    success_probability: Annotated[float, share("Probability that going on is right, before the tier is run")]
    decide_usd: Annotated[float, Doc("What deciding costs: the tier, and the days of its sign-off at the stated cost of a day", "USD")]
    wrong_go_usd: Annotated[float, Doc("What going on costs where it is wrong: spent until the next gate", "USD")]
    wrong_stop_usd: Annotated[
        float | None, Doc("What stopping costs where going on is right: value less what is still to be spent; null: not known", "USD")
    ]
    value_usd: Annotated[float | None, Doc("What deciding by the gate is worth against deciding without it; null: not known", "USD")]
    net_usd: Annotated[float | None, Doc("That less what deciding costs; null: not known", "USD", minimum=-1e40, maximum=1e40)]
    worth_running: Annotated[bool | None, Doc("Whether it is worth more than it costs; null: not known")]
    statement: Annotated[str, Doc("Why, in a sentence, or what the comparison lacks", max_length=1000)]
