"""The verdict on buying or renting in plain words."""

from __future__ import annotations

from service.domain.procurement.answer import ProcurementVerdict
from service.domain.summary import Driver, Summary
from service.engine.numerics.ranges import percentile
from service.engine.procurement.trials import range_around
from service.formats.headline import day, money, three_figures
from service.formats.option_words import PEAKS
from service.usecases.procurement.evaluation import Evaluation, Row

KEPT_WITH = 0.8
MAX_DRIVERS = 3
NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def summarise_verdict(evaluation: Evaluation, verdict: ProcurementVerdict) -> Summary:
    """What costs least, by how much, how surely, and where it stops being right."""
    choice, other = evaluation.eligible[0], _runner_up(evaluation, verdict)
    npv = range_around(choice.npv_usd, choice.draws)
    sentences = [_cost_text(choice, other, evaluation), _saving_text(verdict, choice, other)]
    sentences += [_spot_text(evaluation, choice), _utilisation_text(evaluation, verdict)]
    other_side = "renting" if choice.owned else "owning"
    return Summary(
        text=" ".join(sentence for sentence in sentences if sentence),
        p50_usd=npv.p50,
        p80_usd=percentile(npv, KEPT_WITH) if npv.p10 > 0 else npv.p90,
        drivers=tuple(
            Driver(flip.variable, flip.origin, f"{other_side} costs less from {three_figures(flip.to):g} on")
            for flip in verdict.flips[:MAX_DRIVERS]
            if verdict.against
        ),
    )


def _runner_up(evaluation: Evaluation, verdict: ProcurementVerdict) -> Row | None:
    """The best option of the other side, else the second best."""
    rows = evaluation.eligible
    return next((row for row in rows if row.name == verdict.against), rows[1] if len(rows) > 1 else None)


def _cost_text(choice: Row, other: Row | None, evaluation: Evaluation) -> str:
    against = f" against {money(other.npv_usd)} for {_what(other)}" if other else ""
    return f"{_action(choice)} costs {money(choice.npv_usd)} over {_years_text(evaluation.inputs.months)}{against}, discounted."


def _saving_text(verdict: ProcurementVerdict, choice: Row, other: Row | None) -> str:
    sure = f"is best with probability {verdict.probability_best:.2f}"
    if other is None:
        return ""
    saved = range_around(other.npv_usd - choice.npv_usd, other.draws - choice.draws)
    return f"It saves {money(saved.p50)} (80 % between {money(saved.p10)} and {money(saved.p90)}) and {sure}."


def _spot_text(evaluation: Evaluation, choice: Row) -> str:
    """What is best of the capacity that is not taken back, where spot costs least."""
    if choice.kind != "spot":
        return ""
    lasting = next((row for row in evaluation.eligible if row.kind != "spot"), None)
    instead = f"; the cheapest capacity that stays is {_what(lasting)}: {money(lasting.npv_usd)}" if lasting else ""
    return f"That is spot capacity, which can be taken back at any time{instead}."


def _utilisation_text(evaluation: Evaluation, verdict: ProcurementVerdict) -> str:
    at = verdict.break_even_utilisation
    if at is None:
        return ""
    side = "below" if at < evaluation.inputs.utilisation else "above"
    return f"The verdict changes {side} a utilisation of {at:.2f}."


def _action(row: Row) -> str:
    if row.owned:
        return f"Buying {row.name}"
    if row.kind == "mix":
        return f"Reserving {row.reserved_count:,.0f} at {row.words.removesuffix(PEAKS)} and renting the peaks on demand"
    return f"{'Reserving at' if row.kind == 'reserved' else 'Renting at'} {_priced(row)}"


def _what(row: Row) -> str:
    return f"buying {row.name}" if row.owned else _priced(row)


def _priced(row: Row) -> str:
    """The name of an option with the day its price was read."""
    offer = row.choice.offer if row.choice else None
    if offer is None or offer.observed_at is None:
        return row.words
    return f"{row.words}, {'stale price' if offer.stale else 'price'} of {day(offer.observed_at)}"


def _years_text(months: int) -> str:
    years, rest = divmod(months, 12)
    count, unit = (months, "month") if rest else (years, "year")
    number = NUMBERS[count] if count < len(NUMBERS) and unit == "year" else str(count)
    return f"{number} {unit}{'s' if count > 1 else ''}"
