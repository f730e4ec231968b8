"""The command `outlay calibrate --measure`: a measurement of this machine, and its figures as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from service.cli.terminal.options import OUT_FILE
from service.cli.terminal.server import here_only
from service.cli.terminal.tables import columns, figure


@click.command()
@click.option("--measure", is_flag=True, help="Time this machine's GPU with PyTorch; your estimates of that accelerator use the result.")
@click.option("--layers", type=click.IntRange(1, 1000), help="Decoder layers; default: 4, or as many as fit.")
@click.option("--hidden", "hidden_size", type=click.IntRange(64, 65536), help="Hidden size; default: 1024 to 8192 as fit.")
@click.option("--seq", "seq_len", type=click.IntRange(1, 1_000_000), help="Tokens a sequence; default: 4096.")
@click.option("--micro-batch", type=click.IntRange(1, 4096), help="Sequences a step; default: up to 8, as fit.")
@click.option("--steps", type=click.IntRange(1, 10_000), help="Timed steps of each shape, of which the median counts; default: 20.")
@click.option("--accelerator", help="What the GPU is, where its own name is not known (see `outlay accelerators`).")
@click.option("--out", type=OUT_FILE, help="Write the whole measurement to this JSON file too.")
@here_only("the GPU of this machine is measured, for estimates that are made on it", "Run it on the service's machine")
def calibrate(*, measure: bool, out: Path | None, **options: Any) -> None:
    """Measure your own machine, so that your estimates use its figures."""
    if not measure:
        raise click.UsageError("give --measure; the fit to published measurements is `python -m tools.calibration` in a source checkout")
    _measure(options, out)


def _measure(options: Mapping[str, Any], out: Path | None) -> None:
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
