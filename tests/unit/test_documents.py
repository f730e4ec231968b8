"""The documents say what is: the README's answer, settings and commands, and nothing that must not be in a committed file."""

from __future__ import annotations

import csv
import functools
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench import notebooks
from bench.readme import (
    FOLLOWED,
    REINFORCEMENT,
    RESULTS,
    SCENARIOS,
    TOUR,
    TRUST,
    filled,
    followed,
    put,
    with_accuracy,
    with_phases,
    with_result,
    with_trials,
)
from bench.session import follow, is_shown, session
from providers import registry
from service.cli import COMMANDS, main
from tests.support.rows import for_each
from tools import document_tree

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
TUTORIALS = [page for page in FOLLOWED if page.parent.name == "tutorials"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# Pieced together, so that this file does not hold what it looks for.
REGISTRIES = re.compile("|".join(("py" + r"pi\.org", "python" + r"hosted\.org", "registry\\.npm" + r"js")))


def test_the_tour_shows_the_real_answers() -> None:
    """`make readme` would change nothing."""
    assert filled(TOUR.read_text(encoding="utf-8")) == TOUR.read_text(encoding="utf-8")


def test_the_page_on_trust_has_the_figures_of_the_page_on_accuracy() -> None:
    """`make readme` would change nothing."""
    page = TRUST.read_text(encoding="utf-8")
    assert "| the accelerator-hours of a whole run | " in page
    assert with_accuracy(page) == page


def test_the_page_on_reinforcement_learning_shows_the_real_phases() -> None:
    """Of the request above them: `make readme` writes them."""
    page = REINFORCEMENT.read_text(encoding="utf-8")
    assert page == with_phases(page)


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.stem)
def test_pages_show_what_their_reader_sees(page: Path) -> None:
    """Command by command, as they stand on the page; `make readme` writes what they print, and reports quotes that none prints."""
    found = followed(page)
    assert found.text == page.read_text(encoding="utf-8")
    assert found.unsaid == []


def test_every_tutorial_is_followed() -> None:
    """None is left out because its commands are written in another form."""
    assert {path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md")} - {page.stem for page in FOLLOWED} == {"index"}


@pytest.mark.parametrize("page", notebooks.pages(), ids=lambda page: page.stem)
def test_a_notebook_has_the_same_cells_for_jupyter(page: Path) -> None:
    """`make clients` runs them and compares what they show."""
    cells = json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]
    shown = [found["code"].rstrip("\n") for found in notebooks.CELL.finditer(page.read_text(encoding="utf-8"))]
    assert [cell["source"] for cell in cells if cell["cell_type"] == "code"] == shown
    assert all((notebooks.FOLDER / found["name"]).is_file() for found in notebooks.PICTURE.finditer(page.read_text(encoding="utf-8")))


def test_every_tutorial_has_a_picture_that_says_its_finding() -> None:
    """Also to those who do not see it; no picture is left over."""
    pictures = {
        page: re.findall(r"!\[(.*?)\]\((?:\.\./)*(?:docs/)?pictures/(\w+)\.svg\)", page.read_text(encoding="utf-8")) for page in PAGES
    }
    assert [page.stem for page in TUTORIALS if not pictures[page]] == []
    shown = [picture for page in pictures.values() for picture in page]
    assert [name for alternative, name in shown if len(alternative.split()) < 4] == []
    assert {name for _, name in shown} == {path.stem for path in (ROOT / "docs" / "pictures").glob("*.svg")}


def test_a_page_that_shows_something_else_is_corrected() -> None:
    """A whole output is written anew, one with an ellipsis only where it says something else; a quote that nobody prints is reported."""
    page = "> a b\n> c\n```\n$ echo a b\nold\n```\n```console\n$ export X=$(echo d)\n$ echo $X e\n… e\n$ echo $X f\n… e\n```\n"
    found = follow(page)
    assert found.text == page.replace("old", "a b").replace("f\n… e", "f\nd f")
    assert found.unsaid == ["c"]


def test_a_command_that_fails_is_not_written_into_a_page() -> None:
    """Where its whole output is shown; others may show how something fails."""
    with pytest.raises(ValueError, match="not-there"):
        follow("```\n$ cat not-there.json\n```\n")
    assert "No such file" in follow("```console\n$ cat not-there.json\n```\n").text


def test_shown_lines_may_leave_out_what_differs() -> None:
    """Parts of a line, and whole lines; nothing else."""
    assert is_shown("key 12 of ops\na\nb\nend\n", "key … of ops\n…\nend\n")
    assert not is_shown("key 12 of ops\na\n", "key … of ops\n")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_code_that_tutorials_show_is_that_of_their_scripts(page: Path) -> None:
    """Each block of a language stands in a script that the page runs."""
    text = page.read_text(encoding="utf-8")
    scripts = "".join(
        (ROOT / name).read_text(encoding="utf-8") for name in set(re.findall(r"[\w/]+/tutorials/\w+\.py|clients/[\w/]+\.ts", text))
    )
    assert [block for block in re.findall(r"```(?:python|ts)\n(.*?)```", text, flags=re.DOTALL) if block not in scripts] == []


def test_the_page_on_scenarios_shows_the_real_result() -> None:
    """Of its first request: `make readme` writes it."""
    page = SCENARIOS.read_text(encoding="utf-8")
    assert page == with_trials(page)


def test_the_page_on_kept_results_shows_the_real_answer() -> None:
    """Of its request: `make readme` writes it."""
    page = RESULTS.read_text(encoding="utf-8")
    assert page == with_result(page)


def test_the_tour_says_what_the_optimum_is() -> None:
    """Its sizes are the answer's: `make readme` would change them."""
    page = TOUR.read_text(encoding="utf-8")
    found = put(page, "optimum", "answers 1B\n")
    assert found != page
    assert filled(found) == page


def test_the_readme_counts_right() -> None:
    """Its figures are of what ships: models, accelerators, prices, clouds, sources and measurements."""
    models, accelerators = (_count_entries(name) for name in ("models", "accelerators"))
    prices = list(csv.DictReader((ROOT / "providers" / "data" / "snapshot.csv").read_text(encoding="utf-8").splitlines()))
    measured = json.loads((ROOT / "bench" / "accuracy" / "recorded.json").read_text(encoding="utf-8"))
    live = set(registry.BUILT_IN) - {"file", "snapshot"}
    said = (
        f"{models // 10 * 10} model presets",
        f"{accelerators} accelerators",
        f"{len({row['provider'] for row in prices})} clouds",
        f"{len(prices) // 100 * 100:,} list, spot and reserved prices",
        f"{len(live)} live sources",
        f"{measured['all']['rows']:,} published measurements",
    )
    assert [words for words in said if words not in README] == []


def _count_entries(name: str) -> int:
    with (ROOT / "service" / "presets" / "data" / f"{name}.toml").open("rb") as file:
        return len(tomllib.load(file)[name.rstrip("s")])


def test_the_command_of_the_readme_is_answered() -> None:
    """The one that a reader tries first."""
    asked = re.search(r"^\.venv/bin/outlay (.*?) +#", README, flags=re.MULTILINE)
    assert asked is not None
    with session() as reader:
        assert "About $" in reader.run(f"outlay {asked[1]}")[0]


def test_the_readme_is_short_and_leads_somewhere() -> None:
    """Every file that it links to is there."""
    assert len(README.splitlines()) < 150
    assert [link for link in re.findall(r"\]\(([^):]+)\)", README) if not (ROOT / link.partition("#")[0]).is_file()] == []


def test_the_architecture_shows_the_tree_as_it_is() -> None:
    """Every package with its modules; `make readme` would change nothing."""
    text = document_tree.DOCUMENT.read_text(encoding="utf-8")
    assert document_tree.filled(text) == text


def test_every_command_the_readme_names_exists() -> None:
    """Commands and make targets in the README can be run."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE)) <= targets
    assert set(re.findall(r"`outlay ([a-z]+(?:-[a-z]+)*)", README)) <= set(COMMANDS)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(command: str) -> None:
    """`outlay <command> --help` answers."""
    found = CliRunner().invoke(main, [command, "--help"])
    assert found.exit_code == 0
    assert "Usage:" in found.output


def test_no_committed_file_names_a_registry() -> None:
    """A clone installs from whatever index its user has."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    if not names:
        pytest.skip("not a git checkout")
    held = [name for name in names if (ROOT / name).is_file() and (ROOT / name).stat().st_size < 2_000_000]
    assert [name for name in held if REGISTRIES.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))] == []


@for_each("document", sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")))
def test_modules_that_documents_name_exist(document: str) -> None:
    """`engine/training/flops.py` is a file below the root or below service/, a bare name a file anywhere."""
    names = set(re.findall(r"`([a-z_0-9/]+\.py)`", (ROOT / document).read_text(encoding="utf-8")))
    assert [name for name in names if not any(file == name or file.endswith(f"/{name}") for file in modules())] == []


@functools.cache
def modules() -> set[str]:
    """Paths of all Python files of the project."""
    rooms = ("service", "providers", "workers", "outlay_client", "tools", "bench", "tests", "docs", "examples")
    return {path.relative_to(ROOT).as_posix() for room in rooms for path in (ROOT / room).rglob("*.py")}


def test_what_the_package_depends_on_is_locked() -> None:
    """A fresh installation has every dependency: what moved to them from the development ones moves between the locks too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), flags=re.MULTILINE))
    asked = {match[0].lower() for each in project["dependencies"] if (match := re.match(r"[A-Za-z0-9-]+", each))}
    assert asked - locked == set()


def test_locks_pin_every_package_by_hash() -> None:
    """Each requirement of both locks carries hashes, and names no index."""
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        requirements = re.split(r"\n(?=[a-z0-9])", text.strip())
        assert len(requirements) > 20
        assert [entry.split()[0] for entry in requirements if "--hash=sha256:" not in entry] == []
        assert "index-url" not in text
