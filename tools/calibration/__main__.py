"""The command `python -m tools.calibration`: fit, write the data files, print the fitted shares of the peak."""

from __future__ import annotations

import re
import sys
import tomllib

from service.presets.documents import load_document
from service.presets.training.throughput_parameters import load_parameters
from tools.calibration import fit
from tools.calibration.finetuning import fit as finetuning_fit
from tools.calibration.other_accelerators import fit as other_accelerators_fit
from tools.calibration.rl import fit as rl_fit
from tools.calibration.write import FILE

ROW = "{:<12}{:<12}{:>9}{:>11}{:>6}"


def main() -> None:
    """Fit and print; the fit takes minutes."""
    print("fitting to every published measurement, then without each document and publication: this takes minutes", file=sys.stderr)
    fit.main()
    # Fine-tuning's rates stand on the step model's, shares of families with few rows on both.
    load_document.cache_clear()
    load_parameters.cache_clear()
    finetuning_fit.main()
    other_accelerators_fit.main()
    rl_fit.main()
    print(shares_table(FILE.read_text(encoding="utf-8")))


def shares_table(text: str) -> str:
    """Shares of the dense peak in a utilisation file: one row for each family and precision class, with the rows behind it."""
    document = tomllib.loads(text)
    attention = {(row["family"], row["kernels"]): row["share"] for row in document["attention"]}
    lines = [ROW.format("family", "precision", "products", "attention", "rows")]
    for row in document["matmul"]:
        key = row["family"], row["precision"]
        own = attention.get((key[0], "own"))
        rows = sum(map(int, re.findall(r"\((\d+) rows\)", row["source"])))
        lines.append(ROW.format(*key, f"{row['share']:.3f}", f"{own:.3f}" if own else "borrowed", rows))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
