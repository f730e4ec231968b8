"""Tables of a compute-optimal size."""

from __future__ import annotations

from collections.abc import Iterator

from service.formats.documents.cells import Column
from service.formats.documents.results.tables import Answer, RangeBars, ResultTable, Value, named_range, quantities, quantity_row

CURVE_COLUMNS = (
    *(Column("parameters", 20, "whole"), Column("tokens", 24, "whole"), Column("loss, nats a token", 18, "number")),
    *(Column("training FLOPs", 18, "number"), Column("training, USD", 18, "usd")),
)
VARIANT_COLUMNS = (
    *(Column("variant", 50), Column("preparation, USD", 18, "usd"), Column("serving, USD", 18, "usd")),
    *(Column("training and all, USD", 18, "usd"), Column("quality lost, %", 14, "number")),
)


def tables(answer: Answer) -> list[ResultTable]:
    """Main figures, sizes of equal cost, and how the optimum may be served."""
    training = answer["training"] or {"usd": None, "accelerator_hours": None, "wall_clock_hours": None}
    rows = [
        quantity_row("parameters", answer["params"], ""),
        quantity_row("tokens", answer["tokens"], ""),
        quantity_row("loss", answer["loss_range"] or answer["loss"], "nats a token"),
        quantity_row("training compute", answer["flops"], "FLOPs"),
        quantity_row("training cost", training["usd"], "USD"),
        quantity_row("accelerator-hours", training["accelerator_hours"], "h"),
        quantity_row("time on the clock", training["wall_clock_hours"], "h"),
        *_given_rows(answer.get("given_model")),
    ]
    names = ("params", "tokens", "loss", "flops", "training_usd")
    curve = [tuple(point[name] for name in names) for point in answer["curve"]]
    costs = ("variant", "preparation_usd", "serving_usd", "total_usd")
    kinds = [
        (*(each[name] for name in costs), each["quality_loss_percent"]["p50"]) for each in (answer["serving"] or {}).get("variants", ())
    ]
    shown = [ResultTable("variants", "Training and serving together", VARIANT_COLUMNS, kinds)] if kinds else []
    return [quantities(rows), ResultTable("curve", "Sizes of equal cost", CURVE_COLUMNS, curve), *shown]


def _given_rows(given: Answer | None) -> Iterator[tuple[Value, ...]]:
    """The stated model against the optimum for its size and for the budget; none where the request states no model."""
    if given is None:
        return
    yield quantity_row("all parameters of the model", given["params"], "")
    yield quantity_row("tokens for each parameter", given["tokens_per_param"], "")
    yield quantity_row("compute-optimal tokens of this size", given["optimal_tokens"], "")
    yield quantity_row("tokens over these", given["tokens_over_optimal"], "")
    if given["optimum"] is not None:
        yield quantity_row("compute-optimal parameters for the budget", given["optimum"]["params"], "")
        yield quantity_row("compute-optimal tokens for the budget", given["optimum"]["tokens"], "")
        yield quantity_row("loss of the compute-optimal model", given["optimum"]["loss"], "nats a token")


def range_bars(answer: Answer) -> RangeBars:
    """The training cost, or the size where no cost is known."""
    if answer["training"] is None or answer["training"]["usd"] is None:
        return RangeBars("parameters", named_range("parameters", answer["params"]))
    return RangeBars("USD", named_range("training cost", answer["training"]["usd"]))
