"""How a provider is found by its name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from providers.base import Context
from providers.offer import Fetched, Provider
from providers.registry import BUILT_IN, ENTRY_POINT_GROUP, UnknownProvider, load_provider, provider_names
from service.presets.hardware.accelerators import canonical_accelerator

CONTEXT = Context(canonical=canonical_accelerator, env={})


class Elsewhere(Provider):
    """A provider of another package."""

    name = "elsewhere"
    fresh_for = timedelta(hours=1)

    def __init__(self, context: Context) -> None:
        self.context = context

    def fetch(self) -> Fetched:
        return Fetched((), "elsewhere-1")


@pytest.fixture
def installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A real installed distribution with a module and entry points: a good one, one that is no provider, one with a built-in's name."""
    lines = ["elsewhere = outlay_elsewhere:Elsewhere", "wrong = outlay_elsewhere:VERSION", "snapshot = outlay_elsewhere:Elsewhere"]
    info = tmp_path / "outlay_elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outlay-elsewhere\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join([f"[{ENTRY_POINT_GROUP}]", *lines, ""]))
    (tmp_path / "outlay_elsewhere.py").write_text(f"from {__name__} import Elsewhere\nVERSION = '1.0'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("outlay_elsewhere", None)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_provider_loads_and_answers_to_its_own_name(name: str) -> None:
    """The table's line leads to a provider class of that name, which says how long its prices hold."""
    provider = load_provider(name, CONTEXT)
    assert provider.name == name
    assert provider.fresh_for > timedelta(0)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    """The error says what there is and where packages add theirs."""
    with pytest.raises(UnknownProvider, match=r"'nimbus'.*snapshot.*outlay\.providers"):
        load_provider("nimbus", CONTEXT)


def test_importing_the_registry_imports_no_provider() -> None:
    """A provider costs nothing until it is used."""
    code = "import sys, providers.registry; sys.exit('providers.snapshot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


@pytest.mark.usefixtures("installed_package")
def test_an_installed_package_adds_a_provider_by_entry_point() -> None:
    """It stands among the names and is made with the context it is given."""
    assert "elsewhere" in provider_names()
    provider = load_provider("elsewhere", CONTEXT)
    assert (provider.name, vars(provider)) == ("elsewhere", {"context": CONTEXT})


@pytest.mark.usefixtures("installed_package")
def test_a_package_cannot_take_over_a_built_in_name() -> None:
    """The built-in one answers, and the name is listed once."""
    assert load_provider("snapshot", CONTEXT).name == "snapshot"
    assert provider_names().count("snapshot") == 1


@pytest.mark.usefixtures("installed_package")
def test_an_entry_point_that_is_no_provider_is_refused() -> None:
    """The error names the entry and what it led to."""
    with pytest.raises(TypeError, match=r"'wrong' leads to '1\.0'"):
        load_provider("wrong", CONTEXT)
