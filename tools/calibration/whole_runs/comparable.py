"""Published runs with the hours planned for them, as the service's data file: what an estimate's summary is compared with.

The fit writes it; `python -m tools.calibration.whole_runs.comparable` writes it again from the last fit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from service.domain.quantities import Range
from service.domain.training.model import GenericNetwork
from service.domain.training.utilisation import PlanCalibration
from service.engine.training.parameters import total_parameters
from service.presets.training.comparable_runs import model_kind
from service.presets.training.throughput_parameters import FittedParameters, load_parameters
from tools.calibration.cases import read_table
from tools.calibration.folds import Folds, read_folds
from tools.calibration.priors import loss_priors
from tools.calibration.whole_runs.losses import RunLosses, coefficients_left_out, run_losses
from tools.calibration.whole_runs.runs import FILES, PublishedRun, hours_range, published_runs

FILE = Path(__file__).parents[3] / "service" / "presets" / "data" / "comparable_runs.toml"
HEAD = """\
# Published training runs, each planned without its publication: written by `python -m tools.calibration`, not by hand.
#
# params, tokens             parameters, and tokens (or samples) trained on, with every epoch
# reported_accelerator_hours as published
# planned_accelerator_hours  median of the plan made from model, tokens and accelerators alone
"""


def write_comparable_runs(losses: RunLosses, parameters: FittedParameters, folds: Folds) -> None:
    """Write the runs' rows."""
    sources, left_out, measured = _sources(), coefficients_left_out(losses), loss_priors().measured
    rows = []
    for run in losses.runs:
        without_it = folds.publications.get(run.publication, parameters)
        planned = hours_range(run, without_it, PlanCalibration(left_out[run.kin], measured), Range.exactly(1.0)).p50
        rows.append("\n".join(_row(run, planned, sources[run.name])))
    FILE.write_text("\n\n".join([HEAD.rstrip("\n"), *rows]) + "\n", encoding="utf-8")


def _row(run: PublishedRun, planned: float, source: str) -> Iterator[str]:
    params = run.model.params if isinstance(run.model, GenericNetwork) else total_parameters(run.model)
    values = {
        "name": run.name,
        "kind": model_kind(run.model),
        "params": float(f"{params or 0:.4g}"),
        "tokens": run.tokens,
        "family": run.cluster.accelerator.family,
        "accelerator": run.cluster.accelerator.name,
        "count": run.cluster.count,
        "reported_accelerator_hours": run.hours,
        "planned_accelerator_hours": float(f"{planned:.4g}"),
        "source": source,
    }
    yield "[[run]]"
    yield from (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def _sources() -> dict[str, str]:
    """By run, where it is published: the text of its source, or what stands in its place."""
    texts = {row["source"]: row["text"] for row in read_table("sources.csv")}
    return {row["id"]: texts.get(row["source"], row["source"]) for file in FILES for row in read_table(file)}


if __name__ == "__main__":
    from_last_fit, last_folds = load_parameters(), read_folds()
    write_comparable_runs(run_losses(published_runs(), from_last_fit, last_folds), from_last_fit, last_folds)
