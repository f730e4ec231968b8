"""What the build runs first: makes `outlay_sdk.generated` of the specification."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GeneratedCode(BuildHookInterface[Any]):
    """Generates the code anew; in an unpacked source distribution, which has no specification, it is there already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Run the generator. Raises CalledProcessError where it cannot read all of the specification."""
        root = Path(self.root)
        specification = root.parent.parent / "openapi.yaml"
        if specification.exists():
            generate(specification, root)


def generate(specification: Path, root: Path) -> None:
    """Make the package; a part that the generator would leave out is an error."""
    options = {"--path": specification, "--config": root / "generator.yaml", "--output-path": root / "outlay_sdk" / "generated"}
    words = [str(word) for option in options.items() for word in option]
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning", "--overwrite", *words]
    subprocess.run(command, check=True)  # noqa: S603 - our own words
