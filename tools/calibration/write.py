"""The fitted parameters as the service's data file."""

from __future__ import annotations

import json
from pathlib import Path

from service.presets.training.utilisation import FittedParameters
from tools.calibration.cases import read_table
from tools.calibration.priors import FILE as FRAME
from tools.calibration.priors import priors
from tools.calibration.spreads import WholeRuns
from tools.calibration.table import CaseTable

FILE = Path(__file__).parents[2] / "service" / "presets" / "data" / "utilisation.toml"
HEAD = """\
# What accelerators achieve of their data sheets: written by `python -m tools.calibration`, not by hand.
#
# [shared]   the same for every accelerator; `before` is where it was expected before any measurement, and why
# [[matmul]] by family and precision class: share of the dense peak that products reach; `watts_per_tflop` of the parts measured
# [[attention]] by family: share of the 16-bit peak that flash attention reaches, in kernels of the family's own or of an earlier one
# [[spread]] measured over predicted rates on documents the parameters were fitted without, where the layout was given and where
#            only model, accelerator, count, sequence length and batch were
# [[scale]]  the power that those are raised to on machines of so many accelerators and more
# [[other]]  share of the dense peak of networks counted by samples (ResNet-50 v1.5)
# [planning] published runs' accelerator-hours: `lost_between_nodes`, what they took beyond their steps on ever more nodes, over these;
#            `whole_*` and `median`, actual hours over those planned with it; p10 and p90, what is left beside the speed's own spread
"""


def write_utilisation(parameters: FittedParameters, table: CaseTable, planning: WholeRuns) -> None:
    """Write utilisation.toml: the fitted parameters, then the fixed ones."""
    lines = [HEAD, f'source = "{len(table.cases)} published measurements, tools/calibration/data"\n', "[shared]"]
    lines += (
        _shared(parameters) + _matmul(parameters) + _attention(parameters) + _spreads(parameters) + _scales(parameters) + _other(parameters)
    )
    lines += [
        "\n[planning]",
        f"lost_between_nodes = {planning.lost_between_nodes:g}",
        f"p10 = {planning.beyond_p10:.3f}",
        f"p90 = {planning.beyond_p90:.3f}",
        f"whole_p10 = {planning.p10:.3f}",
        f"whole_p90 = {planning.p90:.3f}",
        f"median = {planning.median:.3f}",
        f'source = "{planning.runs} published training runs, tools/calibration/data/runs.csv and more_runs.csv"',
        "",
        FRAME.read_text(encoding="utf-8").partition("\n[limits]\n")[2].join(("[limits]\n", "")).rstrip(),
        "\n# Publications named above.\n[publications]",
        *_publications(table),
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _shared(parameters: FittedParameters) -> list[str]:
    known = priors()
    lines = []
    for name, value in parameters.shared.items():
        unit, why = json.dumps(known[name].unit), json.dumps(known[name].why)
        lines.append(f"{name} = {{ value = {value:g}, before = {known[name].value:g}, unit = {unit}, why = {why} }}")
    return lines


def _row(table: str, **columns: str) -> list[str]:
    """One row of a table of rows, its values as TOML writes them."""
    return [f"\n[[{table}]]", *(f"{name} = {value}" for name, value in columns.items())]


def _matmul(parameters: FittedParameters) -> list[str]:
    lines = []
    for (family, kind), share in sorted(parameters.matmul.items()):
        lines += _row(
            "matmul",
            family=json.dumps(family),
            precision=json.dumps(kind),
            share=f"{share.share:.4f}",
            watts_per_tflop=f"{share.watts_per_tflop:.4f}",
            accelerators=json.dumps(list(share.accelerators)),
            source=json.dumps(share.source),
        )
    return lines


def _attention(parameters: FittedParameters) -> list[str]:
    lines = []
    for (family, kernels), share in sorted(parameters.attention.items()):
        lines += _row("attention", family=json.dumps(family), kernels=json.dumps(kernels), share=f"{share:.4f}")
    return lines


def _spreads(parameters: FittedParameters) -> list[str]:
    lines = []
    for row in parameters.spreads:
        known, family, precision = map(json.dumps, (row.known, row.family, row.precision))
        lines += _row(
            "spread", known=known, family=family, precision=precision, p10=f"{row.p10:.3f}", p90=f"{row.p90:.3f}", rows=f"{row.rows}"
        )
    return lines


def _scales(parameters: FittedParameters) -> list[str]:
    lines = []
    for row in parameters.scales:
        lines += _row("scale", known=json.dumps(row.known), from_count=f"{row.from_count}", power=f"{row.power:.2f}", rows=f"{row.rows}")
    return lines


def _other(parameters: FittedParameters) -> list[str]:
    lines = []
    for (family, kind), share in sorted(parameters.other.items()):
        lines += _row("other", family=json.dumps(family), precision=json.dumps(kind), share=f"{share:.4f}")
    return lines


def _publications(table: CaseTable) -> list[str]:
    used = {case.source for case in table.cases} | {"nvidia-resnet"}
    texts = {row["source"]: row["text"].split("; ")[0] for row in read_table("sources.csv")}
    return [f"{source} = {json.dumps(texts[source], ensure_ascii=False)}" for source in sorted(used)]
