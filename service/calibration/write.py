"""The fitted parameters as the service's data file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from service.calibration.cases import Case, read
from service.calibration.frame import FILE as FRAME
from service.calibration.spreads import Planning
from service.presets.utilisation import Key, Parameters, Share

FILE = Path(__file__).parents[1] / "presets" / "data" / "utilisation.toml"
HEAD = """\
# What accelerators achieve of their data sheets: written by `python -m service.calibration.fit`, not by hand.
#
# [shared]   the same for every accelerator, found by coordinate descent
# [[matmul]] share of the dense peak by family and precision class: the value that brings the weighted median residual of its
#            rows to nought; p10 and p90 are measured over predicted rates on publications the parameters were fitted without
# [[other]]  the same share for networks counted by samples (convolutions)
# [planning] actual over planned accelerator-hours of published runs; `whole_*` and `median` as observed, p10 and
#            p90 what is left of that beside the speed's own spread
"""
UNITS = {
    "half_width_per_ridge": "matrix width that halves the rate, per FLOP/byte of peak over memory bandwidth",
    "attention_share": "share of the dense 16-bit peak that flash attention's executed half reaches",
    "activation_passes": "times that a layer's kept activations cross the memory bus in a step",
    "link_share": "share of a link's rate that collectives reach",
    "overlap_share": "part of the data-parallel exchange hidden behind the step",
    "layer_overhead_s": "seconds of host and launch time of a layer, forward and backward",
    "collective_latency_s": "seconds of a collective that carries nothing",
    "straggler_share": "slowdown by each doubling of the nodes",
}


def write_utilisation(parameters: Parameters, cases: Sequence[Case], planning: Planning) -> None:
    """Write utilisation.toml: the fit, then the frame it was made in."""
    lines = [HEAD, f'source = "{sum(len(case.rates) for case in cases)} published measurements, service/calibration/data"\n', "[shared]"]
    lines += [f"{name} = {{ value = {value:g}, unit = {json.dumps(UNITS[name])} }}" for name, value in parameters.shared.items()]
    lines += _shares("matmul", parameters.matmul) + _shares("other", parameters.other)
    lines += [
        "\n[planning]",
        f"p10 = {planning.beyond_p10:.3f}",
        f"p90 = {planning.beyond_p90:.3f}",
        f"whole_p10 = {planning.p10:.3f}",
        f"whole_p90 = {planning.p90:.3f}",
        f"median = {planning.median:.3f}",
        f'source = "{planning.runs} published training runs, service/calibration/data/runs.csv"',
        "",
        FRAME.read_text(encoding="utf-8").partition("\n\n")[2].rstrip(),
        "\n# Publications named above.\n[publications]",
        *_publications(cases),
    ]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _shares(table: str, shares: Mapping[Key, Share]) -> list[str]:
    lines = []
    for (family, kind), share in sorted(shares.items()):
        lines += [
            f"\n[[{table}]]",
            f'family = "{family}"',
            f'precision = "{kind}"',
            f"share = {share.share:.4f}",
            f"p10 = {share.p10:.3f}",
            f"p90 = {share.p90:.3f}",
            f"source = {json.dumps(share.source)}",
        ]
    return lines


def _publications(cases: Sequence[Case]) -> list[str]:
    used = {case.source for case in cases} | {"nvidia-resnet"}
    texts = {row["source"]: row["text"].split("; ")[0] for row in read("sources.csv")}
    return [f"{source} = {json.dumps(texts[source], ensure_ascii=False)}" for source in sorted(used)]
