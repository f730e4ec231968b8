"""Values of a program's request, or their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.presets.programs import find_program_default
from service.usecases.resolution.assumption_log import AssumptionLog


def take_or_default(section: Mapping[str, Any], path: str, notes: AssumptionLog) -> Any:
    """The value stated in `section` for the last part of `path`, else the program default of that name, noted as an assumption."""
    default = find_program_default(path.rpartition(".")[2])
    return notes.take(section, path, default.value, default.source)
