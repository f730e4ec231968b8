"""What the fit takes as given, from `frame.toml`: precision classes, who borrows from whom, the reach of fast links."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from service.presets.utilisation import Key, Parameters, Share

FILE = Path(__file__).parent / "frame.toml"


def frame(shared: Mapping[str, float], matmul: Mapping[Key, Share], other: Mapping[Key, Share]) -> Parameters:
    """Parameters with these fitted values in the given frame."""
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Parameters(
        shared=shared,
        matmul=matmul,
        other=other,
        classes={name: kind for kind, names in document["classes"].items() for name in names},
        neighbours={name: tuple(order) for name, order in document["neighbours"].items()},
        relatives={name: tuple(order) for name, order in document["relatives"].items()},
        domains={name: row["accelerators"] for name, row in document["link_domain"].items()},
        borrowed_power=document["borrowed"]["spread_power"],
    )
