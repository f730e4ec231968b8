"""The command `outlay calibrate --measure`: a measurement of this machine, and its figures as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.tables import columns, figure


def measured(options: Mapping[str, Any], out: Path | None) -> None:
    """Measure, show, keep: in the data directory where the device is an accelerator, in `out` where asked."""
    from service.config import BadSetting, load_settings
    from service.container import utc_now
    from service.domain.training.utilisation import BadMeasurement
    from service.usecases.measurement.measure import BenchmarkOptions, CannotMeasure, measure, save_measurement

    try:
        folder = load_settings(os.environ).data_dir
        document = measure(BenchmarkOptions(**options), utc_now().date(), lambda text: click.echo(text, err=True))
        click.echo(measured_table(document))
        if out is not None:
            out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if document["accelerator"] is None:
            click.echo("not stored: a CPU is no accelerator the estimates know")
            return
        file = save_measurement(document, folder)
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
    from service.usecases.measurement.measure import utilisation_with

    published, own = utilisation_with(document)
    head = ("", "share of peak", "launch s a layer", "p10", "p90", "source")
    rows = [
        (name, f"{one.matmul_share:.3f}", f"{one.layer_overhead_s:.3g}", f"{one.spread.p10:.3f}", f"{one.spread.p90:.3f}", source)
        for name, one, source in (("published", published, "published measurements"), ("yours", own, own.source))
    ]
    return columns([head, *rows])
