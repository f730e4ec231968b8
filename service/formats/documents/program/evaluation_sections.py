"""A plan's evaluation as sentences and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from service.formats.documents.sections import DocumentSection, DocumentTable
from service.formats.documents.text import number, share, span, usd

Answer = Mapping[str, Any]


def evaluation_section(evaluation: Answer | None) -> DocumentSection:
    """Suites with their cost, what each can see, checks and sign-offs; empty where none is stated."""
    if evaluation is None:
        return DocumentSection("evaluation", "Evaluation")
    tables = (_suites(evaluation), _detection(evaluation), _around(evaluation))
    return DocumentSection("evaluation", "Evaluation", tuple(_sentences(evaluation)), tables)


def how(suite: Answer) -> str:
    """How a suite is evaluated, in words."""
    return f"{'generated' if suite['generated'] else 'scored'}, {'the machine waits' if suite['blocking'] else 'in parallel with the runs'}"


def needed(found: Answer) -> str:
    """What a suite needs to see its difference, in words."""
    if found["enough"]:
        return "enough"
    ways = [f"{found[f'{name}_needed']:,} {name}" for name in ("samples", "seeds") if found[f"{name}_needed"] is not None]
    return " or ".join(ways) or "more of both"


def _sentences(evaluation: Answer) -> Iterator[str]:
    cost = "at a price that is not known" if evaluation["usd"] is None else f"{usd(evaluation['usd'])} USD"
    yield f"All of it: {cost}, {number(evaluation['accelerator_hours'])} accelerator-hours."
    if evaluation["checkpoint_tb"]:
        stored = f"{number(evaluation['checkpoint_tb'])} TB of weights are kept for it, {usd(evaluation['checkpoints_usd'])} USD"
        yield f"{stored}, beyond the checkpoints that are stored anyway."
    if evaluation["detection"]:
        yield (
            f"A difference counts as seen where it is found significant at {share(evaluation['significance'])}, two-sided,"
            f" with a probability of {share(evaluation['power'])}."
        )


def _suites(evaluation: Answer) -> DocumentTable:
    rows = [
        (
            suite["suite"],
            suite["tier"],
            how(suite),
            number(suite["evaluations"]),
            f"{suite['samples']:,}",
            span(suite["accelerator_hours"]),
            span(suite["hours"]) if suite["blocking"] else "",
            "" if suite["usd"] is None else usd(suite["usd"]),
        )
        for suite in evaluation["suites"]
    ]
    head = ("suite", "tier", "how", "evaluations", "samples of one", "accelerator-hours", "hours on the calendar", "USD")
    return DocumentTable(head, rows, frozenset({3, 4, 5, 6, 7}))


def _detection(evaluation: Answer) -> DocumentTable:
    rows = [
        (
            found["suite"],
            found["metric"],
            f"{found['difference']:.3g}",
            "none" if found["smallest_difference"] is None else f"{found['smallest_difference']:.3g}",
            f"{found['samples']:,}",
            f"{found['seeds']:,}",
            share(found["power"]),
            needed(found),
        )
        for found in evaluation["detection"]
    ]
    head = ("suite", "measures", "difference to see", "smallest it sees", "samples", "training seeds", "seen, probability", "needs")
    return DocumentTable(head, rows, frozenset({2, 3, 4, 5, 6}))


def _around(evaluation: Answer) -> DocumentTable:
    """Checks and sign-offs."""
    checks = [(check["name"], check["kind"], check["tier"] or "all", check["basis"], usd(check["usd"])) for check in evaluation["checks"]]
    signed = [
        (f"sign-off by {each['name']}", "sign-off", each["tier"], f"{number(each['days'])} working days", usd(each["usd"]))
        for each in evaluation["sign_offs"]
    ]
    return DocumentTable(("check", "kind", "tier", "basis", "USD"), [*checks, *signed], frozenset({4}))
