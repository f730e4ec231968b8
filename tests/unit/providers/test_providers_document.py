"""docs/reference/providers.md says what is: its table of providers and its price files; the guide shows the example package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest

from providers.base import Context
from providers.file import DISCOUNT_FIELDS, PRICE_FIELDS, PriceFiles
from providers.file.sheets import BOOK_FIELDS
from providers.http import BULK_LIMITS, DEFAULT_LIMITS, RETRIED_STATUSES
from providers.offer import PRICINGS, Availability, Fetched, Provider
from providers.registry import BUILT_IN, ENTRY_POINT_GROUP, load_provider
from providers.testing import FAILURES
from service.presets.hardware.accelerators import canonical_accelerator

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples" / "outlay-nimbus"
TEXT = (ROOT / "docs" / "reference" / "providers.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "how-to" / "add-a-provider.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells[1:] for line in TEXT.splitlines() if len(cells := line.strip("| ").split(" | ")) == 6 and "`" in cells[0]
}


def provider_class(name: str) -> type[Provider]:
    """The class that the registry's line leads to."""
    module, attribute = BUILT_IN[name].split(":")
    found = getattr(import_module(module), attribute)
    assert issubclass(found, Provider)
    return found


def written(promise: timedelta) -> str:
    """A promise as the table writes it."""
    minutes = promise // timedelta(minutes=1)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes <= 24 * 60 else f"{promise.days} d"


def test_the_table_names_every_provider_in_order() -> None:
    """One line for one line of the registry."""
    assert list(ROWS) == sorted(BUILT_IN)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_providers_line_is_that_of_its_class(name: str) -> None:
    """Credentials that are needed and the promise are the class's own; the claims are among those there are."""
    found = provider_class(name)
    _, credentials, pricings, availability, promise = ROWS[name]
    needed = tuple(re.findall(r"`(\w+)`", re.sub(r"\(.*\)", "", credentials)))
    assert (needed, promise) == (found.credentials, written(found.fresh_for))
    assert set(pricings.split(", ")) <= set(PRICINGS)
    assert availability in get_args(Availability)


def test_the_limits_in_the_text_are_those_of_the_session() -> None:
    """Seconds, bytes and statuses."""
    limits = DEFAULT_LIMITS
    text = " ".join(TEXT.split())
    assert f"{limits.connect_s:g} s to connect, {limits.read_s:g} s between two reads and {limits.total_s:g} s in all" in text
    assert f"{limits.max_bytes // 2**20} MiB unpacked (`lines`: {BULK_LIMITS.total_s:g} s, {BULK_LIMITS.max_bytes // 2**30} GiB)" in text
    *first, last = sorted(RETRIED_STATUSES)
    assert f"repeats a GET twice after {', '.join(map(str, first))}, {last} or a reset connection" in text
    assert limits.retries == 2
    assert len(FAILURES) >= 10


def test_every_field_of_a_price_file_is_described() -> None:
    """None is left to be guessed."""
    assert [name for name in PRICE_FIELDS if f"`{name}`" not in TEXT] == []
    assert [name for name in (*BOOK_FIELDS, *DISCOUNT_FIELDS) if not re.search(rf"[\s{{`]{name}[`:]", TEXT)] == []


@pytest.mark.parametrize("kind", ["csv", "yaml"])
def test_the_price_files_in_the_text_are_read_without_a_rejected_row(kind: str, tmp_path: Path) -> None:
    """What a reader copies works."""
    fetched = read(kind, 0, tmp_path)
    assert (fetched.rejected, [offer.usd_per_hour for offer in fetched.offers]) == ((), [Decimal("17.04")])
    assert [discount.share for discount in fetched.discounts] == ([Decimal("0.12"), Decimal("0.03")] if kind == "yaml" else [])


def test_the_teams_book_in_the_text_is_that_teams_alone(tmp_path: Path) -> None:
    """Prices and discounts."""
    fetched = read("yaml", 1, tmp_path)
    assert (fetched.offers, fetched.discounts, fetched.rejected) == ((), (), ())
    own = fetched.teams["vision"]
    assert ([offer.usd_per_hour for offer in own.offers], [one.share for one in own.discounts]) == ([Decimal("15.84")], [Decimal("0.05")])


def read(kind: str, position: int, folder: Path) -> Fetched:
    """What one of the price files in the text brings."""
    path = folder / f"prices.{kind}"
    path.write_text(re.findall(rf"```{kind}\n(.*?)```", TEXT, flags=re.DOTALL)[position], encoding="utf-8")
    return PriceFiles(Context(canonical=canonical_accelerator, env={"OUTLAY_PRICE_FILES": str(path)})).fetch()


@pytest.mark.parametrize("name", ["pyproject.toml", "outlay_nimbus/__init__.py"])
def test_the_example_in_the_text_is_the_one_that_is_tested(name: str) -> None:
    """Block and file are the same."""
    (block,) = re.findall(rf"`{re.escape(name)}`\n\n```\w+\n(.*?)```", GUIDE, flags=re.DOTALL)
    assert block == (EXAMPLE / name).read_text(encoding="utf-8")


def test_the_example_passes_its_own_tests() -> None:
    """As its author runs them: in its folder, with the project installed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pyproject.toml"]
    ran = subprocess.run(command, cwd=EXAMPLE, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"\d+ passed", ran.stdout)


def test_the_example_is_found_by_the_entry_point_of_its_pyproject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed as pip installs it: a distribution whose metadata name the entry point."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = tmp_path / "outlay_nimbus-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"{name} = {target}" for name, target in project["entry-points"][ENTRY_POINT_GROUP].items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{ENTRY_POINT_GROUP}]", *lines, ""]))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLE))
    provider = load_provider("nimbus", Context(canonical=canonical_accelerator))
    assert (provider.name, provider.credentials) == ("nimbus", ("NIMBUS_API_KEY",))
    sys.modules.pop("outlay_nimbus")
