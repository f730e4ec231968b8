"""Parameters fitted without one document or one publication, which predict it: no score uses its own rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from service.domain.training.model import Model
from service.domain.training.run import Cluster, Training
from service.engine.training.search.layout_search import choose_layout
from service.presets.training.throughput_parameters import FittedParameters, Key, MatmulShare
from service.presets.training.utilisation import utilisation
from tools.calibration.cases import MeasuredCase
from tools.calibration.priors import with_fixed_parameters
from tools.calibration.table import Floats, position_parameters, predicted_rates, tabulate

FILE = Path(__file__).parent / "folds.json"


@dataclass(frozen=True)
class Folds:
    """By the name of what is left out: a document (README, table, release), or a publication with all its documents.

    `half_of_vtrain` is fitted without every second of vTrain's model shapes (`cases.is_held_back`).
    """

    documents: Mapping[str, FittedParameters]
    publications: Mapping[str, FittedParameters]
    half_of_vtrain: FittedParameters


def write_folds(folds: Folds) -> None:
    """Store every fold's parameters."""
    groups = {kind: {name: _packed(fold) for name, fold in getattr(folds, kind).items()} for kind in ("documents", "publications")}
    document = groups | {"half_of_vtrain": _packed(folds.half_of_vtrain)}
    FILE.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_folds() -> Folds:
    """The folds of the last fit."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    documents, publications = ({name: _unpacked(row) for name, row in document[kind].items()} for kind in ("documents", "publications"))
    return Folds(documents, publications, _unpacked(document["half_of_vtrain"]))


def predict_rates(cases: Sequence[MeasuredCase], parameters: FittedParameters) -> Floats:
    """Predicted rates of every row of the cases under the parameters."""
    table = tabulate(cases)
    return predicted_rates(table, position_parameters(table, parameters))


def predict_left_out_rates(
    cases: Sequence[MeasuredCase], folds: Mapping[str, FittedParameters], group: Callable[[MeasuredCase], str]
) -> Floats:
    """Predicted rates of every row of the cases, in their order, by the parameters fitted without their group."""
    found: dict[str, list[MeasuredCase]] = {}
    for case in cases:
        found.setdefault(group(case), []).append(case)
    predicted = {name: iter(predict_rates(some, folds[name])) for name, some in found.items()}
    return np.array([next(predicted[group(case)]) for case in cases for _ in case.rates])


def search_case_rate(case: MeasuredCase, parameters: FittedParameters) -> float:
    """Predicted rate of a case with the goal alone: that of the layout that the search chooses."""
    return search_rate(case.model, case.training, case.cluster, parameters)


def search_rate(model: Model, training: Training, cluster: Cluster, parameters: FittedParameters) -> float:
    """Tokens a second and accelerator in the layout that the search chooses, as teams run such layouts."""
    used = utilisation(parameters, cluster.accelerator, training.precision, software_year=training.software_year)
    steps = choose_layout(model, training, cluster, replace(used, layout_loss=parameters.layout_loss)).steps
    return float(steps.batch[0]) * training.seq_len / float(steps.total[0]) / cluster.count


def _packed(fold: FittedParameters) -> dict[str, object]:
    return {
        "shared": dict(fold.shared),
        "matmul": {" ".join(key): [share.share, share.watts_per_tflop] for key, share in sorted(fold.matmul.items())},
        "attention": {" ".join(key): share for key, share in sorted(fold.attention.items())},
        "other": {" ".join(key): share for key, share in sorted(fold.other.items())},
        "layout_loss": fold.layout_loss,
    }


def _unpacked(row: Mapping[str, Mapping[str, object]]) -> FittedParameters:
    matmul = {_key(name): MatmulShare(*values, source="") for name, values in row["matmul"].items()}  # type: ignore[misc]
    attention, other = ({_key(name): float(share) for name, share in row[table].items()} for table in ("attention", "other"))  # type: ignore[arg-type]
    found = with_fixed_parameters(row["shared"], matmul, attention, other)  # type: ignore[arg-type]
    return replace(found, layout_loss=row["layout_loss"])  # type: ignore[arg-type]


def _key(name: str) -> Key:
    family, _, kind = name.partition(" ")
    return family, kind
