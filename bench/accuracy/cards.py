"""The page of model cards: each family of causes with its formula, its parameters before and after the fit, and its errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.accuracy.report import Line, table
from service.presets.documents import load_document
from service.presets.training.throughput_parameters import load_parameters
from tools.calibration.priors import expected_attention, expected_share, priors

FILE = Path(__file__).parent / "cards.toml"
HEAD = """\
# Model cards of the speed model

`make accuracy` writes this page from the fitted parameters and their score. One card a family of causes: what it models, its
formula (symbols in [the formulas](../formulas.md)), its parameters, and the data sets that test it most, documents left out of the fit.

"Expected" is what was known before any measurement, with how far off it may be as a factor; "moved" is the fitted value over that. A
parameter that moved by more than its factor is one that the measurements contradict most.
"""
Rate = Mapping[str, Any]


def cards() -> list[dict[str, Any]]:
    """The cards as the data file has them."""
    found: list[dict[str, Any]] = tomllib.loads(FILE.read_text(encoding="utf-8"))["card"]
    return found


def page(lines: Sequence[Line]) -> str:
    """The page, with the errors of these lines of the score."""
    scores = {str(line["name"]): line for line in lines}
    return HEAD + "".join(_card(card, scores) for card in cards())


def rates() -> dict[str, Rate]:
    """Every fitted parameter that all accelerators share, by name: its row of the data file."""
    documents = load_document("utilisation")["shared"], load_document("finetuning")["rates"], load_document("rl")["rates"]
    return {name: row for document in documents for name, row in document.items()}


def _card(card: Mapping[str, Any], scores: Mapping[str, Line]) -> str:
    cause = " ".join(card["cause"].split())
    parts = [f"\n## {card['title']}\n\n{cause}\n\n    {card['formula']}\n"]
    if rows := [*parameter_rows(card["parameters"]), *share_rows(card.get("shares"))]:
        parts.append("\n" + table(["parameter", "expected", "factor", "fitted", "moved", "unit", "why expected"], rows) + "\n")
    errors = [[name, *_errors(scores[name])] for name in card["data_sets"] if name in scores]
    parts.append("\n" + table(["data set", "rows", "median error", "in range"], errors) + "\n")
    return "".join(parts)


def parameter_rows(names: Sequence[str]) -> Iterator[list[str]]:
    """Of each parameter: name, expected value and factor, fitted value, how far it moved, unit, why expected."""
    known, all_rates = priors(), rates()
    for name in names:
        row = all_rates[name]
        prior = known.get(name)
        factor = row.get("factor") or (prior.factor if prior else None)
        yield [f"`{name}`", *_moved(row["before"], factor, row["value"]), row["unit"], row["why"]]


def share_rows(which: str | None) -> Iterator[list[str]]:
    """The same of shares of the peak: one row a family and class, or family and kernels."""
    parameters = load_parameters()
    if which == "matmul":
        for key, found in sorted(parameters.matmul.items()):
            prior = expected_share(parameters, key)
            yield [" ".join(key), *_moved(prior.value, prior.factor, found.share), "share of the dense peak", prior.why]
    if which == "attention":
        for key, share in sorted(parameters.attention.items()):
            prior = expected_attention(key) or priors()["attention_share"]
            yield [f"{key[0]}, {key[1]} kernels", *_moved(prior.value, prior.factor, share), "share of the 16-bit peak", prior.why]


def _moved(before: float, factor: float | None, value: float) -> list[str]:
    return [f"{before:.3g}", f"{factor:g}" if factor else "", f"{value:.3g}", f"x {value / before:.2f}"]


def _errors(line: Line) -> list[str]:
    coverage = line.get("coverage_80")
    return [f"{line['rows']:,}", f"{100 * float(line['median_ape']):.1f} %", "" if coverage is None else f"{100 * float(coverage):.0f} %"]
