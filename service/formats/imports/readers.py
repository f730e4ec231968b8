"""Readers of imported files by their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from service.domain.tracking.imports import ImportedFile
from service.formats.imports.dcgm import read_dcgm
from service.formats.imports.focus import CostBasis, read_focus
from service.formats.imports.mlflow import read_mlflow
from service.formats.imports.sacct import read_sacct
from service.formats.imports.wandb import read_wandb

READERS: Mapping[str, Callable[[bytes], ImportedFile]] = {
    "focus": read_focus,
    "sacct": read_sacct,
    "mlflow": read_mlflow,
    "wandb": read_wandb,
    "dcgm": read_dcgm,
}
"""Readers by kind of import."""


def read_file(kind: str, content: bytes, basis: CostBasis = "effective") -> ImportedFile:
    """Contents of a file of a kind. `basis`: which cost of an invoice counts. Raises InvalidRequest for a file that is not of its kind."""
    return read_focus(content, basis) if kind == "focus" else READERS[kind](content)
