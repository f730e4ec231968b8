"""List the licences in a software bill of materials, as `make sbom` does after it has made one.

`python -m tools.licences sbom.cdx.json` prints CSV: name, version, licence. A component without a licence is listed as unknown.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

UNKNOWN = "unknown"
Component = Mapping[str, Any]


def licences(bill: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Name, version and licence of every component of a CycloneDX bill, by name."""
    components: Iterable[Component] = bill.get("components", ())
    return sorted((component["name"], component.get("version", ""), _licence(component)) for component in components)


def _licence(component: Component) -> str:
    """An SPDX expression or id where the component has one, else what it calls its licence; several are joined by AND."""
    stated = [choice.get("expression") or choice.get("license", {}) for choice in component.get("licenses", ())]
    named = [choice if isinstance(choice, str) else choice.get("id") or choice.get("name", UNKNOWN) for choice in stated]
    return " AND ".join(dict.fromkeys(" ".join(name.split())[:100] for name in named)) or UNKNOWN


def main() -> None:
    """Print the table of the bill that is named on the command line."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("name", "version", "licence"))
    writer.writerows(licences(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
