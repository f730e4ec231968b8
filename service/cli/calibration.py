"""What `outlay calibrate` does: the fit to published measurements, or a measurement of this machine, and their figures as tables."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.tables import columns, figure


def fitted() -> None:
    """Fit, write the data files and show the shares of the peak that were found."""
    from tools.calibration import fit
    from tools.calibration.write import FILE

    if not os.access(FILE, os.W_OK):
        raise click.ClickException(f"{FILE} cannot be written: calibrate in a source checkout (pip install --editable .)")
    click.echo("fitting to every published measurement, then without each document and publication: this takes minutes", err=True)
    fit.main()
    click.echo(shares_table(FILE.read_text(encoding="utf-8")))


def shares_table(text: str) -> str:
    """The shares of the peak in a utilisation file, a row a family and precision class, with the measured rows behind each."""
    document = tomllib.loads(text)
    attention = {(row["family"], row["kernels"]): f"{row['share']:.3f}" for row in document["attention"]}
    earlier = document["software"]["earlier_attention"]
    rows = [
        (
            row["family"],
            row["precision"],
            f"{row['share']:.3f}",
            attention[row["family"], "earlier" if [row["family"], row["precision"]] in earlier else "own"],
            str(sum(map(int, re.findall(r"\((\d+) rows\)", row["source"])))),
        )
        for row in document["matmul"]
    ]
    return columns([("family", "precision", "products", "attention", "rows"), *rows])


def measured(options: Mapping[str, Any], out: Path | None) -> None:
    """Measure, show, keep: in the data directory where the device is an accelerator, in `out` where asked."""
    from service.config import BadSetting, load_settings
    from service.container import utc_now
    from service.presets.training.measured import BadMeasurement, store_measurement
    from service.usecases.measurement.measure import CannotMeasure, Options, measure

    try:
        folder = load_settings(os.environ).data_dir
        document = measure(Options(**options), utc_now().date(), lambda text: click.echo(text, err=True))
        click.echo(measured_table(document))
        if out is not None:
            out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if document["accelerator"] is None:
            click.echo("not stored: a CPU is no accelerator the estimates know")
            return
        file = store_measurement(document, folder)
    except (BadSetting, CannotMeasure, BadMeasurement) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error.filename} cannot be written: {error.strerror}") from error
    click.echo(f"stored in {file}; estimates on this data directory now use:\n{used_by_estimates(document)}")


def measured_table(document: Mapping[str, Any]) -> str:
    """The timed shapes with their rates and, for a known accelerator, the prediction from published figures and its error."""
    known = document["accelerator"] is not None
    head = ("hidden", "layers", "batch x tokens", "seconds", "tokens/s", "TFLOP/s", *(("MFU", "predicted s", "error") if known else ()))
    rows = [
        (
            str(row["hidden_size"]),
            str(row["layers"]),
            f"{row['micro_batch']} x {row['seq_len']}",
            f"{row['seconds']:.4g}",
            figure(row["tokens_per_s"]),
            figure(row["tflops"]),
            *((f"{row['mfu']:.1%}", f"{row['predicted_seconds']:.4g}", f"{row['error']:+.1%}") if known else ()),
        )
        for row in document["shapes"]
    ]
    versions = ", ".join(f"{name} {document[name]}" for name in ("torch", "cuda", "hip", "driver") if name in document)
    products = ", ".join(f"{row['size']}: {figure(row['tflops'])}" for row in document["products"])
    title = f"{document['accelerator'] or document['device']}, {document['precision']}, {versions}, {document['measured_on']}"
    return f"{title}\n{columns([head, *rows])}\nTFLOP/s of square products: {products}"


def used_by_estimates(document: Mapping[str, Any]) -> str:
    """What estimates take from a measurement."""
    from service.presets.hardware.accelerators import find_accelerator
    from service.presets.training.measured import parse_measurement
    from service.presets.training.utilisation import find_utilisation
    from service.usecases.resolution.user_measurements import with_measurement

    published = find_utilisation(find_accelerator(document["accelerator"]).accelerator, document["precision"])
    own = with_measurement(published, parse_measurement(document, "the measurement"))
    head = ("", "share of peak", "launch s a layer", "p10", "p90", "source")
    rows = [
        (name, f"{one.matmul_share:.3f}", f"{one.layer_overhead_s:.3g}", f"{one.spread.p10:.3f}", f"{one.spread.p90:.3f}", source)
        for name, one, source in (("published", published, "published measurements"), ("yours", own, own.source))
    ]
    return columns([head, *rows])
