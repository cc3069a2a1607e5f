"""The README and the manual: every block of code runs as it stands, and links, quotes, figures and names hold."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import dpplearn
from dpplearn import datasets, plots
from helpers.manual import DOCS, ROOT, blocks, calls, run_call, run_python, served, write_files, write_raw_orders

sys.path.insert(0, str(DOCS))

from figures import drawing

FOLDERS = ("start", "guide", "understand")
PAGES = [ROOT / "README.md", *sorted(page for each in FOLDERS for page in (DOCS / each).glob("*.md"))]
PAGES += [DOCS / "results" / "comparing-learners.md"]
PYTHON, SHELL = ("python", "{code-cell}"), ("sh",)
NO_CODE = ("", "text", "ini", "dockerfile", "{toctree}", "{drawn}")

# What is shown and not run here: it installs, builds, or waits for requests.
NOT_RUN = {
    "README.md": ["$ make demo", "$ make test"],
    "install.md": ["$ pip install dpplearn"],
    "service.md": [
        "$ pip install 'dpplearn[serve]'",
        "$ dpplearn serve models/",
        "$ make demo-serve",
        "$ curl -s localhost:8000/v1/models/safety/recommend",
        "$ dpplearn prepare 'orders/*.parquet' -o prepared/ && dpplearn fit-all prepared/ -o models/",
    ],
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("manual")
    return folder, write_files(folder)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs_as_it_stands(
    page: Path, files: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, names = files[0], dict(files[1])
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    if page.name == "pipeline.md":
        write_raw_orders(tmp_path)
    with contextlib.chdir(tmp_path), served(tmp_path / "served"):
        for block in blocks(page):
            if block.language in PYTHON:
                run_python(block, page, names)
            for words in calls(block) if block.language in SHELL else ():
                run_call(words)


def test_blocks_that_are_not_run_are_listed() -> None:
    known = (*PYTHON, *SHELL, *NO_CODE, "console")
    for page in PAGES:
        found = blocks(page)
        assert [block for block in found if block.language not in known] == []
        unmarked = [block.text for block in found if block.language == ""]
        assert [text for text in unmarked if re.search(r"^(dpplearn|make|pip) ", text, re.M)] == []
        lines = [line for block in found if block.language == "console" for line in block.text.splitlines()]
        shown = [re.split(r"\s{2,}|\s\\$|\s#|\s-H", line)[0] for line in lines if line.startswith("$ ")]
        assert shown == NOT_RUN.get(page.name, []), page


def test_a_block_that_fails_is_told_by_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\n1 / 0\n```\n\n```sh\ndpplearn no-such-command\n```\n", encoding="utf-8")
    python, shell = blocks(page)
    with pytest.raises(ZeroDivisionError):
        run_python(python, page, {})
    with pytest.raises(AssertionError, match="no-such-command"):
        run_call(*calls(shell))


def test_the_readme_quotes_only_measured_numbers() -> None:
    """Each number of its tables is on the results page that says how it was measured."""
    readme = (ROOT / "README.md").read_text("utf-8")
    for heading, page in (("## The paper's results", "reproduction.md"), ("## Prediction", "models.md")):
        section = readme.split(heading)[1].split("\n## ")[0]
        cells = [cell.strip(" *") for line in re.findall(r"^\| .*$", section, re.M) for cell in line.split("|")]
        numbers = [cell for cell in cells if re.fullmatch(r"[−-]?\d+\.\d+", cell)]
        assert len(numbers) >= 10
        measured = (DOCS / "results" / page).read_text("utf-8").replace("−", "-")
        assert [number for number in numbers if number.replace("−", "-") not in measured] == []


def test_every_link_to_a_page_leads_to_one() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "examples" / "README.md"]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text("utf-8"))]
    assert len(links) > 50
    assert [(page.name, link) for page, link in links if not (page.parent / link).exists()] == []


def test_every_public_name_is_in_the_reference() -> None:
    listed = re.findall(r"^   (\w+)$", (DOCS / "reference" / "api.md").read_text("utf-8"), re.M)
    public = [*dpplearn.__all__, *datasets.__all__, *plots.__all__]
    assert sorted(listed) == sorted(set(public) - {"__version__", "datasets", "CATEGORIES"})


def unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


def misquoted(page: str) -> list[str]:
    """Return the Python blocks of a page that do not occur in the source file named last before them."""
    found, file = [], ROOT
    for path, block in re.findall(r"`(src/[\w/]+\.py)`|^ *```python\n(.*?)^ *```$", page, re.M | re.S):
        file = ROOT / path if path else file
        if block and not (file.is_file() and unindented(block) in unindented(file.read_text("utf-8"))):
            found.append(block)
    return found


def test_code_quoted_for_contributors_is_in_the_source() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert page.count("```python") >= 5
    assert misquoted(page) == []
    changed = page.replace("remaining_gain),", "other_rule),")
    assert len(misquoted(changed)) == 1  # the check can fail


def test_paths_named_in_the_manual_exist() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    pages.remove(ROOT / "CHANGELOG.md")
    named = {(page, path) for page in pages for path in re.findall(r"`([a-z_]+/[\w./]+\.py)`", page.read_text("utf-8"))}
    roots = (ROOT, ROOT / "src" / "dpplearn")
    assert len(named) > 30
    assert [(page.name, path) for page, path in named if not any((root / path).is_file() for root in roots)] == []


def test_the_version_is_the_same_everywhere() -> None:
    version = dpplearn.__version__
    assert re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M)[1] == version
    assert re.search(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1] == version


def words(file: Path) -> list[str]:
    """All that is written in a picture. Where it lies differs in the last digits between processors."""
    return re.findall(r"<text[^>]*>(.*?)</text>", file.read_text(encoding="utf-8"), re.S)


@pytest.mark.slow
def test_the_picture_of_the_readme_is_what_its_script_draws(tmp_path: Path) -> None:
    """If it is not, `make picture` draws it anew."""
    drawing.draw_all(tmp_path, ["basket"])
    for theme in drawing.THEMES:
        name = drawing.file_name("basket", theme)
        assert words(tmp_path / name) == words(DOCS / "figures" / name)
        assert len(words(tmp_path / name)) > 30
        assert name in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_figure_is_drawn_for_a_page() -> None:
    shown = re.findall(r"^```{drawn} (\w+)$", "\n".join(page.read_text("utf-8") for page in DOCS.rglob("*.md")), re.M)
    assert set(shown) == set(drawing.names())
