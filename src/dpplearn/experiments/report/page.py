"""The report: one HTML file that needs no other, and its figures as files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from dpplearn.errors import InputError
from dpplearn.experiments.report.claims import Claim
from dpplearn.experiments.report.parts import FIGURES, all_claims, all_figures, all_sections, summarise
from dpplearn.experiments.results import COLUMNS, Results, Table
from dpplearn.tools.files import replace_file

REPORT = "report.html"
FILES = (REPORT, *(f"{name}.svg" for name in FIGURES))  # at most


@dataclass(frozen=True)
class Report:
    """Where it was written, and what it says."""

    path: Path
    figures: tuple[Path, ...]
    tables: dict[str, Table | None]
    claims: tuple[Claim, ...]


def check_installed() -> None:
    """The report is an extra: say so before anything is run."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError(f'the report needs {error.name}: pip install "dpplearn[report]"') from None


def write_report(folder: Path, results: Results) -> Report:
    """Draw everything from the rows alone."""
    tables = summarise(results)
    found = all_claims(tables, original=results.about.data == "original")
    drawn = all_figures(tables)
    figures = tuple(folder / f"{name}.svg" for name in drawn)
    for path, text in zip(figures, drawn.values(), strict=True):
        replace_file(path, f'<?xml version="1.0" encoding="utf-8"?>\n{text}'.encode())
    replace_file(folder / REPORT, _html(results, tables, found, drawn).encode())
    return Report(folder / REPORT, figures, tables, tuple(found))


def _html(results: Results, tables: dict[str, Table | None], found: list[Claim], drawn: dict[str, str]) -> str:
    from jinja2 import Environment

    template = files("dpplearn.experiments.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    return (
        Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        .from_string(template)
        .render(
            about=results.about,
            finished=results.finished.replace("T", " ").replace("+00:00", " UTC"),
            command=results.command,
            paper=results.paper,
            claims=found,
            sections=all_sections(tables),
            figures=drawn,
            columns=COLUMNS,
        )
    )
