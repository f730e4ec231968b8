"""Parameters fitted without one publication: what that publication is predicted with, so that no score is its own answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.calibration.cases import Case
from service.calibration.frame import frame
from service.calibration.predict import Residuals, joined, residuals, row_weights
from service.presets.utilisation import Parameters, Share

FILE = Path(__file__).parent / "folds.json"


def write_folds(folds: Mapping[str, Parameters]) -> None:
    """Store the shared parameters and the shares of the peak of every fold."""
    document = {
        source: {
            "shared": dict(fold.shared),
            "matmul": {" ".join(key): round(share.share, 4) for key, share in sorted(fold.matmul.items())},
            "other": {" ".join(key): round(share.share, 4) for key, share in sorted(fold.other.items())},
        }
        for source, fold in folds.items()
    }
    FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_folds() -> dict[str, Parameters]:
    """The folds as last fitted."""
    return {source: _fold(row) for source, row in json.loads(FILE.read_text(encoding="utf-8")).items()}


def left_out_residuals(cases: Sequence[Case], folds: Mapping[str, Parameters]) -> Residuals:
    """Every case's residuals under the parameters found without its publication."""
    weights = row_weights(cases)
    return joined([residuals([case], folds[case.source], weights) for case in cases])


def _fold(row: dict[str, dict[str, float]]) -> Parameters:
    def shares(name: str) -> dict[tuple[str, str], Share]:
        return {_key(key): Share(value, 1.0, 1.0, "") for key, value in row[name].items()}

    return frame(row["shared"], shares("matmul"), shares("other"))


def _key(text: str) -> tuple[str, str]:
    family, _, kind = text.partition(" ")
    return family, kind
