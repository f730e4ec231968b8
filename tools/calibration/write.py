"""The fitted parameters as the service's data file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict
from itertools import starmap
from pathlib import Path

from service.domain.training.utilisation import LossRange, LossTerms
from service.presets.training.throughput_parameters import FittedParameters
from tools.calibration.cases import read_table
from tools.calibration.other_accelerators.cases import other_cases
from tools.calibration.priors import FILE as FRAME
from tools.calibration.priors import loss_priors, priors
from tools.calibration.table import CaseTable
from tools.calibration.whole_runs.losses import FittedLosses

FILE = Path(__file__).parents[2] / "service" / "presets" / "data" / "utilisation.toml"
HEAD = """\
# What accelerators achieve of their data sheets: written by `python -m tools.calibration`, not by hand.
#
# [shared]   the same for every accelerator; `before` is where it was expected before any measurement, and why
# [[matmul]] by family and precision class: share of the dense peak that products reach; `watts_per_tflop` of the parts measured
# [[attention]] by family: share of the 16-bit peak that flash attention reaches, in kernels of the family's own, of an
#            earlier one or of FlashAttention's first generation
# [[spread]] measured over predicted rates on documents the parameters were fitted without, where the layout was given and where
#            only model, accelerator, count, sequence length and batch were
# [[scale]]  the power that those are raised to on machines of so many accelerators and more
# [[other]]  share of the dense peak of networks counted by samples (ResNet-50 v1.5)
# [searched_layouts] logarithm of the speed in the fastest layout found over that in the layouts that teams run, for a job whose peers
#            are all on other nodes: the median of rows on several nodes asked with the goal alone, each without its document
# [whole_runs] published runs' accelerator-hours: logarithm of the hours over those of their steps and failures, for each unit of a term
#            (share of peers off the node; that times doublings of the machine; years before the newest software; mixture), the standard
#            errors, and where the terms are measured; `p10`, `median` and `p90` of actual hours over those planned without the run's kin
"""


def write_utilisation(parameters: FittedParameters, table: CaseTable, losses: FittedLosses) -> None:
    """Write utilisation.toml: the fitted parameters, then the fixed ones."""
    lines = [
        HEAD,
        f'source = "{len(table.cases)} published measurements, tools/calibration/data"\n',
        "[shared]",
        *_shared(parameters),
        *_tables(parameters),
        "\n[searched_layouts]",
        f"loss = {parameters.layout_loss:.4f}",
        "\n[whole_runs]",
        f"coefficients = {_inline(losses.coefficients)}",
        f"errors = {_inline(losses.errors)}",
        f"measured = {_inline(loss_priors().measured)}",
        *(f"{name} = {math.exp(value):.3f}" for name, value in losses.log_ratio_quantiles.items()),
        f'source = "{losses.runs} published training runs, tools/calibration/data/runs.csv and more_runs.csv"',
        "",
        FRAME.read_text(encoding="utf-8").partition("\n[limits]\n")[2].join(("[limits]\n", "")).rstrip(),
        "\n# Publications named above.\n[publications]",
        *_publications(table),
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_other_families(parameters: FittedParameters) -> None:
    """Put the parameters' tables of rows in the place of those of utilisation.toml, and leave all else."""
    text = FILE.read_text(encoding="utf-8")
    before, after = text.partition("\n\n[[matmul]]\n")[0], text.partition("\n\n[searched_layouts]\n")[2]
    FILE.write_text("\n".join((before, *_tables(parameters), "\n[searched_layouts]\n")) + after, encoding="utf-8")


def _tables(parameters: FittedParameters) -> list[str]:
    """Lines of every table of rows."""
    return [line for name, columns in _rows(parameters) for line in (f"\n[[{name}]]", *starmap("{} = {}".format, columns.items()))]


def _inline(values: LossTerms | LossRange) -> str:
    """Fields as one inline table."""
    return "{ " + ", ".join(f"{name} = {value:g}" for name, value in asdict(values).items()) + " }"


def _shared(parameters: FittedParameters) -> list[str]:
    known = priors()
    lines = []
    for name, value in parameters.shared.items():
        unit, why = json.dumps(known[name].unit), json.dumps(known[name].why)
        lines.append(f"{name} = {{ value = {value:g}, before = {known[name].value:g}, unit = {unit}, why = {why} }}")
    return lines


def _rows(parameters: FittedParameters) -> Iterator[tuple[str, dict[str, str]]]:
    """Every row of a table of rows: the table's name, and its columns with their values as TOML writes them."""
    for (family, kind), share in sorted(parameters.matmul.items()):
        rates = {"share": f"{share.share:.4f}", "watts_per_tflop": f"{share.watts_per_tflop:.4f}"}
        yield "matmul", _quoted(family=family, precision=kind) | rates | _quoted(accelerators=list(share.accelerators), source=share.source)
    for (family, kernels), attention in sorted(parameters.attention.items()):
        yield "attention", _quoted(family=family, kernels=kernels) | {"share": f"{attention:.4f}"}
    for spread in parameters.spreads:
        group = _quoted(known=spread.known, family=spread.family, precision=spread.precision)
        yield "spread", group | {"p10": f"{spread.p10:.3f}", "p90": f"{spread.p90:.3f}", "rows": f"{spread.rows}"}
    for scale in parameters.scales:
        figures = {"from_count": f"{scale.from_count}", "power": f"{scale.power:.2f}", "rows": f"{scale.rows}"}
        yield "scale", _quoted(known=scale.known) | figures
    for (family, kind), other in sorted(parameters.other.items()):
        yield "other", _quoted(family=family, precision=kind) | {"share": f"{other:.4f}"}


def _quoted(**columns: str | list[str]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in columns.items()}


def _publications(table: CaseTable) -> list[str]:
    used = {case.source for case in table.cases} | {case.question.source for case in other_cases()} | {"nvidia-resnet"}
    texts = {row["source"]: row["text"].split("; ")[0] for row in read_table("sources.csv")}
    return [f"{source} = {json.dumps(texts[source], ensure_ascii=False)}" for source in sorted(used)]
